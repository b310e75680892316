"""Numbers between numbers, exact for what a meter can hold: every double, and every integer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

Number = int | float

# From here on every double is an integer, and more integers lie between than doubles.
_WHOLE = 2**53
# From here on a table cannot write an integer, but for one that is a double.
_WRITTEN = 2**63


def between(low: Number, high: Number, count: int, whole: bool) -> list[Number]:
    """At most `count` different numbers strictly between two others, ascending, short ones where there are such.

    whole: integers alone. Fewer are given only where there are no more: between neighbouring doubles lies nothing.
    """
    if count == 1 and not whole and high - low < 1:
        middle = round((low + high) / 2, 1)  # mostly there is one this short
        if low < middle < high:
            return [middle]
    integers = _integers(low, high, count)
    if whole:
        return _first(integers, low, high, count)
    found = _first(_shorter(integers), low, high, count)
    if len(found) < count:
        candidates = itertools.chain(found, fractions(low, high, count), integers)
        found = _first(candidates, low, high, count)
    return found


def fractions(low: Number, high: Number, count: int) -> list[Number]:
    """The same of numbers that are no integers."""
    if abs(low) >= _WHOLE and abs(high) >= _WHOLE and low * high > 0:
        return []
    # Only between these are there any; a part of it is enough where there is room.
    start, end = max(low, -_WHOLE), min(high, _WHOLE)
    return _first((value for value in _fractions(start, end, count) if value % 1), low, high, count)


def after(value: Number, whole: bool) -> Number:
    """The next number above that a meter can hold; of numbers that no table writes as an integer, the next double."""
    if whole or _WHOLE <= abs(value) < _WRITTEN:
        return math.floor(value) + 1
    return math.nextafter(value, math.inf)


def before(value: Number, whole: bool) -> Number:
    """The next number below, likewise."""
    if whole or _WHOLE <= abs(value) < _WRITTEN:
        return math.ceil(value) - 1
    return math.nextafter(value, -math.inf)


def _first(candidates: Iterable[Number], low: Number, high: Number, count: int) -> list[Number]:
    found: list[Number] = []
    for candidate in candidates:
        if low < candidate < high and candidate not in found:
            found.append(candidate)
            if len(found) == count:
                break
    return sorted(found)


def _integers(low: Number, high: Number, count: int) -> list[Number]:
    first, last = math.floor(low) + 1, math.ceil(high) - 1
    found: list[Number] = []
    if last - first < _WHOLE:
        step = max(1, (last - first + 1) // (count + 1))
        found += [first - 1 + step * n for n in range(1, count + 1)]
    elif low < 0 < high:
        found += range(count)
    elif low >= -_WHOLE:  # an open end: stay near the other one, in numbers that read well
        found += [first - 1 + 10**n for n in range(count)]
    else:
        found += [last + 1 - 10**n for n in range(count)]
    return [*found, *range(first, min(first + count, last + 1))]


def _shorter(integers: Iterable[Number]) -> list[Number]:
    """The integers, those that a table could not write as doubles."""
    return [value if abs(value) < _WRITTEN else float(value) for value in integers]


def _fractions(low: Number, high: Number, count: int) -> Iterator[Number]:
    span = high - low
    for digits in range(1, 18):
        yield from (round(low + span * n / (count + 1), digits) for n in range(1, count + 1))
        if digits == 1:  # those that are integers have neighbours that are none
            yield from (round(low + span * n / (count + 1), 0) + 0.5 for n in range(1, count + 1))
    nearest = float(low)
    for _ in range(count + 2):
        yield nearest
        nearest = math.nextafter(nearest, math.inf)
    whole = math.floor(low)
    for n in range(count + 2):
        yield from (whole + n + 0.5, math.nextafter(whole + n, math.inf), math.nextafter(whole + n, -math.inf))
