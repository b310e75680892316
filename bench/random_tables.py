"""Random decision tables of a given size, the same for the same seed: for the benchmark and for the solver's oracle."""

from __future__ import annotations

import json
import random
from typing import Any

ENUM = ["a", "b", "c", "d"]
NUMBERS = [0.1, 0.25, 0.5, 0.75, 0.9]
COUNTS = [1, 2, 3, 5, 8]
OPERATIONS = ["continue", "trim", "stop", "return"]


def random_table(rows: int, signals: int, seed: int, tests: int = 3, catch_all: bool = True) -> dict[str, Any]:
    """A document of a table with its own vocabulary. Rows have one to `tests` tests on different signals; each tenth
    row repeats an earlier one more narrowly, so that there is something dead to find.
    """
    rng = random.Random(seed)
    fields, computed = _vocabulary(rng, signals)
    declared = {**fields, **computed}
    rules: list[dict[str, Any]] = []
    while len(rules) < rows - catch_all:
        when: dict[str, Any] = {}
        if rules and rng.random() < 0.1:
            when.update(rng.choice(rules)["when"])
        for name in rng.sample(sorted(declared), min(len(declared), rng.randint(1, tests))):
            if not any(key == name or key.startswith(name + "_") for key in when):
                when.update(_test(rng, name, declared[name]))
        rules.append({"id": f"R{len(rules)}", "when": when, "operation": rng.choice(OPERATIONS[:3])})
    if catch_all:
        rules.append({"id": "REST", "when": {}, "operation": "continue"})
    return {
        "schema_version": 1,
        "fields": fields,
        "signals": computed,
        "operations": {name: {} for name in OPERATIONS},
        "rules": rules,
        "subagents": {"operation_remap": {"stop": "return"}},
    }


def as_text(document: dict[str, Any]) -> str:
    """The document as YAML, of which JSON is a part."""
    return json.dumps(document, indent=1)


def _vocabulary(rng: random.Random, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    fields: dict[str, Any] = {}
    signals: dict[str, Any] = {}
    while len(fields) + len(signals) < count:
        number = len(fields)
        kind = ("enum", "boolean", "integer", "number")[number % 4]
        spec: dict[str, Any] = {"path": f"s{number}", "type": kind}
        if kind == "enum":
            spec["values"] = ENUM
        elif kind == "integer":
            spec |= {"min": 0, "max": 10} if rng.random() < 0.5 else {"min": 0}
        elif kind == "number":
            spec |= {"min": 0, "max": 1}
        if rng.random() < 0.5:
            spec["missing"] = {"enum": "a", "boolean": False, "integer": 0, "number": 0}[kind]
        if rng.random() < 0.2:
            spec["scope"] = "orchestrator"
        fields[f"s{number}"] = spec
        # Now and then two numbers are compared, as a budget is with what was spent.
        if kind == "number" and number >= 7 and rng.random() < 0.5 and len(fields) + len(signals) < count:
            signals[f"x{number}"] = {"from": f"s{number} >= s{number - 4}", "type": "boolean", "missing": False}
    return fields, signals


def _test(rng: random.Random, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    kind = spec["type"]
    if "from" not in spec and rng.random() < 0.1:
        return {f"{name}_missing": rng.random() < 0.5}
    if kind == "boolean":
        return {name: rng.random() < 0.5}
    if kind == "enum":
        some = rng.sample(ENUM, rng.randint(1, 3))
        return rng.choice([{name: some[0]}, {f"{name}_ne": some[0]}, {f"{name}_in": some}, {f"{name}_not_in": some}])
    suffix = rng.choice(["_lt", "_lte", "_gt", "_gte"])
    return {name + suffix: rng.choice(COUNTS if kind == "integer" else NUMBERS)}
