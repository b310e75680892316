"""`ecm-rules decide TABLE --signals JSON`: any decision table, on a snapshot from the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable


def decide(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A shipped table's name, or a path.")],
    signals: Annotated[
        str, typer.Option("--signals", metavar="JSON|-", help="The snapshot, one JSON object; - reads stdin.")
    ],
    subagent: Annotated[bool, typer.Option("--subagent", help="Decide for a subagent.")] = False,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON document.")] = False,
) -> None:
    """Decide a table on a snapshot. Exit 1 where the table has findings, 2 where the snapshot cannot be read."""
    from ecm_rules.engine import program
    from ecm_rules.engine.policy import load_table
    from ecm_rules.kernel import meter

    with output.refusals(project):
        loaded = load_table(table, project=project)
    given = output.standard_input() if signals == "-" else signals.encode("utf-8", "surrogateescape")
    snapshot = meter.parse(given)
    if isinstance(snapshot, program.Unreadable):
        output.say(f"--signals: {snapshot.reason}")
        raise typer.Exit(output.UNREADABLE)
    read = {field["path"][0] for field in loaded.program["fields"] if "path" in field}
    if unread := [printable(key) for key in snapshot if key not in read]:
        output.say(f"not read: {', '.join(unread)[:200]}; read are: {', '.join(sorted(read))}")
    verdict = loaded.decide(snapshot, program.role_of(subagent))
    for fault in verdict.degraded:
        output.say(f"degraded: {fault.path}: {fault.reason}")
    if as_json:
        print(verdict.to_json())
        return
    print(f"operation: {verdict.operation}  (rule {verdict.rule or 'none'})")
    for step in verdict.steps:
        print(f"  {step}")
