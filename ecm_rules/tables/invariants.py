"""What a table promises of itself: `assume` in the grammar of a row, `assert` in the same grammar over the outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from ecm_rules.tables import rows
from ecm_rules.tables.models import Declared, Invariant, Row
from ecm_rules.tables.reader import Node
from ecm_rules.tables.rows import Context

ROLE = "role"
_ROLES = ["orchestrator", "subagent"]


def read_invariants(context: Context, root: Node, table_rows: Iterable[Row]) -> tuple[Invariant, ...]:
    """The invariants of a document that its schema accepted. What is wrong goes into the context's findings."""
    listed = root.get("invariants")
    role = {} if ROLE in context.declared else {ROLE: _enum(ROLE, _ROLES)}
    outcome = {name: _enum(name, context.operations) for name in ("operation", "raw_operation")}
    outcome["rule"] = _enum("rule", list(dict.fromkeys(row.id for row in table_rows)))
    assumed = attrs.evolve(context, declared={**context.declared, **role})
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


def _enum(name: str, values: list[str]) -> Declared:
    return Declared(name, {"name": name, "type": "enum", "values": values})
