"""Work that may take longer than a prompt can wait: in a process of its own. Part of the runtime ring."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 16


def run(job: "Callable[[], bytes]", until: float) -> "bytes | None":
    """Do a job in a child, and wait for it until a moment of `time.monotonic`. What it says by then; None where it is
    not done, and goes on by itself.

    What the job makes and somebody must have later, it leaves in files. A prompt is answered in time so, and nothing
    that was begun is broken off; and what the job imports is not imported here. A job that fails says nothing. Where
    there is no fork, the job is done at once. Raises OSError.
    """
    if not hasattr(os, "fork"):
        return job()
    from select import select

    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _detach(ours)
            _say(theirs, job())
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    said, ended = b"", False
    try:
        while not ended and select([ours], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(ours, _CHUNK)
            said, ended = said + part, not part
    finally:
        os.close(ours)
    if not ended:
        return None
    os.waitpid(child, 0)
    return said


def _say(pipe: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(pipe, data) :]
    except OSError:
        pass  # nobody waits any more


def _detach(pipe: int) -> None:
    """Leave the parent: its group, so that nobody ends both, and its streams, whose end the client waits for."""
    os.setsid()
    os.close(pipe)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
