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
    # What it is, its id (None where the host gives none), its name (empty where the id alone tells).
    Link = tuple[str, str | None, str]

ASSISTANT = "assistant"
SYSTEM = "system"
TOOL = "tool"
USER = "user"
SYSTEM_ROLES = (SYSTEM, "developer")

# What in a message belongs to a pair: a call, its result; the same of a tool that the provider itself runs, both of
# which stand in what the model says; and a reference to an item that the provider keeps, which may be either.
CALL = "call"
RESULT = "result"
MISPLACED_RESULT = "misplaced result"
SERVER_CALL = "server call"
SERVER_RESULT = "server result"
REFERENCE = "reference"
CALLS = (CALL, SERVER_CALL)
RESULTS = (RESULT, MISPLACED_RESULT, SERVER_RESULT)

# Where a result must stand: anywhere behind its call, in the message behind it, or in one of the tool messages directly
# behind it.
LATER = "later"
NEXT = "next"
DIRECTLY = "directly"


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

    A message whose role is no string is not recognised: it has no units and is never rewritten. An object of an SDK is
    asked for the attributes that a dict would have as keys, so that it counts as an answer and its calls as calls; it
    has no units either.
    """

    __slots__ = ()
    name = "neutral"
    # Where the content of a message is mostly; what is a string without a comment there is looked at no further.
    key = "content"
    # Where the results of a message's calls must stand, and whether no two calls of a history may have one id.
    results_stand = LATER
    unique_ids = False
    # Whether messages of one role that stand side by side are one to the provider.
    turns_merge = False
    # Whether a system message within a history must be its last or stand in front of an answer.
    system_ends_turn = False
    # Whether a history that ends in an answer has the model go on with it.
    prefills = True
    # Whether the host tells messages by their places, so that none may be put between others.
    places_tell = False

    def role(self, message: "Message") -> "str | None":
        """Who speaks: assistant, system, tool, user or what else the host says; None where it is not recognised."""
        role = field(message, "role")
        if not isinstance(role, str):
            return None
        return SYSTEM if role in SYSTEM_ROLES else role

    def units(self, message: "Message") -> "list[Unit]":
        """What of a message is consumed as one."""
        role = self.role(message)
        if role is None or not isinstance(message, dict):
            return []
        ids = (message.get("id"), message.get("tool_call_id"), *self.calls(message))
        return [Unit(None, spoken(message, role), ids, message.get("content"))]

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
        return instead(content, self.is_text, self.text_part(stone, role))

    def latest_answer(self, messages: "Messages") -> int:
        """Where the latest response of the model begins; -1 where there is none. What stands before it is consumed."""
        for index in range(len(messages) - 1, -1, -1):
            if self.is_answer(messages[index]):
                return index
        return -1

    def is_answer(self, message: "Message") -> bool:
        """Whether the model has answered with this, so that it has seen what stands before."""
        return self.role(message) == ASSISTANT

    def links(self, message: "Message") -> "list[Link]":
        """The tool calls and the results in a message, in their order."""
        role = self.role(message)
        if role == ASSISTANT:
            return [(CALL, text_of(call, "id"), "") for call in listed(field(message, "tool_calls"))]
        return [(RESULT, text_of(message, "tool_call_id"), "")] if role == TOOL else []

    def calls(self, message: "Message") -> "list[str]":
        """The ids of the tool calls that a message makes; the name of the tool where a call has none."""
        return [name if id is None else id for kind, id, name in self.links(message) if kind in CALLS]

    def results(self, message: "Message") -> "list[str]":
        """The same of the tool calls whose results a message carries."""
        return [name if id is None else id for kind, id, name in self.links(message) if kind in RESULTS]

    def block_message(self, text: str, where: str) -> "Message | None":
        """A message that carries active blocks; None where messages of this shape have no place for `where`."""
        return {"role": SYSTEM if where == "system" else USER, "content": text}

    def in_front(self, message: "Message", text: str) -> "Message":
        """A copy of a user's message with active blocks in front of its own text, where `places_tell`."""
        return {**message, "content": text + message["content"]}

    def session(self, messages: "Messages") -> "str | None":  # noqa: ARG002  few hosts tell it there
        """The id of the session, where the messages themselves tell it."""
        return None


def field(thing: "Any", key: str) -> "Any":
    """A field of a dict, or an attribute of an object; None where there is none."""
    if isinstance(thing, dict):
        return dict.get(thing, key)
    try:
        return getattr(thing, key, None)
    except Exception:
        return None


def text_of(thing: "Any", key: str) -> "str | None":
    """A field that is a string; None where it is none."""
    value = field(thing, key)
    return value if isinstance(value, str) else None


def spoken(message: "Message", role: str) -> str:
    """Who speaks, by the name that the message itself has for a system's role."""
    return str(message["role"]) if role == SYSTEM else role


def listed(value: "Any") -> "list[Any]":
    """The list that a value is, or none."""
    return value if isinstance(value, list) else []


def instead(parts: "Iterable[Any]", goes: "Any", part: "Any") -> "list[Any]":
    """The parts, with one where the first of those stood that go."""
    kept, put = [], False
    for old in parts:
        if not goes(old):
            kept.append(old)
        elif not put:
            kept.append(part)
            put = True
    return kept


def emptied(parts: "Iterable[Any]", is_text: "Any", stone: str) -> "list[Any]":
    """The parts, all of them, with the first text replaced and the others empty: between them may stand thinking whose
    place is signed.
    """
    kept, said = [], stone
    for part in parts:
        if is_text(part):
            kept.append({**part, "text": said})
            said = ""
        else:
            kept.append(part)
    return kept


NEUTRAL = Shape()
