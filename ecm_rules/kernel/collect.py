"""Identifiers that a transcript holds: what nobody can guess again once it has left the window. ECM §"Handoff brief".

Nothing is summarised: what is kept was written so, on one line, without what could be taken for a declaration. Each
identifier has its origin, so that text from tools is never laundered. Of each kind the latest are kept, in the order in
which they were last mentioned; what stands before a compaction boundary counts, for there it is lost first. Of a
session's transcript its main chain counts, of a subagent's own the subagent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any

import attrs

from ecm_rules.artifacts import jq
from ecm_rules.kernel.records import ASSISTANT, TOOL, USER, Call, Reader, Record, reading
from ecm_rules.kernel.records.model import CALL, REQUEST, RESULT
from ecm_rules.kernel.transcripts import MAX_LINE, is_document
from ecm_rules.tables import places

MOST = {"anchor": 40, "symbol": 40, "failed_approach": 10, "to_do": 20}
MOST_FROM_TOOLS = 10
LONGEST = 300
LONGEST_REQUEST = 600
LAST_LINE = 10**7
# In an emergency so much of the end is read. RULINGS ECM 10.
TAIL = 4 << 20

_MINIMAL = ("anchor", "to_do", "request")
_LISTS = {"anchor": "anchors", "symbol": "symbols", "failed_approach": "failed_approaches", "to_do": "next_steps"}
_ANCHOR = re.compile(r"(?<![\w./~@+-])[\w./~@+-]{1,200}\.[A-Za-z]\w{0,9}:[1-9]\d{0,6}(?!\w)")
_SYMBOL = re.compile(
    r"\b(?:def|class|func|function|fn|struct|interface|type|trait|enum|module)[ \t]+"
    r"(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_]\w{0,79})"
)
_SEARCHED = 20_000
_JOINERS = "\u200c\u200d"


@attrs.frozen
class Identifier:
    """kind: `anchor`, `symbol`, `failed_approach`, `to_do` or `request`. origin: `user`, `assistant` or `tool`."""

    kind: str
    text: str
    origin: str


@attrs.frozen
class Collected:
    """The identifiers of a session, by kind and in order."""

    identifiers: tuple[Identifier, ...] = ()
    unread: str | None = None
    """Why there is nothing, where the file is no transcript, or not of that subagent."""

    @property
    def contains_tool_origin(self) -> bool:
        return any(found.origin == TOOL for found in self.identifiers)

    def texts(self, kind: str) -> list[str]:
        return [found.text for found in self.identifiers if found.kind == kind]

    def to_list(self) -> list[dict[str, str]]:
        return [attrs.asdict(found) for found in self.identifiers]

    def added_to(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of a `work.Work`, and behind what they say the identifiers; the last request where they tell no
        task.
        """
        merged = {**facts, "collected": True}
        for kind, key in _LISTS.items():
            merged[key] = list(dict.fromkeys([*facts.get(key, ()), *self.texts(kind)]))
        merged["task_state"] = facts.get("task_state") or next(iter(self.texts("request")), "")
        merged["contains_tool_origin"] = bool(facts.get("contains_tool_origin")) or self.contains_tool_origin
        return merged


def collect(records: Iterable[Record], minimal: bool = False, agent: str | None = None) -> Collected:
    """The identifiers in the records of a session. minimal: anchors, to-dos and the last request alone.

    Those of the main chain, or of the subagent with the id `agent`; where every record is a subagent's, of all.
    """
    return _gathered(records, agent).collected(minimal, agent)


def collect_file(path: str, minimal: bool = False, reader: Reader | None = None, agent: str | None = None) -> Collected:
    """The same of a transcript's file; where minimal, of its end. Raises OSError where it cannot be read.

    reader: default, that of the format which the file has.
    """
    with places.open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        start = size - TAIL if minimal and size > TAIL and not is_document(stream) else 0
        head, lines = _Lines(stream, 0, min(size, TAIL)), _Lines(stream, start, size)
        if reader is not None:
            return collect(reader(lines), minimal, agent)
        found = reading.recognise(reading.Events(head)) or reading.recognise(reading.Events(lines))
        if found is None:
            return Collected(unread="found no record of a session" if size else None)
        name, opening = found
        gathered = _gathered(reading.read(name, lines, opening if start else None), agent)
        if start and not gathered.main.fed:
            # A session that leaves all to subagents for long is no subagent for that.
            gathered.main.fed = any(record.agent is None for record in reading.read(name, head))
        return gathered.collected(minimal, agent)


class _Lines:
    """The lines of a part of a file, split on LF alone; those that are too long, and what begins before, left out."""

    def __init__(self, stream: BufferedReader, start: int, end: int) -> None:
        self._stream = stream
        self._start = start
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        offset, whole = self._start, self._start == 0
        while offset < self._end:
            self._stream.seek(offset)  # each time, for there may be another who reads
            line = self._stream.readline(min(self._end - offset, MAX_LINE))
            if not line:
                return  # the file was cut meanwhile
            offset += len(line)
            ends = line.endswith(b"\n")
            if whole and (ends or len(line) < MAX_LINE):
                yield line
            whole = ends


