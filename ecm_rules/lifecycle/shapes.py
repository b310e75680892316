"""How messages of a host are read and rewritten. ACLP V1 §"Ephemeral messages", §"Request processing order".

A *shape* knows where a host keeps the role, the text, and the ids of a message, what in it is a tool result of its own,
and how a copy with other text looks. Everything else in a message is the host's and stays as it is. Part of the runtime
ring.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Message = Any
    Messages = Sequence[Message]
    Slot = int | None

ASSISTANT = "assistant"
SYSTEM = "system"
TOOL = "tool"
USER = "user"
_SYSTEM_ROLES = (SYSTEM, "developer")


class Unit:
    """What is consumed as one: a message (slot None), or one of the tool results in it (its place among the parts).

    role: who speaks, `tool` for a result. ids: what names it beside its content. content: any JSON value.
    """

    __slots__ = ("content", "ids", "role", "slot")

    def __init__(self, slot: "Slot", role: str, ids: "tuple[Any, ...]", content: "Any") -> None:
        self.slot = slot
        self.role = role
        self.ids = ids
        self.content = content


class Shape:
    """Messages as `{"role", "content", "tool_call_id"?, "tool_calls"?, …}`: the neutral shape, and what others share.

    A message that is no dict, or whose role is no string, is not recognised: it has no units and is never rewritten.
    """

    __slots__ = ()
    name = "neutral"
    # Where the content of a message is mostly; what is a string without a comment there is looked at no further.
    key = "content"

    def role(self, message: "Message") -> "str | None":
        """Who speaks: assistant, system, tool, user or what else the host says; None where it is not recognised."""
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str):
            return None
        return SYSTEM if role in _SYSTEM_ROLES else role

    def units(self, message: "Message") -> "list[Unit]":
        """What of a message is consumed as one."""
        role = self.role(message)
        if role is None:
            return []
        return [Unit(None, role, (message.get("id"), message.get("tool_call_id")), message.get("content"))]

    def text(self, content: "Any") -> "str | None":
        """The text of a unit's content: a string, or its text parts joined by LF; None where there is none."""
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            return None
        texts = [part["text"] for part in content if self.is_text(part)]
        return "\n".join(texts) if texts else None

    def is_text(self, part: "Any") -> bool:
        """Whether a part of a content list is text that somebody wrote; thinking is none."""
        return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)

    def text_part(self, text: str, role: str) -> "Any":  # noqa: ARG002  some hosts tell what is said from what is asked
        """A part of a content list that says `text`."""
        return {"type": "text", "text": text}

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        """A copy of a message with the content of some units replaced. Only text of an assistant message is."""
        role = self.role(message)
        return {**message, "content": self.content_of(message.get("content"), stones[None], role or USER)}

    def content_of(self, content: "Any", stone: str, role: str) -> "Any":
        """What stands for a content: a string for a string, one text part for a list; what an assistant message has
        beside its text stays.
        """
        if isinstance(content, str):
            return stone
        if role != ASSISTANT:
            return [self.text_part(stone, role)]
        kept, put = [], False
        for part in content:
            if not self.is_text(part):
                kept.append(part)
            elif not put:
                kept.append(self.text_part(stone, role))
                put = True
        return kept

    def latest_answer(self, messages: "Messages") -> int:
        """Where the latest response of the model begins; -1 where there is none. What stands before it is consumed."""
        for index in range(len(messages) - 1, -1, -1):
            if self.role(messages[index]) == ASSISTANT:
                return index
        return -1

    def calls(self, message: "Message") -> "list[str]":
        """The ids of the tool calls that a message makes."""
        listed = message.get("tool_calls") if self.role(message) == ASSISTANT else None
        return [call["id"] for call in _dicts(listed) if isinstance(call.get("id"), str)]

    def results(self, message: "Message") -> "list[str]":
        """The ids of the tool calls whose results a message carries."""
        answered = message.get("tool_call_id") if self.role(message) == TOOL else None
        return [answered] if isinstance(answered, str) else []

    def block_message(self, text: str, where: str) -> "Message | None":
        """A message that carries active blocks; None where messages of this shape have no place for `where`."""
        return {"role": SYSTEM if where == "system" else USER, "content": text}


def _dicts(listed: "Any") -> "Iterable[dict[str, Any]]":
    return (item for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()


NEUTRAL = Shape()
