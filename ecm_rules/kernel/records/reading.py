"""From the lines of a transcript to its records: what they hold, and the reader of their format."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from ecm_rules.kernel.lookup import fits
from ecm_rules.kernel.records import claude, codex, copilot, gemini, opencode, pi
from ecm_rules.kernel.records.model import Event, Format, Record
from ecm_rules.kernel.tally import split
from ecm_rules.tables import hosts

Reader = Callable[[Iterable[bytes]], Iterator[Record]]

MAX_DOCUMENT = 64 << 20
"""Bytes of a transcript that is one JSON document over many lines: of a larger one nothing is read."""

_BOM = b"\xef\xbb\xbf"
_FORMATS: Mapping[str, Callable[[Iterable[Event], Format], Iterator[Record]]] = {
    "claude-code": claude.read,
    "codex-rollout": codex.read,
    "copilot-events": copilot.read,
    "gemini-cli": gemini.read,
    "opencode-export": opencode.read,
    "pi-session": pi.read,
}


class Events:
    """The JSON objects of lines, or of the one document that all of them are. They can be gone through again."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines) if isinstance(lines, Iterator) else lines

    def __iter__(self) -> Iterator[Event]:
        lines = iter(self._lines)
        head = list(itertools.islice(lines, 2))
        whole = itertools.chain(head, lines)
        for line in (_document(whole),) if _opens(head) else whole:
            yield from (found for found in split(line)[0] if isinstance(found, dict))


def recognise(events: Iterable[Event]) -> tuple[str, Event] | None:
    """The format of a file, by the first of its events that fits one, and that event."""
    formats = _said()
    for event in events:
        for name, said in formats.items():
            if fits(event, said["known_by"]):
                return name, event
    return None


def read(name: str, lines: Iterable[bytes], opening: Event | None = None) -> Iterator[Record]:
    """The records in the lines of a file of a format. opening: the file's first event, where they begin later."""
    return _FORMATS[name](Events(lines), attrs.evolve(Format.of(_said()[name]), opening=opening))


READERS: Mapping[str, Reader] = {name: functools.partial(read, name) for name in _FORMATS}


@functools.cache
def _said() -> hosts.Collecting:
    return hosts.load_collecting()


def _opens(head: list[bytes]) -> bool:
    """Whether a document begins: an object that says nothing yet in the first line, and no record in the second."""
    if len(head) < 2 or head[0].removeprefix(_BOM).strip() != b"{":
        return False
    try:
        return not isinstance(json.loads(head[1]), dict)
    except (ValueError, RecursionError):
        return True


def _document(lines: Iterable[bytes]) -> bytes:
    kept, size = [], 0
    for line in lines:
        size += len(line)
        if size > MAX_DOCUMENT:
            return b""
        kept.append(line)
    return b"".join(kept)