def inert(text: str, longest: int = LONGEST) -> str:
    """The text on one line of at most so many characters: no control, nothing that reorders it, no declaration."""
    # A cut first, so that a huge text costs no more than a long one.
    clean = jq.clean(text[: longest * 8])
    line = " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in clean).split())
    line = line.replace("<!--", "<! --").replace("-->", "-- >")
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _gathered(records: Iterable[Record], agent: str | None) -> _Chains:
    chains = _Chains()
    for record in records:
        if record.agent is None:
            chains.main.feed(record)
        elif agent is None or record.agent in (agent, ""):
            chains.side.feed(record)
        else:
            chains.others.feed(record)
    return chains


class _Chains:
    """What is found on the main chain, of the subagent that is asked for, and of others."""

    def __init__(self) -> None:
        self.main, self.side, self.others = _Found(), _Found(), _Found()

    def collected(self, minimal: bool, agent: str | None) -> Collected:
        found = self.side if agent is not None or not self.main.fed else self.main
        if agent is not None and not found.fed:
            if self.main.fed or not self.others.fed:
                return Collected(unread=f"found nothing of the subagent {inert(agent)}")
            found = self.others  # its own file, in which its client calls it something else
        kinds = [kind for kind in (*_LISTS, "request") if not minimal or kind in _MINIMAL]
        return Collected(tuple(each for kind in kinds for each in found.latest(kind)))


class _Found:
    """By kind, text to (origin, whether it is more than what a tool printed), the one that was mentioned last at the
    end. Who wrote a text first is its origin, whoever repeats it: nothing is laundered.
    """

    def __init__(self) -> None:
        self.fed = False
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {kind: {} for kind in (*_LISTS, "request")}
        self._commands: dict[str, str] = {}
        self._tasks: dict[str, tuple[str, bool]] = {}

    def feed(self, record: Record) -> None:
        self.fed = True
        if record.kind == CALL:
            self._call(record)
            return
        if record.kind == RESULT:
            self._result(record)
        elif record.kind == REQUEST or record.origin == USER:
            when = f" ({inert(record.at, 40)})" if record.at else ""
            self._kinds["request"] = {f"{inert(record.text, LONGEST_REQUEST)}{when}": (record.origin, True)}
        for anchor in _ANCHOR.finditer(record.text[-_SEARCHED:] if record.origin == TOOL else record.text[:_SEARCHED]):
            self._add("anchor", anchor[0], record.origin)

    def latest(self, kind: str) -> list[Identifier]:
        """The latest of a kind; of anchors that only tools printed, as many as there is room for, and not many."""
        if kind == "to_do" and self._tasks:
            return [Identifier(kind, text, ASSISTANT) for text, done in self._tasks.values() if not done][: MOST[kind]]
        every, most = self._kinds[kind], MOST.get(kind, 1)
        own = [text for text, (_, meant) in every.items() if meant or kind != "anchor"][-most:]
        room = min(most - len(own), MOST_FROM_TOOLS)
        printed = [text for text, (_, meant) in every.items() if not meant and kind == "anchor"]
        kept = {*own, *(printed[-room:] if room else ())}
        return [Identifier(kind, text, origin) for text, (origin, _) in every.items() if text in kept]

    def _add(self, kind: str, text: str, origin: str) -> None:
        known = self._kinds[kind]
        first, meant = known.pop(text, (origin, False))
        known[text] = first, meant or origin != TOOL

    def _call(self, record: Record) -> None:
        call = record.call
        for path, line in call.places:
            if path and len(path) <= LONGEST:
                known = type(line) is int and 0 < line < LAST_LINE
                self._add("anchor", inert(path) + (f":{line}" if known else ""), ASSISTANT)
        for text in call.written:
            for symbol in _SYMBOL.finditer(text[:_SEARCHED]):
                self._add("symbol", symbol[1], ASSISTANT)
        if call.command and record.id:
            self._commands[record.id] = inert(call.command)
        self._to_dos(call)

    def _result(self, record: Record) -> None:
        command = self._commands.pop(record.id, "")
        if not command or record.refused:
            return
        known = self._kinds["failed_approach"]
        # A command that has worked since is no failed approach, and one that failed again failed as it did last.
        for text in [text for text in known if text.startswith(f"`{command}` failed")]:
            del known[text]
        if record.failed:
            said = next((inert(line, 160) for line in record.text.splitlines() if line.strip()), "")
            self._add(
                "failed_approach", f"`{command}` failed" + (f": {said}" if said else ""), TOOL if said else ASSISTANT
            )

    def _to_dos(self, call: Call) -> None:
        if call.to_dos is not None:
            texts = [inert(each.text) for each in call.to_dos if each.is_open]
            self._kinds["to_do"] = dict.fromkeys(texts[: MOST["to_do"]], (ASSISTANT, True))
        elif call.to_do is not None:
            self._tasks[str(len(self._tasks) + 1)] = inert(call.to_do), False
        elif call.task is not None and call.task[0] in self._tasks:
            id, still = call.task
            self._tasks[id] = self._tasks[id][0], not still
