"""Gaps and dead rows of a program, asked of z3: an encoding that shares nothing with the analysis but the program."""

from __future__ import annotations

from typing import Any

import z3

from ecm_rules.engine.compile import Program

Seen = tuple[Any, Any, Any]
"""What a test sees, whether there is anything, and whether the snapshot gave it."""

_NUMERIC = ("integer", "number")


class Oracle:
    """A program in one role. Its expressions are comparisons, and booleans of these."""

    def __init__(self, program: Program, role: str) -> None:
        self.program = program
        self.role = role
        self.domain: list[Any] = []
        self.declared = {d["name"]: d for d in (*program["fields"], *program["signals"])}
        self.seen: dict[str, Seen] = {}
        for field in program["fields"]:
            self.seen[field["name"]] = self._field(field)
        fields = dict(self.seen)
        for signal in program["signals"]:
            value, there, _ = self._expression(signal["from"], fields)
            self.seen[signal["name"]] = self._settled(value, self._visible(signal, there), signal)
        self.rows = [z3.And([self._test(*test) for test in row["when"]]) for row in program["rows"]]

    def answer(self) -> tuple[bool, list[bool]]:
        """(whether there is a gap, whether each row fires somewhere): each question is put to a solver of its own."""
        questions = [z3.And(row, z3.Not(z3.Or(self.rows[:n]))) for n, row in enumerate(self.rows)]
        return self._possible(z3.Not(z3.Or(self.rows))), [self._possible(question) for question in questions]

    def _possible(self, claim: Any) -> bool:
        solver = z3.Solver()
        solver.add(*self.domain, claim)
        return bool(solver.check() == z3.sat)

    def answer_in_one(self) -> tuple[bool, list[bool]]:
        """The same from one solver that keeps what it learnt: the fastest way to ask it."""
        solver = z3.Solver()
        solver.add(*self.domain)
        fires = []
        for row in self.rows:
            fires.append(solver.check(row) == z3.sat)
            solver.add(z3.Not(row))
        return solver.check() == z3.sat, fires

    def _field(self, spec: dict[str, Any]) -> Seen:
        name, kind = spec["name"], spec["type"]
        given = z3.Bool(f"{name} given")
        if "zone_of" in spec:
            return self._zone(spec, given)
        raw = {"boolean": z3.Bool, "number": z3.Real}.get(kind, z3.Int)(name)
        bounds = (
            {"min": raw.__ge__, "max": raw.__le__, "above": raw.__gt__, "below": raw.__lt__} if kind in _NUMERIC else {}
        )
        self.domain += [compare(_exact(spec[key])) for key, compare in bounds.items() if key in spec]
        if kind == "enum":
            self.domain.append(z3.And(raw >= 0, raw < len(spec["values"])))
        return self._settled(raw, self._visible(spec, given), spec)

    def _zone(self, spec: dict[str, Any], given: Any) -> Seen:
        share, known = z3.Real("share"), z3.Bool("share known")
        self.domain.append(z3.And(share >= 0, share <= 1))
        zone = self._constant(spec, "green")
        for name, start in sorted(self.program["zones"].items(), key=lambda item: item[1]):
            zone = z3.If(share >= _exact(start), self._constant(spec, name), zone)
        zone = z3.If(known, zone, self._constant(spec, "unknown"))
        return self._settled(zone, self._visible(spec, given), spec)

    def _visible(self, spec: dict[str, Any], given: Any) -> Any:
        return given if spec.get("scope", self.role) == self.role else z3.BoolVal(False)

    def _settled(self, raw: Any, given: Any, spec: dict[str, Any]) -> Seen:
        if "missing" not in spec:
            return raw, given, given
        return z3.If(given, raw, self._constant(spec, spec["missing"])), z3.BoolVal(True), given

    def _expression(self, expression: list[Any], fields: dict[str, Seen]) -> Seen:
        kind = expression[0]
        if kind == "field":
            return fields[expression[1]]
        if kind == "literal":
            literal = expression[1]
            there = z3.BoolVal(literal is not None)
            return (z3.BoolVal(literal) if isinstance(literal, bool) else _exact(literal or 0)), there, there
        parts = [self._expression(part, fields) for part in expression[1:]]
        (a, has_a, _), (b, has_b, _) = parts[0], parts[-1]
        if kind == "not":
            return z3.Not(z3.And(has_a, a)), z3.BoolVal(True), None
        if kind in ("and", "or"):
            first = z3.And(has_a, a) if kind == "or" else z3.Not(z3.And(has_a, a))
            return z3.If(first, a, b), z3.If(first, has_a, has_b), None
        if kind in ("eq", "ne"):
            null = ["literal", None] in expression[1:]
            same = has_a == has_b if null else z3.And(has_a == has_b, z3.Or(z3.Not(has_a), a == b))
            return same if kind == "eq" else z3.Not(same), z3.BoolVal(True), None
        compared = {"lt": a < b, "lte": a <= b, "gt": a > b, "gte": a >= b}[kind]
        return compared, z3.And(has_a, has_b), None

    def _test(self, name: str, operator: str, constant: Any) -> Any:
        spec, (value, there, given) = self.declared[name], self.seen[name]
        if operator == "missing":
            return given == z3.BoolVal(not constant)
        members = [self._constant(spec, c) for c in (constant if isinstance(constant, list) else [constant])]
        member = members[0]
        if operator in ("eq", "in"):
            held = z3.Or([value == m for m in members])
        elif operator in ("ne", "not_in"):
            held = z3.And([value != m for m in members])
        else:
            held = {"lt": value < member, "lte": value <= member, "gt": value > member, "gte": value >= member}[
                operator
            ]
        return z3.And(there, held)

    def _constant(self, spec: dict[str, Any], constant: Any) -> Any:
        if spec["type"] == "enum":
            return z3.IntVal(spec["values"].index(constant))
        return z3.BoolVal(constant) if isinstance(constant, bool) else _exact(constant)


def _exact(number: float) -> Any:
    """The double itself, not its decimal form."""
    return z3.IntVal(number) if isinstance(number, int) else z3.Q(*number.as_integer_ratio())
