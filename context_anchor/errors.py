"""The exception tree of context-anchor, one stable code per kind.

::

    ContextAnchorError
    |-- UsageError                  usage
    |-- InvalidAnchorError          invalid_anchor
    |   |-- ContentTooLongError     content_too_long
    |   |-- ScopeFullError          scope_full
    |   `-- SecretRefusedError      secret_refused
    |-- AnchorNotFoundError         anchor_not_found
    |-- AmbiguousTitleError         ambiguous_title
    |-- StaleRevisionError          stale_revision
    |-- NothingToUndoError          nothing_to_undo
    |-- ImportFormatError           import_format
    |-- SessionUnknownError         session_unknown
    |-- SessionAmbiguousError       session_ambiguous
    |-- WorkspaceUnknownError       workspace_unknown
    |-- StoreError                  store
    |   |-- StoreUnavailableError   store_unavailable
    |   |-- StoreCorruptError       store_corrupt
    |   |-- StoreNewerError         store_newer
    |   `-- LockTimeoutError        lock_timeout
    |-- InstallError                install
    |   |-- HostNotFoundError       host_not_found
    |   |-- HostConfigError         host_config
    |   `-- EnvironmentSetupError   environment_setup
    `-- EngineError                 engine
        |-- NotJsonError            not_json
        |-- InvalidConfigError      invalid_config
        |-- InvalidStateError       invalid_state
        |-- ProjectEscapeError      project_escape
        |-- MemoryUnavailableError  memory_unavailable
        |-- MemoryDamagedError      memory_damaged
        |-- InvalidArtifactIdError  invalid_artifact_id
        |-- ArtifactNotFoundError   artifact_not_found
        |-- ArtifactIntegrityError  artifact_integrity
        `-- MigrationRefusedError   migration_refused
"""

from __future__ import annotations

from typing import ClassVar


class ContextAnchorError(Exception):
    """Something a person or agent can act on.

    Attributes:
        code: Stable, machine-readable name of the kind; message wording may change, this may not.
        message: What was wrong, where, and the value.
        hint: What to do next; may be empty.
    """

    code: ClassVar[str] = "context_anchor"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        separator = " " if self.message.endswith((".", "!", "?")) else ". "
        return self.message + separator + self.hint

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.message, self.hint)


def _restore(kind: type[ContextAnchorError], message: str, hint: str) -> ContextAnchorError:
    return kind(message, hint=hint)


class UsageError(ContextAnchorError):
    """A command or call was given words it does not take."""

    code: ClassVar[str] = "usage"


class InvalidAnchorError(ContextAnchorError):
    """A field of an anchor is out of its bounds."""

    code: ClassVar[str] = "invalid_anchor"


class ContentTooLongError(InvalidAnchorError):
    """Content is longer than one anchor may hold."""

    code: ClassVar[str] = "content_too_long"


class ScopeFullError(InvalidAnchorError):
    """The scope already holds as many anchors as it may."""

    code: ClassVar[str] = "scope_full"


class SecretRefusedError(InvalidAnchorError):
    """The text looks like it holds a secret."""

    code: ClassVar[str] = "secret_refused"


class AnchorNotFoundError(ContextAnchorError):
    """No anchor has that id or title in the scopes searched."""

    code: ClassVar[str] = "anchor_not_found"


class AmbiguousTitleError(ContextAnchorError):
    """Several anchors fit the title; the message lists them."""

    code: ClassVar[str] = "ambiguous_title"


class StaleRevisionError(ContextAnchorError):
    """The scope or anchor has changed since the caller read it."""

    code: ClassVar[str] = "stale_revision"


class NothingToUndoError(ContextAnchorError):
    """The journal holds no change that could be undone."""

    code: ClassVar[str] = "nothing_to_undo"


class ImportFormatError(ContextAnchorError):
    """A document to import is not what export writes."""

    code: ClassVar[str] = "import_format"


class SessionUnknownError(ContextAnchorError):
    """No session fits; the message lists those there are."""

    code: ClassVar[str] = "session_unknown"


class SessionAmbiguousError(ContextAnchorError):
    """More than one session fits; the message lists them."""

    code: ClassVar[str] = "session_ambiguous"


class WorkspaceUnknownError(ContextAnchorError):
    """No workspace is known for the call."""

    code: ClassVar[str] = "workspace_unknown"


class StoreError(ContextAnchorError):
    """The store on disk could not do what was asked."""

    code: ClassVar[str] = "store"


class StoreUnavailableError(StoreError):
    """The data folder can't be read or written."""

    code: ClassVar[str] = "store_unavailable"


class StoreCorruptError(StoreError):
    """A stored file is damaged and could not be restored."""

    code: ClassVar[str] = "store_corrupt"


class StoreNewerError(StoreError):
    """A stored file was written by a newer version; it is read-only here."""

    code: ClassVar[str] = "store_newer"


class LockTimeoutError(StoreError):
    """Another process held the lock for too long."""

    code: ClassVar[str] = "lock_timeout"


class InstallError(ContextAnchorError):
    """Installing or removing did not finish."""

    code: ClassVar[str] = "install"


class HostNotFoundError(InstallError):
    """The named host is not on this machine."""

    code: ClassVar[str] = "host_not_found"


class HostConfigError(InstallError):
    """A host's own configuration file can't be used as it is."""

    code: ClassVar[str] = "host_config"


class EnvironmentSetupError(InstallError):
    """The private Python environment could not be made."""

    code: ClassVar[str] = "environment_setup"


class EngineError(ContextAnchorError):
    """The engine could not do what was asked."""

    code: ClassVar[str] = "engine"


class NotJsonError(EngineError):
    """A value is not JSON data: another type, a key that is no text, a cycle, or nested too deeply."""

    code: ClassVar[str] = "not_json"


class InvalidConfigError(EngineError):
    """A configuration file or value is out of its bounds; the message names the key and the file."""

    code: ClassVar[str] = "invalid_config"


class InvalidStateError(EngineError):
    """A field of the working state was given a value of another type."""

    code: ClassVar[str] = "invalid_state"


class ProjectEscapeError(EngineError):
    """A path leads out of the project root, also through a link."""

    code: ClassVar[str] = "project_escape"


class MemoryUnavailableError(EngineError):
    """A file of the project's memory can't be read or written."""

    code: ClassVar[str] = "memory_unavailable"


class MemoryDamagedError(EngineError):
    """A file of the project's memory is damaged; it was left as it is."""

    code: ClassVar[str] = "memory_damaged"


class InvalidArtifactIdError(EngineError):
    """A text is not in the form of an artifact id."""

    code: ClassVar[str] = "invalid_artifact_id"


class ArtifactNotFoundError(EngineError, FileNotFoundError):
    """No artifact has that id, or one of its two files is missing; also the system's own not-found error."""

    code: ClassVar[str] = "artifact_not_found"


class ArtifactIntegrityError(EngineError):
    """An artifact's text is not the one that was stored."""

    code: ClassVar[str] = "artifact_integrity"


class MigrationRefusedError(EngineError):
    """A memory of an earlier system can't be copied: there is none, or this project has its own already."""

    code: ClassVar[str] = "migration_refused"
