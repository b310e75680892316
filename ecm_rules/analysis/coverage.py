"""Which parts of a table scenarios exercise: its rows, its regions, and both sides of each threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.analysis import boxes, words
from ecm_rules.analysis.boxes import Box
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.numbers import after, before
from ecm_rules.analysis.scenarios import Reading, Result, decide, read
from ecm_rules.analysis.sources import SHARE, Path
from ecm_rules.analysis.space import at, inside, replaced
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import fields_of
from ecm_rules.engine.policy import Policy
from ecm_rules.tables.domains import NUMERIC, accept

_ORDERED = ("eq", "ne", "lt", "lte", "gt", "gte")
_SIDES = ("just below", "at", "just above")


@attrs.frozen
class Part:
    """A region of the table: snapshots that lead to the same row, and one of them. `boxes` is what it is in each role
    in which it is the same.
    """

    rule: str
    operation: str
    where: str
    boxes: tuple[tuple[str, Box], ...]
    snapshot: Any

    @property
    def as_role(self) -> str:
        """The role as a clause, where it is a subagent's alone."""
        role = self.boxes[0][0]
        return "" if role == engine.ROLES[0] else f", as {words.an(role)}"

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


@attrs.frozen
class Coverage:
    """What there is, and what was exercised of it, in the same order."""

    rows: tuple[str, ...]
    rows_hit: tuple[bool, ...]
    parts: tuple[Part, ...]
    parts_hit: tuple[bool, ...]
    boundaries: tuple[Boundary, ...]
    boundaries_hit: tuple[bool, ...]

    @property
    def percent(self) -> float:
        """Of rows, regions and boundaries together, 0 to 100."""
        hit = (*self.rows_hit, *self.parts_hit, *self.boundaries_hit)
        return 100 * sum(hit) / len(hit) if hit else 100.0


def measure(policy: Policy, results: Iterable[Result]) -> Coverage:
    """What the scenarios exercised of a table. Raises boxes.Inconclusive where its regions are too many to list."""
    case = Case.of(policy)
    readings = [outcome.reading for result in results for outcome in result.outcomes]
    parts, edges = tuple(_parts(case)), tuple(_boundaries(case))
    points = [(reading.role, _point(case, reading)) for reading in readings]
    fired = {decide(policy, reading)["rule"] for reading in readings}
    rows = tuple(row.id for row in policy.table.rows)
    return Coverage(
        rows,
        tuple(name in fired for name in rows),
        parts,
        tuple(any(part.holds(*point) for point in points) for part in parts),
        edges,
        tuple(any(_exercises(case, edge, reading) for reading in readings) for edge in edges),
    )


def missing(policy: Policy, coverage: Coverage) -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
    """Scenarios for what was not exercised: name, role, snapshot without its zone, and what the table decides now.

    Boundaries first; then the regions that these do not reach.
    """
    case = Case.of(policy)
    reached = []
    for edge, hit in zip(coverage.boundaries, coverage.boundaries_hit, strict=True):
        if not hit:
            yield edge.name, edge.role, *_expected(policy, edge.snapshot, edge.role)
            reached.append((edge.role, _point(case, read(policy, edge.snapshot, edge.role))))
    for part, hit in zip(coverage.parts, coverage.parts_hit, strict=True):
        if not hit and not any(part.holds(*point) for point in reached):
            role = part.boxes[0][0]
            yield f"{part.rule}: {part.where}{part.as_role}", role, *_expected(policy, part.snapshot, role)


def _expected(policy: Policy, snapshot: Any, role: str) -> tuple[Any, dict[str, Any]]:
    decided = decide(policy, read(policy, snapshot, role))
    return snapshot, {key: decided[key] for key in ("rule", "operation")}


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
    program = case.policy.program
    fields = {field["name"]: field for field in program["fields"] if "path" in field}
    for field in fields.values():
        for zone, threshold in program["zones"].items() if "zone_of" in field else ():
            path = tuple(field["zone_of"])
            for side, value in _around(threshold, SHARE):
                name = f"{'.'.join(path)} {side} {threshold}, where {zone} begins"
                yield Boundary(name, engine.ROLES[0], path, value, None, replaced({}, path, value))
    told: set[tuple[Any, ...]] = set()
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
                if (index, path, value) not in told:
                    told.add((index, path, value))
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
        if moved is None or fixed is None or value is None or moved["type"] not in NUMERIC:
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
    space = next(space for space in case.spaces if space.role == reading.role)
    return space.point([reading.values], [reading.missing])


def _unzoned(case: Case, snapshot: Any) -> Any:
    """A snapshot without the zone that its utilization has by the table anyway, so that it follows the thresholds."""
    for leaf, share in case.spaces[0].sources[0].derived.items():
        if at(snapshot, share) is not None:
            snapshot = replaced(snapshot, leaf, None)
    return snapshot
