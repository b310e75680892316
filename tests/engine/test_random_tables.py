"""Random tables on random snapshots: the compiled evaluator, the program's interpreter and a naive one agree.

The naive interpreter below reads the YAML document itself, by the letter of the grammar, and shares no code with the
package.
"""

from __future__ import annotations

import itertools
import json
import math
import pathlib
import re
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import Policy, load_table
from ecm_rules.engine import program

ENUM = ["a", "b", "c"]
NUMBERS = [-1, 0, 1, 2, 3, 0.25, 0.5, math.nextafter(0.5, 0), math.nextafter(0.5, 1), 0.75]
PATHS = {
    "e1": "e1", "e2": "deep.e2", "b1": "b1", "b2": "deep.er.b2", "i1": "deep.i1", "i2": "i2", "n1": "n1", "n2": "deep.er.n2",
    "t1": "t1", "q1": "list[0]",
}  # fmt: skip


KINDS = {"e": "enum", "b": "boolean", "i": "integer", "n": "number", "t": "string", "q": "number"}


def spec_of(name: str) -> dict[str, Any]:
    kind = KINDS[name[0]]
    return {"path": PATHS[name], "type": kind, **({"values": ENUM} if kind == "enum" else {})}


def spec(draw: st.DrawFn, name: str) -> dict[str, Any]:
    declared = spec_of(name)
    kind = declared["type"]
    if kind in ("integer", "number"):
        for key, value in (("min", 0), ("above", 0), ("max", 3), ("below", 3)):
            if draw(st.integers(0, 3)) == 0:
                declared[key] = value
    if draw(st.booleans()):
        declared["missing"] = {"enum": "a", "boolean": draw(st.booleans()), "integer": 1, "number": 0.5, "string": "s"}[
            kind
        ]
    if draw(st.integers(0, 4)) == 0:
        declared["scope"] = draw(st.sampled_from(["orchestrator", "subagent"]))
    return declared


EXPRESSIONS = {
    "x1": "n1 != `null`",
    "x2": "n1 >= i2",
    "x3": "b1 && e1 == 'a'",
    "x4": "!(b1 || b2)",
    "x5": "e1 != e2",
    "x6": "n1 == b1",
    "x7": "length(t1) > `2`",
    "x8": "i2 < `2` && b1",
    "x9": "b1 || b2",
    "x10": "not_null(n1, i2) > `1`",
    "x11": "b1 == `1`",
    "x12": "i2 || b1",
}
VALUED = {"y1": ("i2", "integer"), "y2": ("e1", "string"), "y3": ("max([n1, `1`])", "number")}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    fields = {name: spec(draw, name) for name in PATHS}
    signals: dict[str, Any] = {}
    for name, text in EXPRESSIONS.items():
        signals[name] = {"from": text, "type": "boolean"}
        if draw(st.booleans()):
            signals[name]["missing"] = draw(st.booleans())
        if draw(st.integers(0, 4)) == 0:
            signals[name]["scope"] = "orchestrator"
    for name, (text, kind) in VALUED.items():
        signals[name] = {"from": text, "type": kind}
        if draw(st.booleans()):
            signals[name]["missing"] = {"integer": 1, "string": "b", "number": 1.5}[kind]
    declared = {**fields, **signals}
    rules = []
    # Few names in many short rows, so that most rows are reached and each name is asked in several ways.
    tested = draw(st.lists(st.sampled_from(sorted(declared)), min_size=2, max_size=6, unique=True))
    for number in range(draw(st.integers(1, 10))):
        when: dict[str, Any] = {}
        for name in draw(st.lists(st.sampled_from(tested), max_size=2, unique=True)):
            when.update([draw(st.sampled_from(list(conditions(name, declared[name]))))])
        if not when:
            when = {"b1_missing": draw(st.booleans())}
        rules.append({"id": f"R{number}", "when": when, "operation": draw(st.sampled_from(["go", "stop"]))})
    operations: dict[str, Any] = {"continue": {}, "go": {}, "stop": {}, "return": {}}
    remap = {"operation_remap": {"stop": "return"}}
    return {
        "schema_version": 1,
        "fields": fields,
        "signals": signals,
        "operations": operations,
        "rules": rules,
        "subagents": remap,
    }


