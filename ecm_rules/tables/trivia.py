"""What stands between the tokens of a YAML text: white space and comments."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import attrs
import yaml

from ecm_rules.tables.findings import Span
from ecm_rules.tables.reader import Document, Node

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMENT = re.compile("#[^\n]*")
_TABS = re.compile("^[ \t]*\t[ \t]*", re.MULTILINE)
_BLANK_END = re.compile(r"(?:\n *)*\Z")


@attrs.frozen
class Comment:
    """A comment and where it stands among the entries, the keys and items of a document."""

    text: str
    span: Span
    before: int
    """How many entries begin before it."""
    beside: int | None
    """Which entry is the first on its line, where there is one."""

    def stays(self, other: Comment) -> bool:
        """Whether the other says the same of the same entry."""
        beside = self.beside is not None and self.beside == other.beside
        return self.text == other.text and (beside or self.before == other.before)


def tidy(text: str) -> str:
    """No space at a line's end, one blank line in a row, a comment behind one space or as deep as a neighbour."""
    pieces: list[str] = []
    done = depth = 0
    for start, end, token in _tokens(text):
        pieces.append(_tidy_gap(text[done:start], depth, _begins_line(text, done)))
        plain = isinstance(token, yaml.ScalarToken) and token.plain
        pieces.append(re.sub(" +\n", "\n", text[start:end]) if plain else text[start:end])
        line = text[text.rfind("\n", 0, start) + 1 : start + 1]
        depth = len(line) - len(line.lstrip(" -"))
        done = end
    rest = text[done:].rstrip()
    if rest or not _begins_line(text, done):
        pieces.append(_tidy_gap(rest + "\n", depth, _begins_line(text, done)))
    return "".join(pieces)


def ease(text: str) -> str:
    """The same for a reader that takes no tabs, and drops comments at the marks of a document and behind commas.

    Tabs become spaces, the marks go, and a comma goes behind the comments that follow it.
    """
    pieces, done, comma = [], 0, ""
    for start, end, token in _tokens(text):
        gap = _TABS.sub(lambda found: " " * len(found.group()), text[done:start])
        pieces.append(gap + comma if "#" in gap else comma + gap)
        comma = "," if isinstance(token, yaml.FlowEntryToken) else ""
        mark = isinstance(token, yaml.DocumentStartToken | yaml.DocumentEndToken)
        pieces.append("" if comma or mark else text[start:end])
        done = end + 1 if mark and text.startswith("\n", end) else end
    return "".join((*pieces, _TABS.sub("", text[done:])))


def comments(document: Document) -> list[Comment]:
    """Every comment of a document, in order."""
    text = document.source.text
    lines = [0, *itertools.accumulate(len(line) + 1 for line in document.source.lines)]
    entries = sorted(lines[span.line - 1] + span.column - 1 for span in _entries(document.root))

    def comment(found: re.Match[str]) -> Comment:
        line, said = bisect.bisect(lines, found.start()), found.group().rstrip()
        column = found.start() - lines[line - 1] + 1
        before, first = bisect.bisect(entries, found.start()), bisect.bisect_left(entries, lines[line - 1])
        return Comment(said, Span(line, column, column + len(said)), before, first if first < before else None)

    return [comment(found) for start, end in _gaps(text) for found in _COMMENT.finditer(text, start, end)]


def _gaps(text: str) -> Iterator[tuple[int, int]]:
    """Beginning and end of whatever is no token. What stands beside the mark of a block scalar is in its token."""
    done = 0
    for start, end, token in _tokens(text):
        yield done, start
        if _is_block(token):
            yield start, text.find("\n", start, end)
        done = end
    yield done, len(text)


def _tokens(text: str) -> Iterator[tuple[int, int, Any]]:
    """Beginning and end of each token that takes room, a block scalar's without the blank lines that say nothing."""
    for token in yaml.scan(text, _LOADER):
        start, end = token.start_mark.index, token.end_mark.index
        if _is_block(token) and "+" not in text[start : start + 3]:
            blank = _BLANK_END.search(text[start:end])
            end -= len(blank.group()) if blank else 0
        if start < end:
            yield start, end, token


def _is_block(token: Any) -> bool:
    return isinstance(token, yaml.ScalarToken) and token.style in ("|", ">")


def _entries(root: Node | None) -> Iterator[Span]:
    for node in root.walk() if root else ():
        yield from node.keys.values()
        if isinstance(node.value, list):
            yield from (item.span for item in node.value)


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _tidy_gap(gap: str, depth: int, begins_line: bool) -> str:
    """A gap between two tokens. `depth` is where the entry before it stands."""
    if "\n" not in gap:
        return gap
    *lines, indent = gap.split("\n")
    kept = []
    if not begins_line:
        beside = lines.pop(0).strip()
        kept = [f" {beside}" if beside else ""]
    blank = False
    for line in lines:
        comment = line.strip()
        column = max(len(indent), min(len(line) - len(line.lstrip()), depth)) // 2 * 2
        if comment or not blank:
            kept.append(" " * column + comment if comment else "")
        blank = not comment
    return "\n".join((*kept, indent))
