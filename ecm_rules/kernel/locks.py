"""A lock on a name: between processes by the system's, between threads of one by a note. Part of the runtime ring."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    Lock = tuple[int, str, object]

_PAUSE = 0.002
# Of this process: a lock of the system's does not keep out a thread.
_held: "dict[str, object]" = {}


class Busy(Exception):
    """Somebody else has the lock."""


def take(path: str, patience: float) -> "Lock":
    """The lock whose file is `path`, which is made and stays. `release` it.

    Raises Busy where it cannot be had within `patience` seconds, and OSError. On a file system without locks it keeps
    out the threads of this process alone.
    """
    until, mine = time.monotonic() + patience, object()
    while _held.setdefault(path, mine) is not mine:
        _wait(until)
    handle = -1
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        while True:
            try:
                os.lockf(handle, os.F_TLOCK, 0)
                return handle, path, mine
            except (BlockingIOError, PermissionError):
                _wait(until)
            except OSError:  # a file system without locks
                return handle, path, mine
    except BaseException:
        if handle >= 0:
            os.close(handle)
        del _held[path]
        raise


def release(lock: "Lock") -> None:
    """Give a lock back."""
    handle, path, mine = lock
    os.close(handle)
    if _held.get(path) is mine:
        del _held[path]


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise Busy
    time.sleep(_PAUSE)
