"""What is known of one chain of messages, and what its content weighs. Part of the runtime ring."""

import json

from ecm_rules.kernel.lookup import first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Blocks = dict[str, list[list[Any]]]

KINDS = ("text", "thinking", "tool_call", "tool_result")
# Prompts whose time is remembered.
PROMPTS = 64
MANY = 10**12  # no window and no bill is larger
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Chain:
    """One chain of messages: the session's own, or its subagents'. Sizes are bytes of UTF-8 since the last boundary.

    used: tokens in the window by the host's last usage record; post_tokens: by the last boundary itself; window: its
    size by the host. carried: bytes that the last boundary took over. cut: whether content was passed over unmeasured.
    turns: prompts so far, the last of them in `prompts`, each its time in UTC to the second.
    """

    __slots__ = (
        "carried", "compactions", "cut", "images", "messages", "model", "post_tokens", "prompts", "session", "sizes",
        "turns", "used", "window",
    )  # fmt: skip

    def __init__(self) -> None:
        self.session: "str | None" = None
        self.model: "str | None" = None
        self.window: "int | None" = None
        self.messages = 0
        self.compactions = 0
        self.turns = 0
        self.prompts: "list[str]" = []
        self.clear(None)

    def clear(self, post_tokens: "int | None") -> None:
        """A compaction boundary: whatever was measured before it says nothing about the window now."""
        self.used: "int | None" = None
        self.post_tokens = post_tokens
        self.empty()

    def empty(self) -> None:
        """Forget the content, and nothing else."""
        self.images = 0
        self.carried = 0
        self.cut = False
        self.sizes = dict.fromkeys(KINDS, 0)

    def share(self) -> "float | None":
        """Tool results as a part of all content, None where there is no content."""
        whole = sum(self.sizes.values())
        return self.sizes["tool_result"] / whole if whole else None

    def prompted(self, time: object) -> None:
        """A turn begins, with what the host says of its time (ISO 8601 in UTC)."""
        self.turns += 1
        if time.__class__ is str:
            self.prompts.append(time[:19])
            del self.prompts[:-PROMPTS]

    def turns_since(self, time: "str | None") -> int:
        """Turns that began after a time; all of them where there is none. Of very many, as many as are remembered."""
        return self.turns if time is None else sum(prompt > time[:19] for prompt in self.prompts)

    def state(self) -> "dict[str, Any]":
        return {name: getattr(self, name) for name in self.__slots__}

    def restore(self, state: "dict[str, Any]") -> None:
        for name in self.__slots__:
            setattr(self, name, state[name])


def weigh(chain: Chain, blocks: "Blocks", content: object, outer: "str | None" = None) -> None:
    """Add the bytes of content to a chain: a text, or a list of blocks. `outer` is the kind of what it is within."""
    if content.__class__ is str:
        chain.sizes[outer or "text"] += size(content)
        return
    for block in content if content.__class__ is list else ():
        if block.__class__ is str:
            chain.sizes[outer or "text"] += size(block)
        elif block.__class__ is dict:
            parts = _parts(blocks, block)
            for kind, paths in parts:
                _part(chain, blocks, kind, first(block, paths), outer)


def count(value: object) -> int:
    """A number of tokens, 0 for what is none."""
    return value if value.__class__ is int and 0 <= value < MANY else 0


def mapping(value: object) -> "dict[str, Any]":
    return value if value.__class__ is dict else {}


def items(value: object) -> "Iterable[dict[str, Any]]":
    """The objects of a list."""
    return [one for one in value if one.__class__ is dict] if value.__class__ is list else ()


def size(text: object) -> int:
    """Bytes of a text in UTF-8, 0 for what is none."""
    if text.__class__ is not str:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _parts(blocks: "Blocks", block: "dict[str, Any]") -> "list[list[Any]]":
    kind = block.get("type")
    if kind.__class__ is str:
        return blocks.get(kind, [])
    return next((blocks[key] for key in block if key in blocks), [])


def _part(chain: Chain, blocks: "Blocks", kind: str, value: object, outer: "str | None") -> None:
    if kind == "image":
        chain.images += value is not None
    elif kind == "tool_call":
        chain.sizes[kind] += size(value) if value.__class__ is str else _as_json(value)
    elif value.__class__ is dict:
        chain.sizes[outer or kind] += _as_json(value)
    else:
        weigh(chain, blocks, value, outer or kind)


def _as_json(value: object) -> int:
    try:
        return size(_compact(value))
    except (ValueError, RecursionError):
        return 0
