"""The texts of a request of Gemini CLI, which is what its hooks may see of it. Part of the runtime ring.

Calls, results and media stand between these texts, unseen: the client puts the i-th text that comes back into the i-th
content that has one, and adds what is more at the end. So no text may go, none may come between others, and blocks in
front of all stand in the first text of the user.

An answer that did nothing but call a tool is not seen either. A text is consumed once the model has said something in
words at a later position: later than the protocol would have it, never earlier.
"""

from ecm_rules.lifecycle.shapes import ASSISTANT, SYSTEM, USER, Shape, Unit, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ecm_rules.lifecycle.shapes import Link, Message, Slot

_ROLES = {"user": USER, "model": ASSISTANT, "system": SYSTEM}


class GeminiText(Shape):
    """`{"role": "user" | "model" | "system", "content": str}`."""

    __slots__ = ()
    name = "gemini-text"
    places_tell = True

    def role(self, message: "Message") -> "str | None":
        role = field(message, "role")
        return _ROLES.get(role) if isinstance(role, str) and isinstance(field(message, "content"), str) else None

    def units(self, message: "Message") -> "list[Unit]":
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        return [Unit(None, role, (), message["content"])]

    def replaced(self, message: "Message", stones: "Mapping[Slot, str]") -> "Message":
        return {**message, "content": stones[None]}

    def links(self, message: "Message") -> "list[Link]":  # noqa: ARG002  none can be seen
        return []

    def block_message(self, text: str, where: str) -> "Message | None":
        return None if where == SYSTEM else {"role": "user", "content": text}


GEMINI_TEXT = GeminiText()
