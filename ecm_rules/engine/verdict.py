"""What a table decides about a snapshot, and its JSON form."""

from __future__ import annotations

import json
from typing import Any

import attrs


@attrs.frozen
class Degraded:
    """A part of the snapshot that counted as missing: its path, and what was found there."""

    path: str
    reason: str


@attrs.frozen
class Outcome:
    """What all verdicts of one row and one role have in common."""

    rule: str | None
    operation: str
    raw_operation: str
    role: str
    steps: tuple[str, ...]
    digest: str
    names: tuple[str, ...]


@attrs.frozen
class Verdict:
    """A decision. The same table, snapshot and role give the same verdict, to the byte. ECM §"The decision table".

    rule: id of the row that fired, None where none did. operation: what to do, after the role's remap. raw_operation:
    what the row said. steps: the operation's steps, expanded. signals: {name: typed value, or the `missing` value in
    its place, or None}. missing: names of those that the snapshot did not give. degraded: what was given wrongly.
    digest: SHA-256 of the program that decided.
    """

    outcome: Outcome
    values: tuple[Any, ...]
    absent: int = 0
    """One bit for each of `values`, the first the lowest: set where the snapshot did not give it."""
    degraded: tuple[Degraded, ...] = ()

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
    def digest(self) -> str:
        return self.outcome.digest

    @property
    def signals(self) -> dict[str, Any]:
        return dict(zip(self.outcome.names, self.values, strict=True))

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for bit, name in enumerate(self.outcome.names) if self.absent >> bit & 1)

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
        """The verdict that `to_dict` described. Raises KeyError or TypeError for anything else."""
        outcome = Outcome(
            data["rule"],
            data["operation"],
            data["raw_operation"],
            data["role"],
            tuple(data["steps"]),
            data["digest"],
            tuple(data["signals"]),
        )
        absent = sum(1 << bit for bit, name in enumerate(outcome.names) if name in data["missing"])
        degraded = tuple(Degraded(d["path"], d["reason"]) for d in data["degraded"])
        return cls(outcome, tuple(data["signals"].values()), absent, degraded)

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """The verdict that `to_json` described. Raises ValueError for anything else."""
        try:
            return cls.from_dict(json.loads(text))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no verdict: {error}") from None
