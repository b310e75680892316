"""Whether every snapshot has a row, and every row a snapshot: gaps, impossible rows, shadowed rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ecm_rules.analysis import boxes
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.space import Space
from ecm_rules.tables.findings import Finding, Witness, as_role, listed
from ecm_rules.tables.models import Row, Test

_MOST_GAPS = 5
_MOST_BOXES = 200


def gaps(case: Case) -> Iterator[Finding]:
    """What no row holds for, each region once; of many, the first."""
    regions: dict[str, list[Space]] = {}
    witnesses: dict[str, Witness | None] = {}
    cut = False
    for space, rows, _ in case.roles():
        left = list(itertools.islice(boxes.remainders(space.full, rows, case.budget), _MOST_BOXES + 1))
        cut = cut or len(left) > _MOST_BOXES
        for box in boxes.joined(left):
            told = case.told(space, box)
            regions.setdefault(told, []).append(space)
            witnesses.setdefault(told, space.witness(box))
    more = len(regions) - _MOST_GAPS
    for number, (told, spaces) in enumerate(itertools.islice(regions.items(), _MOST_GAPS), 1):
        message = f"found no row for {told}{as_role([space.role for space in spaces])}"
        if number == _MOST_GAPS and (cut or more > 0):
            message += ", and more" if cut else f", and {more} more region{'s' if more > 1 else ''}"
        help = "add a row, or a catch-all `when: {}` as the last; now the operation is `continue` and no row says so"
        yield case.table.source.finding("ECM601", case.table.span, message, help, witness=witnesses[told])


def dead_rows(case: Case) -> Iterator[Finding]:
    """Rows that never fire: because of their own tests, or because of the rows before them."""
    for index, row in enumerate(case.table.rows):
        if any(case.fires(space, index) for space in case.shapes):
            continue
        if all(is_impossible(space, index) for space in case.shapes):
            yield _impossible(case, row)
            continue
        names = ", ".join(f"`{case.table.rows[n].id}`" for n in _covering(case, index))
        message = f"found the row `{row.id}`, which is unreachable: covered by {names}"
        yield row.source.finding("ECM603", row.span, message, "remove it, move it up, or narrow the rows before it")


def _covering(case: Case, index: int) -> list[int]:
    """The fewest rows before this one, the earlier ones where there is a choice, that cover it in every role."""
    found: set[int] = set()
    asked = [(space.rows[0], boxes.within(space.full, space.rows[0][index][1])) for space in case.shapes]
    asked = [(rows, box) for rows, box in asked if all(box)]
    for rows, box in asked:
        found.update(boxes.cover(box, rows[:index], case.budget) or ())
    for number in sorted(found, reverse=True) if len(asked) > 1 else ():
        fewer = found - {number}
        if all(boxes.uncovered(box, [rows[n] for n in fewer], case.budget) is None for rows, box in asked):
            found = fewer
    return sorted(found)


def is_impossible(space: Space, index: int) -> bool:
    """Whether the row's own tests leave nothing in this role."""
    return not all(boxes.within(space.full, space.rows[0][index][1]))


def _impossible(case: Case, row: Row) -> Finding:
    """The finding at the last of the fewest tests that cannot hold together."""
    needed = list(row.tests)
    for test in row.tests:
        fewer = [other for other in needed if other is not test]
        if _contradict(case, fewer):
            needed = fewer
    *keys, key = (row.source.text_at(test.span) for test in needed)
    why = f"`{key}` and {listed(keys)} never hold together" if keys else f"nothing meets `{key}`"
    message = f"found the row `{row.id}`, which is impossible: {why}"
    return row.source.finding("ECM602", needed[-1].span, message, "remove the row, or one of these tests")


def _contradict(case: Case, tests: Sequence[Test]) -> bool:
    conjunction = [t.condition for t in tests]
    return all(not all(boxes.within(space.full, space.sides(conjunction))) for space in case.shapes)
