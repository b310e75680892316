"""Pins as blocks: rendered within a budget, looked for by their markers, put back. ECM §"Pin set — what survives every
lossy operation"; ACLP V1 §"Named blocks".

Part of the runtime ring. A pin is a mapping with `id`, `why`, `marker`, `text` (None where it was not resolved) and
`reason` (then why not), as `kernel.pin_sources` makes it; a pin that was not resolved says so in its block, since what
is missing silently is what pins are against. A *block* is an opening line, lines that are no tags, and the closing line
of the same id. Lines end at LF, CRLF or a lone CR.
"""

import itertools

from ecm_rules.lifecycle import grammar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Pin = Mapping[str, Any]

PRESENT = "present"
MISSING = "missing"
DAMAGED = "damaged"
_LONGEST_REASON = 300


class Rendered:
    """Blocks as one text, the ids in it, and those of the pins that did not fit, all in the order of the table."""

    __slots__ = ("ids", "left_out", "size", "text")

    def __init__(self, text: str, ids: "list[str]", left_out: "list[str]", size: int) -> None:
        self.text = text
        self.ids = ids
        self.left_out = left_out
        self.size = size
        """Bytes of UTF-8."""


class _Tag:
    """An opening or closing line: the id, and where the line begins and ends, its line end included."""

    __slots__ = ("closes", "end", "id", "start")

    def __init__(self, id: str, closes: bool, start: int, end: int) -> None:
        self.id = id
        self.closes = closes
        self.start = start
        self.end = end


def declares(text: str) -> bool:
    """Whether a text holds a line that is exactly a declaration. RULINGS ECM 16."""
    told = grammar.parse(text, "")
    exact = [d for d in told.diagnostics if d.code != grammar.INVALID_TAG]
    return told.ephemeral or bool(told.blocks or told.discards or exact)


def marker(pin: "Pin") -> str:
    """What a probe looks for: the marker, or the id where it is none that a block could hold."""
    told: "str | None" = pin.get("marker")
    usable = told and told.strip() and "\n" not in told and "\r" not in told and not declares(told)
    return told if told and usable else pin["id"]


def block(pin: "Pin") -> str:
    """A pin as a block that holds its marker, with LF. Raises ValueError for an id that no block can have."""
    if not grammar.is_id(pin["id"]):
        raise ValueError(f"found the id {pin['id']!r}, expected one of a-z, 0-9, _ and -")
    opening, body, wanted = grammar.opening(pin["id"]), _body(pin), marker(pin)
    if wanted not in opening and wanted not in body:
        body = f"{wanted}\n{body}"
    return f"{opening}\n{body}\n{grammar.closing(pin['id'])}\n"


def render(pins: "Iterable[Pin]", budget: "float | None" = None, bytes_per_token: float = 4) -> Rendered:
    """The blocks of the pins, in order and each of them whole or left out. budget: tokens, None without end."""
    most = None if budget is None else budget * bytes_per_token
    parts, ids, left_out, size = [], [], [], 0
    for pin in pins:
        text = block(pin)
        more = len(text.encode("utf-8", "surrogatepass"))
        if most is not None and size + more > most:
            left_out.append(pin["id"])
        else:
            parts.append(text)
            ids.append(pin["id"])
            size += more
    return Rendered("".join(parts), ids, left_out, size)


def probe(text: str, pins: "Iterable[Pin]") -> "dict[str, str]":
    """By id, whether each pin is `present`, `missing` or `damaged` in a text.

    A marker in the block of another pin says nothing. A pin with tags but without a block that holds its marker is
    damaged.
    """
    listed = list(pins)
    tags = _tags(text)
    whole, tagged = _whole(tags), {tag.id for tag in tags}
    known = {pin["id"] for pin in listed}
    outside = _outside(text, [(start, end) for id, start, end in whole if id in known])
    states = {}
    for pin in listed:
        wanted = marker(pin)
        if pin["id"] in tagged:
            own = any(wanted in text[start:end] for id, start, end in whole if id == pin["id"])
            states[pin["id"]] = PRESENT if own else DAMAGED
        else:
            states[pin["id"]] = PRESENT if any(wanted in part for part in outside) else MISSING
    return states


