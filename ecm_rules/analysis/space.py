"""The space of everything that tables can be asked in a role, and their rows as boxes in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ecm_rules.analysis.boxes import Box, Row, Sides
from ecm_rules.analysis.dimensions import Dimension, Member, dimensions
from ecm_rules.analysis.sources import NOTHING, Path, Sources, Test, is_free, test_of
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import Program
from ecm_rules.engine.zones import told_zone
from ecm_rules.tables.findings import Witness


@attrs.frozen
class Space:
    """`rows[n]` are the rows of program n as boxes. A row that is impossible in this role has an empty side."""

    role: str
    sources: tuple[Sources, ...]
    dimensions: tuple[Dimension, ...]
    full: Box
    rows: tuple[tuple[Row, ...], ...]

    places: dict[str, int]
    """The dimension that each name belongs to."""

    @classmethod
    def all_of(cls, programs: Iterable[Program], asked: Iterable[Test] = ()) -> tuple[Space, ...]:
        """The space of some programs together, one for each role. asked: tests beside those of the rows.

        Raises Inconclusive.
        """
        sources = Sources.all_of(programs)
        tests = [(n, test) for n, source in enumerate(sources) for test in source.tests]
        tests = list(dict.fromkeys([*tests, *((0, test) for test in asked)]))
        conjunctions = [
            [(index, list(map(test_of, row["when"]))) for index, row in enumerate(source.program["rows"])]
            for source in sources
        ]
        spaces = []
        for role, found in zip(engine.ROLES, dimensions(sources, tests, engine.ROLES), strict=True):
            full = tuple([dimension.full for dimension in found])
            places = {name: place for place, dimension in enumerate(found) for name in dimension.names}
            rows = [
                tuple([(index, _sides(found, full, places, conjunction, n)) for index, conjunction in listed])
                for n, listed in enumerate(conjunctions)
            ]
            spaces.append(cls(role, sources, found, full, tuple(rows), places))
        return tuple(spaces)

    def sides(self, tests: Iterable[Test], number: int = 0) -> Sides:
        """A conjunction of tests of program `number` as the sides of a box."""
        return _sides(self.dimensions, self.full, self.places, tests, number)

    def witness(self, box: Box, number: int = 0, chosen: Mapping[int, Member] | None = None) -> Witness | None:
        """A snapshot inside the box with this role; None where it depends on an expression that is not looked into."""
        return None if self.free(box) else Witness(self.snapshot(box, number, chosen), self.role)

    def snapshot(self, box: Box, number: int = 0, chosen: Mapping[int, Member] | None = None) -> dict[str, Any]:
        """A snapshot inside the box, as the table of program `number` is given it: what the box does not constrain is
        left out where it can be. chosen: members for some dimensions.
        """
        members = [(chosen or {}).get(place) or self._member(place, mask) for place, mask in enumerate(box)]
        inputs = [path for dimension in self.dimensions for path in dimension.inputs]
        values = [value for member in members for value in member.values]
        kept = [(p, v) for p, v in zip(inputs, values, strict=True) if not is_free(p)]
        return self.sources[number].snapshot([p for p, _ in kept], [v for _, v in kept]) or {}

    def _member(self, place: int, mask: int) -> Member:
        dimension = self.dimensions[place]
        members = [m for n, cell in enumerate(dimension.cells) if mask >> n & 1 for m in cell]
        # A leaf that decides is shown; of several that decide together no more than is needed.
        shown = mask != dimension.full and len(dimension.inputs) == 1
        return max(members, key=_given) if shown else min(members, key=_given)

    def free(self, box: Box) -> list[str]:
        """The names of expressions that are not looked into on which the box depends."""
        return [
            name
            for dimension, mask in zip(self.dimensions, box, strict=True)
            if mask != dimension.full and any(is_free(path) for path in dimension.inputs)
            for name in dimension.names
        ]

    def locate(self, meter: Any) -> Box | None:
        """The point of a meter, with the zone that each table gives to its utilization; None where the meter says
        what none of the dimensions has.
        """
        values, missing = [], []
        for source in self.sources:
            read = engine.read(source.program, rezoned(meter, source), self.role)
            values.append(read[0])
            missing.append(read[1])
        return self.point(values, missing)

    def point(self, values: Sequence[Mapping[str, Any]], missing: Sequence[Collection[str]]) -> Box | None:
        """The point of what was read for each program; None where it is none."""
        point = []
        for dimension in self.dimensions:
            signature = tuple(
                engine.holds(operator, values[n][name], name in missing[n], constant)
                for n, (name, operator, constant) in dimension.tests
            )
            if signature not in dimension.signatures:
                return None
            point.append(1 << dimension.signatures[signature])
        return tuple(point)


def _sides(
    dimensions: tuple[Dimension, ...], full: Box, places: Mapping[str, int], tests: Iterable[Test], number: int
) -> Sides:
    found: dict[int, int] = {}
    for test in tests:
        place = places[test[0]]
        found[place] = found.get(place, full[place]) & dimensions[place].masks[number, test]
    return tuple([(place, mask) for place, mask in sorted(found.items()) if mask != full[place]])


def of_role(spaces: Iterable[Space], role: str) -> Space:
    """The space of a role."""
    return next(space for space in spaces if space.role == role)


def rezoned(meter: Any, source: Sources, keep: bool = False) -> Any:
    """The meter with the zone that the table's own thresholds give to its utilization, where it tells one. keep: a zone
    that the meter names stays.
    """
    for leaf, share in source.derived.items():
        if keep and at(meter, leaf) is not None:
            continue
        if at(meter, share[:-1]).__class__ is dict and share[-1] in at(meter, share[:-1]):
            meter = replaced(meter, leaf, told_zone(source.program["zones"], at(meter, share)))
    return meter


def inside(point: Box, box: Box) -> bool:
    """Whether a point lies in a box."""
    return all(cell & mask for cell, mask in zip(point, box, strict=True))


def at(value: Any, path: Path) -> Any:
    """The leaf at a path; None where there is none."""
    for key in path:
        value = value.get(key) if value.__class__ is dict else None
    return value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy with another value at a path; without that leaf where the value is None."""
    if not path:
        return new
    outer = dict(value) if value.__class__ is dict else {}
    inner = replaced(outer.pop(path[0], None), path[1:], new)
    return outer if inner is None else {**outer, path[0]: inner}


def _given(member: Member) -> int:
    """How many of its inputs a member gives; a zone that is stated unknown is not left out."""
    return sum(2 if value is not None and value is not NOTHING else value is None for value in member.values)
