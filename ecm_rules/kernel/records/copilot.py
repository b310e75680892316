"""GitHub Copilot CLI: a log of events, those of subagents among them, each with the id of its agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ecm_rules.kernel.chain import items, mapping
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ASSISTANT, CALL, TEXT, Event, Format, Record, asked, word
from ecm_rules.kernel.records.outcomes import result

# How the client names who asked, where it was not the person in front of it.
_AGENT = "agent-"


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    for event in events:
        data, at = mapping(event.get("data")), word(event, "timestamp")
        found = event.get("agentId", data.get("agentId", data.get("parentToolCallId")))
        agent = found if isinstance(found, str) else None
        kind = event.get("type")
        if kind == "user.message":
            yield from (asked(text, at, agent, _asks(data, agent)) for text in format.typed([word(data, "content")]))
        elif kind == "assistant.message":
            yield Record(ASSISTANT, TEXT, word(data, "content"), at=at, agent=agent)
            for call in items(data.get("toolRequests")):
                yield _call(format, call, word(call, "name"), at, agent)
        elif kind == "tool.execution_start":
            yield _call(format, data, word(data, "toolName"), at, agent)
        elif kind == "tool.execution_complete":
            text = word(mapping(data.get("result")), "content") or word(mapping(data.get("error")), "message")
            yield result(format, data, text, word(data, "toolCallId"), at, agent)


def _asks(data: Event, agent: str | None) -> bool:
    """Whether a message was sent by the user, or to a subagent by another agent; not by the client itself."""
    source = data.get("source")
    sent = source in (None, "user") or (agent is not None and isinstance(source, str) and source.startswith(_AGENT))
    return sent and data.get("isAutopilotContinuation") is not True


def _call(format: Format, event: Event, name: str, at: str, agent: str | None) -> Record:
    call = meaning(format.tools, name, event.get("arguments"))
    return Record(ASSISTANT, CALL, call=call, id=word(event, "toolCallId"), at=at, agent=agent)
