"""The brief that a session leaves its successor, and reading it back. ECM §"Handoff brief"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from ecm_rules.artifacts import jq

NO_TASK = "(no task-state summary provided)"
TARGET_TOKENS = 1500
BYTES_PER_TOKEN = 4

_NONE = "(none recorded)\n"
_HEAD = "# Session Handoff Brief\n\n## Identifiers\n"
_FAILED = "\n## Failed approaches\n"
_NEXT = "\n## Next steps\n"
_NARRATIVE = "\n## Narrative\n\nTask state: "
_OPEN = "\n## Open variables\n"
_ORIGIN = "\n## contains_tool_origin\n"
_KINDS = ("anchor", "symbol", "decision")


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen
class Brief:
    """What a successor is told. Any text is allowed anywhere; it stays as it is, newlines too."""

    task_state: str = ""
    narrative: str = ""
    anchors: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    symbols: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    decisions: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    failed_approaches: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    open_vars: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    next_steps: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    contains_tool_origin: bool = False


def compose(brief: Brief) -> bytes:
    """The brief as Markdown, UTF-8, byte for byte as the nexus' kernel writes it; nothing is ever cut.

    Identifiers, which cannot be guessed again, come first. An empty entry leaves no line, but a list that has one is
    not "none recorded". What is no character becomes U+FFFD.
    """
    identifiers = zip(_KINDS, (brief.anchors, brief.symbols, brief.decisions), strict=True)
    parts = [_HEAD, *(_listed(entries, f"- {kind}: ") for kind, entries in identifiers)]
    parts += [_FAILED, _listed(brief.failed_approaches) if brief.failed_approaches else _NONE]
    parts += [_NEXT, _listed(brief.next_steps) if brief.next_steps else _NONE]
    parts += [_NARRATIVE, brief.task_state or NO_TASK, "\n"]
    if brief.narrative:
        parts += ["\n", brief.narrative, "\n"]
    if brief.open_vars:
        parts += [_OPEN, _listed(brief.open_vars)]
    parts += [_ORIGIN, "true\n" if brief.contains_tool_origin else "false\n"]
    return jq.clean("".join(parts)).encode("utf-8")


def tokens(data: bytes, bytes_per_token: int = BYTES_PER_TOKEN) -> int:
    """The tokens that a text is taken to have: its bytes divided by `limits.bytes_per_token`, rounded down."""
    return len(data) // bytes_per_token


def oversize(path: str, tokens_est: int, now: str, target_tokens: int = TARGET_TOKENS) -> dict[str, Any] | None:
    """The event for the policy log where a brief has more tokens than is aimed at, or None. now: ISO 8601, UTC."""
    if tokens_est <= target_tokens:
        return None
    return {
        "event": "handoff_brief_oversize",
        "evaluated_at": now,
        "path": path,
        "tokens_est": tokens_est,
        "target_tokens": target_tokens,
    }


def head(task_state: str) -> str:
    """The first line of a task state that is not blank, or all of it where every line is."""
    return next((line for line in task_state.split("\n") if line.strip()), task_state)


def read(data: bytes) -> Brief:
    """The fields of a composed brief. Raises ValueError where it is none.

    Composing what was read gives the same bytes, always, and `contains_tool_origin` is always the composer's own: it
    stands at the very end, where no other text reaches. Since newlines stay raw, the format keeps no more than that.
    These are read as other fields, or as more entries, than they were written as:

    - an entry with a further line that begins an entry: `- `; among the identifiers `- anchor: `, `- symbol: ` or
      `- decision: `, of its own kind or a later one;
    - an identifier, failed approach or next step with a blank line and one of the headings that come behind it;
    - a task state with a blank line, or with a newline at its end: what follows is taken for the narrative;
    - a task state, narrative or open variable with a blank line, the heading `## Open variables` and an entry.

    A list of nothing but empty entries is read as one empty entry; no task state as what stands in for it.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"found a byte that is not UTF-8 at {error.start}, expected a session handoff brief") from None
    if not text.startswith(_HEAD):
        raise ValueError("found another beginning, expected `# Session Handoff Brief` and `## Identifiers`")
    end = _LAST.search(text)
    if end is None:
        raise ValueError("found another end, expected `## contains_tool_origin` and true or false")
    start, sections = len(_HEAD), []
    for heading, pattern in _HEADINGS:
        # A section that is empty shares its newline with the heading before it. One that held a single empty entry
        # would have been empty: then the heading is a part of that entry.
        found = pattern.search(text, start - 1, end.start() + 1)
        if found is not None and text[start : found.start() + 1] in _UNWRITTEN:
            found = pattern.search(text, found.start() + 1, end.start() + 1)
        if found is None:
            raise ValueError(f"found no `{heading}` where it can stand, expected the sections of a brief in order")
        sections.append(text[start : found.start() + 1])
        start = found.end()
    identifiers, failed, steps = sections
    rest = text[start : end.start() + 1]
    task, narrative, variables = _told(rest)
    named: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for kind, entry in _entries(identifiers, [f"- {kind}: " for kind in _KINDS]):
        named[_KINDS[kind]].append(entry)
    return Brief(
        task,
        narrative,
        named["anchor"],
        named["symbol"],
        named["decision"],
        _plain(failed),
        () if variables is None else _plain(variables),
        _plain(steps),
        end[1] == "true",
    )


