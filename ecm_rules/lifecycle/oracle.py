"""What a provider would refuse in the messages of a request: calls without results, results without calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ecm_rules.lifecycle import pairs
from ecm_rules.lifecycle.shapes import DIRECTLY, LATER, NEXT, Shape
from ecm_rules.tables.findings import Finding, clip, escape

FILE = "messages"

# The code, what was found and what was expected, and what helps.
_FAULTS = {
    pairs.NO_RESULT: (
        "ECM811",
        "found call `{name}` without a result, expected one {where}",
        "answer every call, with an error where nothing came of it, or take it out",
    ),
    pairs.NO_CALL: (
        "ECM812",
        "found a result of `{name}`, expected a call of that id in front of it",
        "put the call back, or take its result out with it",
    ),
    pairs.CALLED_TWICE: ("ECM813", "found call `{name}` a second time, expected it once", "give each call its own id"),
    pairs.ANSWERED_TWICE: ("ECM813", "found a second result of `{name}`, expected one", "keep one of them"),
    pairs.MISPLACED: ("ECM814", "found the result of `{name}` here, expected it {where}", "move it there"),
    pairs.BEHIND: (
        "ECM814",
        "found the result of `{name}` behind other parts, expected it in front of them",
        "put the results of a message first",
    ),
}
_NAMELESS = {"ECM811": "a call", "ECM812": "a result"}
_WHERE = {
    LATER: "behind its call",
    NEXT: "in the message directly behind its call",
    DIRECTLY: "among the tool messages directly behind its call",
}


def check_pairs(messages: Sequence[Any], shape: Shape) -> list[Finding]:
    """Every call and every result that is no half of a whole pair, as the API of the shape's provider demands it.

    A finding's file is `messages`, its line the index of the message plus one. What the model has just called is open
    and no finding. What the provider keeps from an earlier request is not known here: its results have no call.
    Raises TypeError for a history that is no list or tuple.
    """
    if not isinstance(messages, list | tuple):
        raise TypeError(f"a history is a list of messages, found {messages.__class__.__name__}")
    if messages and not any(shape.role(message) is not None for message in messages):
        told = f"found no message of the shape {shape.name}, expected a history of it"
        return [Finding("ECM815", FILE, 0, 0, told, "read the history in the shape of its provider")]
    return [_finding(fault, shape) for fault in pairs.faults(shape, messages)]


def _finding(fault: pairs.Fault, shape: Shape) -> Finding:
    code, message, help = _FAULTS[fault.code]
    if not fault.name:
        message = f"found {_NAMELESS[code]} without an id, expected one"
        help = "give each call an id, and its result the same"
    name = clip(escape(fault.name), 60)
    return Finding(code, FILE, fault.index + 1, 1, message.format(name=name, where=_WHERE[shape.results_stand]), help)
