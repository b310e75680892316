"""Messages of the Anthropic Messages API. Part of the runtime ring.

A user message holds tool results, each a unit of its own, and in front of nothing else: what the API takes for the
answer to the calls before it. The system prompt is no message; a system message may stand behind a user's.
"""

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALL,
    MISPLACED_RESULT,
    NEXT,
    RESULT,
    SERVER_CALL,
    SERVER_RESULT,
    SYSTEM,
    TOOL,
    USER,
    Shape,
    Unit,
    field,
    instead,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.lifecycle.shapes import Link, Message, Slot

_ROLES = (USER, ASSISTANT, SYSTEM)
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


class Anthropic(Shape):
    """`{"role": "user" | "assistant" | "system", "content": str | [part, …]}`."""

    __slots__ = ()
    name = "anthropic"
    results_stand = NEXT
    unique_ids = True
    turns_merge = True
    system_ends_turn = True

    def role(self, message: "Message") -> "str | None":
        role = field(message, "role")
        known = isinstance(role, str) and role in _ROLES and isinstance(field(message, "content"), str | list)
        return role if known else None

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        content = message["content"]
        if role != USER or isinstance(content, str):
            return [Unit(None, role, (), content)]
        units, own = [], []
        for slot, part in enumerate(content):
            if _is_own(part):
                own.append(part)
            elif isinstance(part, dict):
                units.append(Unit(slot, TOOL, (part.get("tool_use_id"),), part.get("content")))
        if own:
            units.append(Unit(None, role, (), own))
        return units

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        content, role, own = message["content"], message["role"], stones.get(None)
        if isinstance(content, str):
            return {**message, "content": own}
        parts = [self._result(part, stones[slot]) if slot in stones else part for slot, part in enumerate(content)]
        if own is not None:
            # What a system message has beside its text changes the tools, and must go on to.
            goes = _is_own if role == USER else self.is_text
            parts = instead(parts, goes, self.text_part(own, role))
        return {**message, "content": parts}

    def links(self, message: "Message") -> "list[Link]":
        role, content = self.role(message), field(message, "content")
        if role == SYSTEM or role is None or isinstance(content, str):
            return []
        return _called(content) if role == ASSISTANT else _answered(content)

    def block_message(self, text: str, where: str) -> "Message | None":
        return None if where == SYSTEM else {"role": USER, "content": text}

    def _result(self, part: "Any", stone: str) -> "Any":
        return {**part, "content": self.content_of(part.get("content"), stone, TOOL)}


def _is_own(part: "Any") -> bool:
    """Whether a part of a user message is no result of a tool."""
    return bool(field(part, "type") != "tool_result")


def _called(content: "list[Any]") -> "list[Link]":
    links: list[Link] = []
    for part in content:
        kind = field(part, "type")
        if not isinstance(kind, str):
            continue
        if kind == "tool_use":
            links.append((CALL, text_of(part, "id"), ""))
        elif kind in _SERVER_CALLS:
            links.append((SERVER_CALL, text_of(part, "id"), ""))
        elif kind.endswith("_tool_result"):
            links.append((SERVER_RESULT, text_of(part, "tool_use_id"), ""))
    return links


def _answered(content: "list[Any]") -> "list[Link]":
    links: list[Link] = []
    kind = RESULT
    for part in content:
        if _is_own(part):
            kind = MISPLACED_RESULT
            continue
        links.append((kind, text_of(part, "tool_use_id"), ""))
    return links


ANTHROPIC = Anthropic()
