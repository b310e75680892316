"""Whether every snapshot has a row, and every row a snapshot: gaps, impossible rows, shadowed rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ecm_rules.analysis import boxes, words
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.space import Space
from ecm_rules.analysis.words import listed
from ecm_rules.tables.findings import Finding, Span, Witness
from ecm_rules.tables.models import Row, Test

_MOST_GAPS = 5
_MOST_BOXES = 200


def gaps(case: Case) -> Iterator[Finding]:
    """What no row holds for, each region once."""
    regions: dict[str, list[tuple[str, Witness | None]]] = {}
    for space, rows, _ in case.roles():
        left = itertools.islice(boxes.remainders(space.full, rows, case.budget), _MOST_BOXES)
        for box in boxes.joined(left):
            regions.setdefault(case.told(space, box), []).append((space.role, case.witness(space, box)))
    for number, (where, shown) in enumerate(regions.items()):
        role, witness = shown[0]
        told = where if len(shown) > 1 else f"{where}, as {words.an(role)}"
        more = len(regions) - _MOST_GAPS if number == _MOST_GAPS - 1 else 0
        message = f"found no row for {told}" + (f", and {more} more regions" if more > 0 else "")
        help = (
            "add a row, or a catch-all `when: {}` at the end; as it is, the operation is `continue` and no row says so"
        )
        yield case.table.source.finding("ECM601", case.table.span, message, help, witness=witness)
        if number == _MOST_GAPS - 1:
            return


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
        yield case.table.source.finding(
            "ECM603", row.span, message, "remove it, move it up, or narrow the rows before it"
        )


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
    *others, last = needed
    why = (
        f"`{key(case, last)}` and {listed([key(case, t) for t in others])} never hold together"
        if others
        else f"nothing meets `{key(case, last)}`"
    )
    message = f"found the row `{row.id}`, which is impossible: {why}"
    return case.table.source.finding("ECM602", last.span, message, "remove the row, or one of these tests")


def _contradict(case: Case, tests: Sequence[Test]) -> bool:
    conjunction = [(t.signal, t.operator, t.constant) for t in tests]
    return all(not all(boxes.within(space.full, space.sides(conjunction))) for space in case.shapes)


def key(case: Case, test: Test) -> str:
    """A test's key as it is written."""
    return written(case, test.span)


def written(case: Case, span: Span) -> str:
    """The text at a place of the table's file."""
    return case.table.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]
