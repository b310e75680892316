"""What a reader of transcripts yields, whichever client wrote them down, and what it is told of its format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"

TEXT = "text"
REQUEST = "request"
CALL = "call"
RESULT = "result"

Event = dict[str, Any]


@attrs.frozen
class ToDo:
    text: str
    is_open: bool


@attrs.frozen
class Call:
    """What a call says. places: (path, the value that stands for a line, or None). written: texts that it puts into a
    file or takes out of one. to_dos: the list in the place of the one before; None: the call is of none. task: the
    number of one to-do, and whether it is still open.
    """

    places: tuple[tuple[str, Any], ...] = ()
    written: tuple[str, ...] = ()
    command: str = ""
    to_dos: tuple[ToDo, ...] | None = None
    to_do: str | None = None
    task: tuple[str, bool] | None = None


@attrs.frozen
class Record:
    """An event. origin: who wrote `text` and `call`: `user`, `assistant` or `tool`.

    kind: `text`, which asks for something where it is the user's; `request`, by whoever; `call`; `result` of the call
    with the same `id`, of which text is what it printed. at: ISO 8601. agent: the subagent that it is of, None on the
    main chain.
    """

    origin: str
    kind: str
    text: str = ""
    call: Call = Call()
    id: str = ""
    failed: bool = False
    refused: bool = False
    at: str = ""
    agent: str | None = None


@attrs.frozen
class Format:
    """One of `tables.hosts.load_collecting`, with what is known of the file: `opening` is its first record where the
    reader gets only later ones.
    """

    tools: Mapping[str, Mapping[str, Any]]
    results: Mapping[str, Any]
    inserted: tuple[str, ...]
    attached: tuple[str, ...]
    tags: re.Pattern[str] | None
    opening: Event | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Format:
        names = "|".join(re.escape(name) for name in said["inserted_tags"])
        tags = re.compile(rf"<({names})>.*?(?:</\1>|\Z)", re.DOTALL) if names else None
        return cls(said["tools"], said["results"], tuple(said["inserted"]), tuple(said["attached"]), tags)

    def typed(self, texts: Iterable[str]) -> Iterator[str]:
        """Of the parts of a message that stands as the user's, what the user typed."""
        for text in texts:
            kept = (self.tags.sub("", text) if self.tags else text).strip()
            if kept.startswith(self.attached):
                return
            if kept and not kept.startswith(self.inserted):
                yield kept


def word(event: Mapping[str, Any], key: str) -> str:
    """A text by its key, empty where there is none."""
    found = event.get(key)
    return found if isinstance(found, str) else ""


def asked(text: str, at: str, agent: str | None, human: bool = True) -> Record:
    """What stands as a message of the user. A subagent is asked by the agent that started it, and not by a person."""
    if not human:
        return Record(TOOL, TEXT, text, at=at, agent=agent)
    return Record(USER if agent is None else ASSISTANT, REQUEST, text, at=at, agent=agent)


def texts(content: Any) -> list[str]:
    """The texts of content: of one, or of a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else ()
    return [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
