"""Fields and signals: rules/signals.yaml, or the same sections of a table that brings its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ecm_rules.tables import domains, expressions, schemas
from ecm_rules.tables.findings import Finding, Source, Span, shown, suggest
from ecm_rules.tables.models import Declared
from ecm_rules.tables.reader import Node

_BOUNDS = ("min", "max", "above", "below")
_WORSE = ("more", "less")


def read_declared(
    source: Source, root: Node, limits: Iterable[str], findings: list[Finding]
) -> tuple[tuple[Declared, ...], tuple[Declared, ...]]:
    """(fields, signals) of a document that its schema accepted; `limits` are those that a table with them may have."""
    limits = list(limits)
    fields = []
    for name, node, _ in root.entries("fields"):
        spec = _spec(source, name, node, findings)
        _locate(source, node.value["path"], spec, findings)
        if zone_of := node.get("zone_of"):
            _zone_of(source, zone_of, spec, findings)
        fields.append(_declared(source, name, node, spec, limits, findings))
    types = {field.name: field.type for field in fields}
    signals = []
    for name, node, place in root.entries("signals"):
        if name in types:
            message = f"found the signal `{name}`, which is a field already"
            findings.append(source.finding("ECM206", place, message, "rename it"))
        spec = _spec(source, name, node, findings)
        origin = node.value["from"]
        try:
            spec["from"] = expressions.translate(origin.value, types)
        except expressions.Invalid as invalid:
            help = suggest(invalid.name, types) if invalid.name else invalid.help
            findings.append(source.finding("ECM309", origin.span, invalid.message, help))
        signals.append(_declared(source, name, node, spec, limits, findings))
    return tuple(fields), tuple(signals)


def known_limits() -> list[str]:
    """The limits that a context policy may have."""
    return list(schemas.schema("context-policy")["limits"]["schema"])


def _declared(
    source: Source, name: str, node: Node, spec: dict[str, Any], limits: list[str], findings: list[Finding]
) -> Declared:
    worse, limit = node.get("worse"), node.text("limit")
    way: str | tuple[str, ...] = ""
    if worse is not None:
        way = tuple(worse.plain()) if isinstance(worse.value, list) else worse.value
        known = spec.get("values", [])
        if spec["type"] == "enum":
            fits, expected = isinstance(way, tuple) and set(way) <= set(known), "a list of its values, from mild to bad"
            fits = fits and len(set(way)) == len(way)
        else:
            fits, expected = way in _WORSE and spec["type"] != "string", "`more` or `less`, of a number or a boolean"
        if not fits:
            findings.append(source.finding("ECM203", worse.span, f"found {shown(worse.plain())}, expected {expected}"))
    if limit and limit not in limits:
        message = f"found the unknown limit {shown(limit)}"
        findings.append(source.finding("ECM204", node.value["limit"].span, message, suggest(limit, limits)))
    return Declared(name, spec, node.text("why"), way, limit)


def _zone_of(source: Source, node: Node, spec: dict[str, Any], findings: list[Finding]) -> None:
    try:
        keys = expressions.path(node.value)
    except expressions.Invalid:
        keys = None
    if not keys or spec["type"] != "enum":
        message = f"found {shown(node.value)}, expected the plain path of the share that this enum is the zone of"
        findings.append(source.finding("ECM203", node.span, message))
    spec["zone_of"] = keys


def _spec(source: Source, name: str, node: Node, findings: list[Finding]) -> dict[str, Any]:
    """The program's form of a declaration, but for where its value comes from. At most one finding."""
    given = node.plain()
    spec: dict[str, Any] = {"name": name, "type": given["type"]}
    spec |= {key: given[key] for key in ("values", *_BOUNDS, "missing", "scope") if key in given}
    kind, bounds = spec["type"], [key for key in _BOUNDS if key in spec]

    def place(key: str) -> Span:
        return node.value[key].span if key in node.value else node.span

    wrong: tuple[str, str, str] | None = None
    if kind == "enum" and not spec.get("values"):
        wrong = "values", f"found no values of the enum `{name}`, expected at least one", "add `values:`"
        spec["values"] = []
    elif kind == "enum" and len(set(spec["values"])) < len(spec["values"]):
        wrong = "values", f"found a value of `{name}` twice", "remove one of the two"
    elif kind != "enum" and "values" in spec:
        wrong = "values", f"found `values` of `{name}`, whose type is {kind}", "they belong to an enum"
    elif bounds and kind not in domains.NUMERIC:
        wrong = bounds[0], f"found `{bounds[0]}` of `{name}`, whose type is {kind}", "bounds belong to numbers"
    elif bounds and _empty(spec):
        wrong = bounds[0], f"found bounds of `{name}` that no value fits", "widen them"
    elif "missing" in spec:
        taken = domains.accept(spec, spec["missing"])
        if taken is None:
            wrong = "missing", f"found {shown(spec['missing'])} for `{name}`, expected {domains.expected(spec)}", ""
        spec["missing"] = taken
    if wrong:
        findings.append(source.finding("ECM203", place(wrong[0]), wrong[1], wrong[2]))
    return spec


def _empty(spec: dict[str, Any]) -> bool:
    low = max(spec.get("min", -domains.LARGEST), spec.get("above", -domains.LARGEST))
    high = min(spec.get("max", domains.LARGEST), spec.get("below", domains.LARGEST))
    above, below = spec.get("above") == low, spec.get("below") == high
    if spec["type"] == "integer":
        first = math.floor(low) + 1 if above else math.ceil(low)
        last = math.ceil(high) - 1 if below else math.floor(high)
        return bool(first > last)
    return bool(low > high or (low == high and (above or below)))


def _locate(source: Source, node: Node, spec: dict[str, Any], findings: list[Finding]) -> None:
    try:
        keys = expressions.path(node.value)
    except expressions.Invalid as invalid:
        findings.append(source.finding("ECM309", node.span, invalid.message, invalid.help))
        return
    if keys:
        spec["path"] = keys
    else:
        spec["search"] = node.value
