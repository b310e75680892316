"""Whether a project's rows promote more than the sources that they name, whatever the reading of them let through."""

from __future__ import annotations

from collections.abc import Iterator

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Row
from ecm_rules.analysis.case import Case
from ecm_rules.engine import program as engine
from ecm_rules.tables.appended import name_of
from ecm_rules.tables.findings import Finding


def widened(case: Case) -> Iterator[Finding]:
    """Rows that lead to the promotion where the table without the project's rows leads elsewhere, and no row that
    promotes names the source; each once.
    """
    table, extension = case.table, case.table.extension
    if extension is None or not table.appended:
        return
    told: set[int] = set()
    for space, rows, outcomes in case.roles():
        promoting = [n for n, outcome in enumerate(outcomes) if outcome == extension.promotes]
        tests = [name_of(extension, table.rows[n]) for n in promoting]
        named: list[Row] = [(-1, space.sides([test.condition])) for test in tests if test is not None]
        before = [row for row in rows if table.rows[row[0]].source == table.source]
        ends = [(outcomes[n], sides) for n, sides in before] + [(engine.CONTINUE, ())]
        for index in promoting:
            own = boxes.within(space.full, rows[index][1])
            for number, (operation, sides) in enumerate(ends):
                both = boxes.within(own, sides)
                if operation == extension.promotes or index in told or not all(both):
                    continue
                box = boxes.uncovered(both, [*named, *rows[:index], *before[:number]], case.budget)
                if box is not None:
                    told.add(index)
                    row = table.rows[index]
                    message = (
                        f"found `{row.id}`, which turns `{operation}` into `{extension.promotes}` where no row names "
                        f"the source by its `{extension.names}`{case.caveat(space, box)}"
                    )
                    help = f"test `{extension.names}` with one string"
                    yield row.source.finding("ECM613", row.span, message, help, witness=space.witness(box))
