"""The same questions put to z3: an encoding of the document itself, which shares nothing with the analysis."""

from __future__ import annotations

from typing import Any

import z3

Value = tuple[Any, Any, Any]
"""What the snapshot gives, whether it gives it, and what a test sees: z3 expressions, and whether there is a value."""


class Oracle:
    """A table with its own vocabulary, in one role. Comparisons of two fields are its only expressions."""

    def __init__(self, document: dict[str, Any], role: str) -> None:
        self.document = document
        self.role = role
        self.domain: list[Any] = []
        self.seen: dict[str, tuple[Any, Any, Any]] = {}
        for name, spec in document["fields"].items():
            self.seen[name] = self._field(name, spec)
        fields = dict(self.seen)
        for name, spec in document["signals"].items():
            self.seen[name] = self._signal(spec, fields)
        self.rows = [
            z3.And([self._test(key, value) for key, value in row["when"].items()]) for row in document["rules"]
        ]

    def has_gap(self) -> bool:
        return self._possible(z3.Not(z3.Or(self.rows)))

    def fires(self, index: int) -> bool:
        return self._possible(z3.And(self.rows[index], z3.Not(z3.Or(self.rows[:index]))))

    def _possible(self, claim: Any) -> bool:
        solver = z3.Solver()
        solver.add(*self.domain, claim)
        return bool(solver.check() == z3.sat)

    def _field(self, name: str, spec: dict[str, Any]) -> tuple[Any, Any, Any]:
        """(value, whether there is one, whether the snapshot gave it)."""
        kind = spec["type"]
        given = z3.Bool(f"{name} given")
        if spec.get("scope", self.role) != self.role:
            self.domain.append(z3.Not(given))
        if kind == "boolean":
            raw = z3.Bool(name)
        elif kind == "number":
            raw = z3.Real(name)
        else:
            raw = z3.Int(name)
        if kind == "enum":
            self.domain.append(z3.And(raw >= 0, raw < len(spec["values"])))
        if "min" in spec:
            self.domain.append(raw >= spec["min"])
        if "max" in spec:
            self.domain.append(raw <= spec["max"])
        return self._settled(raw, given, spec)

    def _signal(self, spec: dict[str, Any], fields: dict[str, tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
        left, operator, right = spec["from"].split()
        assert operator == ">="
        (a, has_a, _), (b, has_b, _) = fields[left], fields[right]
        given = z3.And(has_a, has_b)
        if spec.get("scope", self.role) != self.role:
            given = z3.BoolVal(False)
        return self._settled(a >= b, given, spec)

    def _settled(self, raw: Any, given: Any, spec: dict[str, Any]) -> tuple[Any, Any, Any]:
        if "missing" not in spec:
            return raw, given, given
        return z3.If(given, raw, self._constant(spec, spec["missing"])), z3.BoolVal(True), given

    def _test(self, key: str, constant: Any) -> Any:
        declared = {**self.document["fields"], **self.document["signals"]}
        name, _, suffix = key.partition("_")
        spec, (value, there, given) = declared[name], self.seen[name]
        if suffix == "missing":
            return given == z3.BoolVal(not constant)
        members = [self._constant(spec, c) for c in (constant if isinstance(constant, list) else [constant])]
        held = {
            "": lambda: z3.Or([value == m for m in members]),
            "in": lambda: z3.Or([value == m for m in members]),
            "ne": lambda: value != members[0],
            "not_in": lambda: z3.And([value != m for m in members]),
            "lt": lambda: value < members[0],
            "lte": lambda: value <= members[0],
            "gt": lambda: value > members[0],
            "gte": lambda: value >= members[0],
        }[suffix]()
        return z3.And(there, held)

    def _constant(self, spec: dict[str, Any], constant: Any) -> Any:
        if spec["type"] == "enum":
            return z3.IntVal(spec["values"].index(constant))
        if spec["type"] == "boolean":
            return z3.BoolVal(constant)
        if spec["type"] == "number":  # the double itself, not its decimal form
            numerator, denominator = float(constant).as_integer_ratio()
            return z3.Q(numerator, denominator)
        return z3.IntVal(constant)
