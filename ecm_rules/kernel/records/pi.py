"""pi: a tree of entries in the order of writing. What leads to the last one is the session; the user left the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ecm_rules.kernel.chain import items, mapping
from ecm_rules.kernel.readers.pi import lineage
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ASSISTANT, CALL, TEXT, Event, Format, Record, asked, texts, word
from ecm_rules.kernel.records.outcomes import result


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    branch = lineage(events)
    for event in events:
        if event.get("type") == "message" and ("parentId" not in event or word(event, "id") in branch):
            yield from _message(format, mapping(event.get("message")), word(event, "timestamp"))


def _message(format: Format, message: Event, at: str) -> Iterator[Record]:
    role, content = message.get("role"), message.get("content")
    if role == "user":
        yield from (asked(text, at, None) for text in format.typed(texts(content)))
    elif role == "toolResult":
        yield result(format, message, "\n".join(texts(content)), word(message, "toolCallId"), at)
    elif role == "assistant":
        yield Record(ASSISTANT, TEXT, "\n".join(texts(content)), at=at)
        for block in items(content):
            if block.get("type") == "toolCall":
                call = meaning(format.tools, word(block, "name"), block.get("arguments"))
                yield Record(ASSISTANT, CALL, call=call, id=word(block, "id"), at=at)
