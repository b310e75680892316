"""A program as the analysis reads it: from the leaves of a snapshot, some of them derived, some taken for free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import Program, fields_of
from ecm_rules.engine.zones import told_zone
from ecm_rules.tables.domains import accept

Path = tuple[str, ...]
Test = tuple[str, str, Any]
Read = Callable[[tuple[Any, ...]], tuple[dict[str, Any], tuple[str, ...]]]
"""From the values of leaves to what each name reads (None where it is missing), and the names that are not given."""

# A leaf that is not there; and, for the share of a zone, no zone either: a meter that was never written.
ABSENT = None
NOTHING = ...

SHARE: dict[str, Any] = {"type": "number", "min": 0, "max": 1}
# Begins the path of what stands for an expression that is not looked into: its value is taken for free.
_FREE = "\0"


@attrs.frozen
class Sources:
    """A program as the analysis reads it: what is not looked into is a leaf of its own."""

    program: Program
    fields: tuple[dict[str, Any], ...]
    signals: tuple[dict[str, Any], ...]
    tests: tuple[Test, ...]
    leaves: dict[str, tuple[Path, ...]]
    """The inputs that each name reads."""
    scoped: dict[str, frozenset[str]]
    """The names that each role is not given."""
    derived: dict[Path, Path]
    """The leaf that holds a zone, and the leaf of the share that it is the zone of."""

    @classmethod
    def all_of(cls, programs: Iterable[Program]) -> tuple[Sources, ...]:
        """Programs that are looked at together: a leaf that one of them derives is derived in all."""
        given = list(programs)
        fields = [field for program in given for field in program["fields"]]
        derived = {tuple(f["path"]): tuple(f["zone_of"]) for f in fields if "zone_of" in f and "path" in f}
        return tuple(cls.of(program, derived) for program in given)

    @classmethod
    def of(cls, program: Program, derived: dict[Path, Path]) -> Sources:
        fields = [_freed(field, "search") if "search" in field else field for field in program["fields"]]
        finite = {field["name"] for field in fields if field["type"] in ("enum", "boolean")}
        signals = []
        for signal in program["signals"]:
            kind, *parts = signal["from"]
            if kind == "search" and not finite.issuperset(parts[1]):
                fields.append(_freed(signal, "from"))
            else:
                signals.append(signal)
        leaves: dict[str, tuple[Path, ...]] = {
            f["name"]: (derived.get(tuple(f["path"]), tuple(f["path"])),) for f in fields
        }
        for signal in signals:
            leaves[signal["name"]] = tuple(leaf for name in fields_of(signal["from"]) for leaf in leaves[name])
        tests = dict.fromkeys(test_of(test) for row in program["rows"] for test in row["when"])
        only = [(d["name"], d["scope"]) for d in (*fields, *signals) if "scope" in d]
        scoped = {role: frozenset(name for name, mine in only if mine != role) for role in engine.ROLES}
        return cls(program, tuple(fields), tuple(signals), tuple(tests), leaves, scoped, derived)

    def hidden(self, role: str) -> frozenset[str]:
        """The names that are missing in this role whatever the snapshot says."""
        return self.scoped.get(role, frozenset())

    def reader(self, names: Iterable[str], inputs: tuple[Path, ...], role: str) -> Read:
        """What the engine reads of these names where the leaves `inputs` have some values and no others are there."""
        known = set(names)
        fields = [
            (f["name"], f, inputs.index(self.leaves[f["name"]][0]), tuple(f["path"]) in self.derived)
            for f in self.fields
            if f["name"] in known
        ]
        signals = [(s["name"], s) for s in self.signals if s["name"] in known]
        hidden = self.hidden(role)
        zones = self.program["zones"]

        def read(values: tuple[Any, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
            seen: dict[str, Any] = {}
            absent = []
            for name, spec, place, derived in fields:
                value = values[place]
                if value is NOTHING:
                    value = None
                elif derived:
                    value = told_zone(zones, value)
                taken = None if value is None or name in hidden else accept(spec, value)
                if taken is None:
                    absent.append(name)
                    taken = spec.get("missing")
                seen[name] = taken
            typed = dict(seen) if signals else seen
            for name, spec in signals:
                value = None if name in hidden else _evaluated(spec["from"], typed)
                taken = None if value is None else accept(spec, value)
                if taken is None:
                    absent.append(name)
                    taken = spec.get("missing")
                seen[name] = taken
            return seen, tuple(absent)

        return read

    def snapshot(self, inputs: Iterable[Path], values: Iterable[Any]) -> dict[str, Any] | None:
        """The snapshot with these leaves; None where one lies inside another."""
        found: dict[str, Any] = {}
        for path, value in zip(inputs, values, strict=True):
            if value is not ABSENT and value is not NOTHING and not put(found, path, value):
                return None
            for leaf, share in self.derived.items():
                if share == path and value is not NOTHING:
                    put(found, leaf, told_zone(self.program["zones"], value))
        return found


def test_of(test: Iterable[Any]) -> Test:
    """A test of a program, hashable."""
    name, operator, constant = test
    return name, operator, tuple(constant) if isinstance(constant, list) else constant


def is_free(path: Path) -> bool:
    """Whether a leaf stands for an expression that is not looked into."""
    return path[0].startswith(_FREE)


def _freed(declared: dict[str, Any], origin: str) -> dict[str, Any]:
    spec = {key: value for key, value in declared.items() if key != origin}
    return {**spec, "path": [_FREE + declared["name"]]}


def _evaluated(expression: Any, typed: dict[str, Any]) -> Any:
    try:
        return engine.evaluate(expression, typed)
    except Exception:  # as the engine has it: what a function of the library refuses is missing
        return None


def put(snapshot: dict[str, Any], path: Path, value: Any) -> bool:
    """Put a leaf into a snapshot; False where something else is there, or it would lie inside a leaf."""
    *above, key = path
    for step in above:
        snapshot = snapshot.setdefault(step, {})
        if snapshot.__class__ is not dict:
            return False
    return bool(snapshot.setdefault(key, value) == value)


def literals(expression: Any) -> Iterator[Any]:
    """The literals of an expression of a program."""
    if expression[0] == "literal":
        yield expression[1]
    elif expression[0] not in ("field", "search"):
        for part in expression[1:]:
            yield from literals(part)
