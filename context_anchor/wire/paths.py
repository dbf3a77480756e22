"""Where state lives on disk, and file names made from ids."""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

APP = "context-anchor"
MAX_ID_CHARS = 512
_POINTER = "data-dir.txt"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_KEY_CHARS = 120


def plugin_root() -> str:
    """Return the folder that holds the package `context_anchor` (a clone, a bundle, or site-packages)."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def default_data_dir(env: Mapping[str, str] | None = None, platform: str | None = None) -> str:
    """Return the per-user data folder by the platform's rules, as platformdirs computes it.

    Windows is exact for default folders; a moved Local AppData is told by the installer's pointer file.
    """
    env = os.environ if env is None else env
    platform = sys.platform if platform is None else platform
    home = env.get("HOME") or os.path.expanduser("~")
    if platform == "win32":
        home = env.get("USERPROFILE") or home
        base = env.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = ""
    xdg = (env.get("XDG_DATA_HOME") or "").strip() if platform != "win32" else ""
    if xdg:
        base = xdg
    elif not base:
        base = os.path.join(home, ".local", "share")
    return os.path.join(base, APP)


def data_dir(env: Mapping[str, str] | None = None, root: str | None = None) -> str:
    """Return the data folder as an absolute path; it need not exist yet.

    `CONTEXT_ANCHOR_DATA_DIR` first, then the pointer file that the installer wrote beside the package
    (programs started from a desktop lack the shell's `XDG_*`), then the platform's default. Raises OSError
    where no home folder is known.
    """
    env = os.environ if env is None else env
    named = (env.get("CONTEXT_ANCHOR_DATA_DIR") or "").strip()
    if named:
        return _absolute(named)
    try:
        with open(os.path.join(root or plugin_root(), _POINTER), "rb") as file:
            text = file.read(4096).decode("utf-8").strip()
        if os.path.isabs(text):
            return text
    except (OSError, UnicodeDecodeError):
        text = ""  # no pointer: a plain clone
    return _absolute(default_data_dir(env))


def _absolute(path: str) -> str:
    path = os.path.expanduser(path)
    if path.startswith("~"):
        raise OSError(errno.ENOENT, "no home folder is known; set CONTEXT_ANCHOR_DATA_DIR", path)
    return os.path.abspath(path)


def fnv1a_128(data: bytes) -> str:
    """Return the 128-bit FNV-1a hash of bytes as 32 hex digits (constants of RFC 9923)."""
    value = 0x6C62272E07BB014262B821756295C58D
    for byte in data:
        value = ((value ^ byte) * 0x0000000001000000000000000000013B) & (2**128 - 1)
    return "%032x" % value


def file_key(text: str) -> str:
    """Return a file name stem for an id: injective, safe on every file system, at most 120 characters.

    Lower-case letters, digits and `-` stand for themselves and every other UTF-8 byte becomes `_xx`, so
    that ids which differ only in case stay apart where names are case-insensitive. Raises ValueError for
    an empty id or one above 512 characters.
    """
    if not isinstance(text, str) or not text or len(text) > MAX_ID_CHARS:
        raise ValueError("an id must be 1 to %d characters" % MAX_ID_CHARS)
    raw = text.encode("utf-8", "surrogatepass")
    key = "s-" + "".join(chr(b) if b in _PLAIN else "_%02x" % b for b in raw)
    if len(key) <= _KEY_CHARS:
        return key
    return key[:80] + "_h" + fnv1a_128(raw)


def ensure_folder(path: str) -> None:
    """Make a folder and its parents, readable by the owner alone; existing ones are left as they are."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        ensure_folder(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def session_path(data: str, kind: str, host: str, session_id: str, suffix: str = ".json") -> str:
    """Return the path of a per-session file: kind is `registry` or `marks`."""
    return os.path.join(data, kind, file_key(host)[2:], file_key(session_id) + suffix)


def anchors_path(data: str, scope: str, host: str, identity: str, suffix: str = ".json") -> str:
    """Return the path of a scope's anchors, journal (`.journal.jsonl`) or bundle part (`.bundle`)."""
    if scope == "session":
        return os.path.join(data, "anchors", "session", file_key(host)[2:], file_key(identity) + suffix)
    return os.path.join(data, "anchors", "workspace", file_key(identity)[2:] + suffix)
