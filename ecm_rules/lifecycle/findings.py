"""What a text declares in vain, as findings: where, what was found, what was expected. docs/findings/ECM801.md and on.

The grammar names a code and a line, which is all that a request needs; a person who looks for the mistake needs more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from ecm_rules.lifecycle import grammar
from ecm_rules.lifecycle.session import CONFLICT
from ecm_rules.lifecycle.sources import lines
from ecm_rules.tables.findings import ERROR, WARNING, Finding, Fix, Span, clip, escape, printable

# The code of a finding by that of the diagnostic.
CODES = {
    grammar.INVALID_TAG: "ECM801",
    grammar.NESTED: "ECM802",
    grammar.MISMATCHED: "ECM803",
    grammar.UNEXPECTED: "ECM804",
    grammar.DUPLICATE: "ECM805",
    grammar.UNCLOSED: "ECM806",
    CONFLICT: "ECM807",
}
_TAG = re.compile(r"<!--(?:ephemeral|/?BLOCK_ID:[a-z0-9_-]+|DISCARD_BLOCK:[a-z0-9_-]+)-->")
_NEARLY = re.compile(r"<!--(/?)(ephemeral|block_id|discard_block)(?::(.*))?-->", re.IGNORECASE | re.ASCII | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NAMES = ("ephemeral", "BLOCK_ID", "DISCARD_BLOCK")
_ID = "a-z, 0-9, `_` and `-`"
# What is longer is nobody's slip of a key, and is not looked into.
_LONGEST = 1000
_SHOWN = "or indent the line where the tag is only shown"


@attrs.frozen
class _Place:
    """A line of a text, and what the lines before it left open: the block and its line, None where there is none."""

    line: str
    number: int
    around: tuple[str, int] | None
    opened: Mapping[str, int]
    """The line of the first opening line of each id."""


@attrs.frozen
class _Found:
    """A finding without its place in a file. `start` and `end` are offsets in the line; None: to the end of it."""

    message: str
    help: str
    start: int = 0
    end: int | None = None
    repair: str | None = None


def findings_of(document: grammar.Document, text: str, file: str) -> list[Finding]:
    """The diagnostics of a document as findings, in the order of their lines. text: what was parsed. file: the name
    that it goes by.
    """
    told: dict[int, list[str]] = {}
    for diagnostic in document.diagnostics:
        told.setdefault(diagnostic.line, []).append(diagnostic.code)
    return [_finding(code, place, file) for place in _places(text, told) for code in told[place.number]]


def conflicts_of(
    documents: Iterable[grammar.Document], holders: Mapping[str, tuple[str, str]] | None = None
) -> list[Finding]:
    """The blocks that change nothing when documents are loaded in this order, since another definition holds their id.

    holders: source and content of each id that is defined before. The same definition again is no conflict.
    """
    held = dict(holders or {})
    found = []
    for document in documents:
        for block in document.blocks:
            source, content = held.setdefault(block.id, (document.source, block.content))
            if (source, content) != (document.source, block.content):
                found.append(_conflict(document.source, block, source))
    return found


def _conflict(file: str, block: grammar.Block, holder: str) -> Finding:
    line = grammar.opening(block.id)
    return Finding(
        CODES[CONFLICT],
        file,
        block.start_line,
        1,
        f"found a definition of `{_id(block.id)}`, which `{printable(clip(holder, 200))}` defines; "
        "expected an id that is not in use",
        "rename one of the two, or load one of them alone; the one that was loaded first holds",
        end_column=len(line) + 1,
        excerpt=line,
    )


def _places(text: str, numbers: Mapping[int, object]) -> Iterator[_Place]:
    """The lines of some numbers, each with what is open where it begins."""
    around: tuple[str, int] | None = None
    opened: dict[str, int] = {}
    for number, line in enumerate(lines(text) if numbers else (), 1):
        if number in numbers:
            yield _Place(line, number, around, opened)
        if starts := _id_in(line, grammar.OPENING):
            opened.setdefault(starts, number)
            around = around or (starts, number)
        elif around and _id_in(line, grammar.CLOSING) == around[0]:
            around = None


def _finding(code: str, place: _Place, file: str) -> Finding:
    found = _TOLD[code](place)
    end = len(place.line) if found.end is None else found.end
    span = Span(place.number, found.start + 1, end + 1)
    return Finding(
        CODES[code],
        file,
        span.line,
        span.column,
        found.message,
        found.help,
        WARNING if code == grammar.INVALID_TAG else ERROR,
        end_column=span.end_column,
        excerpt=place.line,
        fix=None if found.repair is None else Fix(span, found.repair),
    )


def _invalid(place: _Place) -> _Found:
    """A near miss: an exact tag that is not alone, else a comment that is nearly one."""
    tag = _TAG.search(place.line)
    if tag:
        return _beside(place.line, tag.start(), tag.end())
    end = place.line.rindex("-->") + 3
    for comment in _COMMENT.finditer(place.line, 0, end):
        if any(name.lower() in comment[0].lower() for name in _NAMES):
            return attrs.evolve(_misspelt(comment[0]), start=comment.start(), end=comment.end())
    start = place.line.index("<!--")
    return attrs.evolve(_no_tag(place.line[start:end]), start=start, end=end)


def _beside(line: str, start: int, end: int) -> _Found:
    """An exact tag in a line that holds something else."""
    before, after = line[:start], line[end:]
    what = "white space" if _blank(before) and _blank(after) else "text"
    side = "around" if before and after else "before" if before else "behind"
    remedy = "remove it" if what == "white space" else "give the tag a line of its own"
    return _Found(
        f"found {what} {side} `{_shown(line[start:end])}`, expected the tag alone on its line",
        f"{remedy}, or leave it where the tag is only shown",
        0 if before else end,
        start if before and not after else len(line),
        # Nobody shows a tag by what nobody sees.
        "" if what == "white space" and not before else None,
    )


def _misspelt(comment: str) -> _Found:
    squeezed = "".join(c for c in comment if not _blank(c)) if len(comment) <= _LONGEST else ""
    nearly = _NEARLY.fullmatch(squeezed)
    if nearly is None:
        return _no_tag(comment)
    slash, name, block_id = nearly.groups()
    name = next(known for known in _NAMES if known.lower() == name.lower())
    if name == "ephemeral" or (name == "DISCARD_BLOCK" and slash):
        return _misspelt_as(comment, f"<!--{name}-->") if not slash and block_id is None else _no_tag(comment)
    if not block_id:
        return _Found(f"found `{_shown(comment)}`, expected `:` and an id behind `{name}`", f"an id is made of {_ID}")
    if not grammar.is_id(block_id):
        return _Found(f"found the id `{_shown(block_id)}`, expected {_ID} alone", "give the block another id")
    return _misspelt_as(comment, f"<!--{slash}{name}:{block_id}-->")


def _misspelt_as(comment: str, tag: str) -> _Found:
    spaced = any(_blank(c) for c in comment)
    what = "remove the white space in it" if spaced else "write its name in that case"
    return _Found(f"found `{_shown(comment)}`, expected `{_shown(tag)}`", f"{what}, or leave it where it is no tag")


def _no_tag(comment: str) -> _Found:
    tags = ", ".join(f"`{tag}`" for tag in ("<!--ephemeral-->", "<!--BLOCK_ID:id-->", "<!--/BLOCK_ID:id-->"))
    return _Found(
        f"found `{_shown(comment)}`, expected a tag",
        f"a tag is {tags} or `<!--DISCARD_BLOCK:id-->`; leave the comment where it is none",
    )


def _nested(place: _Place) -> _Found:
    around, number = place.around or ("", 0)
    return _Found(
        f"found the opening line of `{_id(_id_in(place.line, grammar.OPENING))}` inside of `{_id(around)}`, which line "
        f"{number} opens; expected `{grammar.closing(_id(around))}` before it",
        f"close `{_id(around)}` first, {_SHOWN}",
    )


def _mismatched(place: _Place) -> _Found:
    around, number = place.around or ("", 0)
    return _Found(
        f"found the closing line of `{_id(_id_in(place.line, grammar.CLOSING))}`, expected that of `{_id(around)}`, "
        f"which line {number} opens",
        f"close a block by the id that opens it, {_SHOWN}",
    )


def _unexpected(place: _Place) -> _Found:
    closed = _id(_id_in(place.line, grammar.CLOSING))
    return _Found(
        f"found the closing line of `{closed}`, expected an opening line before it", f"remove the line, {_SHOWN}"
    )


def _duplicate(place: _Place) -> _Found:
    block_id = _id_in(place.line, grammar.OPENING)
    return _Found(
        f"found a second opening line of `{_id(block_id)}`, expected the one on line {place.opened[block_id]} alone",
        f"rename one of the two, {_SHOWN}; no block of this id is defined as it is",
    )


def _unclosed(place: _Place) -> _Found:
    block_id = _id_in(place.line, grammar.OPENING)
    return _Found(
        f"found no closing line of `{_id(block_id)}`, expected `{grammar.closing(_id(block_id))}` behind it",
        f"close the block, {_SHOWN}",
    )


_TOLD: dict[str, Callable[[_Place], _Found]] = {
    grammar.INVALID_TAG: _invalid,
    grammar.NESTED: _nested,
    grammar.MISMATCHED: _mismatched,
    grammar.UNEXPECTED: _unexpected,
    grammar.DUPLICATE: _duplicate,
    grammar.UNCLOSED: _unclosed,
}


def _id_in(line: str, tag: str) -> str:
    """The id in an exact opening or closing line; empty where a line is none."""
    block_id = line[len(tag) : -3]
    return block_id if line.startswith(tag) and line.endswith("-->") and grammar.is_id(block_id) else ""


def _id(block_id: str) -> str:
    return clip(block_id, 60)


def _shown(text: str) -> str:
    return escape(text) if len(text) <= 60 else f"{escape(text[:59])}…"


def _blank(text: str) -> bool:
    """Whether there is nothing to see in a text."""
    return not any(c.isprintable() for c in text.strip())
