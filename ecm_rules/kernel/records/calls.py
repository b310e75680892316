"""What the arguments of a call mean, by what rules/hosts.yaml says of its tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ecm_rules.kernel.lookup import find, first, fits
from ecm_rules.kernel.records.model import Call, ToDo

# Members of a list, and files of a patch, that are looked at.
MANY = 200
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_BEGUN = "*** Begin Patch"
_DIFF = ("@@", "--- ", "diff ")
_CHECKED = re.compile(r"^[ \t]*[-*][ \t]+\[([ xX])\][ \t]+(\S.*)$", re.MULTILINE)

Said = Mapping[str, Any]


def meaning(tools: Mapping[str, Said], name: str, given: Any) -> Call:
    """What a call of a tool says. given: its arguments, or the JSON of them, or the one text that they are."""
    said = tools.get(name, tools.get("*"))
    arguments = _arguments(given)
    if said is None or not arguments:
        return Call()
    places, written = list(_places(said, arguments)), list(_written(said, arguments))
    for part in _parts(said, arguments):
        places += _places(said, part)
        written += _written(said, part)
    for path, change in _changes(said, arguments):
        places.append((path, None))
        written += change
    to_dos, single = _to_dos(said, arguments), first(arguments, said["to_do"])
    return Call(
        tuple(places),
        tuple(written),
        _command(first(arguments, said["command"])),
        to_dos,
        single if isinstance(single, str) and not said["to_dos"] else None,
        _task(said, arguments),
    )


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            found = json.loads(given)
        except (ValueError, RecursionError):
            found = given
        given = {"input": found} if isinstance(found, str) else found
    return given if isinstance(given, dict) else {}


def _places(said: Said, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    path = next((found for found in _each(given, said["file"]) if isinstance(found, str) and found), None)
    if path is not None:
        line = first(given, said["line"])
        yield path, line[0] if isinstance(line, list) and line else line


def _written(said: Said, given: Mapping[str, Any]) -> Iterator[str]:
    yield from (text for text in _each(given, said["written"]) if isinstance(text, str))


def _parts(said: Said, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for found in _each(given, said["parts"]):
        for part in found[:MANY] if isinstance(found, list) else ():
            if isinstance(part, dict) and (not said["parts_are"] or fits(part, said["parts_are"])):
                yield part


def _changes(said: Said, given: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """(path, what was put there and taken out), of the files of a patch or of a mapping of what changed."""
    for found in _each(given, said["patch"]):
        text = "\n".join(part for part in found if isinstance(part, str)) if isinstance(found, list) else found
        if isinstance(text, str) and _BEGUN in text:
            hunks = _PATCHED.split(text[text.index(_BEGUN) :])
            for path, hunk in list(zip(hunks[1::2], hunks[2::2], strict=True))[:MANY]:
                yield path.strip(), [_changed(hunk)]
    for found in _each(given, said["changes"]):
        for path, change in list(found.items())[:MANY] if isinstance(found, dict) else ():
            texts = change.values() if isinstance(change, dict) else ()
            yield path, [_changed(text) if text.startswith(_DIFF) else text for text in texts if isinstance(text, str)]


def _changed(hunk: str) -> str:
    """The lines of a hunk that are put in or taken out: what stands around them was not edited."""
    return "\n".join(line[1:] for line in hunk.split("\n") if line.startswith(("+", "-")))


def _command(found: Any) -> str:
    """A command as it was typed, out of the arguments of the shell that runs it."""
    if isinstance(found, list):
        words = [word for word in found[:MANY] if isinstance(word, str)]
        return words[2] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    return found if isinstance(found, str) else ""


def _to_dos(said: Said, given: Mapping[str, Any]) -> tuple[ToDo, ...] | None:
    found = first(given, said["to_dos"])
    if isinstance(found, str):
        return tuple(ToDo(text, mark == " ") for mark, text in _CHECKED.findall(found))
    if not isinstance(found, list):
        return None
    members = ((member, first(member, said["to_do"])) for member in found if isinstance(member, dict))
    return tuple(ToDo(text, _is_open(said, member)) for member, text in members if isinstance(text, str))


def _task(said: Said, given: Mapping[str, Any]) -> tuple[str, bool] | None:
    task, status = first(given, said["task"]), first(given, said["status"])
    return (task, _is_open(said, given)) if isinstance(task, str) and isinstance(status, str) else None


def _is_open(said: Said, given: Mapping[str, Any]) -> bool:
    return first(given, said["status"]) not in said["done"]


def _each(given: Mapping[str, Any], paths: Iterable[Iterable[str]]) -> Iterator[Any]:
    return (found for path in paths if (found := find(given, path)) is not None)
