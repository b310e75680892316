"""Where two tables lead to different operations: exact regions, as sentences, each with a witness for either side."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from ecm_rules.analysis import boxes, words
from ecm_rules.analysis.boxes import Box, Budget, Row
from ecm_rules.analysis.case import LOOKS
from ecm_rules.analysis.space import Space, inside, of_role
from ecm_rules.engine import program as engine
from ecm_rules.engine.policy import Policy
from ecm_rules.tables.findings import Witness, as_role, listed

STRICTER, LOOSER = "stricter", "looser"
_UNORDERED = "neither"


@attrs.frozen
class Side:
    """What one of the tables decides in a region: the operation after the remap, its row (None where no row holds), and
    a snapshot with the zone that this table gives it.
    """

    operation: str
    rule: str | None
    witness: Witness | None
    """None where it depends on an expression that is not looked into."""


@attrs.frozen
class Region:
    """A set of snapshots. `roles` are those in which it differs, `boxes` what it is in each."""

    where: str
    unless: tuple[str, ...]
    """Rows of both tables that stand before, and are left out where they hold."""
    roles: tuple[str, ...]
    old: Side
    new: Side
    change: str
    """`stricter`, `looser`, or `neither` where the operations have no order."""
    boxes: tuple[tuple[str, tuple[Box, ...]], ...] = attrs.field(repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """`zone amber and tool_result_share exactly 0.4: prune_tool_results → externalize (looser)`."""
        unless = f", unless {listed(self.unless, word='or')} holds" if self.unless else ""
        return f"{self.where}{unless}{as_role(self.roles)}: {self.old.operation} → {self.new.operation} ({self.change})"


@attrs.frozen
class Redefined:
    """An operation of both tables whose steps, written out, are not the same."""

    operation: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def text(self) -> str:
        """`steps of prune_tool_results: + host_compact`; without any where only the order is another."""
        told = [f"- {step}" for step in self.removed] + [f"+ {step}" for step in self.added]
        return f"steps of {self.operation}: {', '.join(told) or 'in another order'}"


@attrs.frozen
class Difference:
    """All regions in which two tables lead to different operations, in the order of the old table's rows, and the
    operations that do something else.
    """

    spaces: tuple[Space, ...] = attrs.field(repr=False)
    regions: tuple[Region, ...]
    redefined: tuple[Redefined, ...] = ()

    def find(self, meter: Any, role: str = engine.ROLES[0]) -> Region | None:
        """The region that a snapshot lies in; None where both tables lead to the same operation.

        The zone is the one that each table gives to the meter's utilization; without one, the meter's own.
        """
        point = of_role(self.spaces, role).locate(meter)
        if point is None:
            return None
        for region in self.regions:
            if any(inside(point, box) for name, found in region.boxes if name == role for box in found):
                return region
        return None


def compare(old: Policy, new: Policy, looks: int = LOOKS) -> Difference:
    """Every region in which the operation of `new`, after the role's remap, is another than that of `old`.

    Raises boxes.Inconclusive where rows would have to be held against boxes more than `looks` times.
    """
    budget = Budget(looks)
    spaces = Space.all_of([old.program, new.program])
    found = [region for space in spaces for region in _regions(old, new, space, budget)]
    return Difference(spaces, tuple(_merged(found)), tuple(_redefined(old, new)))


def _redefined(old: Policy, new: Policy) -> Iterator[Redefined]:
    steps = {operation.name: operation.steps for operation in new.table.vocabulary.operations}
    for operation in old.table.vocabulary.operations:
        after = steps.get(operation.name, operation.steps)
        if after != operation.steps:
            before, now = Counter(operation.steps), Counter(after)
            yield Redefined(operation.name, tuple((before - now).elements()), tuple((now - before).elements()))


def _regions(old: Policy, new: Policy, space: Space, budget: Budget) -> Iterator[Region]:
    before, after = (_ends(policy.program, space, n) for n, policy in enumerate((old, new)))
    same = _unchanged(before, after)
    for one, other in itertools.product(before, after):
        if one.operation == other.operation:
            continue
        both = boxes.within(boxes.within(space.full, one.sides), other.sides)
        if not all(both):
            continue
        earlier = [(e.index, e.sides) for e in before[: one.index]] + [(e.index, e.sides) for e in after[: other.index]]
        pieces = boxes.joined(boxes.remainders(both, earlier, budget))
        if pieces:
            standing = [e for e in before[: one.index] if same.get(e.index, len(after)) < other.index]
            yield from _described(old, new, space, (one, other), both, pieces, standing, budget)


@attrs.frozen
class _End:
    """A row in a role, or, with an index behind the last and no sides, that no row holds."""

    index: int
    sides: boxes.Sides
    operation: str
    rule: str | None


def _ends(program: dict[str, Any], space: Space, number: int) -> list[_End]:
    rows = space.rows[number]
    found = []
    for index, sides in rows:
        row = program["rows"][index]
        found.append(_End(index, sides, engine.outcome(program, row, space.role)[1], row["id"]))
    return [*found, _End(len(rows), (), engine.CONTINUE, None)]


def _unchanged(before: list[_End], after: list[_End]) -> dict[int, int]:
    """Rows that say the same in both tables: the index in the old one to that in the new one."""
    known = {(e.sides, e.operation): e.index for e in reversed(after[:-1])}
    return {e.index: known[e.sides, e.operation] for e in before[:-1] if (e.sides, e.operation) in known}


def _described(
    old: Policy,
    new: Policy,
    space: Space,
    ends: tuple[_End, _End],
    both: Box,
    pieces: list[Box],
    standing: list[_End],
    budget: Budget,
) -> Iterator[Region]:
    """The pieces as one region where they are a box without the unchanged rows before it; else each by itself."""
    one, other = ends
    meeting = [e for e in standing if all(boxes.within(both, e.sides))]
    asked = {dimension for e in meeting for dimension, _ in e.sides}
    whole = tuple(both[n] if n in asked else side for n, side in enumerate(boxes.hull(pieces)))
    meeting = [e for e in meeting if all(boxes.within(whole, e.sides))]
    covering: list[Row] = [(e.index, e.sides) for e in meeting]
    parts: list[Row] = [(-1 - n, tuple(enumerate(piece))) for n, piece in enumerate(pieces)]
    if boxes.uncovered(whole, [*covering, *parts], budget) is None:
        described = [(whole, tuple(str(e.rule) for e in meeting), tuple(pieces))]
    else:
        described = [(piece, (), (piece,)) for piece in pieces]
    mine, theirs = ({o.name: o.severity for o in p.table.vocabulary.operations} for p in (old, new))
    ranks = {name: rank for name, rank in mine.items() if theirs.get(name) == rank}
    for box, unless, inner in described:
        sides = [Side(end.operation, end.rule, space.witness(inner[0], n)) for n, end in enumerate(ends)]
        change = _change(ranks.get(one.operation), ranks.get(other.operation))
        where = words.sentence(space, box)
        yield Region(where, unless, (space.role,), sides[0], sides[1], change, ((space.role, inner),))


def _change(old: int | None, new: int | None) -> str:
    if old is None or new is None or old == new:
        return _UNORDERED
    return STRICTER if new > old else LOOSER


def _merged(regions: list[Region]) -> Iterator[Region]:
    """Regions that are the same in both roles, once."""
    merged: dict[Any, Region] = {}
    for region in regions:
        key = (region.where, region.old.operation, region.old.rule, region.new.operation, region.new.rule)
        known = merged.get(key)
        if known is None:
            merged[key] = region
        elif region.roles[0] not in known.roles and (not region.unless or region.unless == known.unless):
            # A row that cannot hold in a role takes nothing away from the region there.
            both = (*known.roles, *region.roles)
            merged[key] = attrs.evolve(known, roles=both, boxes=known.boxes + region.boxes)
        else:
            merged[(*key, len(merged))] = region
    return iter(merged.values())
