"""Leftovers beside a session's state: what killed writers and sessions of long ago left there. docs/design.md "Files".

It is bounded, and off the path of a prompt. What is removed is ours by its name, a regular file, and was not written
for `limits.leftovers_max_age_s`: the halves of files that were never finished, what sessions entered and what their
compactions are yet to be judged by, and the marks on briefs that nobody is offered any more. Everything else stays.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Mapping

from ecm_rules.kernel import audit, files, locks, succession
from ecm_rules.tables import places

MOST = 200
"""Files that are removed at once."""
SEEN = 20_000
"""Files that are looked at."""

_SESSION = r"-[A-Za-z0-9_-]{1,128}"
_LEFT = re.compile(rf".+\.[0-9a-f]{{16}}\.tmp|compacted{_SESSION}\.json|handoff-.+\.md\.taken")
_ENTERED = re.compile(rf"(entered{_SESSION})\.(?:json|lock)")


def sweep(project: str, paths: Mapping[str, str], limits: Mapping[str, float]) -> int:
    """Remove the leftovers of a project's state folder; how many. Never raises: what cannot be removed stays.

    paths: the policy's `audit`. limits: its limits.
    """
    try:
        before = time.time() - limits["leftovers_max_age_s"]
        relative = f"{os.path.dirname(paths.get('meter', audit.METER))}/{succession.FILE}"
        waiting = files.state_path(project, relative, make=False)
        # From here on the folder is this one, whatever its path comes to lead to.
        folder = os.open(os.path.dirname(waiting), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, KeyError, ValueError):
        return 0
    try:
        return _remove(folder, os.path.dirname(waiting), before, _offered(waiting))
    except (OSError, ValueError):
        return 0
    finally:
        os.close(folder)


def _remove(folder: int, path: str, before: float, offered: str) -> int:
    removed = 0
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= SEEN or removed >= MOST:
                break
            name = entry.name
            entered = _ENTERED.fullmatch(name)
            if entered is not None:
                removed += _forget(folder, path, entered[1], before)
            elif _LEFT.fullmatch(name) and name != offered and _is_old(folder, name, before):
                removed += _unlinked(folder, name)
    return removed


def _forget(folder: int, path: str, name: str, before: float) -> int:
    """Remove what a session entered, with its lock, while nobody else has that."""
    state, mark = f"{name}.json", f"{name}.lock"
    there = [file for file in (state, mark) if _exists(folder, file)]
    if not there or not all(_is_old(folder, file, before) for file in there):
        return 0
    try:
        lock = locks.take(os.path.join(path, mark), 0)
    except (OSError, locks.Busy):
        return 0
    try:
        if state in there and not _is_old(folder, state, before):
            return 0
        return _unlinked(folder, state) + _unlinked(folder, mark)
    finally:
        locks.release(lock)


def _offered(path: str) -> str:
    """The mark of the brief that a new session would be offered if nobody had taken it."""
    try:
        with places.open_regular(path, follow=False) as stream:
            brief = json.loads(stream.read(files.MAX_BYTES))["brief_path"]
        return f"{os.path.basename(brief)}.taken"
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_old(folder: int, name: str, before: float) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_mtime < before


def _unlinked(folder: int, name: str) -> int:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return 0
    return 1
