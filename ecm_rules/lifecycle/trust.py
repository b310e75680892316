"""Who may declare lifetimes: the trust table, asked about one source at a time. ACLP V1 §"Trust boundary".

Part of the runtime ring.
"""

from ecm_rules.engine import program as engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ecm_rules.engine.program import Program

    class Policy(Protocol):
        """What decides whether a source may declare: a resolved table, or an adapter's own stricter answer."""

        def allows(self, declaration: str, source: "Source") -> bool: ...


BLOCK = "block"
DISCARD = "discard"
_ALLOW = "allow"
# What a message is by who speaks, where an adapter does not tell.
_ORIGINS = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool_result"}


class Source:
    """Where a declaration comes from.

    id: its name, exact. origin: one of the trust table's. explicitly_loaded: whether an adapter loaded it as context.
    message_class: the adapter's name for a class of messages. trigger: what brought it, for the audit (may be empty).
    """

    __slots__ = ("explicitly_loaded", "id", "message_class", "origin", "trigger")

    def __init__(
        self,
        id: str,
        origin: str,
        *,
        explicitly_loaded: bool = False,
        message_class: "str | None" = None,
        trigger: str = "",
    ) -> None:
        self.id = id
        self.origin = origin
        self.explicitly_loaded = explicitly_loaded
        self.message_class = message_class
        self.trigger = trigger

    def __repr__(self) -> str:
        return f"Source({self.id!r}, {self.origin!r})"


class Trust:
    """A resolved trust table. `digest` names it; nothing but its rows decides."""

    __slots__ = ("program",)

    def __init__(self, program: "Program") -> None:
        self.program = program

    @property
    def digest(self) -> str:
        digest: str = self.program["digest"]
        return digest

    def allows(self, declaration: str, source: Source) -> bool:
        """Whether a source may define a block, or discard one. What it says of itself wrongly counts as missing."""
        asked = {
            "declaration": declaration,
            "origin": source.origin,
            "source_id": source.id,
            "explicitly_loaded": source.explicitly_loaded,
            "message_class": source.message_class,
        }
        values, missing, _ = engine.read(self.program, asked)
        return engine.outcome(self.program, engine.first(self.program, values, missing), engine.ROLES[0])[1] == _ALLOW


def context_source(id: str) -> Source:
    """A Markdown file that an adapter loads as context."""
    return Source(id, "context_source", explicitly_loaded=True)


def message_source(role: str) -> Source:
    """A message of which nothing is known but who speaks."""
    return Source(f"message:{role}", _ORIGINS.get(role, "custom"))
