"""Boxes as sentences: `zone amber and tool_result_share exactly 0.4`. What is said holds inside and nowhere else."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

from ecm_rules.analysis.boxes import Box
from ecm_rules.analysis.dimensions import Dimension, Member
from ecm_rules.analysis.sources import ABSENT, NOTHING, is_free
from ecm_rules.analysis.space import Space
from ecm_rules.tables.findings import printable

ANYTHING = "every meter"
_MISSING = "missing", ...
# What would be misread if it were a value.
_RESERVED = (
    "missing",
    "given",
    "true",
    "false",
    "null",
    "not",
    "any",
    "exactly",
    "string",
    "number",
    "or",
    "and",
    "but",
)
_Column = tuple[str, list[Any]]
"""A name, and what it reads in each member."""
_OPERATORS = {
    "eq": "{}",
    "ne": "other than {}",
    "lt": "below {}",
    "lte": "at most {}",
    "gt": "above {}",
    "gte": "at least {}",
    "in": "{}",
    "not_in": "other than {}",
}


def sentence(space: Space, box: Box) -> str:
    """What the box asks, dimension by dimension; `ANYTHING` where it asks nothing."""
    told = [
        describe(dimension, mask)
        for dimension, mask in zip(space.dimensions, box, strict=True)
        if mask != dimension.full
    ]
    return " and ".join(told) or ANYTHING


def describe(dimension: Dimension, mask: int) -> str:
    """The cells of a mask in words: by as few names as tell them from the others, else by the tests that do."""
    placed = [(n, member) for n, cell in enumerate(dimension.cells) for member in cell]
    columns = _columns(dimension, [member for _, member in placed])
    cells = [n for n, _ in placed]
    for size in range(1, min(3, len(columns)) + 1):
        for some in itertools.combinations(columns, size):
            if told := _together(some, cells, mask, dimension):
                return told
    return _by_tests(dimension, mask)


def _by_tests(dimension: Dimension, mask: int) -> str:
    """The cells by which tests hold in them: of those the fewest, taken one by one, that no other cell agrees with."""
    signatures = list(dimension.signatures)
    outside = [signature for n, signature in enumerate(signatures) if not mask >> n & 1]
    told = []
    unlike = _read_unlike(dimension)
    for signature in (signature for n, signature in enumerate(signatures) if mask >> n & 1):
        kept = list(range(len(signature)))
        for place in range(len(signature)):
            fewer = [other for other in kept if other != place]
            if not any(all(other[p] == signature[p] for p in fewer) for other in outside):
                kept = fewer
        told.append(" and ".join(_test(dimension, place, signature[place], unlike) for place in kept))
    *rest, last = dict.fromkeys(told)
    return f"({' or '.join(f'({one})' for one in (*rest, last))})" if rest else last


def _read_unlike(dimension: Dimension) -> set[str]:
    """The names that two tables both have and read differently."""
    if len(dimension.readers) < 2:
        return set()
    seen = [member.seen for cell in dimension.cells for member in cell]
    return {name for name in dimension.names if any(name in a and name in b and a[name] != b[name] for a, b in seen)}


def _test(dimension: Dimension, place: int, holds: bool, unlike: set[str]) -> str:
    number, (name, operator, constant) = dimension.tests[place]
    value = _or(map(_value, constant)) if isinstance(constant, tuple) else _value(constant)
    asked = "missing" if constant else "given"
    words = f"{name} {asked if operator == 'missing' else _OPERATORS[operator].format(value)}"
    table = f" in the {('old', 'new')[number]} table" if name in unlike else ""
    return f"{'' if holds else 'not '}{words}{table}"


def _columns(dimension: Dimension, members: list[Member]) -> list[_Column]:
    """What each name reads in each member, first the names that rows test, then the leaves; a name that two tables
    read differently is left out.
    """
    tested = [name for name in dimension.names if any(name == test[0] for _, test in dimension.tests)]
    columns: list[_Column] = []
    for name in tested:
        read = [
            {_key(dimension, member, n, name) for n in range(len(member.seen)) if name in member.seen[n]}
            for member in members
        ]
        if all(len(keys) == 1 for keys in read):
            columns.append((name, [keys.pop() for keys in read]))
    for place, path in enumerate(dimension.inputs):
        if not is_free(path):
            given = [member.values[place] for member in members]
            leaf = [_MISSING if value is ABSENT or value is NOTHING else value for value in given]
            columns.append((".".join(path), leaf))
    return columns


def _key(dimension: Dimension, member: Member, number: int, name: str) -> Any:
    """What a name reads, kept hashable and `true` apart from 1; that it is missing where that is asked or is all."""
    value = member.seen[number][name]
    if value is None:
        return _MISSING
    if name not in member.absent[number]:
        return value
    if name in dimension.missing_asked:
        return _MISSING
    # A number that stands in for one that is not given lies, as another would, between two others.
    between = (key for key, (low, high) in dimension.known.intervals.items() if low < value < high)
    return next(between, value) if value.__class__ in (int, float) and not _is_cut(dimension, value) else value


def _is_cut(dimension: Dimension, value: Any) -> bool:
    return any(value in ends for ends in dimension.known.intervals.values())


def _together(columns: tuple[_Column, ...], cells: list[int], mask: int, dimension: Dimension) -> str:
    """The cells of a mask as a conjunction over some names; empty where these names do not tell them apart."""
    everyone = range(len(cells))
    taken = [{_apart(column[n]) for n in everyone if mask >> cells[n] & 1} for _, column in columns]
    for n in everyone:
        agrees = all(_apart(column[n]) in chosen for (_, column), chosen in zip(columns, taken, strict=True))
        if agrees and not mask >> cells[n] & 1:
            return ""
    told = []
    for (name, column), chosen in zip(columns, taken, strict=True):
        if len({_apart(value) for value in column}) == len(chosen):
            continue
        words = _values(name, column, chosen, dimension)
        if not words:
            return ""
        told.append(words)
    return " and ".join(told)


def _values(name: str, column: list[Any], taken: set[Any], dimension: Dimension) -> str:
    """The values of a name that are taken; empty where they cannot be told from the others."""
    known = list({_apart(v): v for v in column}.values())
    chosen = [v for v in known if _apart(v) in taken]
    others = [v for v in known if _apart(v) not in taken]
    if chosen == [_MISSING]:
        return f"{name} missing"
    if others == [_MISSING]:
        return f"{name} given"
    numbers = sorted(v for v in known if isinstance(v, int | float) and not isinstance(v, bool))
    words = _numbers(numbers, taken, dimension) if numbers else []
    if words is None:
        return ""
    words = ["any number"] if words == [""] else words
    rest = [v for v in chosen if isinstance(v, bool) or not isinstance(v, int | float)]
    strangers = {v for v in known if isinstance(v, str) and v in dimension.known.others}
    if strangers & {v for v in chosen if isinstance(v, str)}:  # what nothing names is told by what it is not
        but = [_value(v) for v in others if isinstance(v, str)]
        if not strangers <= set(map(str, chosen)):
            return ""
        if not numbers and all(isinstance(v, str) or v == _MISSING for v in known):
            refused = [*but, *(["missing"] if _MISSING in others else [])]
            return f"{name} not {_or(refused)}"
        rest = [v for v in rest if not isinstance(v, str)]
        strings = "a string but " + _or(but) if but else "any string"
        return f"{name} {_or([*words, *map(_value, rest), strings])}"
    if len(others) == 1 and len(chosen) > 2 and not numbers:
        return f"{name} not {_value(others[0])}"
    return f"{name} {_or([*words, *map(_value, rest)])}"


def _numbers(known: list[Any], taken: set[Any], dimension: Dimension) -> list[str] | None:
    """Runs of neighbouring numbers as intervals, an empty one for all of them; None where a run ends inside a gap."""
    told = []
    for chosen, run in itertools.groupby(known, key=lambda value: _apart(value) in taken):
        if not chosen:
            continue
        values = list(run)
        before, behind = known.index(values[0]), known.index(values[-1])
        if _split(known, before - 1, before, dimension) or _split(known, behind, behind + 1, dimension):
            return None
        told.append(_interval(values, before == 0, behind == len(known) - 1, dimension))
    return told


def _split(known: list[Any], left: int, right: int, dimension: Dimension) -> bool:
    """Whether two neighbours stand for the same gap."""
    if left < 0 or right >= len(known):
        return False
    intervals = dimension.known.intervals
    return known[left] in intervals and intervals[known[left]] == intervals.get(known[right])


def _interval(values: list[Any], from_start: bool, to_end: bool, dimension: Dimension) -> str:
    intervals, first, last = dimension.known.intervals, values[0], values[-1]
    if dimension.known.whole:  # between two integers stand integers, of which a single one can be named
        least = math.floor(intervals.get(first, (first - 1,))[0]) + 1
        most = math.ceil(intervals.get(last, (0, last + 1))[1]) - 1
        alone = least == most
    else:
        alone = first == last and first not in intervals
    if alone:
        return f"exactly {_value(first)}"
    low = (
        ""
        if from_start
        else f"above {_value(intervals[first][0])}"
        if first in intervals
        else f"at least {_value(first)}"
    )
    high = "" if to_end else f"below {_value(intervals[last][1])}" if last in intervals else f"at most {_value(last)}"
    return f"{low} and {high}" if low and high else low or high


def _apart(value: Any) -> Any:
    """A key under which `true` is not 1."""
    return value.__class__ is bool, value


def _value(value: Any) -> str:
    if value == _MISSING:
        return "missing"
    if isinstance(value, str):
        plain = value.isidentifier() and value not in _RESERVED
        return printable(value) if plain else json.dumps(value)
    return json.dumps(value)


def _or(words: Iterable[str]) -> str:
    *rest, last = list(words)
    return f"{', '.join(rest)} or {last}" if rest else last
