"""Files of a project that a table names: found by patterns, read whole or not at all, never outside of the project.

Every function raises OSError where the file system, or this module's caution, says no.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat

from ecm_rules.kernel.files import MAX_BYTES
from ecm_rules.tables import places

MOST_FILES = 50
_TRIES = 3
_WILD = frozenset("*?")
_INSIDE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def matches(project: str, pattern: str) -> list[str]:
    """The paths, relative to the project and in order, of the files that a pattern names; `*` and `?` stay within a
    part of the path, and stand for no leading dot. A path without them is itself, whether there is such a file or not.
    """
    found = [""]
    for step in pattern.split("/"):
        if not _WILD & set(step):
            found = [os.path.join(path, step) for path in found]
            continue
        exact = step.replace("[", "[[]")
        found = [
            os.path.join(path, name)
            for path in found
            for name in _names(os.path.join(project, path))
            if fnmatch.fnmatchcase(name, exact) and (step[0] == "." or name[0] != ".")
        ]
    if len(found) > 1:
        found = [path for path in found if os.path.lexists(os.path.join(project, path))]
    if len(found) > MOST_FILES:
        raise OSError(f"more than {MOST_FILES} files")
    return found


def read(project: str, relative: str) -> bytes:
    """The bytes of a regular file, of at most 1 MiB. Links are followed as long as they stay within the project, and
    lead to no file of the state: sessions write there what tools have said.
    """
    root = os.path.realpath(project)
    try:
        real = os.path.realpath(os.path.join(root, relative), strict=True)
    except ValueError as error:
        raise OSError(str(error)) from None
    if os.path.commonpath([root, real]) != root or real == root:
        raise OSError("leads out of the project")
    within = os.path.relpath(real, root)
    if f"{within}{os.sep}".startswith(places.STATE):
        raise OSError("leads to what sessions write, where tools have their say too")
    for _ in range(_TRIES):
        data = _unchanged(root, within.split(os.sep))
        if data is not None:
            return data
    raise OSError("was changed while it was read")


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _unchanged(root: str, parts: list[str]) -> bytes | None:
    """The bytes of a file, or None where it was written to meanwhile."""
    handle = _open(root, parts)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise OSError("no regular file")
        if before.st_size > MAX_BYTES:
            raise OSError(f"more than {MAX_BYTES} bytes")
        with open(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(data) == after.st_size
    return data if same else None


def _open(root: str, parts: list[str]) -> int:
    """A file below `root`, reached step by step: none of them a link, also not one that was put there just now."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, _INSIDE | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = below
        return os.open(parts[-1], _INSIDE, dir_fd=handle)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("became a link while it was read") from None
        raise
    finally:
        os.close(handle)
