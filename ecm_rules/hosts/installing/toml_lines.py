"""Top-level keys of a client's TOML: a line is put in before the first table, or taken out; nothing else is touched."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import attrs

from ecm_rules.hosts.installing import texts
from ecm_rules.hosts.installing.jobs import Held, Job, Record

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
_BLANK = re.compile(r"(?:[ \t]*(?:#[^\n]*)?(?:\n|\r\n))*[ \t]*")
_STRINGS = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'|#[^\n]*",
    re.DOTALL,
)


def parse(file: str, text: str) -> dict[str, Any]:
    """What a text says. Raises EcmError at the place that tomllib names."""
    try:
        return tomllib.loads(text.removeprefix(texts.BOM))
    except tomllib.TOMLDecodeError as error:
        told = _PLACE.search(str(error))
        at = len(text)
        if told and told[1]:
            lines = text.split("\n")
            at = sum(len(line) + 1 for line in lines[: int(told[1]) - 1]) + int(told[2]) - 1
        message = f"found no TOML: {_PLACE.sub('', str(error)).strip().lower()}"
        texts.refuse(file, text, min(at, len(text)), texts.UNREADABLE, message, "repair the file, or remove it")
    except RecursionError:
        texts.refuse(file, text, 0, texts.UNREADABLE, "found nesting that is too deep", "flatten the file")


@attrs.frozen
class _Statement:
    """A top-level `key = value`: from the beginning of its line to the end of its value or the comment beside it."""

    start: int
    end: int


def strip(job: Job, text: str | None) -> str | None:
    """The text without the keys that we set; None where nothing is left of a file that we created."""
    if text is None:
        return None
    for change in job.changes:
        key, said = change.at[0], parse(job.file, text)
        if key in said and job.owns(change, said[key]):
            text = _taken(text, key)
    if job.record is not None and job.record.created and not text.split():
        return None
    return text


def put(job: Job, text: str | None) -> tuple[str, dict[str, Held]]:
    """The text with the keys that are to be set, and what came of each. Raises EcmError."""
    text = text or ""
    values: dict[str, Held] = {}
    for change in job.changes:
        key, said = change.at[0], parse(job.file, text)
        if key in said:
            owned = job.owns(change, said[key])
            if change.wanted:
                values[key] = job.held(change, owned)
            if not owned or (change.wanted and job.suits(change, said[key])):
                continue
            text = _taken(text, key)
        if not change.wanted:
            continue
        values[key] = job.held(change, True)
        line = f"{key} = {json.dumps(change.value)}"
        statements = _statements(text)
        # Behind the last of its like; comments below it belong to what follows.
        end = statements[-1].end if statements else len(texts.BOM) * text.startswith(texts.BOM)
        text = _put_in(text, end, line, bool(statements))
    return text, values


def plan(job: Job, text: str | None) -> tuple[str, Record]:
    """The text with our keys, and what to remember."""
    stripped = strip(job, text)
    made, values = put(job, text)
    return made, Record(job.file, created=stripped is None, values=values)


def verify(job: Job, text: str, stripped: str | None) -> bool:
    """Whether a text says, but for what is ours, what the stripped one says."""
    said = parse(job.file, text)
    ours = {change.at[0] for change in job.changes if change.at[0] in said and job.owns(change, said[change.at[0]])}
    rest = {key: value for key, value in said.items() if key not in ours}
    bare = parse(job.file, stripped or "")
    return repr(rest) == repr(bare)


def _put_in(text: str, at: int, line: str, behind: bool) -> str:
    end = texts.newline(text)
    if not behind:
        return text[:at] + line + end + text[at:]
    if at == len(text):  # a text without a line end at its end keeps none
        return text + end + line
    return text[:at] + end + line + text[at:]


def _taken(text: str, key: str) -> str:
    for statement in _statements(text):
        if list(tomllib.loads(text[statement.start : statement.end])) == [key]:
            return texts.without(text, statement.start, statement.end)
    return text


def _statements(text: str) -> list[_Statement]:
    """The top-level statements of a sound document, in order, up to its first table."""
    found: list[_Statement] = []
    at = first = len(texts.BOM) * text.startswith(texts.BOM)
    while True:
        blank = _BLANK.match(text, at)
        begin = blank.end() if blank else at
        if begin >= len(text) or text[begin] in "[#\r":
            return found
        start, end = text.rfind("\n", 0, begin) + 1, _end(text, begin)
        found.append(_Statement(max(start, first), end))
        at = end


def _end(text: str, at: int) -> int:
    """Where a statement ends: at the first line end that stands in no string and no bracket."""
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter in "\"'#":
            string = _STRINGS.match(text, at)
            at = string.end() if string else at + 1
            if letter == "#" and at and text[at - 1] == "\r":
                at -= 1
            continue
        depth += (letter in "[{") - (letter in "]}")
        if letter == "\n" and not depth:
            return at - (text[at - 1] == "\r")
        at += 1
    return at
