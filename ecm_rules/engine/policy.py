"""The evaluator that adapters embed: a decision table, resolved, compiled and ready."""

from __future__ import annotations

import os
from typing import Any

import attrs

from ecm_rules.engine import codegen, program, zones
from ecm_rules.engine.compile import Program, compile_table
from ecm_rules.tables import load
from ecm_rules.tables.models import Table

Path = str | os.PathLike[str]


@attrs.frozen
class TestTrace:
    """A test of a row on one snapshot: the value it saw (None where missing) and whether it held."""

    signal: str
    operator: str
    constant: Any
    value: Any
    missing: bool
    held: bool

    __test__ = False  # not a test case of pytest's


@attrs.frozen
class RowTrace:
    """A row on one snapshot. `fired` is true of the first row whose every test held."""

    id: str
    operation: str
    tests: tuple[TestTrace, ...]
    held: bool
    fired: bool


@attrs.frozen(eq=False)
class Policy:
    """A decision table with its vocabulary and its project's layer. Built by `load_policy` and `load_table`.

    table: the model. program: the same as plain, JSON-able data (see `engine.program`). `rule_for(snapshot,
    role="orchestrator")` gives the bare row, `decide(snapshot, role="orchestrator")` the verdict; both are compiled
    from the program, and documented on themselves.
    """

    table: Table = attrs.field(repr=False)
    program: Program = attrs.field(repr=False)
    rule_for: codegen.RuleFor = attrs.field(repr=False)
    decide: codegen.Decide = attrs.field(repr=False)

    @classmethod
    def of(cls, table: Table) -> Policy:
        built = compile_table(table)
        return cls(table, built, *codegen.build(built))

    def __repr__(self) -> str:
        return f"<Policy {self.table.source.file} {self.digest[:12]}>"

    @property
    def digest(self) -> str:
        """SHA-256 of the program's canonical JSON."""
        return str(self.program["digest"])

    def trace(self, snapshot: Any, role: str = "orchestrator") -> tuple[RowTrace, ...]:
        """Every row in order, with the value that each of its tests saw and whether it held. Raises as `decide`."""
        values, missing, _ = program.read(self.program, snapshot, role)
        seen: list[RowTrace] = []
        for row in self.program["rows"]:
            tests = tuple(
                TestTrace(
                    name,
                    operator,
                    constant,
                    values[name],
                    name in missing,
                    program.holds(operator, values[name], name in missing, constant),
                )
                for name, operator, constant in row["when"]
            )
            held = all(test.held for test in tests)
            seen.append(RowTrace(row["id"], row["operation"], tests, held, held and not any(r.fired for r in seen)))
        return tuple(seen)


def load_policy(path: Path | None = None, *, project: Path | None = ".") -> Policy:
    """The context policy: the shipped one, or the one at `path`; with the layer of the project in the folder `project`
    where its eidolons.yaml opts in (None: no project).

    Raises EcmError with every finding, located, where a table does not load.
    """
    return Policy.of(load.load_policy(_text(path), _text(project)))


def load_table(name: Path, *, project: Path | None = ".") -> Policy:
    """Any decision table, by a shipped one's name (`lateral-signals`) or by path, used as a policy is.

    Raises EcmError as `load_policy` does.
    """
    return Policy.of(load.load_table(os.fspath(name), _text(project)))


def rezone(meter: Any, policy: Policy) -> str:
    """The zone that a policy's thresholds give to the utilization of a meter, whatever zone the meter names. Any JSON
    value is taken: `unknown` where it tells no utilization from 0 to 1. ECM §"The meter + zone ladder".
    """
    return zones.rezone(meter, policy.program)


def _text(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)
