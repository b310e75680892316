"""What a table says without need, and where its order decides: mostly notes, since first-match tables live by order."""

from __future__ import annotations

from collections.abc import Iterator

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Row
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.shadows import is_impossible
from ecm_rules.tables.findings import NOTE, WARNING, Finding, Fix, Span, listed
from ecm_rules.tables.models import Row as TableRow
from ecm_rules.tables.models import Test


def redundant_tests(case: Case) -> Iterator[Finding]:
    """Tests that every snapshot meets that the row's other tests, or the rows before it, leave to it."""
    for index, row in enumerate(case.table.rows):
        if all(is_impossible(space, index) for space in case.shapes):
            continue
        alive = any(case.fires(space, index) for space in case.shapes)
        for test in row.tests:
            same = [other for other in row.tests if other.signal == test.signal]
            if _implied(case, same, test):
                why = "another test of the row says as much" if len(same) > 1 else f"every `{test.signal}` meets it"
                yield _found(row, test, why, WARNING)
            elif _implied(case, list(row.tests), test):
                yield _found(row, test, "the row's other tests say as much", NOTE)
            elif alive and _left_by_the_rows_before(case, index, test):
                yield _found(row, test, "the rows before leave nothing else to this one", NOTE)


def redundant_rows(case: Case) -> Iterator[Finding]:
    """Rows that fire, but where the rows behind them would lead to the same operation."""
    for index, row in enumerate(case.table.rows):
        firing = [space for space in case.spaces if case.fires(space, index)]
        if firing and not any(_matters(case, n, index) for n, space in enumerate(case.spaces) if space in firing):
            message = f"found the row `{row.id}`, without which the table decides the same"
            yield row.source.finding("ECM604", row.span, message, severity=NOTE)


def order_sensitive_rows(case: Case) -> Iterator[Finding]:
    """Rows that also hold where one before them fires, and lead elsewhere: swapping the two would change something."""
    for index, row in enumerate(case.table.rows):
        before: dict[int, boxes.Box] = {}
        where = case.spaces[0]
        for space, _, outcomes in case.roles():
            for earlier in range(index):
                if earlier in before or outcomes[earlier] == outcomes[index]:
                    continue
                if (box := case.together(space, earlier, index)) is not None:
                    where, before[earlier] = space, box
        if before:
            names = listed([case.table.rows[n].id for n in sorted(before)])
            box = list(before.values())[-1]
            message = f"found the row `{row.id}` behind {names}: both hold together, and the order decides"
            message += case.caveat(where, box)
            witness = where.witness(box)
            yield row.source.finding("ECM606", row.span, message, severity=NOTE, witness=witness)


def _found(row: TableRow, test: Test, why: str, severity: str) -> Finding:
    message = f"found `{row.source.text_at(test.span)}` in `{row.id}`, which changes nothing: {why}"
    if severity == NOTE:
        return row.source.finding("ECM605", test.span, message, severity=NOTE)
    fix = _removal(row, test)
    return row.source.finding("ECM605", test.span, message, "remove the test", WARNING, fix=fix)


def _removal(row: TableRow, test: Test) -> Fix | None:
    """The fix that takes a test out of a `{…}` on one line; None where it stands otherwise, or alone."""
    line, start, end = test.span.line, test.span.column - 1, test.value_span.end_column - 1
    text = row.source.lines[line - 1]
    before, behind = text[:start].rstrip(), text[end:].lstrip()
    if test.value_span.line != line or before[-1:] not in ("{", ",") or behind[:1] not in ("}", ","):
        return None
    if behind[0] == ",":
        end = len(text) - len(behind[1:].lstrip())
    elif before[-1] == ",":
        start = len(before) - 1
    else:
        return None
    return Fix(Span(line, start + 1, end + 1), "")


def _implied(case: Case, tests: list[Test], test: Test) -> bool:
    """Whether in every role the other tests alone leave the same."""
    conjunction = [t.condition for t in tests]
    rest = [t.condition for t in tests if t is not test]
    return all(space.sides(conjunction) == space.sides(rest) for space in case.shapes)


def _left_by_the_rows_before(case: Case, index: int, test: Test) -> bool:
    row = case.table.rows[index]
    rest = [t.condition for t in row.tests if t is not test]
    for space in case.shapes:
        rows = space.rows[0]
        wider = boxes.within(space.full, space.sides(rest))
        for piece in boxes.without(wider, rows[index][1]) if all(wider) else ():
            if boxes.uncovered(piece, rows[:index], case.budget) is not None:
                return False
    return True


def _matters(case: Case, role: int, index: int) -> bool:
    """Whether somewhere in the role the row fires and what would fire without it leads elsewhere."""
    space, outcomes = case.spaces[role], case.outcomes[role]
    rows: tuple[Row, ...] = space.rows[0]
    own = boxes.within(space.full, rows[index][1])
    others = [*rows[:index], *rows[index + 1 :]]
    if boxes.uncovered(own, others, case.budget) is not None:
        return True  # nothing would fire
    for later in range(index + 1, len(rows)):
        if outcomes[later] == outcomes[index]:
            continue
        both = boxes.within(own, rows[later][1])
        between = [row for row in rows[:later] if row[0] != index]
        if all(both) and boxes.uncovered(both, between, case.budget) is not None:
            return True
    return False
