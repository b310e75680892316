"""Rows that a project appends to a table whose section `project` takes them: each promotion of one exact source."""

from __future__ import annotations

from ecm_rules.tables import rows
from ecm_rules.tables.findings import listed, shown, suggest
from ecm_rules.tables.models import Extension, Row, Test
from ecm_rules.tables.reader import Node
from ecm_rules.tables.rows import Context


def read_extension(context: Context, root: Node) -> Extension | None:
    """What a table's section `project` says; None where it has none, or a wrong one, which goes into the context's
    findings: a row is not blamed for it.
    """
    section = root.get("project")
    if section is None or not {"appends", "promotes", "names"} <= section.value.keys():
        return None  # its schema has said so
    known = len(context.findings)
    promotes, names = section.value["promotes"], section.value["names"]
    if promotes.value not in context.operations:
        message = f"found the unknown operation {shown(promotes.value)}"
        context.report("ECM307", promotes.span, message, suggest(promotes.value, context.operations))
    named = context.declared.get(names.value)
    if named is None:
        message = f"found the unknown field {shown(names.value)}"
        context.report("ECM301", names.span, message, suggest(names.value, context.declared))
    elif named.type != "string" or "path" not in named.spec or "missing" in named.spec:
        # Else a row could name what several sources have in common, or what is there where none is named.
        message = f"found `{named.name}`, expected a field of strings that has a plain path and no `missing`"
        context.report("ECM204", names.span, message)
    if len(context.findings) > known:
        return None
    classes = section.get("classes")
    return Extension(
        section.text("appends"), promotes.value, names.value, tuple(classes.plain()) if classes is not None else ()
    )


def append(context: Context, extension: Extension, extra: Node, own: tuple[Row, ...]) -> tuple[Row, ...]:
    """The table's rows with the project's in front of the last one. context: of the project's file, `extra`."""
    node = extra.get(extension.appends)
    if node is None:
        return own
    theirs = rows.read_rows(context, node, last=False)
    known = {row.id for row in own}
    for row, item in zip(theirs, node.value, strict=True):
        if row.id in known:
            message = f"found the row `{row.id}`, which the table has already"
            context.report("ECM403", row.span, message, "give it an id of its own")
        when = item.get("when")
        # Where a test was refused, it may have been the one that names the source.
        if when is not None and when.whole and len(when.keys) == len(row.tests):
            _demand_name(context, extension, row)
    return (*own[:-1], *theirs, *own[-1:])


def name_of(extension: Extension, row: Row) -> Test | None:
    """The test by which a row names one exact source, or None."""
    tests = (test for test in row.tests if test.signal == extension.names and test.operator == "eq" and test.constant)
    return next((test for test in tests if not str(test.constant).startswith(extension.classes)), None)


def _demand_name(context: Context, extension: Extension, row: Row) -> None:
    if row.operation != extension.promotes or name_of(extension, row) is not None:
        return
    name = extension.names
    help = f"name the one source that is to have `{row.operation}`"
    asked = next((test for test in row.tests if test.signal == name), None)
    if asked is None:
        message = f"found `{row.operation}` in `{row.id}`, which names no source, expected a test of `{name}`"
        context.report("ECM404", row.operation_span, message, help)
    elif asked.operator == "eq" and asked.constant:
        message = f"found {shown(asked.constant)} in `{row.id}`, which names a class, expected one source"
        begins = listed(extension.classes, word="or")
        context.report("ECM405", asked.value_span, message, f"many are named by what begins with {begins}; {help}")
    else:
        given = list(asked.constant) if isinstance(asked.constant, tuple) else asked.constant
        told = f"`{context.source.text_at(asked.span)}` with {shown(given)}"
        message = f"found {told} in `{row.id}`, expected `{name}` with one string"
        context.report("ECM404", asked.span, message, help)
