"""Messages as OpenCode keeps them, which its plugins may change for one request. Part of the runtime ring.

A tool's part is the call and its result in one, in the assistant's message: an atom. What it put out is a unit of its
own; the part itself, thinking and every other part of an answer stay where they are.
"""

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALL,
    RESULT,
    SYSTEM,
    TOOL,
    USER,
    Shape,
    Unit,
    emptied,
    field,
    instead,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.lifecycle.shapes import Link, Message, Messages, Slot

_ROLES = (USER, ASSISTANT)
_ABORTED = "MessageAbortedError"
# Parts of an answer that was aborted which are not worth sending.
_NOTHING = ("step-start", "reasoning")
# The client's ids begin so, and rise.
_BLOCKS = "msg_0"
_ANSWERS = ("text", "tool", "reasoning")


class OpenCode(Shape):
    """`{"info": {"id", "role": "user" | "assistant", …}, "parts": [{"type", …}, …]}`."""

    __slots__ = ()
    name = "opencode"
    key = "parts"
    # The client answers a call that was broken off itself, and never has an answer gone on with.
    prefills = False

    def role(self, message: "Message") -> "str | None":
        role = field(field(message, "info"), "role")
        known = isinstance(role, str) and role in _ROLES and isinstance(field(message, "parts"), list)
        return role if known else None

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        named = text_of(message.get("info"), "id")
        units, own = [], []
        for slot, part in enumerate(message["parts"]):
            if self._goes(part, role):
                own.append(part)
            elif field(part, "type") == "tool" and isinstance(part, dict):
                units.append(Unit(slot, TOOL, (named, text_of(part, "callID")), _put_out(part)))
        if own:
            units.append(Unit(None, role, (named,), own))
        return units

    def is_text(self, part: "Any") -> bool:
        # What is ignored is not sent.
        return super().is_text(part) and part.get("ignored") is not True

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        role, own = self.role(message) or USER, stones.get(None)
        parts = [
            _replaced(part, stones[slot]) if slot in stones else part for slot, part in enumerate(message["parts"])
        ]
        if own is not None and role == ASSISTANT:
            parts = emptied(parts, self.is_text, own)
        elif own is not None:
            # The client knows a part by its ids, so one that is there says it.
            says = next(part for part in parts if self.is_text(part))
            parts = instead(parts, lambda part: self._goes(part, role), {**says, "text": own})
        return {**message, "parts": parts}

    def is_answer(self, message: "Message") -> bool:
        """An answer that failed, or in which nothing is, is not sent again: the model has not seen what it was for."""
        if self.role(message) != ASSISTANT:
            return False
        kinds = [field(part, "type") for part in field(message, "parts")]
        failed = field(field(message, "info"), "error")
        if failed and (field(failed, "name") != _ABORTED or all(kind in _NOTHING for kind in kinds)):
            return False
        return any(kind in _ANSWERS for kind in kinds)

    def links(self, message: "Message") -> "list[Link]":
        if self.role(message) != ASSISTANT:
            return []
        calls = [text_of(part, "callID") for part in field(message, "parts") if field(part, "type") == "tool"]
        return [(kind, call, "") for call in calls for kind in (CALL, RESULT)]

    def block_message(self, text: str, where: str) -> "Message | None":
        if where == SYSTEM:
            return None
        part = {"type": "text", "text": text, "synthetic": True, "id": "prt_0", "messageID": _BLOCKS}
        return {"info": {"id": _BLOCKS, "role": USER}, "parts": [part]}

    def session(self, messages: "Messages") -> "str | None":
        for message in reversed(messages):
            told = text_of(field(message, "info"), "sessionID")
            if told:
                return told
        return None

    def _goes(self, part: "Any", role: str) -> bool:
        """Whether a tombstone stands for a part: for text, and for the files that a user gives with it. What else there
        is in a message is the client's, its marks and its bookkeeping.
        """
        return self.is_text(part) or (role == USER and field(part, "type") == "file")


def _where(part: "dict[str, Any]") -> "tuple[dict[str, Any], str] | None":
    """What in a tool's part holds what it put out, and by which key; None where it has not ended."""
    state = part.get("state")
    status = field(state, "status")
    if not isinstance(state, dict) or status not in ("completed", "error"):
        return None
    if status == "completed":
        return state, "output"
    metadata = state.get("metadata")
    # What a tool said until it was interrupted is sent instead of the error.
    if isinstance(metadata, dict) and metadata.get("interrupted") is True and isinstance(metadata.get("output"), str):
        return metadata, "output"
    return state, "error"


def _put_out(part: "dict[str, Any]") -> "str | None":
    found = _where(part)
    return None if found is None else text_of(*found)


def _replaced(part: "dict[str, Any]", stone: str) -> "dict[str, Any]":
    """A tool's part with what it put out replaced. What is attached to that goes, for it is the same output."""
    found = _where(part)
    if found is None:
        return part
    holder, key = found
    state = part["state"]
    if holder is not state:
        return {**part, "state": {**state, "metadata": {**holder, key: stone}}}
    kept = {name: value for name, value in state.items() if name != "attachments"}
    return {**part, "state": {**kept, key: stone}}


OPENCODE = OpenCode()
