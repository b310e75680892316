"""A program to Python: two functions built as `ast` nodes, as close to a hand-written if-chain as the table allows.

Nothing of a table ever becomes source text: names are numbered, and constants are constant nodes. The templates below
are this module's own.

- `rule_for(snapshot, role)` reads a field when the first test asks for it, shares the tests that neighbouring rows
  begin with, and returns the id of the row.
- `decide(snapshot, role)` reads everything and returns the verdict; where something is faulty or no row holds, the
  interpreter says what, so that a reason is worded in one place.
"""

from __future__ import annotations

import ast
import itertools
import threading
from collections.abc import Iterable
from typing import Any, Protocol

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.compile import Program, fields_of
from ecm_rules.engine.verdict import Verdict, outcomes
from ecm_rules.tables.domains import LARGEST, NUMERIC


class RuleFor(Protocol):
    """The id of the row that fires on a snapshot, None where none does. Nothing is allocated; faults go unnamed."""

    def __call__(self, snapshot: Any, role: str = ...) -> str | None: ...


class Decide(Protocol):
    """The verdict on a snapshot: a dict as `json.loads` gives it, or None where there is none.

    Never raises on a JSON value: what is mistyped, not finite or out of range counts as missing and is named in
    `degraded`. Raises ValueError for a role that is neither orchestrator nor subagent.
    """

    def __call__(self, snapshot: Any, role: str = ...) -> Verdict: ...


# CPython 3.11 counts the recursion of all threads in the ast module together: two at once can end in a SystemError.
_ONE_AT_A_TIME = threading.Lock()

_COMPARISONS = {
    "eq": ast.Eq,
    "ne": ast.NotEq,
    "lt": ast.Lt,
    "lte": ast.LtE,
    "gt": ast.Gt,
    "gte": ast.GtE,
    "in": ast.In,
    "not_in": ast.NotIn,
}


def build(built: Program) -> tuple[RuleFor, Decide]:
    """(rule_for, decide) of a program. Both take a snapshot and a role; both raise ValueError for an unknown role."""
    with _ONE_AT_A_TIME:
        return _build(built)


def _build(built: Program) -> tuple[RuleFor, Decide]:
    orchestrator, subagent = program.ROLES
    functions = [
        _function("rule_for", orchestrator, _Code(built, orchestrator).lazy(), "other_rule"),
        _function("other_rule", subagent, _Code(built, subagent).lazy(), "unknown"),
        _function("decide", orchestrator, _Code(built, orchestrator).eager(), "other_decide"),
        _function("other_decide", subagent, _Code(built, subagent).eager(), "unknown"),
    ]
    module = ast.fix_missing_locations(ast.Module(functions, []))
    names: dict[str, Any] = {"EMPTY": {}, "express": _express, "find": _find, "unknown": _unknown, "verdict": Verdict}
    names["interpret"] = lambda snapshot, role: Verdict.from_dict(program.decide(built, snapshot, role))
    for role in program.ROLES:
        names.update({f"{role}_{number}": outcome for number, outcome in enumerate(outcomes(built, role))})
    # The code is generated from nodes of this module; a table contributes constants alone.
    exec(compile(module, "<decision table>", "exec"), names)  # noqa: S102
    rule_for, decide = names["rule_for"], names["decide"]
    rule_for.__doc__, decide.__doc__ = RuleFor.__doc__, Decide.__doc__
    return rule_for, decide


def _unknown(_: Any, role: str) -> Any:
    raise ValueError(f"role is {role!r}, expected one of {', '.join(program.ROLES)}")


def _express(expression: list[Any], typed: dict[str, Any]) -> Any:
    """An expression's value, or the fault marker `...` where the library refused its arguments."""
    try:
        return program.evaluate(expression, typed)
    except Exception:
        return ...


def _find(text: str, snapshot: Any) -> Any:
    try:
        return program.search(text, snapshot)
    except Exception:
        return ...


