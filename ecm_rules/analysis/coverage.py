"""Which parts of a table scenarios exercise: its rows, its regions, and both sides of each threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.numbers import after, before
from ecm_rules.analysis.scenarios import Reading, Result, decide, read
from ecm_rules.analysis.sources import SHARE, Path
from ecm_rules.analysis.space import at, inside, of_role, replaced
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import fields_of
from ecm_rules.engine.policy import Policy
from ecm_rules.tables.domains import NUMERIC, accept
from ecm_rules.tables.findings import as_role

_ORDERED = ("eq", "ne", "lt", "lte", "gt", "gte")
_SIDES = ("just below", "at", "just above")


@attrs.frozen
class Part:
    """A region of the table: snapshots that lead to the same row, and one of them. `boxes` is what it is in each role
    in which it is the same; `hit` says whether a scenario lies in it.
    """

    rule: str
    operation: str
    where: str
    boxes: tuple[tuple[str, Box], ...]
    snapshot: Any
    hit: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(role for role, _ in self.boxes)

    @property
    def text(self) -> str:
        """`zone red and compaction_count below 2, as a subagent`."""
        return self.where + as_role(self.roles)

    def holds(self, role: str, point: Box | None) -> bool:
        return point is not None and any(name == role and inside(point, box) for name, box in self.boxes)


@attrs.frozen
class Boundary:
    """A value at a threshold or next to it. `snapshot` has it, with the other tests of the row met."""

    name: str
    role: str
    path: Path
    value: Any
    index: int | None
    """The row whose threshold it is; None for the threshold of a zone."""
    snapshot: Any
    hit: bool = False


@attrs.frozen
class Coverage:
    """The rows of a table and whether they fired, its regions, and its boundaries."""

    rows: tuple[tuple[str, bool], ...]
    parts: tuple[Part, ...]
    boundaries: tuple[Boundary, ...]

    @property
    def percent(self) -> float:
        """Of rows, regions and boundaries together, 0 to 100."""
        hit = [fired for _, fired in self.rows]
        hit += [part.hit for part in self.parts] + [boundary.hit for boundary in self.boundaries]
        return 100 * sum(hit) / len(hit) if hit else 100.0


@attrs.frozen
class Example:
    """A scenario for something that was not exercised: what the table decides about it now is what it expects."""

    name: str
    role: str
    meter: Any
    expect: dict[str, Any]


def measure(policy: Policy, results: Iterable[Result]) -> Coverage:
    """What the scenarios exercised of a table. Raises boxes.Inconclusive where its regions are too many to list."""
    case = Case.of(policy)
    readings = [outcome.reading for result in results for outcome in result.outcomes]
    points = [(reading.role, _point(case, reading)) for reading in readings]
    fired = {decide(policy, reading)["rule"] for reading in readings}
    return Coverage(
        tuple((row.id, row.id in fired) for row in policy.table.rows),
        tuple(attrs.evolve(part, hit=any(part.holds(*point) for point in points)) for part in _parts(case)),
        tuple(
            attrs.evolve(edge, hit=any(_exercises(case, edge, reading) for reading in readings))
            for edge in _boundaries(case)
        ),
    )


def missing(policy: Policy, coverage: Coverage) -> Iterator[Example]:
    """Scenarios for what was not exercised: the boundaries first, then the regions that these do not reach."""
    case = Case.of(policy)
    reached = []
    for edge in coverage.boundaries:
        if not edge.hit:
            yield _example(policy, edge.name, edge.role, edge.snapshot)
            reached.append((edge.role, _point(case, read(policy, edge.snapshot, edge.role))))
    for part in coverage.parts:
        if not part.hit and not any(part.holds(*point) for point in reached):
            yield _example(policy, f"{part.rule}: {part.text}", part.roles[0], part.snapshot)


def _example(policy: Policy, name: str, role: str, snapshot: Any) -> Example:
    decided = decide(policy, read(policy, snapshot, role))
    return Example(name, role, snapshot, {key: decided[key] for key in ("rule", "operation")})


def _parts(case: Case) -> Iterable[Part]:
    found: dict[tuple[str, str, str], Part] = {}
    for space, rows, outcomes in case.roles():
        for index, sides in rows:
            left = boxes.remainders(boxes.within(space.full, sides), rows[:index], case.budget)
            for box in boxes.joined(left):
                key = case.table.rows[index].id, outcomes[index], case.told(space, box)
                if key in found:
                    found[key] = attrs.evolve(found[key], boxes=(*found[key].boxes, (space.role, box)))
                else:
                    found[key] = Part(*key, ((space.role, box),), _unzoned(case, space.snapshot(box)))
    return found.values()


def _boundaries(case: Case) -> Iterator[Boundary]:
    """Each threshold with its neighbours, once, as far as some snapshot meets the rest of the row there."""
    told: set[tuple[Any, ...]] = set()
    for edge in (*_zone_boundaries(case), *_row_boundaries(case)):
        key = edge.index, edge.path, edge.value
        if key not in told and _exercises(case, edge, read(case.policy, edge.snapshot, edge.role)):
            told.add(key)
            yield edge


def _zone_boundaries(case: Case) -> Iterator[Boundary]:
    program = case.policy.program
    for field in program["fields"]:
        for zone, threshold in program["zones"].items() if "zone_of" in field else ():
            path = tuple(field["zone_of"])
            for side, value in _around(threshold, SHARE):
                name = f"{'.'.join(path)} {side} {threshold}, where {zone} begins"
                yield Boundary(name, engine.ROLES[0], path, value, None, replaced({}, path, value))


def _row_boundaries(case: Case) -> Iterator[Boundary]:
    program = case.policy.program
    fields = {field["name"]: field for field in program["fields"] if "path" in field}
    for index, row in enumerate(case.table.rows):
        found = next(((s, box) for s in case.spaces if (box := case.fires(s, index)) is not None), None)
        if found is None:
            continue
        space, box = found
        base = _unzoned(case, space.snapshot(box))
        for test in row.tests:
            field = fields.get(test.signal)
            if field is None or field["type"] not in NUMERIC or test.operator not in _ORDERED:
                continue
            path = tuple(field["path"])
            for side, value in _around(test.constant, field):
                name = f"{row.id}: {test.signal} {side} {test.constant}"
                yield Boundary(name, space.role, path, value, index, replaced(base, path, value))
        yield from _between_fields(case, index, space.role, base)


def _between_fields(case: Case, index: int, role: str, base: Any) -> Iterator[Boundary]:
    """Where a signal of the row compares two fields: the one at the other's value, and on either side."""
    program = case.policy.program
    fields = {field["name"]: field for field in program["fields"] if "path" in field}
    signals = {signal["name"]: signal for signal in program["signals"]}
    row = case.table.rows[index]
    for signal in (signals[test.signal] for test in row.tests if test.signal in signals):
        expression = signal["from"]
        names = fields_of(expression)
        if expression[0] not in _ORDERED or len(names) != 2 or not all(part[0] == "field" for part in expression[1:]):
            continue
        moved, fixed = (fields.get(name) for name in names)
        value = None if fixed is None else at(base, tuple(fixed["path"]))
        if moved is None or fixed is None or moved["type"] not in NUMERIC or value.__class__ not in (int, float):
            continue
        path = tuple(moved["path"])
        for side, near in _around(value, moved):
            name = f"{row.id}: {moved['name']} {side} {fixed['name']}"
            yield Boundary(name, role, path, near, index, replaced(base, path, near))


