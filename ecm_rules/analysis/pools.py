"""The values of leaves that are worth telling apart: what they are compared with, and something between each two."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from ecm_rules.analysis.numbers import after, before, between, fractions
from ecm_rules.analysis.sources import ABSENT, NOTHING, SHARE, Path, Sources, Test, literals
from ecm_rules.tables.domains import LARGEST, NUMERIC, accept

# More than any number that a meter can hold; from the other on, integers alone lie beside a number.
_BEYOND = int(LARGEST) + 1
_EXACT = 2**53
_BOUNDS = ("min", "max", "above", "below", "missing")

Spec = dict[str, Any]


class Values(NamedTuple):
    """`pools`: the values of each leaf. `intervals`: a number that stands for all between two others, and these two.
    `others`: strings that stand for all that nothing names. `whole`: whether all numbers are integers.
    """

    pools: list[list[Any]]
    intervals: dict[Any, tuple[float, float]]
    others: frozenset[str]
    whole: bool


def unseen(sources: tuple[Sources, ...], inputs: tuple[Path, ...]) -> Values:
    """One combination, where no test sees any."""
    shares = _shares(sources)
    return Values([[NOTHING if leaf in shares else ABSENT] for leaf in inputs], {}, frozenset(), False)


def worth_telling_apart(
    sources: tuple[Sources, ...], inputs: tuple[Path, ...], names: Iterable[str], tests: Iterable[tuple[int, Test]]
) -> Values:
    """The values of leaves that `names` read, and that `tests` ask about."""
    known, shares = set(names), _shares(sources)
    specs: dict[Path, list[Spec]] = {path: [] for path in inputs}
    signals = [signal for source in sources for signal in source.signals if signal["name"] in known]
    constants: list[Any] = [c for _, (_, _, told) in tests for c in (told if isinstance(told, tuple) else (told,))]
    for signal in signals:
        constants += [signal[key] for key in _BOUNDS if key in signal]
        constants += (*signal.get("values", ()), *literals(signal["from"]))
    for source in sources:
        for field in (field for field in source.fields if field["name"] in known):
            derived = tuple(field["path"]) in source.derived
            spec = SHARE if derived else field
            constants += source.program["zones"].values() if derived else field.get("values", ())
            # What stands in for a missing value is a case of its own where a test tells the two apart.
            apart = any(told[0] == field["name"] and told[1] == "missing" for _, told in tests)
            constants += [field["missing"]] if "missing" in field and (apart or field["type"] == "string") else []
            leaf = specs[source.leaves[field["name"]][0]]
            if spec not in leaf:
                leaf.append(spec)
    numbers, intervals, whole = _numbers(constants, signals, list(specs.values()))
    texts, others = _texts(constants, list(specs.values()))
    domains: dict[str, list[Any]] = {"boolean": [False, True], "string": texts, "number": numbers, "integer": numbers}
    pools = []
    for path in inputs:
        taken: list[Any] = []
        for spec in specs[path]:
            wanted = spec["values"] if spec["type"] == "enum" else domains[spec["type"]]
            taken += [value for value in wanted if accept(spec, value) is not None]
        taken = taken if len(specs[path]) == 1 else _unique(taken)
        pools.append([*taken, ABSENT, *([NOTHING] if path in shares else [])])
    return Values(pools, intervals, others, whole)


def _shares(sources: tuple[Sources, ...]) -> set[Path]:
    return {share for source in sources for share in source.derived.values()}


def _numbers(
    constants: list[Any], signals: list[Spec], leaves: list[list[Spec]]
) -> tuple[list[float], dict[Any, tuple[float, float]], bool]:
    """The numbers, what those between two others stand for, and whether all are integers."""
    numeric = [spec for specs in leaves for spec in specs if spec["type"] in NUMERIC]
    if not numeric:
        return [], {}, False
    # Where one leaf is compared with constants alone, its bounds are like what lies beside them.
    alone = len(leaves) == len(leaves[0]) == 1 and not signals
    bounds = [] if alone else [spec[key] for spec in numeric for key in _BOUNDS if key in spec]
    cuts = sorted({c for c in (*constants, *bounds) if c.__class__ in (int, float)})
    low, high = _domain(numeric[0]) if alone else (-_BEYOND, _BEYOND)
    kinds = {spec["type"] for spec in numeric}
    whole = kinds == {"integer"}
    told = "integer" in kinds.union([signal["type"] for signal in signals])
    intervals: dict[Any, tuple[float, float]] = {}
    for start, end in itertools.pairwise([low, *[c for c in cuts if low < c < high], high]):
        for value in _fill(start, end, len(leaves), whole, told):
            intervals[value] = start, end
    return sorted({*cuts, *intervals}), intervals, whole


def _fill(low: float, high: float, count: int, whole: bool, told: bool) -> list[float]:
    """Numbers strictly between two others, enough for `count` leaves to lie there in any order. whole: integers alone;
    told: something tells integers from others, so that there are enough of either.
    """
    if whole or not told:
        return between(low, high, count, whole)
    steps = between(low, high, count, whole=True)
    inner = [fractions(a, b, count) for a, b in itertools.pairwise([low, *steps, high])]
    return [*steps, *itertools.chain.from_iterable(inner)]


def _domain(spec: Spec) -> tuple[float, float]:
    """Numbers between which the domain lies, themselves not in it."""
    whole = spec["type"] == "integer"
    low: float = -_BEYOND
    high: float = _BEYOND
    if "min" in spec:
        low = before(spec["min"], whole) if abs(spec["min"]) < _EXACT else int(spec["min"]) - 1
    if "max" in spec:
        high = after(spec["max"], whole) if abs(spec["max"]) < _EXACT else int(spec["max"]) + 1
    return max(low, spec.get("above", low)), min(high, spec.get("below", high))


def _texts(constants: list[Any], leaves: list[list[Spec]]) -> tuple[list[str], frozenset[str]]:
    """The strings that something is compared with, the empty one, and as many others as there are leaves."""
    if not any(spec["type"] == "string" for specs in leaves for spec in specs):
        return [], frozenset()
    named = {"", *(c for c in constants if isinstance(c, str))}
    others = (text for n in itertools.count(1) if (text := f"other {n}") not in named)
    fresh = list(itertools.islice(others, len(leaves)))
    return [*sorted(named), *fresh], frozenset(fresh)


def _unique(values: Iterable[Any]) -> list[Any]:
    """Each value once; `true` is not 1."""
    return [value for _, value in {(v.__class__ is bool, v): v for v in values}.items()]
