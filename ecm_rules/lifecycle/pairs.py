"""Tool calls and their results: each call has its result, each result its call. Part of the runtime ring."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ecm_rules.lifecycle.shapes import Messages, Shape


def broken_by(shape: "Shape", before: "Messages", after: "Messages", edited: "Iterable[int]") -> str:
    """What an edit of some messages breaks; empty where every pair that was whole still is."""
    for index in edited:
        if shape.calls(before[index]) != shape.calls(after[index]):
            return f"message {index} lost a tool call"
        if shape.results(before[index]) != shape.results(after[index]):
            return f"message {index} lost a tool result"
    return ""
