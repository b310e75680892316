"""Parts of a text, taken by its own structure: a section, what stands between two lines, columns of a table, a block.

Each function gives None where there is no such part. Lines end at LF; whoever reads a file sees to that.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ecm_rules.lifecycle import grammar
from ecm_rules.tables.pins import PLACEHOLDER

UNSET = "unset"
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL_END = re.compile(r"(?<!\\)\|")
_LONGEST_VALUE = 1000


def section(text: str, pattern: str) -> str | None:
    """The first section whose heading fits `pattern` (`*` for anything, letters in any case) and that says something,
    with its heading, up to the next one of its level or above. Headings in code fences are none.
    """
    wanted = pattern.casefold().replace("[", "[[]")
    lines = text.split("\n")
    headings = [(n, level, title) for n, level, title in _headings(lines)]
    for position, (start, level, title) in enumerate(headings):
        if fnmatch.fnmatchcase(title.casefold(), wanted):
            end = next((n for n, other, _ in headings[position + 1 :] if other <= level), len(lines))
            if "".join(lines[start + 1 : end]).strip():
                return "\n".join(lines[start:end])
    return None


def between(text: str, start: str, end: str) -> str | None:
    """What stands behind the first line that begins with `start` and before the next one that begins with `end`."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith(start)), None)
    if first is None:
        return None
    last = next((n for n in range(first + 1, len(lines)) if lines[n].lstrip().startswith(end)), None)
    return None if last is None else "\n".join(lines[first + 1 : last])


def block(text: str, block_id: str) -> str | None:
    """The body of a named block. ACLP V1 §"Named blocks"."""
    found = [b.content for b in grammar.parse(text, "").blocks if b.id == block_id]
    return found[0] if found else None


def columns(text: str, names: list[str]) -> str | None:
    """These columns of the first Markdown table that has all of them, in this order."""
    lines = text.split("\n")
    for at in range(1, len(lines)):
        if not _RULE.match(lines[at]) or "|" not in lines[at - 1]:
            continue
        head = _cells(lines[at - 1])
        if not set(names) <= set(head):
            continue
        places = [head.index(name) for name in names]
        rows = [head, ["---"] * len(head)]
        for line in lines[at + 1 :]:
            if "|" not in line:
                break
            rows.append(_cells(line))
        return "\n".join(f"| {' | '.join(row[p] if p < len(row) else '' for p in places)} |" for row in rows)
    return None


def fill(template: str, known: Mapping[str, Any]) -> str | None:
    """The template with each `{path}` replaced by what is known there, within one line; None where all are unset."""
    found = [lookup(known, path) for path in PLACEHOLDER.findall(template)]
    if found and all(value is None for value in found):
        return None
    return PLACEHOLDER.sub(lambda place: plain(lookup(known, place[1])), template)


def lookup(known: Any, path: str) -> Any:
    """The value at a dotted path of mappings, or None."""
    for key in path.split("."):
        known = known.get(key) if isinstance(known, Mapping) else None
    return known


def plain(value: Any) -> str:
    """A value of a document within one line: a text as it is, anything else as JSON."""
    if value is None:
        return UNSET
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    told = " ".join(told.split())
    return told if len(told) <= _LONGEST_VALUE else told[: _LONGEST_VALUE - 1] + "…"


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """The number of the line, the level and the title of each ATX heading."""
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            # A fence is closed by its own character, as often at least, and nothing behind it.
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif heading := _HEADING.match(line):
            yield number, len(heading[1]), (heading[2] or "").strip()


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip() for cell in _CELL_END.split(inner)]
