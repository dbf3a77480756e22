"""The exit codes of the command line, and which error ends with which.

The one place where they are told; scripts may rely on them.

====  ======================================================================================
0     done
1     done, and the answer is a finding: `doctor` found something, `demo` fell short
2     usage: unknown command or option, missing argument, unreadable input file
3     not found: no such anchor, session, workspace, host or change to undo
4     refused: a field out of bounds, a secret, a full scope, an ambiguous name, a bad document
5     conflict: the anchors changed since they were read, or another process holds the lock
6     unavailable: the data folder, the private environment or a stored file can't be used
70    internal error, a defect of context-anchor
130   interrupted (Ctrl-C)
141   the reader of the output went away (as in `context-anchor list | head -1`)
====  ======================================================================================
"""

from __future__ import annotations

from context_anchor import errors

OK = 0
FINDING = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
CONFLICT = 5
UNAVAILABLE = 6
INTERNAL = 70
INTERRUPTED = 130
READER_GONE = 141

# The first that fits counts, so a kind stands before those it belongs to.
_BY_KIND: tuple[tuple[type[errors.ContextAnchorError], int], ...] = (
    (errors.UsageError, USAGE),
    (errors.AnchorNotFoundError, NOT_FOUND),
    (errors.SessionUnknownError, NOT_FOUND),
    (errors.WorkspaceUnknownError, NOT_FOUND),
    (errors.NothingToUndoError, NOT_FOUND),
    (errors.HostNotFoundError, NOT_FOUND),
    (errors.ArtifactNotFoundError, NOT_FOUND),
    (errors.InvalidAnchorError, REFUSED),
    (errors.AmbiguousTitleError, REFUSED),
    (errors.SessionAmbiguousError, REFUSED),
    (errors.ImportFormatError, REFUSED),
    (errors.HostConfigError, REFUSED),
    (errors.NotJsonError, REFUSED),
    (errors.InvalidConfigError, REFUSED),
    (errors.InvalidStateError, REFUSED),
    (errors.ProjectEscapeError, REFUSED),
    (errors.InvalidArtifactIdError, REFUSED),
    (errors.MigrationRefusedError, REFUSED),
    (errors.StaleRevisionError, CONFLICT),
    (errors.LockTimeoutError, CONFLICT),
    (errors.StoreError, UNAVAILABLE),
    (errors.InstallError, UNAVAILABLE),
    (errors.EngineError, UNAVAILABLE),
)


def exit_code(error: errors.ContextAnchorError) -> int:
    """Return the code a command ends with after this error."""
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), INTERNAL)
