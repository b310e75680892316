"""Messages of OpenAI Chat Completions, and items of OpenAI Responses. Part of the runtime ring."""

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALL,
    DIRECTLY,
    REFERENCE,
    RESULT,
    SYSTEM,
    TOOL,
    USER,
    Shape,
    Unit,
    field,
    spoken,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.lifecycle.shapes import Link, Message, Messages, Slot

_ROLES = {"system": SYSTEM, "developer": SYSTEM, "user": USER, "assistant": ASSISTANT}
_CHAT_ROLES = {**_ROLES, "tool": TOOL, "function": TOOL}
# Calls whose output is an item of its own.
_ANSWERED = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
# Items of Responses that are no messages, and that do not tell by the end of their type whose they are.
_ITEMS = {
    "reasoning": ASSISTANT,
    "program": ASSISTANT,
    "mcp_list_tools": ASSISTANT,
    "mcp_approval_request": ASSISTANT,
    "item_reference": "reference",  # an item that the provider keeps, of whomever
    "mcp_approval_response": USER,
    "additional_tools": SYSTEM,
    "compaction": "compaction",
}
_TEXTS = ("input_text", "output_text", "text")


class OpenAIChat(Shape):
    """`{"role", "content", "tool_calls"?, "tool_call_id"?}`, and the `function_call` and `function` of old."""

    __slots__ = ()
    name = "openai-chat"
    results_stand = DIRECTLY

    def role(self, message: "Message") -> "str | None":
        told, content = field(message, "role"), field(message, "content")
        role = _CHAT_ROLES.get(told) if isinstance(told, str) else None
        # What only calls need not say anything.
        known = isinstance(content, str | list) or (content is None and role in (ASSISTANT, TOOL))
        return role if known else None

    def links(self, message: "Message") -> "list[Link]":
        links = super().links(message)
        role = self.role(message)
        if role == ASSISTANT:
            name = field(field(message, "function_call"), "name")
            return [*links, (CALL, None, name)] if isinstance(name, str) else links
        name = field(message, "name") if role == TOOL and field(message, "role") == "function" else None
        return [(RESULT, None, name)] if isinstance(name, str) else links


class OpenAIResponses(Shape):
    """`{"type": "message"?, "role", "content"}`, `{"type": "function_call", "call_id", …}`,
    `{"type": "function_call_output", "call_id", "output"}`, and the other items of a response.

    What a response consists of are items of their own, so the latest answer is a run of them.
    """

    __slots__ = ()
    name = "openai-responses"

    def role(self, message: "Message") -> "str | None":
        kind = field(message, "type")
        if kind is None or kind == "message":
            role = field(message, "role")
            known = isinstance(role, str) and isinstance(field(message, "content"), str | list)
            return _ROLES.get(role) if known else None
        if not isinstance(kind, str):
            return None
        if kind.endswith("_output"):
            return TOOL
        return ASSISTANT if kind.endswith("_call") else _ITEMS.get(kind)

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        if role == TOOL:
            return [Unit(None, role, (message.get("call_id"),), message.get("output"))]
        # An item without content says nothing that could be replaced.
        content = message.get("content") if message.get("type") in (None, "message") else None
        return [Unit(None, spoken(message, role) if "role" in message else role, (message.get("id"),), content)]

    def is_text(self, part: "Any") -> bool:
        return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)

    def text_part(self, text: str, role: str) -> "Any":
        if role == ASSISTANT:
            return {"type": "output_text", "text": text, "annotations": []}
        return {"type": "input_text", "text": text}

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        role = self.role(message) or USER
        key = "output" if role == TOOL else "content"
        return {**message, key: self.content_of(message[key], stones[None], role)}

    def latest_answer(self, messages: "Messages") -> int:
        begins = super().latest_answer(messages)
        # A compaction, or what is only referred to, in the midst of a response is no end of it.
        while begins > 0 and self.role(messages[begins - 1]) in (ASSISTANT, "compaction", "reference"):
            begins -= 1
        return begins

    def links(self, message: "Message") -> "list[Link]":
        kind, called = field(message, "type"), text_of(message, "call_id")
        if kind == "item_reference":
            return [(REFERENCE, None, "")]
        if not isinstance(kind, str):
            return []
        if kind.endswith("_output"):
            return [(RESULT, called, "")]
        # What the provider runs itself has its result within, and nothing to be called by.
        called_here = kind.endswith("_call") or kind == "program"
        return [(CALL, called, "")] if called_here and (called is not None or kind in _ANSWERED) else []

    def block_message(self, text: str, where: str) -> "Message | None":
        role = "developer" if where == SYSTEM else USER
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


OPENAI_CHAT = OpenAIChat()
OPENAI_RESPONSES = OpenAIResponses()
