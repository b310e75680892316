"""The edits of a host with everything filled in: the hook's command, and the red boundary of this project's window."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import attrs

from ecm_rules.hosts.installing import jsonc, projects, texts, toml_lines
from ecm_rules.hosts.installing.jobs import PROGRAM, Change, Job, Record
from ecm_rules.kernel import files
from ecm_rules.tables.findings import EcmError, Finding
from ecm_rules.tables.installs import Edit, Install
from ecm_rules.tables.models import Table

WINDOW = 200_000
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = {"create": "shims", "block": "floors"}
# What a client takes for a percentage of its own.
_MOST_PERCENT = 99


@attrs.frozen
class Situation:
    """What edits are filled with: the program's path, the thresholds, and the window (None where nobody says it)."""

    program: str
    zones: Mapping[str, float]
    window: int | None

    def command(self, host: str) -> str:
        """The hook's command for a host, as a shell takes it."""
        return f"{shlex.quote(self.program)} {host}"


def program() -> str:
    """The absolute path of the hook. Raises EcmError where there is none."""
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    beside = [os.path.join(os.path.abspath(folder), PROGRAM) for folder in folders if folder]
    found = next((path for path in beside if os.access(path, os.X_OK)), None) or shutil.which(PROGRAM)
    if found is None:
        message = f"found no `{PROGRAM}` beside Python or on the path, expected the one that comes with ecm-rules"
        raise EcmError([Finding(texts.NOT_WRITABLE, PROGRAM, 0, 0, message, "install ecm-rules anew")])
    return os.path.abspath(found)


def jobs(install: Install, situation: Situation, records: Iterable[Record] = ()) -> list[Job]:
    """What is to be done for a host, file by file in the order of the table. Raises EcmError where a packaged file is
    not there.
    """
    known = {record.file: record for record in records}
    grouped: dict[str, list[Change]] = {}
    for edit in install.edits:
        grouped.setdefault(edit.file, []).append(_change(edit, install, situation))
    command = situation.command(install.host)
    made = []
    for file, changes in grouped.items():
        record = known.get(file)
        made.append(Job(install.host, file, command, (*changes, *_forgotten(record, changes)), record))
    return made


def window_of(install: Install, table: Table, tree: projects.Tree) -> int | None:
    """The window that the project or the client's own file says, or None."""
    if table.window_tokens is not None or install.window_at is None:
        return table.window_tokens
    file, key = install.window_at
    try:
        text = tree.read(file)
        said = _said(file, text, key) if text is not None else None
    except EcmError:
        return None  # what is wrong with the file is said when it is edited
    return said if type(said) is int and said > 0 else None


def packaged(folder: str, name: str) -> str:
    """The text of a file of the package. Raises EcmError where it is not there."""
    path = os.path.join(_HERE, folder, name)
    try:
        return files.read(path).decode("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EcmError([Finding("ECM100", path, 0, 0, f"cannot be read: {reason}", "install ecm-rules anew")]) from None


def _said(file: str, text: str, key: str) -> Any:
    if file.endswith(".toml"):
        said: Any = toml_lines.parse(file, text)
        for step in key.split("."):
            said = said.get(step) if isinstance(said, dict) else None
        return said
    root = jsonc.parse(file, text)
    value = jsonc.at(root, tuple(key.split("."))) if root is not None else None
    return value.plain() if value is not None else None


def _change(edit: Edit, install: Install, situation: Situation) -> Change:
    if edit.kind in _FOLDERS:
        return Change(edit.kind, edit.file, value=packaged(_FOLDERS[edit.kind], edit.value))
    window = situation.window
    wanted = edit.windows is None or (window is not None and edit.windows[0] <= window <= edit.windows[1])
    value = _filled(edit.value, _values(install, situation))
    return Change(edit.kind, edit.file, edit.at, str(value) if edit.text else value, wanted)


def _values(install: Install, situation: Situation) -> dict[str, Any]:
    """What the placeholders stand for. Shares are taken as they are written: 0.7 is seven tenths."""
    window = situation.window or WINDOW
    red = Fraction(str(situation.zones["red"]))
    left = window - install.keeps
    client = math.ceil(100 * red * window / left) if left > 0 else _MOST_PERCENT
    return {
        "command": situation.command(install.host),
        "red_percent": _number(100 * red),
        "red_share": _number(red),
        "red_tokens": int(red * window),
        "client_percent": min(client, _MOST_PERCENT),
        "window": window,
    }


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """A value with what its placeholders stand for; one that is nothing but a placeholder becomes that very value."""
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{(\w+)\}", value)
    if whole:
        return values[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda name: str(values[name[1]]), value)


def _forgotten(record: Record | None, changes: list[Change]) -> Iterator[Change]:
    """Keys that an earlier version set in the file, and that are set no more: they are only taken back."""
    names = {change.name for change in changes}
    for name in record.values if record is not None else ():
        if name not in names:
            yield Change("set", changes[0].file, tuple(name.split(".")), wanted=False)
