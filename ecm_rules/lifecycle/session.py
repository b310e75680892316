"""Lifetimes of one session: which blocks are active, what was consumed, and each request's view of its history.

ACLP V1 §"Named blocks", §"Discard", §"Request processing order". Part of the runtime ring: a hook restores a session,
makes one view and takes a snapshot.
"""

import json
import time

from ecm_rules.lifecycle import grammar, injection, pairs
from ecm_rules.lifecycle.ecmascript import utf8, utf8_of_json
from ecm_rules.lifecycle.shapes import NEUTRAL, SYSTEM_ROLES
from ecm_rules.lifecycle.trust import BLOCK, DISCARD, Source, context_source, message_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ecm_rules.lifecycle.shapes import Message, Messages, Shape, Slot, Unit
    from ecm_rules.lifecycle.trust import Policy

    Event = dict[str, Any]
    Problem = dict[str, Any]

FORMAT = 1
ACTIVE = "active"
DISCARDED = "discarded"
CONFLICT = "block-id-conflict"
_MARK = "<!--"
# The fields that each entry of a snapshot has.
_RECORDS: "dict[str, dict[str, type]]" = {
    "blocks": {"id": str, "source": str, "status": str, "content": str},
    "audit": {"action": str, "source": str, "trigger": str, "request_sequence": int, "timestamp": str},
    "diagnostics": {"code": str, "source": str, "line": int},
}


def tombstone(original_bytes: int) -> str:
    """What stands for a consumed content."""
    return f"[EPHEMERAL:Output omitted after consumption;original_bytes={original_bytes}]"


class View:
    """What a request sends.

    messages: with blocks injected. core: the same before. Both share every message that is not rewritten with the
    history. system: text that belongs into the host's system prompt, where its messages have no place for it.
    changes: {"index", "slot", "original_bytes"} of each content that was replaced. injected: the place of the message
    that carries the blocks, None where none does. problems: {"code", "index"?, "message"} of what could not be read.
    """

    __slots__ = ("active", "changes", "core", "injected", "messages", "problems", "request_sequence", "system")

    def __init__(self, request_sequence: int, core: "list[Message]") -> None:
        self.request_sequence = request_sequence
        self.core = core
        self.messages = core
        self.system = ""
        self.active: list[str] = []
        self.changes: list[dict[str, Any]] = []
        self.injected: int | None = None
        self.problems: list[Problem] = []


class _Marked:
    """A unit that declares something: its text read, and what identifies it but for which of its equals it is."""

    __slots__ = ("bytes", "digest", "discards", "ephemeral")

    def __init__(self, digest: str, bytes: int, ephemeral: bool, discards: "list[str]") -> None:
        self.digest = digest
        self.bytes = bytes
        self.ephemeral = ephemeral
        self.discards = discards


