"""rules/signals.yaml and rules/operations.yaml, or the same sections of a table that brings its own."""

from __future__ import annotations

from typing import Any

from ecm_rules.tables import domains, expressions
from ecm_rules.tables.findings import Finding, Source, Span, shown, suggest
from ecm_rules.tables.models import Declared, Operation, Step
from ecm_rules.tables.reader import Node

_BOUNDS = ("min", "max", "above", "below")


def read_declared(
    source: Source, root: Node, findings: list[Finding]
) -> tuple[tuple[Declared, ...], tuple[Declared, ...]]:
    """(fields, signals) of a document that its schema accepted."""
    fields = []
    for name, node in _entries(root, "fields"):
        spec = _spec(source, name, node, findings)
        _locate(source, node.value["path"], spec, findings)
        fields.append(Declared(name, node.value["path"].value, spec, node.text("why")))
    types = {field.name: field.type for field in fields}
    signals = []
    for name, node in _entries(root, "signals"):
        place = root.value["signals"].keys[name]
        if name in types:
            findings.append(
                source.finding("ECM206", place, f"found the signal `{name}`, which is a field already", "rename it")
            )
        spec = _spec(source, name, node, findings)
        origin = node.value["from"]
        try:
            spec["from"] = expressions.translate(origin.value, types)
        except expressions.Invalid as invalid:
            findings.append(
                source.finding(
                    "ECM309", origin.span, invalid.message, suggest(invalid.name, types) if invalid.name else ""
                )
            )
        signals.append(Declared(name, origin.value, spec, node.text("why")))
    return tuple(fields), tuple(signals)


def read_operations(
    source: Source, root: Node, findings: list[Finding]
) -> tuple[tuple[Step, ...], tuple[Operation, ...]]:
    """(steps, operations) of a document that its schema accepted; operations in steps are expanded."""
    steps = {}
    for name, node in _entries(root, "steps"):
        given = node.plain()
        steps[name] = Step(
            name, given["surface"], given.get("lossy", False), given.get("degrades_to", ""), given.get("why", "")
        )
    listed = {
        name: node.value["steps"].value if "steps" in node.value else [] for name, node in _entries(root, "operations")
    }
    operations = []
    for name, node in _entries(root, "operations"):
        if name in steps:
            place = root.value["operations"].keys[name]
            findings.append(
                source.finding("ECM206", place, f"found the operation `{name}`, which is a step already", "rename it")
            )
        expanded: list[str] = []
        for item in listed[name]:
            expanded += _expand(source, item, item.span, steps, listed, (name,), findings)
        operations.append(
            Operation(name, tuple(item.value for item in listed[name]), tuple(expanded), node.text("why"))
        )
    return tuple(steps.values()), tuple(operations)


def _expand(
    source: Source,
    item: Node,
    place: Span,
    steps: dict[str, Step],
    listed: dict[str, list[Node]],
    above: tuple[str, ...],
    findings: list[Finding],
) -> list[str]:
    name = item.value
    if name in steps:
        return [name]
    if name in above:
        findings.append(
            source.finding(
                "ECM310", place, f"found `{name}`, whose steps lead back to `{above[0]}`", "break the circle"
            )
        )
        return []
    if name not in listed:
        findings.append(
            source.finding("ECM307", place, f"found the unknown step {shown(name)}", suggest(name, [*steps, *listed]))
        )
        return []
    return [s for inner in listed[name] for s in _expand(source, inner, place, steps, listed, (*above, name), findings)]


def _entries(root: Node, key: str) -> list[tuple[str, Node]]:
    node = root.get(key)
    return list(node.value.items()) if node is not None else []


def _spec(source: Source, name: str, node: Node, findings: list[Finding]) -> dict[str, Any]:
    given = node.plain()
    spec: dict[str, Any] = {"name": name, "type": given["type"]}
    for key in ("values", *_BOUNDS, "missing", "scope"):
        if key in given:
            spec[key] = given[key]

    def wrong(key: str, message: str, help: str = "") -> None:
        place = node.value[key].span if key in node.value else node.span
        findings.append(source.finding("ECM203", place, message, help))

    if spec["type"] == "enum":
        values = spec.setdefault("values", [])
        if not values:
            wrong("values", f"found no values of the enum `{name}`, expected at least one", "add `values:`")
        elif len(set(values)) < len(values):
            wrong("values", f"found a value of `{name}` twice", "remove one of the two")
    elif "values" in spec:
        wrong("values", f"found `values` of `{name}`, whose type is {spec['type']}", "they belong to an enum")
    bounds = [key for key in _BOUNDS if key in spec]
    if bounds and spec["type"] not in domains.NUMERIC:
        wrong(bounds[0], f"found `{bounds[0]}` of `{name}`, whose type is {spec['type']}", "bounds belong to numbers")
    elif spec.get("min", spec.get("above", -domains.LARGEST)) > spec.get("max", spec.get("below", domains.LARGEST)):
        wrong(bounds[0], f"found bounds of `{name}` that nothing fits", "the lower bound is above the upper one")
    elif "missing" in spec and domains.accept(spec, spec["missing"]) is None:
        wrong("missing", f"found {shown(spec['missing'])} for `{name}`, expected {domains.expected(spec)}")
    return spec


def _locate(source: Source, node: Node, spec: dict[str, Any], findings: list[Finding]) -> None:
    try:
        keys = expressions.path(node.value)
    except expressions.Invalid as invalid:
        findings.append(source.finding("ECM309", node.span, invalid.message))
        return
    if keys:
        spec["path"] = keys
    else:
        spec["search"] = node.value
