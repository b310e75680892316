"""Gemini CLI: a log of messages and patches, or one document of messages in older versions.

A message is written again when it has more to say, and a patch repeats a whole history: where one stands behind
messages it is a compression, with a summary among copies of what was said before. Neither counts, then or when the
session is resumed with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from ecm_rules.kernel.chain import items, mapping
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ASSISTANT, CALL, TEXT, Event, Format, Record, asked, texts, word
from ecm_rules.kernel.records.outcomes import result


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    agent: str | None = None
    seen: set[str] = set()
    resumed = False  # whether the log was opened and nothing was said since
    for event in itertools.chain([format.opening] if format.opening else [], events):
        patch = event.get("$set")
        messages: Iterable[Event] = [event]
        if "sessionId" in event and "type" not in event:
            if event.get("kind") == "subagent":
                agent = word(event, "sessionId")
            messages, resumed = items(event.get("messages")), event is not format.opening
        elif isinstance(patch, dict):
            messages = [one for one in items(patch.get("messages")) if word(one, "id") not in seen]
            seen |= {word(one, "id") for one in messages} - {""}
            messages = messages if resumed else []
        else:
            resumed = False
            seen |= {word(event, "id")} - {""}
        for message in messages:
            yield from _said(format, message, agent)


def _said(format: Format, message: Event, agent: str | None) -> Iterator[Record]:
    content, at = message.get("content"), word(message, "timestamp")
    if message.get("type") == "user":
        yield from (asked(text, at, agent) for text in format.typed(texts(content)))
    elif message.get("type") == "gemini":
        yield Record(ASSISTANT, TEXT, "\n".join(texts(content)), at=at, agent=agent)
    else:
        return
    for part in items(content):
        yield from _part(format, part, part, at, agent)
    for call in items(message.get("toolCalls")):
        yield from _part(format, {"functionCall": call}, call, at, agent)
        for part in items(call.get("result")):
            yield from _part(format, part, call, at, agent)


def _part(format: Format, part: Event, record: Event, at: str, agent: str | None) -> Iterator[Record]:
    """A call or its result. record: what says how it ended."""
    call, response = mapping(part.get("functionCall")), mapping(part.get("functionResponse"))
    if call:
        meant = meaning(format.tools, word(call, "name"), call.get("args"))
        yield Record(ASSISTANT, CALL, call=meant, id=word(call, "id"), at=at, agent=agent)
    if response:
        said = mapping(response.get("response"))
        text = word(said, "output") or word(said, "error")
        yield result(format, record, text, word(response, "id"), at, agent)
