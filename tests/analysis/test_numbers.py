"""Numbers between numbers: there where there are any, and none where there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.analysis.numbers import after, before, between, fractions

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20)


@given(NUMBERS, NUMBERS, st.integers(1, 4), st.booleans())
def test_what_lies_between_is_found_where_there_is_something(low: float, high: float, count: int, whole: bool) -> None:
    if not low < high:
        return
    found = between(low, high, count, whole)
    assert found == sorted(set(found))
    assert all(low < value < high for value in found)
    if whole:
        assert all(isinstance(value, int) for value in found)
        there = max(0, math.ceil(high) - 1 - math.floor(low))
        assert len(found) == min(count, there)
    elif math.nextafter(float(low), math.inf) < high:
        assert found


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 4), st.integers(0, 6))
def test_between_close_doubles_each_is_found(low: float, count: int, apart: int) -> None:
    high = low
    inside = []
    for _ in range(apart):
        high = math.nextafter(high, math.inf)
        inside.append(high)
    if not inside or abs(low) >= 2**53 or math.isinf(high):
        return
    assert len(between(low, high, count, whole=False)) == min(count, len(inside) - 1)


@pytest.mark.parametrize(
    ("low", "high", "told"), [(0, 0.4, [0.2]), (0.4, 1, [0.7]), (0.5, 0.75, [0.6]), (0, 9, [4]), (1, 2, [1.5])]
)
def test_short_numbers_come_first(low: float, high: float, told: list[float]) -> None:
    assert between(low, high, 1, whole=False) == told


@pytest.mark.parametrize(
    ("value", "whole", "lower", "higher"),
    [
        (2, True, 1, 3),
        (0.4, False, 0.39999999999999997, 0.4000000000000001),
        (0, False, -5e-324, 5e-324),
        (2**53 + 1, False, 2**53, 2**53 + 2),
    ],
)
def test_neighbours_are_the_next_that_a_meter_can_hold(value: float, whole: bool, lower: float, higher: float) -> None:
    assert (before(value, whole), after(value, whole)) == (lower, higher)


@given(NUMBERS, NUMBERS, st.integers(1, 4))
def test_fractions_are_found_where_there_are_any(low: float, high: float, count: int) -> None:
    if not low < high:
        return
    found = fractions(low, high, count)
    assert found == sorted(set(found))
    assert all(low < value < high and value % 1 for value in found)
    small = max(abs(low), abs(high)) < 2**52
    if small and math.floor(high) - math.ceil(low) >= 1:  # the room between two integers
        assert len(found) == count


@given(st.integers(-(2**52), 2**52), st.integers(1, 3))
def test_the_last_fractions_beside_an_integer_are_found(value: int, count: int) -> None:
    # A gap of two doubles with an integer between them, and one with none.
    low, high = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    assert between(low, high, count, whole=True) == [value]
    assert fractions(low, high, count) == []
    wider = math.nextafter(low, -math.inf)
    assert fractions(wider, high, count) == ([low] if low % 1 else [])