class _Placeholders(ast.NodeTransformer):
    """Puts nodes in the place of the names of a template."""

    def __init__(self, nodes: dict[str, ast.expr]) -> None:
        self.nodes = nodes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self.nodes.get(node.id, node)
        return ast.Name(found.id, node.ctx) if isinstance(found, ast.Name) else found


def _statements(template: str, **nodes: ast.expr) -> list[ast.stmt]:
    return [_Placeholders(nodes).visit(statement) for statement in ast.parse(template).body]


def _expression(template: str, **nodes: ast.expr) -> ast.expr:
    found: ast.expr = _Placeholders(nodes).visit(ast.parse(template, mode="eval").body)
    return found


def _name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _function(name: str, role: str, body: list[ast.stmt], other: str) -> ast.stmt:
    (function,) = _statements(
        f"def {name}(snapshot, role=ROLE):\n if role != ROLE: return {other}(snapshot, role)", ROLE=_constant(role)
    )
    assert isinstance(function, ast.FunctionDef)
    function.body += body
    return function


@attrs.frozen
class _Value:
    """A signal in the generated code: the variable that holds it, its type, and whether it can be None there."""

    node: ast.expr
    type: str
    nullable: bool

    def is_a(self, declared: dict[str, Any]) -> bool:
        """Whether no check is needed; other types than boolean have ranges and values."""
        return bool(self.type == declared["type"] == "boolean")


