"""Messages as pi keeps them, which its extensions may change for one request. Part of the runtime ring."""

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALL,
    DIRECTLY,
    RESULT,
    SYSTEM,
    TOOL,
    USER,
    Shape,
    Unit,
    emptied,
    field,
    listed,
    spoken,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ecm_rules.lifecycle.shapes import Link, Message, Slot

# A command that the user had run puts out what a tool does. A summary is all that is left of what it stands for, and
# is never consumed.
_RAN = "bashExecution"
_ROLES = {
    "user": USER,
    "assistant": ASSISTANT,
    "toolResult": TOOL,
    "system": SYSTEM,
    "custom": "custom",
    _RAN: _RAN,
    "branchSummary": "branchSummary",
    "compactionSummary": "compactionSummary",
}
_KEYS = {_RAN: "output", "branchSummary": "summary", "compactionSummary": "summary"}
_FAILED = ("error", "aborted")


class Pi(Shape):
    """`{"role", "content": str | [part, …], "toolCallId"?, "timestamp", …}`; what pi itself tells has its own keys."""

    __slots__ = ()
    name = "pi"
    results_stand = DIRECTLY

    def role(self, message: "Message") -> "str | None":
        told = field(message, "role")
        role = _ROLES.get(told) if isinstance(told, str) else None
        known = role is not None and isinstance(field(message, _KEYS.get(role, "content")), str | list)
        return role if known else None

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        ids = (message.get("timestamp"), message.get("toolCallId"))
        if role == _RAN:
            return [Unit(None, TOOL, ids, message["output"])]
        # Of what has another key, nothing is read.
        return [Unit(None, spoken(message, role), (*ids, *self.calls(message)), message.get("content"))]

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        role, stone = self.role(message) or USER, stones[None]
        if role == _RAN:
            return {**message, "output": stone}
        content = message["content"]
        if role == ASSISTANT and isinstance(content, list):
            return {**message, "content": emptied(content, self.is_text, stone)}
        return {**message, "content": self.content_of(content, stone, role)}

    def is_answer(self, message: "Message") -> bool:
        """An answer that failed or was broken off is not sent again: the model goes on from what stood before it."""
        return self.role(message) == ASSISTANT and field(message, "stopReason") not in _FAILED

    def links(self, message: "Message") -> "list[Link]":
        role = self.role(message)
        if role == ASSISTANT:
            parts = listed(field(message, "content"))
            return [(CALL, text_of(part, "id"), "") for part in parts if field(part, "type") == "toolCall"]
        return [(RESULT, text_of(message, "toolCallId"), "")] if role == TOOL else []

    def block_message(self, text: str, where: str) -> "Message | None":
        # It has a time like every message, and no other in the next request.
        return None if where == SYSTEM else {"role": USER, "content": [self.text_part(text, USER)], "timestamp": 0}


PI = Pi()