def conditions(name: str, declared: dict[str, Any]) -> list[tuple[str, Any]]:
    missing = [(f"{name}_missing", True), (f"{name}_missing", False)]
    kind = declared["type"]
    if kind == "boolean":
        return [(name, True), (name, False), (f"{name}_ne", True), *missing]
    if kind in ("enum", "string"):
        sets = [(f"{name}_not_in", ["a", "c"]), (f"{name}_in", ["b"]), (name, ["a", "b"])]
        return [(name, "a"), (f"{name}_ne", "b"), *sets, *missing]
    low, high = 1, 2
    orders = [(f"{name}_{s}", v) for s in ("lt", "lte", "gt", "gte") for v in (low, high)]
    return [
        (name, low),
        (f"{name}_ne", high),
        (f"{name}_in", [low, high]),
        (f"{name}_not_in", [1, 2]),
        *orders,
        *missing,
    ]


JUNK: list[Any] = [None, True, "", "A", *NUMBERS, 2.5, math.nan, math.inf, -math.inf, 10**400, [], [1], {}]
FITTING: dict[str, list[Any]] = {
    "e": ENUM, "b": [True, False], "i": [0, 1, 2, 3, 1.0, 2.0, 2.5], "n": NUMBERS, "t": ["a", "b", "long", ""], "q": NUMBERS,
}  # fmt: skip


def value_of(name: str) -> st.SearchStrategy[Any]:
    """Three times out of four a value of the right kind."""
    fitting = st.sampled_from(FITTING[name[0]])
    return fitting | fitting | fitting | st.sampled_from(JUNK)


def mapping(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields)


JUNKS = st.sampled_from(JUNK)
DEEPER = mapping(b2=value_of("b2"), n2=value_of("n2"))
DEEP = mapping(e2=value_of("e2"), i1=value_of("i1"), er=DEEPER | DEEPER | JUNKS)
FLAT = {name: value_of(name) for name in ("e1", "b1", "i2", "n1", "t1")}
WHOLE = mapping(**FLAT, list=st.lists(value_of("q1"), max_size=2) | JUNKS, deep=DEEP | DEEP | JUNKS)
SNAPSHOTS = WHOLE | WHOLE | WHOLE | JUNKS


Naive = tuple[str | None, str, dict[str, Any], set[str]]


def naive(document: dict[str, Any], snapshot: Any, role: str) -> Naive:
    """Row, operation, values and names of the missing ones, from the document as it is written."""
    import jmespath

    values: dict[str, Any] = {}
    absent: set[str] = set()

    def settle(name: str, declared: dict[str, Any], value: Any) -> None:
        if declared.get("scope", role) != role or not fits(declared, value):
            value = None
        if value is None:
            absent.add(name)
            value = declared.get("missing")
        values[name] = value

    for name, declared in document["fields"].items():
        value: Any = snapshot if isinstance(snapshot, dict) else {}
        if declared["path"] == "list[0]":
            value = jmespath.search("list[0]", value)
        else:
            for key in declared["path"].split("."):
                value = value.get(key) if isinstance(value, dict) else None
        settle(name, declared, value)
    typed = dict(values)
    for name, declared in document["signals"].items():
        try:
            value = jmespath.search(declared["from"], typed)
        except Exception:
            value = None
        settle(name, declared, value)
    for rule in document["rules"]:
        if all(held(values, absent, key, constant) for key, constant in rule["when"].items()):
            operation = rule["operation"]
            if role == "subagent" and operation == "stop":
                operation = "return"
            return rule["id"], operation, values, absent
    return None, "continue", values, absent


def fits(declared: dict[str, Any], value: Any) -> bool:
    match declared["type"]:
        case "enum":
            return isinstance(value, str) and value in declared["values"]
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        if not math.isfinite(float(value)):
            return False
    except OverflowError:
        return False
    if declared["type"] == "integer" and value != int(value):
        return False
    return not (
        value < declared.get("min", value)
        or value > declared.get("max", value)
        or ("above" in declared and not value > declared["above"])
        or ("below" in declared and not value < declared["below"])
    )


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda value, constant: value in constant if isinstance(constant, list) else value == constant,
    "ne": lambda value, constant: value != constant,
    "in": lambda value, constant: value in constant,
    "not_in": lambda value, constant: value not in constant,
    "lt": lambda value, constant: value < constant,
    "lte": lambda value, constant: value <= constant,
    "gt": lambda value, constant: value > constant,
    "gte": lambda value, constant: value >= constant,
}


def held(values: dict[str, Any], absent: set[str], key: str, constant: Any) -> bool:
    name, _, suffix = key.partition("_")
    if suffix == "missing":
        return bool((name in absent) == constant)
    return values[name] is not None and COMPARE[suffix](values[name], constant)