class _Code:
    """The code of one program for one role."""

    def __init__(self, built: Program, role: str) -> None:
        self.role = role
        self.rows = built["rows"]
        self.fields = {declared["name"]: declared for declared in built["fields"]}
        self.signals = {declared["name"]: declared for declared in built["signals"]}
        self.declared = {**self.fields, **self.signals}
        # What a test sees; and what the snapshot gave, which is another thing where a `missing` value takes its place.
        self.variables: dict[str, ast.expr] = {name: _name(f"v{i}") for i, name in enumerate(self.declared)}
        self.given = {
            n: _name(f"g{i}") if "missing" in d else self.variables[n] for i, (n, d) in enumerate(self.declared.items())
        }
        self.searching = any(declared["from"][0] == "search" for declared in built["signals"])
        # Whether it was missing, for the signals of which a row asks that.
        asked = {name for row in self.rows for name, operator, _ in row["when"] if operator == "missing"}
        self.absent = {name: _name(f"m{i}") for i, name in enumerate(self.declared) if name in asked}
        prefixes = {
            tuple(f["path"][:depth]) for f in built["fields"] if "path" in f for depth in range(1, len(f["path"]))
        }
        self.boxes = {prefix: _name(f"b{i}") for i, prefix in enumerate(sorted(prefixes))}

    def lazy(self) -> list[ast.stmt]:
        """The row's id, reading what its tests ask for."""
        rows = [(row["when"], _statements("return ID", ID=_constant(row["id"]))) for row in self.rows]
        start = _statements("if snapshot.__class__ is not dict: snapshot = EMPTY")
        return [*start, *self.trie(rows, set()), *_statements("return None")]

    def eager(self) -> list[ast.stmt]:
        """The verdict with everything that was read, or the interpreter's where that has something to say."""
        no_object = "if snapshot.__class__ is not dict:\n if snapshot is not None: return interpret(snapshot, role)"
        body = _statements(f"{no_object}\n snapshot = EMPTY")
        for prefix, box in self.boxes.items():
            outer = self.boxes[prefix[:-1]] if len(prefix) > 1 else _name("snapshot")
            template = (
                "BOX = OUTER.get(KEY)\n"
                "if BOX.__class__ is not dict:\n if BOX is not None: return interpret(snapshot, role)\n BOX = EMPTY"
            )
            body += _statements(template, BOX=box, OUTER=outer, KEY=_constant(prefix[-1]))
        for name, declared in self.declared.items():
            body += self.settle(name, declared)
        values = ast.Tuple([self.given[name] for name in self.declared], ast.Load())
        rows = [
            (
                row["when"],
                _statements("return verdict(OUTCOME, VALUES)", OUTCOME=_name(f"{self.role}_{n}"), VALUES=values),
            )
            for n, row in enumerate(self.rows)
        ]
        return [*body, *self.trie(rows, set(self.declared)), *_statements("return interpret(snapshot, role)")]

    def trie(
        self, rows: Iterable[tuple[list[Any], list[ast.stmt]]], read: set[str | tuple[str, ...]]
    ) -> list[ast.stmt]:
        """Code for rows in order, each with its answer. `read` names what is set on every way to here; it grows."""
        body: list[ast.stmt] = []
        for test, group in itertools.groupby(rows, key=lambda row: row[0][0] if row[0] else None):
            if test is None:
                return [*body, *next(group)[1]]
            body += self.load(test[0], read)
            inner = self.trie([(when[1:], answer) for when, answer in group], set(read))
            body.append(ast.If(self.test(*test), inner, []))
        return body

    def test(self, name: str, operator: str, constant: Any) -> ast.expr:
        declared, value = self.declared[name], self.variables[name]
        if operator == "missing":
            return self.absent[name] if constant else ast.UnaryOp(ast.Not(), self.absent[name])
        if declared["type"] == "boolean":
            wanted = constant if operator == "eq" else not constant
            return value if wanted else _expression("VALUE is False", VALUE=value)
        if operator == "in" and len(constant) <= 2:  # two comparisons cost less than a look-up in a set
            return _any([ast.Compare(value, [ast.Eq()], [_constant(c)]) for c in constant])
        held = ast.Compare(
            value,
            [_COMPARISONS[operator]()],
            [_constant(frozenset(constant) if isinstance(constant, list) else constant)],
        )
        if "missing" in declared or operator in ("eq", "in"):
            return held
        return _all([_expression("VALUE is not None", VALUE=value), held])

    def hidden(self, declared: dict[str, Any]) -> bool:
        return bool(declared.get("scope", self.role) != self.role)

    def guard(self, declared: dict[str, Any], node: ast.expr) -> ast.expr:
        """Whether a value that is there has the declared type, range and values. `k` is its class."""
        kind = declared["type"]
        if kind == "boolean":
            return _expression("k is bool")
        if kind == "string":
            return _expression("k is str")
        if kind == "enum":
            return _expression(
                "k is str and VALUE in VALUES", VALUE=node, VALUES=_constant(frozenset(declared["values"]))
            )
        # The larger of two lower bounds and the smaller of two upper ones; a strict one wins a tie.
        lowest = max(declared.get("min", -LARGEST), declared.get("above", -LARGEST))
        highest = min(declared.get("max", LARGEST), declared.get("below", LARGEST))
        low = "<" if declared.get("above") == lowest else "<="
        high = "<" if declared.get("below") == highest else "<="
        whole = "VALUE % 1 == 0 and " if kind == "integer" else ""
        # Comparing an integer with a float costs twice what comparing two of a kind does.
        integers, floats = f"LOW {low} VALUE {high} HIGH", f"{whole}LOW_FLOAT {low} VALUE {high} HIGH_FLOAT"
        return _expression(
            f"k is int and {integers} or k is float and {floats}",
            VALUE=node,
            LOW=_constant(int(lowest) if lowest == int(lowest) else lowest),
            HIGH=_constant(int(highest) if highest == int(highest) else highest),
            LOW_FLOAT=_constant(float(lowest) if lowest == float(lowest) else lowest),
            HIGH_FLOAT=_constant(float(highest) if highest == float(highest) else highest),
        )

    def computed(self, expression: list[Any]) -> _Value:
        """An expression over fields that have been read, with JMESPath's semantics."""
        kind = expression[0]
        if kind == "field":
            declared = self.fields[expression[1]]
            return _Value(self.variables[expression[1]], declared["type"], "missing" not in declared)
        if kind == "literal":
            return _Value(_constant(expression[1]), _type_of(expression[1]), expression[1] is None)
        parts = [self.computed(part) for part in expression[1:]] if kind != "search" else []
        if any(part.type == "unknown" for part in parts):
            return self.library(expression)
        if kind in ("eq", "ne"):
            left, right = parts
            if isinstance(left.node, ast.Constant) and isinstance(right.node, ast.Constant):
                return _Value(_constant(program.evaluate(expression, {})), "boolean", False)
            if "null" in (left.type, right.type):
                subject = left if right.type == "null" else right
                return _Value(
                    _expression(f"VALUE is {'' if kind == 'eq' else 'not '}None", VALUE=subject.node), "boolean", False
                )
            if (left.type == "boolean") == (right.type == "boolean"):
                return _Value(ast.Compare(left.node, [_COMPARISONS[kind]()], [right.node]), "boolean", False)
        elif kind in ("lt", "lte", "gt", "gte") and all(p.type in NUMERIC for p in parts):
            compared = ast.Compare(parts[0].node, [_COMPARISONS[kind]()], [parts[1].node])
            tests: list[ast.expr] = [_expression("VALUE is None", VALUE=p.node) for p in parts if p.nullable]
            if not tests:
                return _Value(compared, "boolean", False)
            return _Value(ast.IfExp(_any(tests), _constant(None), compared), "boolean", True)
        elif kind in ("and", "or", "not") and all(p.type == "boolean" for p in parts):
            if kind == "not":
                return _Value(ast.UnaryOp(ast.Not(), parts[0].node), "boolean", False)
            operator = ast.And() if kind == "and" else ast.Or()
            return _Value(ast.BoolOp(operator, [p.node for p in parts]), "boolean", any(p.nullable for p in parts))
        return self.library(expression)

    def library(self, expression: list[Any]) -> _Value:
        """What the interpreter evaluates, over a dict of the fields that the expression reads."""
        needed = list(dict.fromkeys(fields_of(expression)))
        typed = ast.Dict([_constant(name) for name in needed], [self.variables[name] for name in needed])
        call = _expression("express(EXPRESSION, TYPED)", EXPRESSION=_data(expression), TYPED=typed)
        return _Value(call, "unknown", True)

    def load(self, name: str, read: set[str | tuple[str, ...]]) -> list[ast.stmt]:
        """Code that reads a signal for the first time on a way; what is faulty counts as missing."""
        if name in read:
            return []
        read.add(name)
        declared, variable = self.declared[name], self.variables[name]
        default = _constant(declared.get("missing"))
        if self.hidden(declared):
            return [*_statements("VALUE = DEFAULT", VALUE=variable, DEFAULT=default), *self.mark(name, _constant(True))]
        if name in self.fields:
            body = self.fetch(declared, variable, read)
            checked, nullable = True, True
        else:
            body = [statement for needed in fields_of(declared["from"]) for statement in self.load(needed, read)]
            value = self.computed(declared["from"])
            if value.is_a(declared) and name not in self.absent:
                return [*body, *self.inline(name, declared, value)]
            checked, nullable = not value.is_a(declared), value.nullable
            body += _statements("VALUE = COMPUTED", VALUE=variable, COMPUTED=value.node)
        if checked:
            body += _statements("k = VALUE.__class__", VALUE=variable)
        accepted = self.guard(declared, variable) if checked else _expression("VALUE is not None", VALUE=variable)
        if name in self.absent:
            body += self.mark(name, ast.UnaryOp(ast.Not(), accepted))
            accepted = ast.UnaryOp(ast.Not(), self.absent[name])
        if checked or (nullable and "missing" in declared):
            body += _statements(
                "if not (ACCEPTED): VALUE = DEFAULT", VALUE=variable, DEFAULT=default, ACCEPTED=accepted
            )
        if declared["type"] == "integer" and self.searching:  # the library tells 2.0 from 2
            body += _statements("if VALUE.__class__ is float: VALUE = int(VALUE)", VALUE=variable)
        return body

    def inline(self, name: str, declared: dict[str, Any], value: _Value) -> list[ast.stmt]:
        """A boolean that needs no variable is put where it is tested."""
        node, nullable = value.node, value.nullable
        if isinstance(node, ast.IfExp):  # a comparison whose operands may be missing
            node, nullable = ast.IfExp(node.test, _constant(declared.get("missing")), node.orelse), False
        if nullable and "missing" in declared:
            variable = self.variables[name]
            template = "VALUE = COMPUTED\nif VALUE is None: VALUE = DEFAULT"
            return _statements(template, VALUE=variable, COMPUTED=node, DEFAULT=_constant(declared["missing"]))
        self.variables[name] = node
        return []

    def mark(self, name: str, absent: ast.expr) -> list[ast.stmt]:
        return _statements("ABSENT = VALUE", ABSENT=self.absent[name], VALUE=absent) if name in self.absent else []

    def fetch(self, declared: dict[str, Any], variable: ast.expr, read: set[str | tuple[str, ...]]) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        above = declared.get("path", ())[:-1]
        for depth in range(1, len(above) + 1):
            prefix = tuple(above[:depth])
            if prefix not in read:
                read.add(prefix)
                outer = self.boxes[prefix[:-1]] if depth > 1 else _name("snapshot")
                template = "BOX = OUTER.get(KEY)\nif BOX.__class__ is not dict: BOX = EMPTY"
                body += _statements(template, BOX=self.boxes[prefix], OUTER=outer, KEY=_constant(prefix[-1]))
        return [*body, *_statements("VALUE = SOURCE", VALUE=variable, SOURCE=self.source(declared))]

    def source(self, declared: dict[str, Any]) -> ast.expr:
        if "search" in declared:
            return _expression("find(TEXT, snapshot)", TEXT=_constant(declared["search"]))
        *above, key = declared["path"]
        box = self.boxes[tuple(above)] if above else _name("snapshot")
        return _expression("BOX.get(KEY)", BOX=box, KEY=_constant(key))

    def settle(self, name: str, declared: dict[str, Any]) -> list[ast.stmt]:
        """Code that reads a signal once and for all; where it is faulty, the interpreter answers."""
        variable, given = self.variables[name], self.given[name]
        default = _constant(declared.get("missing"))
        if self.hidden(declared):
            body = _statements("GIVEN = None\nVALUE = DEFAULT", GIVEN=given, VALUE=variable, DEFAULT=default)
            return [*body, *self.mark(name, _constant(True))]
        value = (
            self.computed(declared["from"]) if name in self.signals else _Value(self.source(declared), "unknown", True)
        )
        checked = not value.is_a(declared)
        body = _statements("GIVEN = SOURCE", GIVEN=given, SOURCE=value.node)
        if checked:
            refused = (
                "if GIVEN is not None:\n k = GIVEN.__class__\n if not (ACCEPTED): return interpret(snapshot, role)"
            )
            (branch,) = _statements(refused, GIVEN=given, ACCEPTED=self.guard(declared, given))
            if declared["type"] == "integer" and isinstance(branch, ast.If):
                branch.body += _statements("if k is float: GIVEN = int(GIVEN)", GIVEN=given)
            body.append(branch)
        body += self.mark(name, _expression("GIVEN is None", GIVEN=given))
        if "missing" in declared:
            body += _statements(
                "VALUE = DEFAULT if GIVEN is None else GIVEN", VALUE=variable, GIVEN=given, DEFAULT=default
            )
        return body


def _any(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)


def _all(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _data(value: Any) -> ast.expr:
    """A list of constants as a tuple display, which is itself a constant."""
    return ast.Tuple([_data(v) for v in value], ast.Load()) if isinstance(value, list) else _constant(value)


def _type_of(value: Any) -> str:
    kinds = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string"}
    return kinds[type(value)]