def _around(threshold: Any, spec: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The threshold and its neighbours, as far as they lie in the domain."""
    whole = spec["type"] == "integer"
    for side, value in zip(_SIDES, (before(threshold, whole), threshold, after(threshold, whole)), strict=True):
        if accept(spec, value) is not None:
            yield side, value


def _exercises(case: Case, edge: Boundary, reading: Reading) -> bool:
    """Whether a snapshot has the value, and meets all other tests of the row whose threshold it is."""
    value = at(reading.snapshot, edge.path)
    if value != edge.value or isinstance(value, bool):
        return False
    if edge.index is None:
        return True
    leaves = {f["name"] for f in case.policy.program["fields"] if tuple(f.get("path", ())) == edge.path}
    leaves |= {s["name"] for s in case.policy.program["signals"] if leaves & set(fields_of(s["from"]))}
    return all(
        engine.holds(test.operator, reading.values[test.signal], test.signal in reading.missing, test.constant)
        for test in case.table.rows[edge.index].tests
        if test.signal not in leaves
    )


def _point(case: Case, reading: Reading) -> Box | None:
    return of_role(case.spaces, reading.role).point([reading.values], [reading.missing])


def _unzoned(case: Case, snapshot: Any) -> Any:
    """A snapshot without the zone that its utilization has by the table anyway, so that it follows the thresholds."""
    for leaf, share in case.spaces[0].sources[0].derived.items():
        if at(snapshot, share) is not None:
            snapshot = replaced(snapshot, leaf, None)
    return snapshot