def repair(text: str, pins: "Iterable[Pin]") -> "tuple[str, list[str], list[str]]":
    """(the text with every pin in it, the ids whose damaged block was replaced, the ids that were appended).

    What is no damaged block stays, byte for byte; the lines that are put in end as the text's own do. Repairing again
    changes nothing, and a probe finds every pin.
    """
    listed = list(pins)
    ending = _line_end(text)
    states = probe(text, listed)
    damaged = [pin for pin in listed if states[pin["id"]] == DAMAGED]
    if damaged:
        tags = _tags(text)
        places = sorted((*_damage(text, tags, pin), block(pin)) for pin in damaged)
        kept, at = [], 0
        for start, end, whole in places:
            kept += [text[at:start], whole.replace("\n", ending)]
            at = end
        text = "".join([*kept, text[at:]])
    # Looked for again: a marker may have stood in what was replaced.
    states = probe(text, listed)
    missing = [pin for pin in listed if states[pin["id"]] != PRESENT]
    if missing:
        close = "" if not text or text[-1] in "\r\n" else ending
        text += close + "".join(block(pin) for pin in missing).replace("\n", ending)
    return text, [pin["id"] for pin in damaged], [pin["id"] for pin in missing]


def _body(pin: "Pin") -> str:
    text: "str | None" = pin.get("text")
    if text is not None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if text and not declares(text):
        return text
    why, reason = (" ".join(str(pin.get(key) or "").split()) for key in ("why", "reason"))
    reason = reason or "there is no text, or one with a declaration"
    if len(reason) > _LONGEST_REASON:
        reason = reason[: _LONGEST_REASON - 1] + "…"
    return f"{why} (not resolved: {reason})"


def _tags(text: str) -> "list[_Tag]":
    """The opening and closing lines of a text, in order."""
    found = []
    # One search finds the end of a line, whichever it is.
    flat = text.replace("\r", "\n") if "\r" in text else text
    at = text.find(_STEM)
    while at >= 0:
        # `<!--BLOCK_ID:` and `<!--/BLOCK_ID:` differ in one character.
        start = at - 4 if text.startswith(grammar.OPENING, at - 4) else at - 5
        end = flat.find("\n", at)
        end = len(text) if end < 0 else end
        id = text[at + len(_STEM) : end - 3]
        head = text[start:at] if start >= 0 else ""
        if (
            head in ("<!--", "<!--/")
            and (start == 0 or flat[start - 1] == "\n")
            and text[end - 3 : end] == "-->"
            and grammar.is_id(id)
        ):
            after = end + 2 if text.startswith("\r\n", end) else min(end + 1, len(text))
            found.append(_Tag(id, head == "<!--/", start, after))
        at = text.find(_STEM, end)
    return found


_STEM = grammar.OPENING[4:]


def _whole(tags: "list[_Tag]") -> "list[tuple[str, int, int]]":
    """Id, begin and end of each block that is whole: no other tag stands in it."""
    return [
        (first.id, first.start, second.end)
        for first, second in itertools.pairwise(tags)
        if not first.closes and second.closes and first.id == second.id
    ]


def _outside(text: str, blocks: "list[tuple[int, int]]") -> "list[str]":
    """The parts of a text between blocks."""
    parts, at = [], 0
    for start, end in blocks:
        parts.append(text[at:start])
        at = end
    return [*parts, text[at:]]


def _damage(text: str, tags: "list[_Tag]", pin: "Pin") -> "tuple[int, int]":
    """Where a damaged block begins and ends: a whole one without its marker, or an opening line with what of the pin's
    own lines stands behind it, or a closing line.
    """
    for id, start, end in _whole(tags):
        if id == pin["id"]:
            return start, end
    own = [tag for tag in tags if tag.id == pin["id"]]
    first = next((tag for tag in own if not tag.closes), own[0])
    return first.start, first.end if first.closes else _remains(text, first.end, block(pin).split("\n")[1:-2])


def _remains(text: str, at: int, expected: "list[str]") -> int:
    """The end of the lines at `at` that are the expected ones, the last of them cut short at the end of the text."""
    for line in expected:
        if not text.startswith(line, at):
            rest = text[at:]
            return len(text) if rest and line.startswith(rest) else at
        end = at + len(line)
        if end < len(text) and text[end] not in "\r\n":
            return at
        at = end + 2 if text.startswith("\r\n", end) else min(end + 1, len(text))
    return at


def _line_end(text: str) -> str:
    """How the first line of a text ends; LF where none does."""
    ends = [place for place in (text.find("\n"), text.find("\r")) if place >= 0]
    if not ends:
        return "\n"
    at = min(ends)
    return "\r\n" if text.startswith("\r\n", at) else text[at]
