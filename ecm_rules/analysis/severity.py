"""Whether a worse signal never leads to a milder operation, by the orders that the vocabulary declares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box, Row
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.dimensions import Dimension, Member
from ecm_rules.analysis.space import Space
from ecm_rules.tables.findings import Finding
from ecm_rules.tables.models import Declared


def milder_when_worse(case: Case) -> Iterator[Finding]:
    """Each pair of rows between which a signal that gets worse, all else being equal, leads to a milder operation."""
    severity = {o.name: o.severity for o in case.table.vocabulary.operations}
    declared = case.table.vocabulary.declared()
    told: set[tuple[str, int, int]] = set()
    for space, rows, outcomes in case.roles():
        ranks = [severity.get(operation) for operation in outcomes]
        # Where every snapshot has an operation with a rank, no step from mild to bad is milder if no single one is.
        ranked = None not in ranks and boxes.uncovered(space.full, rows, case.budget) is None
        for place, dimension in enumerate(space.dimensions):
            for name in dimension.names:
                for mild, bad in _steps(dimension, declared[name], ranked):
                    for one, other, box in _violations(case, rows, ranks, space.full, place, mild.cell, bad.cell):
                        if (name, one, other) not in told:
                            told.add((name, one, other))
                            yield _found(case, space, name, (one, other), box, place, (mild.member, bad.member))


class _Point(NamedTuple):
    """A value on the way from mild to bad: its rank, and a member of a cell that has it."""

    rank: Any
    cell: int
    member: Member


def _found(
    case: Case, space: Space, name: str, pair: tuple[int, int], box: Box, place: int, members: tuple[Member, Member]
) -> Finding:
    one, other = (case.table.rows[n] for n in pair)
    outcomes = case.outcomes_of(space)
    message = (
        f"found `{other.id}`, which leads to `{outcomes[pair[1]]}` where `{name}` is worse than "
        f"where `{one.id}` leads to `{outcomes[pair[0]]}`{case.caveat(space, box)}"
    )
    mild, bad = (space.witness(box, chosen={place: member}) for member in members)
    help = "order the rows so that the severer operation wins"
    help = f"the milder meter is {mild}; {help}" if mild else help
    return other.source.finding("ECM608", other.span, message, help, witness=bad)


def _steps(dimension: Dimension, declared: Declared, ranked: bool) -> Iterator[tuple[_Point, _Point]]:
    """Cells between which the signal gets worse and all others of the dimension stay as they are: neighbours alone
    where that is enough, else all.
    """
    tested = {test[0] for _, test in dimension.tests}
    if not declared.worse or declared.name not in tested:
        return
    chains: dict[Any, dict[Any, dict[int, _Point]]] = {}
    for cell, members in enumerate(dimension.cells):
        for member in members:
            rank = _rank(declared, member.seen[0][declared.name])
            if rank is not None:
                others = tuple(
                    (n, member.seen[0][n], n in member.absent[0])
                    for n in dimension.names
                    if n in tested and n != declared.name
                )
                chains.setdefault(others, {}).setdefault(rank, {}).setdefault(cell, _Point(rank, cell, member))
    told: set[tuple[int, int]] = set()
    for chain in chains.values():
        levels = [list(chain[rank].values()) for rank in sorted(chain)]
        pairs = itertools.pairwise(levels) if ranked else itertools.combinations(levels, 2)
        for mild, bad in (pair for one, other in pairs for pair in itertools.product(one, other)):
            if mild.cell != bad.cell and (mild.cell, bad.cell) not in told:
                told.add((mild.cell, bad.cell))
                yield mild, bad


def _rank(declared: Declared, value: Any) -> Any:
    """Where a value stands between mild and bad, or None where it has no place there."""
    if isinstance(declared.worse, tuple):
        return declared.worse.index(value) if value in declared.worse else None
    if value is None:
        return None
    return value if declared.worse == "more" else -value


def _violations(
    case: Case, rows: tuple[Row, ...], ranks: list[int | None], full: Box, place: int, mild: int, bad: int
) -> Iterator[tuple[int, int, Box]]:
    """Rows that fire on either side of a step, of which the one on the bad side is the milder."""
    here, there = _slice(rows, place, mild), _slice(rows, place, bad)
    for one, sides in here:
        for other, others in there:
            rank, milder = ranks[one], ranks[other]
            if rank is None or milder is None or rank <= milder:
                continue
            both = boxes.within(boxes.within(full, sides), others)
            known = [row for row in here if row[0] < one] + [row for row in there if row[0] < other]
            if all(both) and (box := boxes.uncovered(both, known, case.budget)) is not None:
                yield one, other, box


def _slice(rows: tuple[Row, ...], place: int, cell: int) -> list[Row]:
    """The rows that can hold at one cell of a dimension, without that side."""
    found = []
    for index, sides in rows:
        mask = dict(sides).get(place)
        if mask is None or mask >> cell & 1:
            found.append((index, tuple(side for side in sides if side[0] != place)))
    return found
