"""Where files stand, and how a path that may lead anywhere is opened. Part of the runtime ring."""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_WHEEL = os.path.join(_PACKAGE, "_data")
# Inside the wheel, or beside the package in a checkout.
_ROOT = _WHEEL if os.path.isdir(_WHEEL) else os.path.dirname(_PACKAGE)


def shipped(name: str) -> str:
    """Path of a shipped file by its name, as in `rules/signals.yaml`."""
    return os.path.join(_ROOT, *name.split("/"))


def within(relative: str) -> bool:
    """Whether a relative path stays within the folder that it is taken from."""
    return not (os.path.isabs(relative) or ".." in relative.replace("\\", "/").split("/") or "\0" in relative)


def open_regular(path: str) -> "BufferedReader":
    """A binary stream of a regular file; a pipe without a writer or an endless device is refused, not waited for.

    Raises OSError; ValueError for a path that no system takes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("no regular file")
    return open(handle, "rb")
