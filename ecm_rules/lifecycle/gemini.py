"""Contents of the Gemini API, in either spelling of their keys. Part of the runtime ring.

The response to a function call is a part of a user's content and a unit of its own. A system instruction is no content.
"""

from ecm_rules.lifecycle.grammar import parse
from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALL,
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.lifecycle.shapes import Link, Message, Slot

_ROLES = {"user": USER, "model": ASSISTANT, "function": TOOL}
_RESPONSE = ("functionResponse", "function_response")
_CALL = ("functionCall", "function_call")
_SIGNATURE = ("thoughtSignature", "thought_signature")
# What a part of a content may be of a pair, by who speaks. A tool that the provider runs stands in the model's.
_PAIRED = {
    ASSISTANT: (
        (CALL, _CALL),
        (SERVER_CALL, ("toolCall", "tool_call")),
        (SERVER_RESULT, ("toolResponse", "tool_response")),
    ),
    USER: ((RESULT, _RESPONSE),),
    TOOL: ((RESULT, _RESPONSE),),
}


class Gemini(Shape):
    """`{"role": "user" | "model" | "function" | absent, "parts": [part, …]}`."""

    __slots__ = ()
    name = "gemini"
    key = "parts"
    results_stand = NEXT

    def role(self, message: "Message") -> "str | None":
        role = field(message, "role")
        if not isinstance(field(message, "parts"), list):
            return None
        return USER if role is None else _ROLES.get(role) if isinstance(role, str) else None

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        if role == ASSISTANT:
            return [Unit(None, role, (), message["parts"])]
        units, own = [], []
        for slot, part in enumerate(message["parts"]):
            answer = either(part, _RESPONSE)
            if answer is None:
                own.append(part)
            elif isinstance(part, dict) and isinstance(answer, dict):
                units.append(Unit(slot, TOOL, (answer.get("id"), answer.get("name")), _content(answer)))
        if own:
            units.append(Unit(None, role, (), own))
        return units

    def text(self, content: "Any") -> "str | None":
        if not isinstance(content, dict):
            return super().text(content)
        texts = [value for value in content.values() if isinstance(value, str)]
        return "\n".join(texts) if texts else None

    def is_text(self, part: "Any") -> bool:
        return isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("thought") is not True

    def text_part(self, text: str, role: str) -> "Any":  # noqa: ARG002  both sides write it the same
        return {"text": text}

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        own = stones.get(None)
        parts = [
            _replaced(part, stones[slot]) if slot in stones else part for slot, part in enumerate(message["parts"])
        ]
        if own is not None:
            said = self.role(message) == ASSISTANT
            parts = self._said(parts, own) if said else instead(parts, _is_own, self.text_part(own, USER))
        return {**message, "parts": parts}

    def links(self, message: "Message") -> "list[Link]":
        links: list[Link] = []
        role = self.role(message)
        for part in field(message, "parts") if role is not None else ():
            for kind, keys in _PAIRED.get(role or "", ()):
                told = either(part, keys)
                if told is not None:
                    id, name = field(told, "id"), field(told, "name")
                    links.append((kind, id if isinstance(id, str) else None, name if isinstance(name, str) else ""))
        return links

    def block_message(self, text: str, where: str) -> "Message | None":
        return None if where == SYSTEM else {"role": "user", "parts": [{"text": text}]}

    def _said(self, parts: "list[Any]", stone: str) -> "list[Any]":
        """The parts of an answer with its text replaced. A signature that stands with a text stays."""
        kept, put = [], False
        for part in parts:
            if not self.is_text(part):
                kept.append(part)
            elif not put:
                kept.append({**part, "text": stone})
                put = True
            elif either(part, _SIGNATURE) is not None:
                kept.append({**part, "text": ""})
        return kept


def either(part: "Any", keys: "tuple[str, ...]") -> "Any":
    """What a part has at the first of some keys that it has."""
    for key in keys:
        value = field(part, key)
        if value is not None:
            return value
    return None


def _is_own(part: "Any") -> bool:
    return either(part, _RESPONSE) is None


def _content(answer: "dict[str, Any]") -> "Any":
    """The `response`; the string in it, where there is nothing else."""
    response = answer.get("response")
    if isinstance(response, dict) and len(response) == 1:
        (value,) = response.values()
        return value if isinstance(value, str) else response
    return response if isinstance(response, dict) else None


def _replaced(part: "Any", stone: str) -> "Any":
    """A part with the `response` in it replaced. Its media go, which the response refers to."""
    key = next(key for key in _RESPONSE if part.get(key) is not None)
    answer = part[key]
    texts = [(name, value) for name, value in answer["response"].items() if isinstance(value, str)]
    says = next((name for name, value in texts if parse(value, "").ephemeral), texts[0][0])
    kept = {name: value for name, value in answer.items() if name != "parts"}
    return {**part, key: {**kept, "response": {says: stone}}}


GEMINI = Gemini()
