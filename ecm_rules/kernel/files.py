"""Files that are read and written beside a session: they survive crashes, crowds and hostile names. docs/design.md.

Part of the runtime ring: `os`, `stat` and `time` only. Every function raises OSError where the file system, or this
module's caution, says no; nothing is half written then.
"""

import os
import stat
import time

from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_BYTES = 1 << 20
MAX_NAME = 200
PATIENCE = 0.05
_LOCK_PAUSE = 0.001
# What file systems say that sync no folders: EINVAL and ENOTSUP, whose own module is one import more.
_NO_SYNC = (22, 95)


def read(path: str, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Never blocks on a pipe or reads a device."""
    with places.open_regular(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"more than {limit} bytes")
    return data


def state_path(project: str, relative: str, make: bool = True, below: str = places.STATE) -> str:
    """The absolute path of a state file, its folder made (0700) if `make`. Refuses to leave that folder or to follow a
    link.
    """
    if not places.is_state(relative, below):
        raise OSError(f"{relative!r} is not below {below}")
    parts = relative.replace("\\", "/").split("/")
    path = os.path.abspath(project)
    for part in parts[:-1]:
        path = os.path.join(path, part)
        try:
            if make:
                os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        _refuse_link(path)
    return os.path.join(path, parts[-1])


def session_name(session: str) -> str:
    """A session id as a part of a file name: itself where it is harmless, else a hash of it."""
    letters = session.replace("_", "").replace("-", "")
    if session.isascii() and 0 < len(session) <= 128 and (letters.isalnum() or not letters):
        return session
    from hashlib import sha256

    return "h-" + sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def short(session: str) -> str:
    """A session id as it is kept in a meter and in a log: itself, but for one that is too long, a hash of it."""
    return session if len(session) <= MAX_NAME else session_name(session)


def replace(path: str, data: bytes, mode: int = 0o600, durable: bool = False) -> None:
    """Write `data` in the place of the file, atomically: a reader, or a crash, finds the old file or the new one. What
    is durable outlives a power cut once this returns.
    """
    _refuse_link(path)
    temporary = _temporary(path, data, mode, durable)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if durable:
        _settle(path)


def create(paths: "Iterable[str]", data: bytes) -> str:
    """Write `data` as a new file at the first of the paths at which nothing stands, and return that path: whole, and
    durable, or not there. Of many that ask at once each gets a path of its own. Raises FileExistsError without one.
    """
    temporary = ""
    try:
        for path in paths:
            temporary = temporary or _temporary(path, data, 0o600, True)
            try:
                # A link is never put in the place of a file, as a rename is.
                os.link(temporary, path, follow_symlinks=False)
            except FileExistsError:
                continue
            except OSError:  # no hard links here; another fault shows again
                try:
                    _fill(path, data, 0o600, True)
                except FileExistsError:
                    continue
            _settle(path)
            return path
    finally:
        if temporary:
            os.unlink(temporary)
    raise FileExistsError("every name is taken")


def append(path: str, line: "bytes | Callable[[int, int], bytes]", patience: "float | None" = None) -> None:
    """Append one line (no newline in it): a single write under a lock. A torn last line is closed first.

    A line that depends on those before it is a function of the open file's handle and size, called under the lock. A
    lock that cannot be had within `patience` (else PATIENCE) seconds is done without: a writer that was stopped must
    not stop others.
    """
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("no regular file")
        locked = _lock(handle, PATIENCE if patience is None else patience)
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + (line if isinstance(line, bytes) else line(handle, size)) + b"\n"
        written = os.write(handle, data)
        if written != len(data):
            # A full disk took a part of it. Somebody who gave up on the lock may have written behind that.
            if locked and os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
            raise OSError("the disk is full")
    finally:
        os.close(handle)


def _temporary(path: str, data: bytes, mode: int, durable: bool) -> str:
    return _fill(f"{path}.{os.urandom(8).hex()}.tmp", data, mode, durable)


def _fill(path: str, data: bytes, mode: int, durable: bool) -> str:
    """Write a file that is not there yet, or leave none."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        try:
            _write(handle, data)
            os.fchmod(handle, mode)
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        os.unlink(path)
        raise
    return path


def _settle(path: str) -> None:
    """Make the name of a file durable, too."""
    handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    if os.write(handle, data) != len(data):
        raise OSError("the disk is full")


def _lock(handle: int, patience: float) -> bool:
    """Whether the log could be locked in time."""
    until = time.monotonic() + patience
    os.lseek(handle, 0, os.SEEK_SET)
    while True:
        try:
            os.lockf(handle, os.F_TLOCK, 0)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_LOCK_PAUSE)
        except OSError:  # a file system without locks
            return False


def _refuse_link(path: str) -> None:
    if os.path.islink(path):
        raise OSError(f"{path} is a symbolic link")
