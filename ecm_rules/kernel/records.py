"""What happened in a session, whichever client wrote it down: a reader a client gives the same records.

A reader is a function of the lines of a transcript (bytes, with or without LF) that yields a `Record` for each event of
the main chain, in order. What it cannot read it passes over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from ecm_rules.kernel.readers.claude import SYNTHETIC

USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"

# What a client puts into a user's message by itself.
_INSERTED = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_NO_REQUEST = re.compile(
    r"<(?:command-|local-command|bash-|task-notification|ide_|user-memory)"
    r"|\[Request interrupted|Caveat: The messages below"
)


@attrs.frozen
class Record:
    """An event. origin: who wrote `text` and `arguments`: `user`, `assistant` or `tool`.

    kind: `text`; `call` of the tool `name` with `arguments`; `result` of the call with the same `id`. at: ISO 8601.
    """

    origin: str
    kind: str
    text: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    id: str = ""
    failed: bool = False
    at: str = ""


Reader = Callable[[Iterable[bytes]], Iterator[Record]]


def claude_code(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a Claude Code transcript, before its compaction boundaries and after.

    A summary of a compaction is left out: nobody knows where its words came from.
    """
    for line in lines:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(told, dict) or told.get("isSidechain") is True or told.get("isMeta") is True:
            continue
        message = told.get("message")
        if not isinstance(message, dict) or told.get("isCompactSummary") is True:
            continue
        at = told["timestamp"] if isinstance(told.get("timestamp"), str) else ""
        if told.get("type") == "user":
            yield from _user(told, message.get("content"), at)
        elif told.get("type") == "assistant" and message.get("model") != SYNTHETIC:
            yield from _assistant(message.get("content"), at)


READERS: Mapping[str, Reader] = {"claude-code": claude_code}


def _user(told: dict[str, Any], content: Any, at: str) -> Iterator[Record]:
    source = told.get("origin")
    human = not isinstance(source, dict) or source.get("kind") in (None, "human")
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            text = "\n".join(
                part["text"] for part in _blocks(block.get("content")) if isinstance(part.get("text"), str)
            )
            yield Record(
                TOOL, "result", text, id=_text(block, "tool_use_id"), failed=block.get("is_error") is True, at=at
            )
        elif block.get("type") == "text":
            text = _INSERTED.sub("", _text(block, "text")).strip()
            if text and not _NO_REQUEST.match(text):
                yield Record(USER if human else TOOL, "text", text, at=at)


def _assistant(content: Any, at: str) -> Iterator[Record]:
    for block in _blocks(content):
        if block.get("type") == "text":
            yield Record(ASSISTANT, "text", _text(block, "text"), at=at)
        elif block.get("type") == "tool_use":
            given = block.get("input")
            arguments = given if isinstance(given, dict) else {}
            yield Record(ASSISTANT, "call", "", _text(block, "name"), arguments, _text(block, "id"), at=at)


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(block: Mapping[str, Any], key: str) -> str:
    found = block.get(key)
    return found if isinstance(found, str) else ""
