"""Work that may take longer than a prompt can wait: in a process of its own. Part of the runtime ring."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def run(job: "Callable[[], object]", until: float) -> bool:
    """Do a job in a child, and wait for it until a moment of `time.monotonic`. Whether it has ended by then; if not, it
    goes on by itself.

    The job must leave what it makes in files. A prompt is answered in time so, and nothing that was begun is broken
    off; and what the job imports is not imported here. Where there is no fork, the job is done at once. Raises OSError.
    """
    if not hasattr(os, "fork"):
        job()
        return True
    from select import select

    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _detach(ours)
            job()
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    try:
        ended = bool(select([ours], [], [], max(0.0, until - time.monotonic()))[0])
    finally:
        os.close(ours)
    if ended:
        os.waitpid(child, 0)
    return ended


def _detach(pipe: int) -> None:
    """Leave the parent: its group, so that nobody ends both, and its streams, whose end the client waits for."""
    os.setsid()
    os.close(pipe)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
