"""Claude Code: a message for each content block. Subagents of older versions stand in the file of their session as
sidechains; now each has a file, all of it a sidechain.

What stands before a compaction boundary counts; a summary does not, for nobody knows where its words came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ecm_rules.kernel.chain import items, mapping
from ecm_rules.kernel.readers.claude import SYNTHETIC
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ASSISTANT, CALL, TEXT, Event, Format, Record, asked, texts, word
from ecm_rules.kernel.records.outcomes import result


def read(events: Iterable[Event], format: Format) -> Iterator[Record]:
    for event in events:
        message, at = event.get("message"), word(event, "timestamp")
        if not isinstance(message, dict):
            continue
        agent = word(event, "agentId") if event.get("isSidechain") is True else None
        own = event.get("isMeta") is True or event.get("isCompactSummary") is True
        if event.get("type") == "user" and not own:
            yield from _user(format, event, message.get("content"), at, agent)
        elif event.get("type") == "assistant" and not own and message.get("model") != SYNTHETIC:
            yield from _assistant(format, message.get("content"), at, agent)
        elif event.get("type") in ("user", "assistant"):
            yield Record(ASSISTANT, TEXT, at=at, agent=agent)  # says nothing, but of which chain the file is


def _user(format: Format, event: Event, content: Any, at: str, agent: str | None) -> Iterator[Record]:
    human = mapping(event.get("origin")).get("kind") in (None, "human")
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            text = "\n".join(texts(block.get("content")))
            yield result(format, block, text, word(block, "tool_use_id"), at, agent)
        elif block.get("type") == "text":
            yield from (asked(text, at, agent, human) for text in format.typed([word(block, "text")]))


def _assistant(format: Format, content: Any, at: str, agent: str | None) -> Iterator[Record]:
    for block in _blocks(content):
        if block.get("type") == "text":
            yield Record(ASSISTANT, TEXT, word(block, "text"), at=at, agent=agent)
        elif block.get("type") == "tool_use":
            call = meaning(format.tools, word(block, "name"), block.get("input"))
            yield Record(ASSISTANT, CALL, call=call, id=word(block, "id"), at=at, agent=agent)


def _blocks(content: Any) -> Iterable[Event]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
