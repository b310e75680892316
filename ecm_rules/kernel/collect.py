"""Identifiers that a transcript holds: what nobody can guess again once it has left the window. ECM §"Handoff brief".

Nothing is summarised: what is kept was written so, on one line, without what could be taken for a declaration. Each
identifier has its origin, so that text from tools is never laundered. Of each kind the latest are kept, in the order in
which they were last mentioned; what stands before a compaction boundary counts, for there it is lost first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from ecm_rules.artifacts import jq
from ecm_rules.kernel.records import ASSISTANT, READERS, TOOL, USER, Reader, Record
from ecm_rules.tables import places

MOST = {"anchor": 40, "symbol": 40, "failed_approach": 10, "to_do": 20}
MOST_FROM_TOOLS = 10
LONGEST = 300
LONGEST_REQUEST = 600
# In an emergency so much of the end is read. RULINGS ECM 10.
TAIL = 4 << 20

_MINIMAL = ("anchor", "to_do", "request")
_LISTS = {"anchor": "anchors", "symbol": "symbols", "failed_approach": "failed_approaches", "to_do": "next_steps"}
_ANCHOR = re.compile(r"(?<![\w./~@+-])[\w./~@+-]{1,200}\.[A-Za-z]\w{0,9}:[1-9]\d{0,6}(?!\w)")
_SYMBOL = re.compile(
    r"\b(?:def|class|func|function|fn|struct|interface|type|trait|enum|module)[ \t]+"
    r"(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_]\w{0,79})"
)
_REJECTED = "The user doesn't want to"
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


def collect(records: Iterable[Record], minimal: bool = False) -> Collected:
    """The identifiers in the records of a session. minimal: anchors, to-dos and the last request alone."""
    found = _Found()
    for record in records:
        found.feed(record)
    kept = [each for kind in (*_LISTS, "request") if not minimal or kind in _MINIMAL for each in found.latest(kind)]
    return Collected(tuple(kept))


def collect_file(path: str, minimal: bool = False, reader: Reader = READERS["claude-code"]) -> Collected:
    """The same of a transcript's file; where minimal, of its end. Raises OSError where it cannot be read."""
    with places.open_regular(path) as lines:
        if minimal and lines.seek(0, 2) > TAIL:
            lines.seek(-TAIL, 2)
            lines.readline()  # the rest of a line that began before
        else:
            lines.seek(0)
        return collect(reader(lines), minimal)


def inert(text: str, longest: int = LONGEST) -> str:
    """The text on one line of at most so many characters: no control, nothing that reorders it, no declaration."""
    # A cut first, so that a huge text costs no more than a long one.
    clean = jq.clean(text[: longest * 8])
    line = " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in clean).split())
    line = line.replace("<!--", "<! --").replace("-->", "-- >")
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


class _Found:
    """By kind, text to (origin, whether it is more than what a tool printed), the one that was mentioned last at the
    end. Who wrote a text first is its origin, whoever repeats it: nothing is laundered.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {kind: {} for kind in (*_LISTS, "request")}
        self._commands: dict[str, str] = {}
        self._tasks: dict[str, tuple[str, bool]] = {}

    def feed(self, record: Record) -> None:
        if record.kind == "call":
            self._call(record)
            return
        if record.kind == "result":
            self._result(record)
        elif record.origin == USER:
            when = f" ({inert(record.at, 40)})" if record.at else ""
            self._kinds["request"] = {f"{inert(record.text, LONGEST_REQUEST)}{when}": (USER, True)}
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
        given = record.arguments
        path = next((given[key] for key in ("file_path", "notebook_path") if isinstance(given.get(key), str)), "")
        if path and len(path) <= LONGEST:
            line = given.get("offset")
            self._add("anchor", inert(path) + (f":{line}" if type(line) is int and line > 0 else ""), ASSISTANT)
        for text in _written(given):
            for symbol in _SYMBOL.finditer(text[:_SEARCHED]):
                self._add("symbol", symbol[1], ASSISTANT)
        command = given.get("command")
        if isinstance(command, str) and record.id:
            self._commands[record.id] = inert(command)
        self._to_dos(record.name, given)

    def _result(self, record: Record) -> None:
        command = self._commands.pop(record.id, "")
        if not command or record.text.startswith(_REJECTED):
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

    def _to_dos(self, name: str, given: Mapping[str, Any]) -> None:
        if name == "TodoWrite" and isinstance(given.get("todos"), list):
            open_ones = [t for t in given["todos"] if isinstance(t, dict) and t.get("status") != "completed"]
            texts = [inert(t["content"]) for t in open_ones if isinstance(t.get("content"), str)]
            self._kinds["to_do"] = dict.fromkeys(texts[: MOST["to_do"]], (ASSISTANT, True))
        elif name == "TaskCreate" and isinstance(given.get("subject"), str):
            self._tasks[str(len(self._tasks) + 1)] = inert(given["subject"]), False
        elif name == "TaskUpdate":
            id, status = given.get("taskId"), given.get("status")
            if isinstance(id, str) and id in self._tasks and isinstance(status, str):
                self._tasks[id] = self._tasks[id][0], status in ("completed", "deleted")


def _written(given: Mapping[str, Any]) -> Iterator[str]:
    """The texts that a call writes into a file, and those that it takes out."""
    edits = given.get("edits")
    for part in (given, *(edits if isinstance(edits, list) else ())):
        if isinstance(part, Mapping):
            yield from (part[key] for key in ("old_string", "new_string", "content") if isinstance(part.get(key), str))
