"""What a snapshot can say, cut into cells that no test of the tables tells apart.

A *dimension* is a group of inputs that hang together: a leaf of the snapshot alone, or several that one signal reads
(the budget's ceiling and spending), or the share that a zone is derived from. Its *members* are combinations of
values: every value of an enum, every number that something is compared with, some between each two of these, and the
absence of a value. Each is read by the engine itself, so that a cell means what it means at run time and no
combination is listed that no snapshot has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.numbers import between
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import Program, fields_of
from ecm_rules.engine.zones import zone
from ecm_rules.tables.domains import LARGEST, NUMERIC, accept

Path = tuple[str, ...]
Test = tuple[str, str, Any]

# A leaf that is not there; and, for the share of a zone, no zone either: a meter that was never written.
ABSENT = None
NOTHING = ...

_MOST_MEMBERS = 100_000
SHARE = {"type": "number", "min": 0, "max": 1}
# Begins the path of what stands for an expression that is not looked into: its value is taken for free.
_FREE = "\0"


@attrs.frozen
class Member:
    """A combination of values of the inputs. `seen`, a mapping a program: what each name reads there, None where it is
    missing; `absent`: the names that the snapshot does not give.
    """

    values: tuple[Any, ...]
    seen: tuple[dict[str, Any], ...]
    absent: tuple[frozenset[str], ...]


@attrs.frozen
class Dimension:
    """`cells[n]` are the members of cell n; `masks[(program, test)]` the cells in which the test holds."""

    inputs: tuple[Path, ...]
    names: tuple[str, ...]
    cells: tuple[tuple[Member, ...], ...]
    masks: dict[tuple[int, Test], int]
    signatures: dict[tuple[bool, ...], int]
    tests: tuple[tuple[int, Test], ...]
    gaps: dict[Any, tuple[float, float]]
    """A number that stands for all between two others, and these."""
    whole: bool
    """Whether all its numbers are integers."""
    missing_asked: frozenset[str]
    """The names that some test asks whether they are there."""

    @property
    def full(self) -> int:
        return (1 << len(self.cells)) - 1


@attrs.frozen
class Sources:
    """A program as the analysis reads it: what is not looked into is a leaf of its own."""

    program: Program
    fields: tuple[dict[str, Any], ...]
    signals: tuple[dict[str, Any], ...]
    tests: tuple[Test, ...]
    leaves: dict[str, tuple[Path, ...]]
    """The inputs that each name reads."""
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
        return cls(program, tuple(fields), tuple(signals), tuple(tests), leaves, derived)

    def declared(self) -> Iterator[dict[str, Any]]:
        yield from (*self.fields, *self.signals)

    def snapshot(self, inputs: Iterable[Path], values: Iterable[Any]) -> dict[str, Any] | None:
        """The snapshot with these leaves; None where one lies inside another."""
        found: dict[str, Any] = {}
        for path, value in zip(inputs, values, strict=True):
            if value is not ABSENT and value is not NOTHING and not _put(found, path, value):
                return None
            for leaf, share in self.derived.items():
                if share == path and value is not NOTHING:
                    _put(found, leaf, zone(self.program["zones"], value))
        return found


def test_of(test: Iterable[Any]) -> Test:
    """A test of a program, hashable."""
    name, operator, constant = test
    return name, operator, tuple(constant) if isinstance(constant, list) else constant


def is_free(path: Path) -> bool:
    """Whether a leaf stands for an expression that is not looked into."""
    return path[0].startswith(_FREE)


def dimensions(sources: tuple[Sources, ...], tests: Iterable[tuple[int, Test]], role: str) -> tuple[Dimension, ...]:
    """The dimensions of tables that are looked at together, in the order in which their fields are declared.

    tests: what tells cells apart, with the number of the program whose it is. Raises Inconclusive where a dimension
    has too many members.
    """
    listed = list(tests)
    return tuple(_dimension(sources, group, listed, role) for group in _groups(sources))


def _freed(declared: dict[str, Any], origin: str) -> dict[str, Any]:
    spec = {key: value for key, value in declared.items() if key != origin}
    return {**spec, "path": [_FREE + declared["name"]]}


def _put(snapshot: dict[str, Any], path: Path, value: Any) -> bool:
    *above, key = path
    for step in above:
        snapshot = snapshot.setdefault(step, {})
        if snapshot.__class__ is not dict:
            return False
    return bool(snapshot.setdefault(key, value) == value)


def _groups(sources: tuple[Sources, ...]) -> list[list[Path]]:
    """The inputs that hang together: read by one signal, or by one name of two tables, or one inside another."""
    leaves = list(dict.fromkeys(leaf for source in sources for found in source.leaves.values() for leaf in found))
    group_of = {leaf: [leaf] for leaf in leaves}

    def link(one: Path, other: Path) -> None:
        if group_of[one] is not group_of[other]:
            group_of[one] += group_of[other]
            for leaf in group_of[other]:
                group_of[leaf] = group_of[one]

    for name in dict.fromkeys(name for source in sources for name in source.leaves):
        read = [leaf for source in sources for leaf in source.leaves.get(name, ())]
        for one, other in itertools.pairwise(read):
            link(one, other)
    for one, other in itertools.combinations(leaves, 2):
        if one[: len(other)] == other or other[: len(one)] == one:
            link(one, other)
    groups = [group for leaf, group in group_of.items() if group[0] == leaf]
    constant = any(not found for source in sources for found in source.leaves.values())
    return [*groups, []] if constant else groups


def _dimension(sources: tuple[Sources, ...], group: list[Path], listed: list[tuple[int, Test]], role: str) -> Dimension:
    inputs = tuple(group)
    names = dict.fromkeys(
        d["name"]
        for source in sources
        for d in source.declared()
        if inputs == source.leaves[d["name"]] or set(inputs) & set(source.leaves[d["name"]])
    )
    tests = tuple(test for test in listed if test[1][0] in names)
    parts = [_part(source, names) for source in sources]
    pools, gaps, whole = _pools(sources, parts, inputs, tests)
    if math.prod(map(len, pools)) > _MOST_MEMBERS:
        raise Inconclusive(f"{', '.join(names)} hang together over more values than were looked at")
    cells: dict[tuple[bool, ...], list[Member]] = {}
    for values in itertools.product(*pools):
        snapshots = [source.snapshot(inputs, values) for source in sources]
        if None in snapshots:
            continue
        read = [engine.read(part, snapshot, role) for part, snapshot in zip(parts, snapshots, strict=True)]
        seen, absent = tuple(r[0] for r in read), tuple(frozenset(r[1]) for r in read)
        signature = tuple(
            engine.holds(operator, seen[n][name], name in absent[n], constant)
            for n, (name, operator, constant) in tests
        )
        cells.setdefault(signature, []).append(Member(values, seen, absent))
    masks = {
        test: sum(1 << cell for cell, signature in enumerate(cells) if signature[position])
        for position, test in enumerate(tests)
    }
    return Dimension(
        inputs,
        tuple(names),
        tuple(map(tuple, cells.values())),
        masks,
        {signature: cell for cell, signature in enumerate(cells)},
        tests,
        gaps,
        whole,
        frozenset(name for _, (name, operator, _) in tests if operator == "missing"),
    )


def _part(source: Sources, names: Iterable[str]) -> Program:
    """The program's declarations of some names, for the engine's reader."""
    known = set(names)
    return {
        "snapshot": source.program["snapshot"],
        "fields": [field for field in source.fields if field["name"] in known],
        "signals": [signal for signal in source.signals if signal["name"] in known],
    }


def _pools(
    sources: tuple[Sources, ...], parts: list[Program], inputs: tuple[Path, ...], tests: tuple[tuple[int, Test], ...]
) -> tuple[list[list[Any]], dict[Any, tuple[float, float]], bool]:
    """The values of each input that are worth telling apart, what those between two numbers stand for, and whether
    all numbers are integers.
    """
    specs: dict[Path, list[dict[str, Any]]] = {path: [] for path in inputs}
    for source, part in zip(sources, parts, strict=True):
        for field in part["fields"]:
            (leaf,) = source.leaves[field["name"]]
            specs[leaf].append(SHARE if tuple(field["path"]) in source.derived else field)
    constants = list(_constants(sources, parts, tests))
    named = {c for c in constants if isinstance(c, str)}
    others = (text for n in itertools.count(1) if (text := f"other {n}") not in named)
    texts = sorted({"", *named, *itertools.islice(others, len(inputs))})
    numeric = [path for path in inputs if any(spec["type"] in NUMERIC for spec in specs[path])]
    cuts = sorted({c for c in constants if isinstance(c, int | float) and not isinstance(c, bool)})
    integers = [path for path in numeric if all(spec["type"] == "integer" for spec in specs[path])]
    gaps: dict[Any, tuple[float, float]] = {}
    numbers = list(cuts)
    for low, high in itertools.pairwise([-LARGEST, *cuts, LARGEST]):
        for value in _fill(low, high, len(numeric), integers != []):
            gaps[value] = low, high
            numbers.append(value)
    numbers.sort()
    pools = []
    for path in inputs:
        pool: list[Any] = []
        for spec in specs[path]:
            wanted = {"enum": spec.get("values", ()), "boolean": (False, True), "string": texts}
            pool += wanted.get(spec["type"], numbers)
        taken = [v for v in _unique(pool) if any(accept(spec, v) is not None for spec in specs[path])]
        derived = any(path in source.derived.values() for source in sources)
        pools.append([*taken, ABSENT, *([NOTHING] if derived else [])])
    return pools, gaps, integers == numeric


def _fill(low: float, high: float, count: int, whole: bool) -> list[float]:
    """Numbers strictly between two others, enough for `count` inputs to lie there in any order."""
    if not whole:
        return between(low, high, count, whole=False) if count else []
    steps = between(low, high, count, whole=True)
    if count == 1:
        return [*steps, *between(low, high, 1, whole=False)]
    inner = [between(a, b, count, whole=False) for a, b in itertools.pairwise([low, *steps, high])]
    return [*steps, *itertools.chain.from_iterable(inner)]


def _constants(
    sources: tuple[Sources, ...], parts: list[Program], tests: tuple[tuple[int, Test], ...]
) -> Iterator[Any]:
    """Everything that a value of these inputs is compared with."""
    for _, (_, _, constant) in tests:
        yield from constant if isinstance(constant, tuple) else (constant,)
    for source, part in zip(sources, parts, strict=True):
        for declared in (*part["fields"], *part["signals"]):
            yield from (declared[key] for key in ("min", "max", "above", "below", "missing") if key in declared)
            yield from literals(declared.get("from", ["literal", None]))
            if tuple(declared.get("path", ())) in source.derived:
                yield from (0, 1, *source.program["zones"].values())


def literals(expression: Any) -> Iterator[Any]:
    """The literals of an expression of a program."""
    if expression[0] == "literal":
        yield expression[1]
    elif expression[0] not in ("field", "search"):
        for part in expression[1:]:
            yield from literals(part)


def _unique(values: Iterable[Any]) -> list[Any]:
    """Each value once; `true` is not 1."""
    return [value for _, value in {(v.__class__ is bool, v): v for v in values}.items()]
