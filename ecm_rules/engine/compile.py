"""A table to its program: the model's meaning as plain data, with the digest that names it."""

from __future__ import annotations

from typing import Any

from ecm_rules.engine import program
from ecm_rules.tables.models import Table

Program = dict[str, Any]


def compile_table(table: Table) -> Program:
    """The program of a resolved table. What changes no verdict and no zone (reasons, pins, paths) is not in it."""
    words = table.vocabulary
    built: Program = {
        "format": program.FORMAT,
        "version": table.version,
        "snapshot": words.snapshot,
        "fields": [dict(declared.spec) for declared in words.fields],
        "signals": [dict(declared.spec) for declared in words.signals],
        "rows": [
            {
                "id": row.id,
                "when": [
                    [t.signal, t.operator, list(t.constant) if isinstance(t.constant, tuple) else t.constant]
                    for t in row.tests
                ],
                "operation": row.operation,
            }
            for row in table.rows
        ],
        "steps": {operation.name: list(operation.steps) for operation in words.operations},
        "remap": {role: dict(mapping) for role, mapping in table.remap.items()},
        "zones": dict(table.zones),
        "limits": dict(table.limits),
    }
    return {**built, "digest": program.digest(built)}


def fields_of(expression: list[Any]) -> list[str]:
    """The fields that an expression of a program reads."""
    if expression[0] == "field":
        return [expression[1]]
    if expression[0] in ("search", "literal"):
        return list(expression[2]) if expression[0] == "search" else []
    return [name for part in expression[1:] for name in fields_of(part)]
