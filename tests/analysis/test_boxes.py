"""Box subtraction against counting points one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.analysis.boxes import Box, Budget, Inconclusive, Row, cover, hull, joined, remainders, uncovered, within

SIZES = (3, 2, 4)
FULL: Box = tuple((1 << size) - 1 for size in SIZES)
POINTS = list(itertools.product(*(range(size) for size in SIZES)))


def rows(count: int) -> st.SearchStrategy[list[Row]]:
    masks = st.tuples(*(st.integers(0, (1 << size) - 1) for size in SIZES))
    sides = masks.map(lambda m: tuple((n, mask) for n, mask in enumerate(m) if mask != FULL[n]))
    return st.lists(sides, max_size=count).map(lambda found: list(enumerate(found)))


def holds(point: tuple[int, ...], sides: object) -> bool:
    return all(mask >> point[n] & 1 for n, mask in sides)  # type: ignore[attr-defined]


def points(box: Box) -> set[tuple[int, ...]]:
    return {p for p in POINTS if all(mask >> cell & 1 for cell, mask in zip(p, box, strict=True))}


@given(rows(8))
def test_what_is_left_is_what_no_row_holds(found: list[Row]) -> None:
    left = list(remainders(FULL, found, Budget(10_000)))
    counted = [p for box in left for p in points(box)]
    assert len(counted) == len(set(counted))  # disjoint
    assert set(counted) == {p for p in POINTS if not any(holds(p, sides) for _, sides in found)}


@given(rows(8))
def test_a_cover_covers_and_needs_each_of_its_rows(found: list[Row]) -> None:
    needed = cover(FULL, found, Budget(10_000))
    covered = all(any(holds(p, sides) for _, sides in found) for p in POINTS)
    assert (needed is not None) == covered
    if needed is not None:
        chosen = [row for row in found if row[0] in needed]
        assert uncovered(FULL, chosen, Budget(10_000)) is None
        for row in chosen:
            assert uncovered(FULL, [other for other in chosen if other is not row], Budget(10_000)) is not None


@given(rows(6))
def test_joining_changes_no_point(found: list[Row]) -> None:
    left = list(remainders(FULL, found, Budget(10_000)))
    merged = joined(left)
    assert len(merged) <= len(left)
    counted = [p for box in merged for p in points(box)]
    assert sorted(counted) == sorted(p for box in left for p in points(box))
    if left:
        assert set(counted) <= points(hull(left))


def test_an_empty_box_leaves_nothing_and_a_row_is_taken_out_of_it() -> None:
    assert list(remainders((0, 1, 1), [], Budget(1))) == []
    assert within(FULL, ((0, 0b001), (2, 0b1000))) == (0b001, 0b11, 0b1000)


def test_a_spent_budget_is_no_answer() -> None:
    # Rows that differ in one dimension alone are taken out at once; each of the others leaves two boxes.
    single = [(n, ((0, 1 << n),)) for n in range(3)]
    assert uncovered(FULL, single, Budget(4)) is None
    pairs: list[Row] = [
        (n, ((0, 1 << a), (1, 1 << b))) for n, (a, b) in enumerate(itertools.product(range(3), range(2)))
    ]
    assert uncovered(FULL, pairs, Budget(70)) is None
    with pytest.raises(Inconclusive):
        uncovered(FULL, pairs, Budget(8))
