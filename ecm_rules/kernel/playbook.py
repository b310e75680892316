"""How operations are carried out, as plain data: what `kernel.steps` runs by. ECM §"Operations"."""

from __future__ import annotations

from typing import Any

import attrs

from ecm_rules.tables.models import Row, Table

BOUNDARY = "compaction_count"

Playbook = dict[str, Any]


def of(table: Table) -> Playbook:
    """The playbook of a resolved table, JSON-able: `steps` by name with their surface and what takes their place,
    `operations` as names of steps, their `notices`, `severity` by operation, the names of the fields `zone` and
    `boundary`, `lasting` (the rows whose state no zone and no boundary ends), `limits`, and whether effects are
    `enabled`.
    """
    words = table.vocabulary
    zone = next((field.name for field in words.fields if "zone_of" in field.spec), None)
    return {
        "steps": {step.name: attrs.asdict(step, filter=lambda a, _: a.name != "name") for step in words.steps},
        "notices": {operation.name: operation.notice for operation in words.operations if operation.notice},
        "operations": {operation.name: list(operation.steps) for operation in words.operations},
        "severity": {o.name: int(bool(o.steps)) if o.severity is None else o.severity for o in words.operations},
        "zone": zone,
        "boundary": BOUNDARY if any(field.name == BOUNDARY for field in words.fields) else None,
        "lasting": [row.id for row in table.rows if _lasts(row, {zone, BOUNDARY})],
        "limits": dict(table.limits),
        "enabled": table.enabled,
    }


def _lasts(row: Row, ends: set[str | None]) -> bool:
    return bool(row.tests) and not any(test.signal in ends for test in row.tests)
