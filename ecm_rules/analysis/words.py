"""Boxes as sentences: `zone amber and tool_result_share exactly 0.4`. What is said holds inside and nowhere else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ecm_rules.analysis.boxes import Box
from ecm_rules.analysis.dimensions import Dimension, Member
from ecm_rules.analysis.sources import ABSENT, NOTHING, is_free
from ecm_rules.analysis.space import Space
from ecm_rules.tables.findings import clip, printable

ANYTHING = "every meter"
_MISSING = ...
_MOST_WORDS = 200


def sentence(space: Space, box: Box) -> str:
    """What the box asks, dimension by dimension; `ANYTHING` where it asks nothing."""
    told = [
        describe(dimension, mask)
        for dimension, mask in zip(space.dimensions, box, strict=True)
        if mask != dimension.full
    ]
    return " and ".join(told) or ANYTHING


def describe(dimension: Dimension, mask: int) -> str:
    """The cells of a mask in words: by as few names as tell them from the others."""
    marked = [(m, bool(mask >> n & 1)) for n, cell in enumerate(dimension.cells) for m in cell]
    columns = _columns(dimension, [member for member, _ in marked])
    inside = [chosen for _, chosen in marked]
    for size in range(1, min(3, len(columns)) + 1):
        for names in itertools.combinations(columns, size):
            if told := _together({name: columns[name] for name in names}, inside, dimension):
                return told
    each = [_together(columns, [m in cell for m, _ in marked], dimension) for cell in _cells(dimension, mask)]
    return clip(
        " or ".join(f"({told})" for told in each if told) or "some values of " + ", ".join(columns), _MOST_WORDS
    )


def an(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """`A`, `B` and 3 more."""
    shown = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _cells(dimension: Dimension, mask: int) -> list[list[Member]]:
    return [cell for n, cell in enumerate(dimension.cells) if mask >> n & 1]


def _columns(dimension: Dimension, members: list[Member]) -> dict[str, list[Any]]:
    """What each name reads in each member, first the names that rows test, then the leaves; a name that two tables
    read differently is left out.
    """
    tested = [name for name in dimension.names if any(name == test[0] for _, test in dimension.tests)]
    columns: dict[str, list[Any]] = {}
    for name in tested:
        read = [
            {_key(dimension, member, n, name) for n in range(len(member.seen)) if name in member.seen[n]}
            for member in members
        ]
        if all(len(keys) == 1 for keys in read):
            columns[name] = [keys.pop() for keys in read]
    for place, path in enumerate(dimension.inputs):
        name = ".".join(path)
        if not is_free(path) and name not in columns:
            given = [member.values[place] for member in members]
            columns[name] = [_MISSING if value is ABSENT or value is NOTHING else value for value in given]
    return columns


def _key(dimension: Dimension, member: Member, number: int, name: str) -> Any:
    """What a name reads, kept hashable and `true` apart from 1; that it is missing where that is asked or is all."""
    value = member.seen[number][name]
    if value is None or (name in dimension.missing_asked and name in member.absent[number]):
        return _MISSING
    return value


def _together(columns: dict[str, list[Any]], inside: list[bool], dimension: Dimension) -> str:
    """The members inside as a conjunction over some names; empty where these names do not tell them apart."""
    taken = {
        name: {_apart(v) for v, chosen in zip(column, inside, strict=True) if chosen}
        for name, column in columns.items()
    }
    for position, chosen in enumerate(inside):
        if not chosen and all(_apart(column[position]) in taken[name] for name, column in columns.items()):
            return ""
    told = []
    for name, column in columns.items():
        if len({_apart(v) for v in column}) == len(taken[name]):
            continue
        words = _values(name, column, taken[name], dimension)
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
    strangers = [v for v in known if isinstance(v, str) and v in dimension.others]
    if strangers and any(v in chosen for v in strangers):  # all that nothing names: told by what it is not
        rest = f" {_or(map(_value, others))}" if others else ""
        return f"{name} not{rest}" if rest and all(v in chosen for v in strangers) else ""
    numbers = sorted(v for v in known if isinstance(v, int | float) and not isinstance(v, bool))
    words = _numbers(numbers, taken, dimension) if numbers else []
    if words is None:
        return ""
    if words == [""]:
        words = ["any number"]
    elif len(others) == 1 and len(chosen) > 2 and not numbers:
        return f"{name} not {_value(others[0])}"
    words += [_value(v) for v in chosen if v not in numbers or isinstance(v, bool)]
    return f"{name} {_or(words)}"


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
    gaps = dimension.gaps
    return known[left] in gaps and gaps[known[left]] == gaps.get(known[right])


def _interval(values: list[Any], from_start: bool, to_end: bool, dimension: Dimension) -> str:
    gaps, first, last = dimension.gaps, values[0], values[-1]
    if dimension.whole:  # between two integers stand integers, of which a single one can be named
        least, most = gaps.get(first, (first - 1,))[0] + 1, gaps.get(last, (0, last + 1))[1] - 1
        alone = least == most
    else:
        alone = first == last and first not in gaps
    if alone:
        return f"exactly {_value(first)}"
    low = "" if from_start else f"above {_value(gaps[first][0])}" if first in gaps else f"at least {_value(first)}"
    high = "" if to_end else f"below {_value(gaps[last][1])}" if last in gaps else f"at most {_value(last)}"
    return f"{low} and {high}" if low and high else low or high


def _apart(value: Any) -> Any:
    """A key under which `true` is not 1."""
    return value.__class__ is bool, value


def _value(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    if isinstance(value, str):
        return printable(value) if value.isidentifier() else json.dumps(value)
    return json.dumps(value)


def _or(words: Iterable[str]) -> str:
    *rest, last = list(words)
    return f"{', '.join(rest)} or {last}" if rest else last