class Session:
    """Block state, audit and views of one session.

    trust: the resolved trust table. shape: how its messages are read. inject: where active blocks go, `last` (keeps the
    provider's cached prefix), `first` or `system`. clock: gives the timestamp of an event; order comes from the
    request sequence alone. Not for use by several threads at once.
    """

    def __init__(
        self,
        trust: "Policy",
        *,
        shape: "Shape" = NEUTRAL,
        inject: str = injection.LAST,
        clock: "Callable[[], str] | None" = None,
    ) -> None:
        if inject not in injection.PLACES:
            raise ValueError(f"inject is {inject!r}, expected one of {', '.join(injection.PLACES)}")
        self.trust = trust
        self.shape = shape
        self.inject = inject
        self._clock = clock or _now
        self._sequence = 0
        self._blocks: dict[str, dict[str, str]] = {}
        self._audit: list[Event] = []
        self._diagnostics: dict[tuple[str, str, int], None] = {}
        self._consumed: set[str] = set()
        self._processed: set[str] = set()
        # What of the last request's history declares something, by its content: what is presented again is not read
        # again, and nothing is kept of what the host dropped.
        self._known: dict[Any, _Marked] = {}

    @property
    def request_sequence(self) -> int:
        """How many views were made."""
        return self._sequence

    @property
    def active(self) -> "list[str]":
        """The ids of active blocks, in the order of their first activation."""
        return [block["id"] for block in self._blocks.values() if block["status"] == ACTIVE]

    @property
    def blocks(self) -> "list[dict[str, str]]":
        """{"id", "source", "status", "content"} of each block that was ever active, in that order."""
        return [dict(block) for block in self._blocks.values()]

    @property
    def audit(self) -> "list[Event]":
        """What happened, oldest first: {"action", "source", "trigger", "request_sequence", "timestamp", "block_id"?,
        "original_bytes"?, "reason"?}.
        """
        return [dict(event) for event in self._audit]

    @property
    def diagnostics(self) -> "list[dict[str, Any]]":
        """{"code", "source", "line"} of what loaded sources declare in vain, each once."""
        return [{"code": code, "source": source, "line": line} for code, source, line in self._diagnostics]

    def load_source(self, markdown: str, source: "Source | str") -> grammar.Document:
        """Activate the blocks of a Markdown source that an adapter loads. A string names a context source.

        The first definition of an id holds, whatever becomes of it. Ephemeral and discard lines of a source do nothing.
        Raises TypeError for a text that is no string.
        """
        source = context_source(source) if isinstance(source, str) else source
        document = grammar.parse(markdown, source.id)
        for told in document.diagnostics:
            self._report(told.code, source.id, told.line)
        allowed = bool(document.blocks) and self.trust.allows(BLOCK, source)
        for block in document.blocks:
            if not allowed:
                self._record("activation_denied", source, "source_loaded", block_id=block.id)
                continue
            known = self._blocks.get(block.id)
            if known is None:
                state = {"id": block.id, "source": source.id, "status": ACTIVE, "content": block.content}
                self._blocks[block.id] = state
                self._record("block_activated", source, "source_loaded", block_id=block.id)
            elif (known["source"], known["content"]) != (source.id, block.content):
                self._report(CONFLICT, source.id, block.start_line)
        return document

    def control(self, markdown: str, source: Source) -> grammar.Document:
        """Carry out the discard lines of a text, if its source may discard. Each call is a new attempt.

        Raises TypeError for a text that is no string.
        """
        document = grammar.parse(markdown, source.id)
        self._discard([discard.block_id for discard in document.discards], source, "control")
        return document

    def view(self, messages: "Messages", sources: "Mapping[Any, Source] | None" = None) -> View:
        """The view of a history that one request sends; the history is not changed.

        sources: where a message comes from (by its index), or a tool result in one (by index and slot), where an
        adapter knows more than who speaks. Raises TypeError for a history that is no list or tuple.
        """
        if not isinstance(messages, list | tuple):
            raise TypeError(f"a history is a list of messages, found {messages.__class__.__name__}")
        self._sequence += 1
        view = View(self._sequence, list(messages))
        view.active = self.active
        if messages and not any(self.shape.role(message) is not None for message in messages):
            # A message of ours among messages of another host would have the request refused.
            told = f"no message of the history has the shape {self.shape.name}"
            view.problems.append({"code": "unrecognised-history", "message": told})
            return view
        marked = self._marked(messages, view)
        for index, unit, read, key in marked:
            if read.discards and key not in self._processed:
                self._processed.add(key)
                given = (sources or {}).get(index if unit.slot is None else (index, unit.slot))
                self._discard(read.discards, given or message_source(unit.role), "message_context")
        view.active = self.active
        if self._consume(messages, marked, view):
            injection.inject(view, self.shape, self._blocks.values(), self.inject)
        return view

    def snapshot(self) -> "dict[str, Any]":
        """The whole state as plain JSON. It shares nothing with the session."""
        return {
            "format": FORMAT,
            "request_sequence": self._sequence,
            "blocks": self.blocks,
            "audit": self.audit,
            "diagnostics": self.diagnostics,
            "consumed": sorted(self._consumed),
            "processed": sorted(self._processed),
        }

    def restore(self, snapshot: "Any") -> None:
        """Replace the whole state by a snapshot's. Raises ValueError where it is none, and changes nothing then."""
        fault = _fault(snapshot)
        if fault:
            raise ValueError(f"no snapshot of a session: {fault}")
        self._sequence = snapshot["request_sequence"]
        self._blocks = {block["id"]: dict(block) for block in snapshot["blocks"]}
        self._audit = [dict(event) for event in snapshot["audit"]]
        self._diagnostics = {(told["code"], told["source"], told["line"]): None for told in snapshot["diagnostics"]}
        self._consumed = set(snapshot["consumed"])
        self._processed = set(snapshot["processed"])

    def _marked(self, messages: "Messages", view: View) -> "list[tuple[int, Unit, _Marked, str]]":
        """What of the history declares something: its message's index, itself, what was read of it, its identity."""
        shape, key = self.shape, self.shape.key
        known: dict[Any, _Marked] = {}
        counts: dict[str, int] = {}
        found: list[tuple[int, Unit, _Marked, str]] = []
        for index, message in enumerate(messages):
            # Most of a history is text without a comment, and this is looked at in each request.
            content = message.get(key) if message.__class__ is dict else None
            if content.__class__ is str and _MARK not in content:
                continue
            try:
                units = shape.units(message)
            except Exception as error:
                view.problems.append(_unreadable(index, error))
                continue
            for unit in units:
                try:
                    text = shape.text(unit.content)
                    if text is None or not grammar.declares(text):
                        continue
                    plain = isinstance(unit.content, str)
                    name = (unit.role, json.dumps(unit.ids), plain, unit.content if plain else _canonical(unit))
                    read = known.get(name) or self._known.get(name) or _read(unit, text)
                except Exception as error:
                    view.problems.append(_unreadable(index, error))
                    continue
                known[name] = read
                if read.ephemeral or read.discards:
                    count = counts[read.digest] = counts.get(read.digest, 0) + 1
                    found.append((index, unit, read, f"{read.digest}:{count}"))
                if read.ephemeral and unit.role in SYSTEM_ROLES:
                    told = "an ephemeral line makes a system message consumable"
                    view.problems.append({"code": "ephemeral-system-message", "index": index, "message": told})
        self._known = known
        return found

    def _consume(self, messages: "Messages", marked: "list[tuple[int, Unit, _Marked, str]]", view: View) -> bool:
        """Put tombstones into the core view for what stands before the latest answer. False where that breaks a pair:
        the view is the history then.
        """
        stones: dict[int, dict[Slot, str]] = {}
        taken = []
        latest = self.shape.latest_answer(messages) if any(read.ephemeral for _, _, read, _ in marked) else -1
        for index, unit, read, key in marked:
            if read.ephemeral and index < latest:
                stones.setdefault(index, {})[unit.slot] = tombstone(read.bytes)
                taken.append((index, unit, read, key))
        broken = self._rewrite(messages, stones, view)
        if broken:
            view.core[:] = messages
            if broken not in self._processed:
                self._processed.add(broken)
                self._record("view_rejected", message_source("view"), "pairing", reason=broken)
            view.problems.append({"code": "broken-pair", "message": broken})
            return False
        for index, unit, read, key in taken:
            view.changes.append({"index": index, "slot": unit.slot, "original_bytes": read.bytes})
            if key not in self._consumed:
                self._consumed.add(key)
                source = message_source(unit.role)
                self._record("ephemeral_consumed", source, "assistant_response_completed", original_bytes=read.bytes)
        return True

    def _rewrite(self, messages: "Messages", stones: "dict[int, dict[Slot, str]]", view: View) -> str:
        """Put the tombstones in; what that breaks."""
        for index, slots in stones.items():
            try:
                view.core[index] = self.shape.replaced(messages[index], slots)
            except Exception as error:
                return f"message {index} cannot be rewritten: {error.__class__.__name__}"
        return pairs.broken_by(self.shape, messages, view.core, stones)

    def _discard(self, block_ids: "list[str]", source: Source, trigger: str) -> None:
        allowed = bool(block_ids) and self.trust.allows(DISCARD, source)
        for block_id in block_ids:
            block = self._blocks.get(block_id)
            if not allowed:
                action = "discard_denied"
            elif block is None:
                action = "discard_unknown"
            elif block["status"] == DISCARDED:
                action = "discard_already_applied"
            else:
                action = "block_discarded"
                block["status"] = DISCARDED
            self._record(action, source, trigger, block_id=block_id)

    def _record(self, action: str, source: Source, trigger: str, **more: "Any") -> None:
        self._audit.append(
            {
                "action": action,
                "source": source.id,
                "trigger": source.trigger or trigger,
                "request_sequence": self._sequence,
                "timestamp": _time(self._clock),
                **more,
            }
        )

    def _report(self, code: str, source: str, line: int) -> None:
        self._diagnostics.setdefault((code, source, line))


