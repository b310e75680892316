"""Files of scenarios: snapshots, and what a table must decide about each."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import attrs

from ecm_rules.tables import reader, scalars, schemas
from ecm_rules.tables.domains import ROLES
from ecm_rules.tables.findings import EcmError, Finding, Source, Span, clip, in_order, shown, suggest
from ecm_rules.tables.models import Table
from ecm_rules.tables.reader import Node

DEFAULT = "context-policy"
_GIVEN = ("meter", "signals")
_LONGEST = 200


@attrs.frozen
class Moment:
    """One snapshot and what is expected of it: `given` is a meter, or, where `by_name`, values of signals."""

    given: Any
    by_name: bool
    role: str
    expect: dict[str, Any]
    node: Node


@attrs.frozen
class Scenario:
    """A snapshot, or several one after the other."""

    name: str
    moments: tuple[Moment, ...]
    span: Span


@attrs.frozen
class Scenarios:
    """A file of scenarios. `table` is a shipped table's name, or a path from the file."""

    source: Source
    table: str
    scenarios: tuple[Scenario, ...]


def load_scenarios(path: str) -> Scenarios:
    """Raises EcmError with every finding."""
    document = reader.load(path)
    shape = schemas.validate("scenarios", document)
    findings = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    source = document.source
    scenarios: list[Scenario] = []
    places: dict[str, Span] = {}
    for node in shape.root.value["scenarios"].value:
        name = node.value["name"]
        if name.value in places:
            message = f"found the scenario {shown(name.value)} twice, first at line {places[name.value].line}"
            findings.append(source.finding("ECM206", name.span, message, "rename one of the two"))
        places.setdefault(name.value, name.span)
        scenarios.append(Scenario(name.value, _moments(source, node, findings), name.span))
    if findings:
        raise EcmError(in_order(findings))
    return Scenarios(source, shape.root.text("table") or DEFAULT, tuple(scenarios))


def misfits(scenarios: Scenarios, table: Table) -> list[Finding]:
    """Names in the scenarios that the table does not have, and values that it does not take."""
    declared = table.vocabulary.declared()
    operations = [operation.name for operation in table.vocabulary.operations]
    known = {"operation": operations, "raw_operation": operations, "rule": [row.id for row in table.rows]}
    found = []
    for moment in (moment for scenario in scenarios.scenarios for moment in scenario.moments):
        expect, signals = moment.node.get("expect"), moment.node.get("signals")
        for key, node in expect.value.items() if expect is not None else ():
            if node.value is not None and node.value not in known[key]:
                message = f"found the unknown {key.replace('raw_', '')} {shown(node.value)}"
                found.append(scenarios.source.finding("ECM307", node.span, message, suggest(node.value, known[key])))
        for name, place in signals.keys.items() if signals is not None else ():
            if name not in declared:
                message = f"found the unknown signal {shown(name)}"
                found.append(scenarios.source.finding("ECM301", place, message, suggest(name, declared)))
    return found


class Written(Protocol):
    """What a scenario is written from."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def meter(self) -> Any: ...
    @property
    def expect(self) -> dict[str, Any]: ...


def written(table: str, scenarios: Iterable[Written]) -> str:
    """A file of scenarios in the layout of the tables; empty for none.

    A meter with an integer beyond 64 bits is left out: no table can hold it.
    """
    lines: list[str] = []
    names: Counter[str] = Counter()
    for scenario in scenarios:
        if not _can_be_written(scenario.meter):
            continue
        name = clip(scenario.name, _LONGEST - 8)
        names[name] += 1
        lines.append(f"  - name: {_scalar(name if names[name] == 1 else f'{name} ({names[name]})')}")
        lines += [f"    role: {scenario.role}"] if scenario.role != ROLES[0] else []
        lines += [f"    meter: {_flow(scenario.meter)}", f"    expect: {_flow(scenario.expect)}"]
    if not lines:
        return ""
    head = ["schema_version: 1"] if table == DEFAULT else ["schema_version: 1", f"table: {_scalar(table)}"]
    return "\n".join([*head, "scenarios:", *lines, ""])


def _can_be_written(value: Any) -> bool:
    """Whether all its integers are such as a table may hold."""
    if isinstance(value, dict):
        return all(map(_can_be_written, value.values()))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A scalar that the strict reader takes for the same value."""
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w .-]*(?<! )", value, re.ASCII):
        with contextlib.suppress(scalars.Refused):
            if scalars.resolve(value) == value:
                return value
    return json.dumps(value)


def _moments(source: Source, node: Node, findings: list[Finding]) -> tuple[Moment, ...]:
    sequence = node.get("sequence")
    role = node.text("role") or ROLES[0]
    if sequence is None:
        if node.get("expect") is None:
            findings.append(
                source.finding("ECM202", node.span, "found no key `expect`, which is required here", "add `expect:`")
            )
        return (_moment(source, node, role, findings),)
    for key in (*_GIVEN, "expect"):
        if key in node.value:
            message = f"found `{key}` beside `sequence`, which has its own"
            findings.append(source.finding("ECM201", node.keys[key], message, "move it into the sequence"))
    return tuple(_moment(source, item, item.text("role") or role, findings) for item in sequence.value)


def _moment(source: Source, node: Node, role: str, findings: list[Finding]) -> Moment:
    given = [key for key in _GIVEN if key in node.value]
    if len(given) != 1:
        pair = "both `meter` and `signals`" if given else "neither `meter` nor `signals`"
        message = f"found {pair}, expected one of them"
        findings.append(source.finding("ECM202", node.span, message))
    key = given[0] if given else "meter"
    value, expect = node.get(key), node.get("expect")
    return Moment(
        value.plain() if value is not None else None,
        key == "signals",
        role,
        expect.plain() if expect is not None else {},
        node,
    )
