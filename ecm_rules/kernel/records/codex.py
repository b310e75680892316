"""Codex: a rollout. What the model asked for are its items; what was done, and how it ended, events beside them say.

Where a script of the model's calls the tools, the events alone tell; where it calls one itself, its item and its event
have the same id. A fork begins with a replay of its parent, which is in its window, and counts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.kernel.chain import mapping
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import (
    ASSISTANT,
    CALL,
    REQUEST,
    TEXT,
    TOOL,
    USER,
    Event,
    Format,
    Record,
    asked,
    texts,
    word,
)
from ecm_rules.kernel.records.outcomes import result

_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_PRINTED = ("aggregated_output", "formatted_output", "stdout", "stderr")
# What a message of the user is made of, where the client says so.
_TYPED = "user."


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    agent, opened = None, False
    written: set[str] = set()
    for event in itertools.chain([format.opening] if format.opening else [], events):
        payload, at = mapping(event.get("payload")), word(event, "timestamp")
        kind = event.get("type")
        if kind == "session_meta" and not opened:  # a later one is that of a parent, replayed
            opened = True
            agent = word(payload, "id") if "subagent" in mapping(payload.get("source")) else None
        elif kind == "response_item":
            for record in _item(format, payload, mapping(event.get("metadata")), at, agent):
                if record.call.written:
                    written.add(record.id)
                yield record
        elif kind == "event_msg":
            # The files of a patch that the model wrote itself are known by the names that it gave them.
            done = _done(format, payload, at, agent)
            yield from (record for record in done if not (record.call.written and record.id in written))


def _item(format: Format, item: Event, marks: Event, at: str, agent: str | None) -> Iterator[Record]:
    kind, id = word(item, "type"), word(item, "call_id")
    if kind == "message" and marks.get("compaction_output") is not True:
        for record in _message(format, item, at, agent):
            # What a subagent took over from the session that it was forked from, a person has asked there.
            yield attrs.evolve(record, origin=USER) if _inherited(record, marks) else record
    elif kind in _OUTPUTS:
        yield _output(format, item.get("output"), id, at, agent)
    elif kind == "agent_message":
        yield Record(TOOL, TEXT, "\n".join(texts(item.get("content"))), at=at, agent=agent)
    elif kind.endswith("_call"):
        name = word(item, "name") or kind
        given = item.get("arguments", item.get("input", item.get("action")))
        yield Record(ASSISTANT, CALL, call=meaning(format.tools, name, given), id=id, at=at, agent=agent)


def _inherited(record: Record, marks: Event) -> bool:
    return record.kind == REQUEST and marks.get("inherited_user_message") is True


def _message(format: Format, item: Event, at: str, agent: str | None) -> Iterator[Record]:
    content = item.get("content")
    if item.get("role") == "assistant":
        yield Record(ASSISTANT, TEXT, "\n".join(texts(content)), at=at, agent=agent)
    elif item.get("role") == "user":
        kinds = mapping(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
        if isinstance(content, list) and isinstance(kinds, list) and len(kinds) == len(content):
            parts = zip(content, kinds, strict=True)
            content = [part for part, kind in parts if isinstance(kind, str) and kind.startswith(_TYPED)]
        yield from (asked(text, at, agent) for text in format.typed(texts(content)))


def _output(format: Format, output: Any, id: str, at: str, agent: str | None) -> Record:
    """The result of a call. Older versions wrote it as JSON: `{"output", "metadata": {"exit_code"}}`."""
    record = output if isinstance(output, dict) else {}
    text = "\n".join(texts(output if isinstance(output, (str, list)) else [record]))
    if text.startswith("{"):
        try:
            record = mapping(json.loads(text))
        except (ValueError, RecursionError):
            record = {}
    return result(format, record, word(record, "output") or text, id, at, agent)


def _done(format: Format, payload: Event, at: str, agent: str | None) -> Iterator[Record]:
    """A command that ended, or a change of files."""
    item = mapping(payload.get("item")) if payload.get("type") == "item_completed" else payload
    name, id = word(item, "type"), word(item, "id") or word(item, "call_id")
    if name in format.tools:
        yield Record(ASSISTANT, CALL, call=meaning(format.tools, name, item), id=id, at=at, agent=agent)
        text = next((item[key] for key in _PRINTED if isinstance(item.get(key), str) and item[key]), "")
        yield result(format, item, text, id, at, agent)
