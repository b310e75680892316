"""The text in which pins are looked for: an artifact's own, or what a transcript has in the window.

Part of the runtime ring. Of a transcript counts what stands behind the last compaction boundary, outside of subagents,
without calls of tools and what these returned: a marker that a tool printed is not pinned.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_BYTES = 1 << 26
_BOM = b"\xef\xbb\xbf"
# How the known clients name a boundary, and what belongs to a tool.
_BOUNDARIES = {"compact_boundary", "compacted", "compaction", "session.compaction_complete"}
_KINDS = ("type", "subtype")
_TOOLS = {
    "tool_use", "tool_result", "server_tool_use", "function_call", "function_call_output", "custom_tool_call",
    "custom_tool_call_output", "toolCall", "toolResult", "tool", "tool-invocation",
}  # fmt: skip
_TOOL_KEYS = {"toolUseResult", "tool_calls", "toolCalls", "functionCall", "functionResponse"}


class NoText(Exception):
    """The bytes are no text: the reason."""


class Artifact:
    """What was read. text: in which to look. transcript: whether it is records of a session, which nobody edits. bom:
    whether a byte-order mark stood in front.
    """

    __slots__ = ("bom", "text", "transcript")

    def __init__(self, text: str, transcript: bool, bom: bool) -> None:
        self.text = text
        self.transcript = transcript
        self.bom = bom

    def bytes(self, text: str) -> bytes:
        """Another text as the bytes of this artifact's file."""
        return (_BOM if self.bom else b"") + text.encode("utf-8")


def read(data: bytes, tools: bool = False) -> Artifact:
    """The artifact that bytes are. Raises NoText for what is neither UTF-8 nor a transcript.

    tools: whether what belongs to tools counts as well, where a client puts what is injected into their results.
    """
    bom = data.startswith(_BOM)
    records = _records(data[3 if bom else 0 :])
    if records is not None:
        return Artifact("\n".join(_in_window(records, tools)), True, bom)
    if b"\0" in data:
        raise NoText("found a NUL, expected a text")
    try:
        return Artifact(data[3 if bom else 0 :].decode("utf-8"), False, bom)
    except UnicodeDecodeError as error:
        raise NoText(f"found byte 0x{data[error.start + (3 if bom else 0)]:02x}, expected UTF-8") from None


def _records(data: bytes) -> "list[dict[str, Any]] | None":
    """The records of a transcript, one a line or all in one document; None where it is none. Bad lines are left out."""
    first = data.lstrip()[:1]
    if first not in (b"{", b"["):
        return None
    lines = data.split(b"\n")
    head = next(line for line in lines if line.strip())
    if _object(head) is not None:
        return [record for record in map(_object, lines) if record is not None]
    whole = _loaded(data)
    if whole.__class__ is dict:
        return [whole]
    if whole.__class__ is list and whole and all(record.__class__ is dict for record in whole):
        return whole
    return None


def _object(line: bytes) -> "dict[str, Any] | None":
    found = _loaded(line)
    return found if found.__class__ is dict else None


def _loaded(data: bytes) -> "Any":
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _in_window(records: "list[dict[str, Any]]", tools: bool) -> "list[str]":
    texts: "list[str]" = []
    for record in records:
        if _is_boundary(record):
            texts = []
        if record.get("isSidechain") is not True:
            texts += _texts(record, tools)
    return texts


def _is_boundary(record: "dict[str, Any]") -> bool:
    rewritten = record.get("$set")
    if rewritten.__class__ is dict and "messages" in rewritten:
        return True
    return any(record.get(key) in _BOUNDARIES for key in _KINDS if record.get(key).__class__ is str)


def _texts(value: "Any", tools: bool) -> "Iterator[str]":
    """The strings in a record, without what belongs to tools unless `tools`. Depth is bounded by what json reads."""
    left = [value]
    while left:
        found = left.pop()
        if found.__class__ is str:
            yield found
        elif found.__class__ is list:
            left += reversed(found)
        elif found.__class__ is dict and (tools or not _of_a_tool(found)):
            left += reversed([inner for key, inner in found.items() if tools or key not in _TOOL_KEYS])


def _of_a_tool(part: "dict[str, Any]") -> bool:
    return any(part.get(key) in _TOOLS for key in ("type", "role") if part.get(key).__class__ is str)