def _time(clock: "Callable[[], str]") -> str:
    """What a clock says. One that fails costs an event its time, and nothing else."""
    try:
        return str(clock())
    except Exception:
        return ""


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _unreadable(index: int, error: Exception) -> "Problem":
    told = f"its content cannot be read: {error.__class__.__name__}"
    return {"code": "unreadable-content", "index": index, "message": told}


def _canonical(unit: "Unit") -> str:
    return json.dumps(unit.content, sort_keys=True, separators=(",", ":"))


def _read(unit: "Unit", text: str) -> _Marked:
    from hashlib import sha256

    content = unit.content
    is_text = isinstance(content, str)
    told = json.dumps([unit.role, list(unit.ids), "text" if is_text else "list"])
    body = content if is_text else _canonical(unit)
    digest = sha256(f"{told}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()
    document = grammar.parse(text, "")
    discards = [discard.block_id for discard in document.discards]
    return _Marked(digest, utf8(content) if is_text else utf8_of_json(content), document.ephemeral, discards)


def _fault(snapshot: "Any") -> str:
    """What makes a value no snapshot; empty where it is one."""
    if not isinstance(snapshot, dict) or snapshot.get("format").__class__ is not int or snapshot["format"] != FORMAT:
        return f"expected an object of format {FORMAT}"
    if not _is_count(snapshot.get("request_sequence")):
        return "`request_sequence` is no count"
    for key, fields in _RECORDS.items():
        records = snapshot.get(key)
        if not isinstance(records, list) or not all(_is_record(record, fields) for record in records):
            return f"`{key}` is no list of what belongs there"
    for key in ("consumed", "processed"):
        names = snapshot.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return f"`{key}` is no list of strings"
    if len({block["id"] for block in snapshot["blocks"]}) < len(snapshot["blocks"]):
        return "`blocks` has an id twice"
    return "" if all(map(_is_block, snapshot["blocks"])) else "`blocks` has one that no text defines"


def _is_record(record: "Any", fields: "dict[str, type]") -> bool:
    if not isinstance(record, dict) or not all(isinstance(record.get(name), kind) for name, kind in fields.items()):
        return False
    return all(value is None or isinstance(value, str) or _is_count(value) for value in record.values())


def _is_block(block: "dict[str, Any]") -> bool:
    ends = block["content"][-1:] in ("", "\n", "\r")
    return ends and grammar.is_id(block["id"]) and block["status"] in (ACTIVE, DISCARDED)


def _is_count(value: "Any") -> bool:
    return value.__class__ is int and 0 <= value < 2**53