def build(document: dict[str, Any]) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.yaml"
        path.write_text(json.dumps(document))  # JSON is YAML, without the anchors of a dumper
        return load_table(str(path), project=None)


@settings(max_examples=150, deadline=None)
@given(tables(), st.lists(SNAPSHOTS, min_size=1, max_size=30))
def test_three_evaluators_agree(document: dict[str, Any], snapshots: list[Any]) -> None:
    policy = build(document)
    reloaded = program.loads(program.dumps(policy.program))
    for snapshot in snapshots:
        for role in program.ROLES:
            rule, operation, values, absent = naive(document, snapshot, role)
            verdict = policy.decide(snapshot, role)
            assert (verdict.rule, verdict.operation) == (rule, operation)
            assert (verdict.signals, set(verdict.missing)) == (values, absent)
            assert policy.rule_for(snapshot, role) == rule
            assert program.decide(reloaded, snapshot, role) == verdict.to_dict()


NESTED = {
    "z1": "(n1 == b1) == b2",
    "z2": "!(n1 || b1)",
    "z3": "(b1 && i2) == `1`",
    "z4": "!n1",
    "z5": "`null` == n1 || b1",
    "z6": "(n1 == b1) == i2",
}
SOME: dict[str, list[Any]] = {
    "n": [None, 0, 1, 0.5],
    "i": [None, 1, 2],
    "b": [None, True, False],
    "e": [None, "a", "b"],
}


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("default", [None, True, False])
@pytest.mark.parametrize("text", [t for t in (EXPRESSIONS | NESTED).values() if "t1" not in t])
def test_every_expression_on_every_value(text: str, default: bool | None, asked: bool) -> None:
    names = sorted(name for name in PATHS if re.search(rf"\b{name}\b", text))
    fields: dict[str, Any] = {name: {**spec_of(name), "path": name} for name in names}
    signal: dict[str, Any] = {"from": text, "type": "boolean"} | ({} if default is None else {"missing": default})
    rules = [
        {"id": "GONE", "when": {"x_missing": True, "x": False}, "operation": "go"},
        {"id": "TRUE", "when": {"x": True}, "operation": "go"},
        {"id": "FALSE", "when": {"x": False}, "operation": "stop"},
        {"id": "HERE", "when": {"x_missing": False}, "operation": "go"},
    ]
    document = {
        "schema_version": 1,
        "fields": fields,
        "signals": {"x": signal},
        "operations": {"continue": {}, "go": {}, "stop": {}},
        "rules": rules if asked else rules[1:3],
    }
    policy = build(document)
    for values in itertools.product(*(SOME[name[0]] for name in names)):
        snapshot = dict(zip(names, values, strict=True))
        rule, _, read, absent = naive(document, snapshot, "orchestrator")
        verdict = policy.decide(snapshot)
        assert (verdict.rule, verdict.signals, set(verdict.missing)) == (rule, read, absent)
        assert policy.rule_for(snapshot) == rule


BOUNDS = [dict(zip(keys, (0, 3), strict=True)) for keys in itertools.product(("min", "above"), ("max", "below"))]
BOUNDS += [{key: 1} for key in ("min", "above", "max", "below")]
BOUNDS += [
    {"min": 0, "above": 0},
    {"min": 1, "above": 0},
    {"min": 0, "above": 1},
    {"max": 3, "below": 3},
    {"max": 2, "below": 3},
]
EDGES = [side for n in (0, 1, 2, 3) for side in (n, float(n), math.nextafter(n, -9), math.nextafter(n, 9))]


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_every_bound_at_its_edges(kind: str, bounds: dict[str, int]) -> None:
    document: dict[str, Any] = {
        "schema_version": 1,
        "fields": {"size": {"path": "deep.size", "type": kind, **bounds}},
        "operations": {"continue": {}, "go": {}},
        "rules": [{"id": "GONE", "when": {"size_missing": True}, "operation": "go"}],
    }
    policy = build(document)
    for value in EDGES:
        inside = fits(document["fields"]["size"], value)
        verdict = policy.decide({"deep": {"size": value}})
        assert (verdict.rule, policy.rule_for({"deep": {"size": value}})) == (
            ("GONE", "GONE") if not inside else (None, None)
        )
        assert [d.path for d in verdict.degraded] == (["rows"] if inside else ["deep.size"])
