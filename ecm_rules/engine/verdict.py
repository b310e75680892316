"""What a table decides about a snapshot, and its JSON form."""

from __future__ import annotations

import json
from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.compile import Program


@attrs.frozen
class Degraded:
    """A part of the snapshot that counted as missing: its path, and what was found there."""

    path: str
    reason: str


@attrs.frozen
class Outcome:
    """All of a verdict but the values: one for all verdicts of a row and role that name no fault."""

    rule: str | None
    operation: str
    raw_operation: str
    role: str
    steps: tuple[str, ...]
    digest: str
    names: tuple[str, ...]
    # The digest tells tables apart; a verdict from its JSON knows only some of these, and is equal all the same.
    defaults: tuple[Any, ...] = attrs.field(eq=False)
    degraded: tuple[Degraded, ...] = ()


@attrs.frozen(init=False)
class Verdict:
    """A decision. The same table, snapshot and role give the same verdict, to the byte. ECM §"The decision table".

    rule: id of the row that fired, None where none did. operation: what to do, after the role's remap. raw_operation:
    what the row said. steps: the operation's steps, expanded. signals: {name: typed value, or the `missing` value in
    its place, or None}. missing: names of those that the snapshot did not give. degraded: what was given wrongly.
    digest: SHA-256 of the program that decided.
    """

    outcome: Outcome
    given: tuple[Any, ...]
    """The typed value of each signal in the order of `outcome.names`, None where it is missing."""

    def __init__(self, outcome: Outcome, given: tuple[Any, ...]) -> None:
        # One is made for every decision, and what attrs generates for a frozen class takes a third longer.
        _set_outcome(self, outcome)
        _set_given(self, given)

    @property
    def rule(self) -> str | None:
        return self.outcome.rule

    @property
    def operation(self) -> str:
        return self.outcome.operation

    @property
    def raw_operation(self) -> str:
        return self.outcome.raw_operation

    @property
    def role(self) -> str:
        return self.outcome.role

    @property
    def steps(self) -> tuple[str, ...]:
        return self.outcome.steps

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        return self.outcome.degraded

    @property
    def digest(self) -> str:
        return self.outcome.digest

    @property
    def signals(self) -> dict[str, Any]:
        values = zip(self.given, self.outcome.defaults, strict=True)
        return dict(zip(self.outcome.names, (d if g is None else g for g, d in values), strict=True))

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, given in zip(self.outcome.names, self.given, strict=True) if given is None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `engine.program.decide` gives it."""
        return {
            "rule": self.rule,
            "operation": self.operation,
            "raw_operation": self.raw_operation,
            "role": self.role,
            "steps": list(self.steps),
            "signals": self.signals,
            "missing": list(self.missing),
            "degraded": [{"path": d.path, "reason": d.reason} for d in self.degraded],
            "digest": self.digest,
        }

    def to_json(self) -> str:
        """One line of ASCII, the same for the same verdict on every platform."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """The verdict that `to_dict` described. Raises ValueError for anything else."""
        try:
            signals, missing = data["signals"], data["missing"]
            if not all(isinstance(data[key], list) for key in ("steps", "missing", "degraded")):
                raise TypeError("a list is none")
            outcome = Outcome(
                data["rule"],
                data["operation"],
                data["raw_operation"],
                data["role"],
                tuple(data["steps"]),
                data["digest"],
                tuple(signals),
                tuple(value if name in missing else None for name, value in signals.items()),
                tuple(Degraded(d["path"], d["reason"]) for d in data["degraded"]),
            )
            words = (outcome.operation, outcome.raw_operation, outcome.role, outcome.digest, *outcome.steps, *missing)
            if not all(isinstance(word, str) for word in (outcome.rule or "", *words)):
                raise TypeError("a name is no string")
            verdict = cls(outcome, tuple(None if name in missing else value for name, value in signals.items()))
            hash(verdict)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no verdict: {error}") from None
        return verdict

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """The verdict that `to_json` described. Raises ValueError for anything else."""
        try:
            return cls.from_dict(json.loads(text))
        except RecursionError:
            raise ValueError("no verdict: nested too deep") from None


_set_outcome, _set_given = vars(Verdict)["outcome"].__set__, vars(Verdict)["given"].__set__


def outcomes(built: Program, role: str) -> list[Outcome]:
    """The outcome of each row of a program for a role."""
    declared = [*built["fields"], *built["signals"]]
    names, defaults = tuple(d["name"] for d in declared), tuple(d.get("missing") for d in declared)
    found = []
    for row in built["rows"]:
        raw, operation = program.outcome(built, row, role)
        steps = tuple(built["steps"].get(operation, ()))
        found.append(Outcome(row["id"], operation, raw, role, steps, built["digest"], names, defaults))
    return found
