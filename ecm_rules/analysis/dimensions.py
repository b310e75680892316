"""What a snapshot can say, cut into cells that no test of the tables tells apart.

A *dimension* is a group of inputs that hang together: a leaf of the snapshot alone, or several that one signal reads
(the budget's ceiling and spending), or the share that a zone is derived from. Its *members* are combinations of
values: every value of an enum, every number that something is compared with, some between each two of these, and the
absence of a value. Each is read by the engine itself, so that a cell means what it means at run time and no
combination is listed that no snapshot has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import attrs

from ecm_rules.analysis import pools
from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.sources import Path, Read, Sources, Test
from ecm_rules.engine import program as engine

_MOST_MEMBERS = 100_000


class Member(NamedTuple):
    """A combination of values of the inputs. `seen`, a mapping a program: what each name reads there, None where it is
    missing; `absent`: the names that the snapshot does not give.
    """

    values: tuple[Any, ...]
    seen: tuple[dict[str, Any], ...]
    absent: tuple[tuple[str, ...], ...]


@attrs.frozen
class Dimension:
    """`values[n]` are the values of the inputs in each member of cell n, `readers` what the programs read of them;
    `masks[(program, test)]` are the cells in which the test holds.
    """

    inputs: tuple[Path, ...]
    names: tuple[str, ...]
    values: tuple[tuple[tuple[Any, ...], ...], ...]
    readers: tuple[Read, ...]
    masks: dict[tuple[int, Test], int]
    signatures: dict[tuple[bool, ...], int]
    """The cell in which the tests of `masks`, in their order, hold or do not."""
    known: pools.Values

    @property
    def cells(self) -> list[list[Member]]:
        """The members of each cell."""
        return [[self._member(values) for values in cell] for cell in self.values]

    def _member(self, values: tuple[Any, ...]) -> Member:
        read = [reader(values) for reader in self.readers]
        return Member(values, tuple(r[0] for r in read), tuple(r[1] for r in read))

    @property
    def tests(self) -> tuple[tuple[int, Test], ...]:
        """What tells its cells apart, with the number of the program whose it is."""
        return tuple(self.masks)

    @property
    def missing_asked(self) -> set[str]:
        """The names that some test asks whether they are there."""
        return {name for _, (name, operator, _) in self.tests if operator == "missing"}

    @property
    def full(self) -> int:
        return (1 << len(self.values)) - 1


def dimensions(
    sources: tuple[Sources, ...], tests: Iterable[tuple[int, Test]], roles: Iterable[str]
) -> list[tuple[Dimension, ...]]:
    """The dimensions of tables that are looked at together, for each role, in the order in which fields are declared.

    tests: what tells cells apart, with the number of the program whose it is. Raises Inconclusive where a dimension
    has too many members.
    """
    listed, groups = list(tests), _groups(sources)
    scoped = {name for source in sources for names in source.scoped.values() for name in names}
    found: list[tuple[Dimension, ...]] = []
    for role in roles:
        built = []
        for number, group in enumerate(groups):
            known = found[0][number] if found else None
            same = known is not None and scoped.isdisjoint(known.names)
            built.append(known if known and same else _dimension(sources, group, listed, role))
        found.append(tuple(built))
    return found


def _groups(sources: tuple[Sources, ...]) -> list[list[Path]]:
    """The inputs that hang together: read by one signal, or by one name of two tables, or one inside another."""
    leaves = list(dict.fromkeys(leaf for source in sources for found in source.leaves.values() for leaf in found))
    group_of = {leaf: [leaf] for leaf in leaves}

    def link(one: Path, other: Path) -> None:
        if group_of[one] is not group_of[other]:
            group_of[one] += group_of[other]
            for leaf in group_of[other]:
                group_of[leaf] = group_of[one]

    for name in dict.fromkeys(name for source in sources for name in source.leaves):
        read = [leaf for source in sources for leaf in source.leaves.get(name, ())]
        for one, other in itertools.pairwise(read):
            link(one, other)
    for one, other in itertools.combinations(leaves, 2):
        if one[0] == other[0] and (one[: len(other)] == other or other[: len(one)] == one):
            link(one, other)
    groups = [group for leaf, group in group_of.items() if group[0] == leaf]
    constant = any(not found for source in sources for found in source.leaves.values())
    return [*groups, []] if constant else groups


def _dimension(sources: tuple[Sources, ...], group: list[Path], listed: list[tuple[int, Test]], role: str) -> Dimension:
    inputs, inside = tuple(group), set(group)
    names = dict.fromkeys(
        name
        for source in sources
        for name, leaves in source.leaves.items()
        if not inside.isdisjoint(leaves) or (not leaves and not inputs)
    )
    tests = [test for test in listed if test[1][0] in names]
    if all(name in sources[number].hidden(role) for number, (name, _, _) in tests):
        values = pools.unseen(sources, inputs)
    else:
        values = pools.worth_telling_apart(sources, inputs, names, tests)
    if math.prod(map(len, values.pools)) > _MOST_MEMBERS:
        raise Inconclusive(f"{', '.join(names)} hang together over more values than were looked at")
    readers = [source.reader(names, inputs, role) for source in sources]
    combinations = list(itertools.product(*values.pools))
    if len(inputs) > 1 and any(one[: len(other)] == other for one, other in itertools.permutations(inputs, 2)):
        # None where one would lie inside the other
        combinations = [c for c in combinations if sources[0].snapshot(inputs, c) is not None]
    read = [list(map(reader, combinations)) for reader in readers]
    columns = [
        [engine.holds(operator, seen[name], name in absent, constant) for seen, absent in read[number]]
        for number, (name, operator, constant) in tests
    ]
    cells: dict[tuple[bool, ...], list[tuple[Any, ...]]] = {}
    signatures = list(zip(*columns, strict=True)) if columns else [()] * len(combinations)
    for signature, combination in zip(signatures, combinations, strict=True):
        cells.setdefault(signature, []).append(combination)
    masks = [sum(1 << cell for cell, held in enumerate(column) if held) for column in zip(*cells, strict=True)]
    return Dimension(
        inputs,
        tuple(names),
        tuple(map(tuple, cells.values())),
        tuple(readers),
        dict(zip(tests, masks, strict=True)),
        dict(zip(cells, itertools.count())),
        values,
    )