# Each heading behind a blank line, and only where what follows can be its section: a heading within an entry that is
# followed by something else is no heading. So the first that fits always leaves a brief behind it.
_TASK = re.escape(_NARRATIVE[1:])
_IN_NEXT = rf"(?:- |\(none recorded\)\n\n{_TASK}|\n{_TASK})"
_IN_FAILED = rf"(?:- |\(none recorded\)\n\n## Next steps\n{_IN_NEXT}|\n## Next steps\n{_IN_NEXT})"
_HEADINGS = (
    ("## Failed approaches", re.compile(rf"\n\n## Failed approaches\n(?={_IN_FAILED})")),
    ("## Next steps", re.compile(rf"\n\n## Next steps\n(?={_IN_NEXT})")),
    ("## Narrative", re.compile(rf"\n\n{_TASK}")),
)
_LAST = re.compile(r"\n\n## contains_tool_origin\n(true|false)\n\Z")
_UNWRITTEN = ("- \n", *(f"- {kind}: \n" for kind in _KINDS))
_LINE = re.compile(r"[^\n]*\n")
_VARIABLES = re.compile(r"(?<=.)\n\n## Open variables\n(?=- (?!\n\Z)|\Z)", re.DOTALL)


def _listed(entries: Sequence[str], prefix: str = "- ") -> str:
    return "".join(f"{prefix}{entry}\n" for entry in entries if entry)


def _told(rest: str) -> tuple[str, str, str | None]:
    """(task state, narrative, the section of open variables) of what follows `Task state: `."""
    variables = None
    for found in _VARIABLES.finditer(rest):
        variables = found
    section = None if variables is None else rest[variables.end() :]
    told = rest if variables is None else rest[: variables.start() + 1]
    # Neither of the two is empty where it is there at all.
    gap = told.find("\n\n", 1, -2)
    return (told[:-1], "", section) if gap < 0 else (told[:gap], told[gap + 2 : -1], section)


def _plain(section: str) -> tuple[str, ...]:
    if section == _NONE:
        return ()
    return tuple(entry for _, entry in _entries(section, ["- "])) or ("",)


def _entries(section: str, prefixes: Sequence[str]) -> list[tuple[int, str]]:
    """(index of the prefix, text) of each entry. Prefixes come in order; no entry is empty, so what looks like one is
    the beginning, or at the end the end, of an entry with newlines.
    """
    found: list[tuple[int, int]] = []
    at = 0
    for line in _LINE.findall(section):
        kind, start = found[-1] if found else (0, -1)
        began = next((k for k in range(kind, len(prefixes)) if line.startswith(prefixes[k])), None)
        if began is not None and at - start != len(prefixes[kind]) + 1:
            found.append((began, at))
        elif not found:
            raise ValueError("found a line outside of every entry, expected a list")
        at += len(line)
    if len(found) > 1 and at - found[-1][1] == len(prefixes[found[-1][0]]) + 1:
        found.pop()
    ends = [*(start for _, start in found), at][1:]
    return [
        (kind, section[start + len(prefixes[kind]) : end - 1]) for (kind, start), end in zip(found, ends, strict=True)
    ]
