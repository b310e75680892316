"""What a table promises of itself: `assume` in the grammar of a row, `assert` in the same grammar over the outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from ecm_rules.tables import rows
from ecm_rules.tables.domains import ROLES
from ecm_rules.tables.models import Declared, Invariant, Row
from ecm_rules.tables.reader import Node
from ecm_rules.tables.rows import Context

ROLE = "role"


def read_invariants(context: Context, root: Node, table_rows: Iterable[Row]) -> tuple[Invariant, ...]:
    """The invariants of a document that its schema accepted. What is wrong goes into the context's findings."""
    listed = root.get("invariants")
    assumed = attrs.evolve(context, declared=assumable(context.declared))
    outcome = assertable(context.operations, dict.fromkeys(row.id for row in table_rows))
    asserted = attrs.evolve(context, declared=outcome)
    found = []
    places: dict[str, Any] = {}
    for node in listed.value if listed is not None else ():
        rows.identify(context, "invariant", node, places)
        assume, asserts, name = node.get("assume"), node.get("assert"), node.get("id")
        if assume is None or asserts is None or name is None:
            continue  # its schema has said so
        found.append(
            Invariant(
                name.value,
                rows.read_tests(assumed, assume),
                rows.read_tests(asserted, asserts),
                context.source,
                name.span,
                node.text("why"),
            )
        )
    return tuple(found)


def assumable(declared: dict[str, Declared]) -> dict[str, Declared]:
    """What `assume` may test: what a row may, and the role where no signal has its name."""
    return {ROLE: _enum(ROLE, list(ROLES)), **declared}


def assertable(operations: Iterable[str], rules: Iterable[str]) -> dict[str, Declared]:
    """What `assert` may test: the outcome."""
    known = {"operation": operations, "raw_operation": operations, "rule": rules}
    return {name: _enum(name, list(values)) for name, values in known.items()}


def _enum(name: str, values: list[str]) -> Declared:
    return Declared(name, {"name": name, "type": "enum", "values": values})
