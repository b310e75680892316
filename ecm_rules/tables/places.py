"""Where files stand, and how a path that may lead anywhere is opened. Part of the runtime ring."""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

STATE = ".eidolons/.context/"
TRACE = ".eidolons/.trace/"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_WHEEL = os.path.join(_PACKAGE, "_data")
# Inside the wheel, or beside the package in a checkout.
_ROOT = _WHEEL if os.path.isdir(_WHEEL) else os.path.dirname(_PACKAGE)


def shipped(name: str) -> str:
    """Path of a shipped file by its name, as in `rules/signals.yaml`."""
    return os.path.join(_ROOT, *name.split("/"))


def stems(folder: str) -> "list[str]":
    """The names, without `.yaml`, of the shipped tables in a folder."""
    return sorted(file.removesuffix(".yaml") for file in os.listdir(shipped(folder)) if file.endswith(".yaml"))


def is_state(relative: str, below: str = STATE) -> bool:
    """Whether a path, relative to a project, is one of a state file: below `below`, whatever it is made of."""
    steps = relative.replace("\\", "/").split("/")
    return relative.startswith(below) and ".." not in steps and "\0" not in relative


def open_regular(path: str, follow: bool = True) -> "BufferedReader":
    """A binary stream of a regular file; a pipe without a writer or an endless device is refused, not waited for, and a
    symbolic link unless `follow`.

    Raises OSError.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    except ValueError as error:  # a path that no system takes
        raise OSError(f"no such path: {error}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("no regular file")
    return open(handle, "rb")
