"""OpenCode: an exported session, one document of messages and their parts. A subagent's is one of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ecm_rules.kernel.chain import items, mapping
from ecm_rules.kernel.readers.opencode import iso
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ASSISTANT, CALL, TEXT, Event, Format, Record, asked, word
from ecm_rules.kernel.records.outcomes import result

_ENDED = ("completed", "error")


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    for event in events:
        session = mapping(event.get("info"))
        agent = word(session, "id") if isinstance(session.get("parentID"), str) else None
        for message in items(event.get("messages")):
            info = mapping(message.get("info"))
            time = iso(mapping(info.get("time")).get("created"))
            at = f"{time}Z" if time else ""
            parts = items(message.get("parts"))
            if info.get("role") == "user":
                typed = [word(part, "text") for part in parts if part.get("type") == "text" and _own(part)]
                yield from (asked(text, at, agent) for text in format.typed(typed))
            elif info.get("role") == "assistant" and info.get("summary") is not True:
                yield from _assistant(format, parts, at, agent)


def _own(part: Event) -> bool:
    """Whether the user typed a part, and the client did not."""
    return part.get("synthetic") is not True and part.get("ignored") is not True


def _assistant(format: Format, parts: Iterable[Event], at: str, agent: str | None) -> Iterator[Record]:
    for part in parts:
        if part.get("type") == "text":
            yield Record(ASSISTANT, TEXT, word(part, "text"), at=at, agent=agent)
        elif part.get("type") == "tool":
            state, id = mapping(part.get("state")), word(part, "callID")
            call = meaning(format.tools, word(part, "tool"), state.get("input"))
            yield Record(ASSISTANT, CALL, call=call, id=id, at=at, agent=agent)
            if state.get("status") in _ENDED:
                yield result(format, part, word(state, "output") or word(state, "error"), id, at, agent)
