"""Box subtraction, the one algorithm behind gaps, shadows, differences and coverage.

A *box* is a set of cells for each dimension, as bit masks: `(0b011, 0b1, …)`. A *row* is a box of which only the sides
that constrain something are written: `(index, ((dimension, mask), …))`. What rows leave of a box is found by taking
out the row that covers most of it and splitting what is left, one piece a dimension in which they differ. Rows with a
single differing side leave a single piece, and are taken out first: the unit propagation of a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from ecm_rules.tables.findings import EcmError, Finding

Box = tuple[int, ...]
Sides = tuple[tuple[int, int], ...]
Row = tuple[int, Sides]


class Inconclusive(EcmError):
    """A question that is too large to answer; `reason` says why. Never an answer."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        message, help = (
            f"found an analysis too large to finish: {reason}",
            "split the table, or let a signal read fewer fields",
        )
        super().__init__([Finding("ECM610", "the tables", 0, 0, message, help)])


@attrs.define
class Budget:
    """How often a row may still be held against a box."""

    left: int

    def spend(self, rows: int) -> None:
        """Hold `rows` rows against a box. Raises Inconclusive."""
        if self.left < rows:
            raise Inconclusive("its rows overlap in more ways than were looked at")
        self.left -= rows


def remainders(box: Box, rows: Iterable[Row], budget: Budget, used: set[int] | None = None) -> Iterator[Box]:
    """Disjoint boxes that together are `box` without the rows. `used` collects the rows that were taken out.

    Raises Inconclusive.
    """
    open_boxes: list[tuple[Box, Sequence[Row]]] = [(box, list(rows))] if all(box) else []
    while open_boxes:
        box, known = open_boxes.pop()
        budget.spend(1 + len(known))
        left, meeting, best = _narrowed(box, known, used)
        if left is None:
            continue
        if best is None:
            yield left
            continue
        if used is not None:
            used.add(best[0])
        rest = [row for row in meeting if row is not best]
        open_boxes.extend((piece, rest) for piece in without(left, best[1]))


def _narrowed(box: Box, rows: Sequence[Row], used: set[int] | None) -> tuple[Box | None, Sequence[Row], Row | None]:
    """The box without every row that differs from it in one dimension alone, which leaves one piece, as often as that
    makes another such row; the rows that still meet it; and the one of them that covers most of it. None for the box
    where nothing is left.
    """
    left = list(box)
    while True:
        meeting: list[Row] = []
        best, most, narrower = None, 0.0, False
        for row in rows:
            # This is looked at more often than all else together, so it stands in line.
            share, sides, single = 1.0, 0, -1
            for dimension, mask in row[1]:
                side = left[dimension]
                inside = side & mask
                if not inside:
                    break
                if inside != side:
                    share *= inside.bit_count() / side.bit_count()
                    sides, single = sides + 1, dimension
            else:
                if sides > 1:
                    meeting.append(row)
                    if share > most:
                        best, most = row, share
                    continue
                if used is not None:
                    used.add(row[0])
                if not sides:
                    return None, meeting, None
                left[single] &= ~dict(row[1])[single]
                narrower = True
        if not narrower:
            return tuple(left), meeting, best
        rows = meeting


def without(box: Box, sides: Sides) -> Iterator[Box]:
    """Disjoint boxes that together are the box without what the sides hold."""
    rest = list(box)
    for dimension, mask in sides:
        if outside := rest[dimension] & ~mask:
            yield (*rest[:dimension], outside, *rest[dimension + 1 :])
            rest[dimension] &= mask


def within(box: Box, sides: Sides) -> Box:
    """The part of the box that the sides hold; some mask of it is 0 where there is none."""
    rest = list(box)
    for dimension, mask in sides:
        rest[dimension] &= mask
    return tuple(rest)


def uncovered(box: Box, rows: Iterable[Row], budget: Budget) -> Box | None:
    """A box of what the rows leave of `box`, or None where they cover it. Raises Inconclusive."""
    return next(remainders(box, rows, budget), None)


def cover(box: Box, rows: Sequence[Row], budget: Budget) -> list[int] | None:
    """Rows that together cover the box and of which each is needed, the earlier ones where there is a choice; None
    where they do not. Raises Inconclusive.
    """
    used: set[int] = set()
    if next(remainders(box, rows, budget, used), None) is not None:
        return None
    needed = [row for row in rows if row[0] in used]
    for row in reversed(needed.copy()):
        fewer = [other for other in needed if other is not row]
        if uncovered(box, fewer, budget) is None:
            needed = fewer
    return [row[0] for row in needed]


def joined(boxes: Iterable[Box]) -> list[Box]:
    """The same set in fewer boxes: two that differ in one dimension alone become one."""
    known = sorted(set(boxes))
    if len(known) < 2:
        return known
    merged = known
    for dimension in range(len(known[0])):
        groups: dict[Box, int] = {}
        for box in merged:
            rest = (*box[:dimension], 0, *box[dimension + 1 :])
            groups[rest] = groups.get(rest, 0) | box[dimension]
        merged = [(*rest[:dimension], mask, *rest[dimension + 1 :]) for rest, mask in groups.items()]
    return merged if len(merged) == len(known) else joined(merged)


def hull(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of them."""
    masks = [0] * len(boxes[0])
    for box in boxes:
        masks = [mask | side for mask, side in zip(masks, box, strict=True)]
    return tuple(masks)
