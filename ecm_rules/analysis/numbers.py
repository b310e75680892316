"""Numbers between numbers, exact for what a meter can hold: every double, and every integer."""

from __future__ import annotations

import math
from collections.abc import Iterator

Number = int | float

# From here on every double is an integer, and more integers lie between than doubles.
_WHOLE = 2**53


def between(low: Number, high: Number, count: int, whole: bool) -> list[Number]:
    """At most `count` different numbers strictly between two others, ascending, short ones where there are such.

    Fewer are given only where there are no more: between neighbouring doubles lies nothing.
    """
    found: list[Number] = []
    for candidate in _candidates(low, high, count, whole):
        if low < candidate < high and candidate not in found:
            found.append(candidate)
            if len(found) == count:
                break
    return sorted(found)


def _candidates(low: Number, high: Number, count: int, whole: bool) -> Iterator[Number]:
    first, last = math.floor(low) + 1, math.ceil(high) - 1
    if last - first < _WHOLE:
        step = max(1, (last - first + 1) // (count + 1))
        yield from (first - 1 + step * n for n in range(1, count + 1))
    elif low < 0 < high:
        yield from range(count)
    elif low >= -_WHOLE:  # an open end: stay near the other one, in numbers that read well
        yield from (first - 1 + 10**n for n in range(count))
    else:
        yield from (last + 1 - 10**n for n in range(count))
    yield from range(first, min(first + count, last + 1))
    if whole:
        return
    if math.isfinite(span := high - low):
        for digits in range(1, 18):
            yield from (round(low + span * n / (count + 1), digits) for n in range(1, count + 1))
    nearest = float(low)
    for _ in range(count + 2):
        yield nearest
        nearest = math.nextafter(nearest, math.inf)


def after(value: Number, whole: bool) -> Number:
    """The next number above that a meter can hold."""
    if whole or abs(value) >= _WHOLE:
        return math.floor(value) + 1
    return math.nextafter(value, math.inf)


def before(value: Number, whole: bool) -> Number:
    """The next number below that a meter can hold."""
    if whole or abs(value) >= _WHOLE:
        return math.ceil(value) - 1
    return math.nextafter(value, -math.inf)
