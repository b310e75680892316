"""Operations and pins that a policy file embeds, as the nexus' own does: compared with ours, which hold."""

from __future__ import annotations

from collections.abc import Iterable

from ecm_rules.tables.findings import NOTE, Finding, Source, Span, shown
from ecm_rules.tables.models import Operation, Pin
from ecm_rules.tables.reader import Node

_HELP = "the shipped vocabulary holds; the embedded copy is not used"


def compare(source: Source, root: Node, operations: Iterable[Operation], pins: Iterable[Pin]) -> list[Finding]:
    """A note for each embedded operation, and one for the pins, that differ from ours."""
    notes: list[Finding] = []

    def note(place: Span, message: str) -> None:
        notes.append(source.finding("ECM501", place, message, _HELP, NOTE))

    known = {operation.name: operation for operation in operations}
    for name, node, place in root.entries("operations"):
        if name not in known:
            note(place, f"found the operation {shown(name)}, which is not in the vocabulary")
        elif _expanded(node, known) != known[name].steps:
            note(place, f"found other steps of `{name}`, expected {', '.join(known[name].steps) or 'none'}")
    embedded = root.get("pins")
    if embedded is not None and sorted(embedded.plain()) != sorted(pin.id for pin in pins):
        note(root.keys["pins"], "found other pins than the shipped ones")
    return notes


def _expanded(node: Node, known: dict[str, Operation]) -> tuple[str, ...]:
    steps = node.get("steps")
    listed = steps.plain() if steps else []
    return tuple(step for name in listed for step in (known[name].steps if name in known else (name,)))
