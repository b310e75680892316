"""The nearest miss: the smallest change of one leaf of a snapshot, then of two, that makes another row fire.

Found by trying, with the engine itself, every value next to or at something that the leaf is compared with: between
these nothing changes, so that no smaller change is missed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.numbers import after, before, between, fractions
from ecm_rules.analysis.sources import SHARE, Path, Sources, is_free, literals
from ecm_rules.analysis.space import at, of_role, replaced, rezoned
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import fields_of
from ecm_rules.engine.policy import Policy
from ecm_rules.engine.zones import told_zone
from ecm_rules.tables.domains import LARGEST, NUMERIC, accept
from ecm_rules.tables.findings import listed

# Pairs of changes that are tried; a policy takes some thousands.
_MOST_PAIRS = 400_000
# A value that has to be given, or taken away, is a larger step than any other.
_FROM_NOTHING, _TO_NOTHING = 1.0, 2.0
# Neither is the least number above nothing what anybody measures.
_UNLIKELY = 2.0


@attrs.frozen
class Change:
    """A leaf of the snapshot, by its path, before and after; None where it is not there."""

    path: str
    before: Any
    after: Any


@attrs.frozen
class Miss:
    """What makes a row fire: changes, and the snapshot with them. None where `reason` says why there are none."""

    rule: str
    operation: str
    changes: tuple[Change, ...] | None
    snapshot: Any
    reason: str = ""


@attrs.frozen
class _Move:
    path: Path
    value: Any
    cost: float


def nearest(policy: Policy, meter: Any, role: str) -> list[Miss]:
    """For each row that does not fire on the meter, what comes nearest to making it fire, in the order of the rows."""
    (source,) = Sources.all_of([policy.program])
    moves = [list(_moves(policy, source, path, meter)) for path in _leaves(source, meter)]
    found: dict[str, tuple[float, tuple[_Move, ...]]] = {}
    wanted = {row.id for row in policy.table.rows} - {policy.rule_for(meter, role)}
    alive, whole = _alive(policy, role), True
    _try(policy, source, meter, role, ((move,) for leaf in moves for move in leaf), found)
    if wanted & alive - found.keys():
        pairs = (pair for one, other in itertools.combinations(moves, 2) for pair in itertools.product(one, other))
        whole = sum(len(one) * len(other) for one, other in itertools.combinations(moves, 2)) <= _MOST_PAIRS
        twos: dict[str, tuple[float, tuple[_Move, ...]]] = {}
        _try(policy, source, meter, role, itertools.islice(pairs, _MOST_PAIRS), twos)
        found = {**twos, **found}
    misses = []
    for index, row in enumerate(policy.table.rows):
        if row.id in wanted:
            operation = engine.outcome(policy.program, policy.program["rows"][index], role)[1]
            free = [t.signal for t in row.tests if any(is_free(leaf) for leaf in source.leaves[t.signal])]
            if row.id in found:
                misses.append(_hit(source, meter, row.id, operation, found[row.id][1]))
            else:
                reason = _reason(row.id in alive, free, whole)
                misses.append(Miss(row.id, operation, None, None, reason))
    return misses


def _hit(source: Sources, meter: Any, rule: str, operation: str, moves: tuple[_Move, ...]) -> Miss:
    changed = _moved(source, meter, moves)
    changes = []
    for move in moves:
        changes.append(Change(".".join(move.path), at(meter, move.path), move.value))
        for leaf, share in source.derived.items():
            if share == move.path:
                changes.append(Change(".".join(leaf), at(meter, leaf), at(changed, leaf)))
    seen = tuple(c for c in changes if c.before.__class__ is not c.after.__class__ or c.before != c.after)
    return Miss(rule, operation, seen, changed)


def _reason(alive: bool, free: list[str], whole: bool) -> str:
    """Why no change was found: what is not known is not claimed."""
    if not alive:
        return "never fires in this role"
    if free:
        return f"not found: it depends on the expression of {listed(free)}"
    return "more than two signals away" if whole else "not found among the changes of two signals that were tried"


def _alive(policy: Policy, role: str) -> set[str]:
    """The rows that can fire at all; all of them where that is not known."""
    try:
        case = Case.of(policy)
        space = of_role(case.spaces, role)
        return {row.id for index, row in enumerate(policy.table.rows) if case.fires(space, index) is not None}
    except Inconclusive:
        return {row.id for row in policy.table.rows}


def _try(
    policy: Policy,
    source: Sources,
    meter: Any,
    role: str,
    tries: Iterator[tuple[_Move, ...]],
    found: dict[str, tuple[float, tuple[_Move, ...]]],
) -> None:
    for moves in tries:
        cost = sum(move.cost for move in moves)
        rule = policy.rule_for(_moved(source, meter, moves), role)
        if rule is not None and (rule not in found or cost < found[rule][0]):
            found[rule] = cost, moves


def _moved(source: Sources, meter: Any, moves: Iterable[_Move]) -> Any:
    for move in moves:
        meter = replaced(meter, move.path, move.value)
        if move.path in source.derived.values():
            meter = rezoned(meter, source)
    return meter


def _leaves(source: Sources, meter: Any) -> list[Path]:
    """The leaves to change. A zone is changed by its utilization where the meter tells that, and by itself where the
    meter does not, or names another zone than the utilization has.
    """
    leaves = dict.fromkeys(leaf for found in source.leaves.values() for leaf in found if not is_free(leaf))
    chosen: list[Path] = []
    for leaf in leaves:
        told = at(meter, leaf)
        zones = [zone for zone, share in source.derived.items() if share == leaf]
        unlike = [zone for zone in zones if at(meter, zone) != told_zone(source.program["zones"], told)]
        chosen += zones if unlike or (zones and accept(SHARE, told) is None) else [leaf]
    return chosen


def _moves(policy: Policy, source: Sources, path: Path, meter: Any) -> Iterator[_Move]:
    """The values of a leaf that may decide otherwise, with what each costs."""
    now = at(meter, path)
    specs = [field for field in source.fields if tuple(field["path"]) == path]
    specs += [SHARE for share in source.derived.values() if share == path]
    worse = next((d.worse for d in policy.table.vocabulary.fields if d.spec in specs), "")
    told = set()
    for spec in specs:
        seen = accept(spec, now)
        number = spec["type"] in NUMERIC and now.__class__ in (int, float)
        start = now if number else spec.get("missing") if seen is None else seen
        for value in [*_values(source, path, spec, meter), None]:
            key = value.__class__ is bool, value
            if key in told or value == seen or (value is not None and accept(spec, value) is None):
                continue
            told.add(key)
            yield _Move(
                path, value, _cost(spec, worse, start, value) + (_from_nothing(value) if start is not now else 0)
            )


def _values(source: Sources, path: Path, spec: dict[str, Any], meter: Any) -> Iterator[Any]:
    if spec["type"] == "enum":
        yield from spec["values"]
    elif spec["type"] == "boolean":
        yield from (True, False)
    constants = list(_compared(source, path, meter))
    if spec["type"] == "string":
        yield from (c for c in [*constants, "", "other"] if isinstance(c, str))
    if spec["type"] in NUMERIC:
        whole = spec["type"] == "integer"
        numbers = [c for c in constants if c.__class__ in (int, float)]
        cuts = sorted({*numbers, *(spec[key] for key in ("min", "max", "above", "below") if key in spec)})
        for cut in cuts:
            yield from (before(cut, whole), cut, after(cut, whole))
            yield from (before(cut, True), after(cut, True))
        for low, high in itertools.pairwise([-LARGEST, *cuts, LARGEST]):  # one that reads well is there
            yield from (*between(low, high, 1, whole), *fractions(low, high, 1))
        if (now := at(meter, path)).__class__ in (int, float) and abs(now) <= LARGEST:
            yield from (before(now, False), after(now, False))


def _compared(source: Sources, path: Path, meter: Any) -> Iterator[Any]:
    """Everything that the leaf is compared with: by rows, by signals, and as what other leaves are now."""
    names = {name for name, leaves in source.leaves.items() if path in leaves or source.derived.get(path) in leaves}
    defaults = {field["name"]: field.get("missing") for field in source.fields}
    for name, _, constant in source.tests:
        if name in names:
            yield from constant if isinstance(constant, tuple) else (constant,)
    if path in source.derived.values():
        yield from source.program["zones"].values()
    for signal in source.signals:
        if signal["name"] in names:
            yield from literals(signal["from"])
            for name in fields_of(signal["from"]):
                yield defaults.get(name)  # what is compared where the other leaf is not given, or not to this role
                for leaf in source.leaves[name]:
                    yield at(meter, leaf)
    yield from (field["missing"] for field in source.fields if field["name"] in names and "missing" in field)


def _from_nothing(value: Any) -> float:
    """What it costs that a value has to be given: more for a number that nobody would give."""
    least = value.__class__ is float and 0 < abs(value) < 1e-300
    return _FROM_NOTHING + (_UNLIKELY if least else 0)


def _cost(spec: dict[str, Any], worse: Any, old: Any, new: Any) -> float:
    """How large a step is: of a number as a part of its range, of an ordered enum in its places, else 1."""
    if new is None:
        return _TO_NOTHING
    if spec["type"] in NUMERIC:
        if old is None:
            return 1.0
        if "min" in spec and "max" in spec and spec["max"] > spec["min"]:
            return float(abs(new - old) / (spec["max"] - spec["min"]))
        # Without a range, a number as far away as the old one is large counts for half.
        return float(abs(new - old) / (abs(new - old) + max(abs(old), 1)))
    if isinstance(worse, tuple) and old in worse and new in worse:
        return abs(worse.index(new) - worse.index(old)) / len(worse)
    return 1.0
