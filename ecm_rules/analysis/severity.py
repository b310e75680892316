"""Whether a worse signal never leads to a milder operation, by the orders that the vocabulary declares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box, Row
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.dimensions import Dimension
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
        for place, dimension in enumerate(space.dimensions):
            for name in dimension.names:
                for mild, bad in _steps(dimension, declared[name]):
                    for one, other, box in _violations(case, rows, ranks, space.full, place, mild, bad):
                        if (name, one, other) not in told:
                            told.add((name, one, other))
                            yield _found(case, space, name, (one, other), (_at(box, place, mild), _at(box, place, bad)))


def _found(case: Case, space: Space, name: str, pair: tuple[int, int], points: tuple[Box, Box]) -> Finding:
    one, other = (case.table.rows[n] for n in pair)
    outcomes = dict(zip((s.role for s in case.spaces), case.outcomes, strict=True))[space.role]
    message = (
        f"found `{other.id}`, which leads to `{outcomes[pair[1]]}` where `{name}` is worse than "
        f"where `{one.id}` leads to `{outcomes[pair[0]]}`"
    )
    help = f"the milder meter is {case.witness(space, points[0])}; order the rows so that the severer operation wins"
    return case.table.source.finding("ECM608", other.span, message, help, witness=case.witness(space, points[1]))


def _at(box: Box, place: int, cell: int) -> Box:
    return (*box[:place], 1 << cell, *box[place + 1 :])


def _steps(dimension: Dimension, declared: Declared) -> Iterator[tuple[int, int]]:
    """Neighbouring cells between which the signal gets worse and all others of the dimension stay as they are."""
    tested = {test[0] for _, test in dimension.tests}
    if not declared.worse or declared.name not in tested:
        return
    chains: dict[Any, list[tuple[Any, int]]] = {}
    for cell, members in enumerate(dimension.cells):
        for member in members:
            rank = _rank(declared, member.seen[0][declared.name])
            if rank is None:
                continue
            others = tuple(
                (n, member.seen[0][n], n in member.absent[0])
                for n in dimension.names
                if n in tested and n != declared.name
            )
            chains.setdefault(others, []).append((rank, cell))
    steps = (itertools.pairwise(dict.fromkeys(sorted(chain))) for chain in chains.values())
    yield from dict.fromkeys(
        (one[1], other[1]) for pairs in steps for one, other in pairs if one[0] < other[0] and one[1] != other[1]
    )


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
