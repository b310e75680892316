"""`ecm-rules explain`: why a table decides as it does, and what would have made it decide otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import an, printable

if TYPE_CHECKING:
    from ecm_rules.analysis.misses import Miss
    from ecm_rules.engine.policy import RowTrace
    from ecm_rules.engine.verdict import Verdict


def explain(
    meter: Annotated[
        str | None, typer.Option("--meter", metavar="FILE|-", help="The meter; - reads stdin. Default: the project's.")
    ] = None,
    subagent: Annotated[bool, typer.Option("--subagent", help="Explain for a subagent.")] = False,
    policy_file: Annotated[
        str, typer.Option("--policy", metavar="TABLE", help="A shipped table's name, or a path.")
    ] = "context-policy",
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show every row and why it did not hold, and the smallest change that would have made each other row fire."""
    from ecm_rules.analysis.misses import nearest
    from ecm_rules.engine import program
    from ecm_rules.engine.policy import load_table

    with output.refusals(project):
        policy = load_table(policy_file, project=project)
    role = program.role_of(subagent)
    snapshot = _snapshot(meter, project, policy.table.audit)
    verdict, trace = policy.decide(snapshot, role), policy.trace(snapshot, role)
    misses = nearest(policy, snapshot, role)
    for fault in verdict.degraded:
        output.say(f"degraded: {fault.path}: {fault.reason}")
    if as_json:
        import attrs

        document = {"verdict": verdict.to_dict(), "trace": [attrs.asdict(row) for row in trace]}
        output.document({**document, "nearest": [attrs.asdict(miss) for miss in misses]})
        return
    print(_text(verdict, trace, misses))


def _snapshot(path: str | None, project: str, audit: Mapping[str, str]) -> Any:
    """The meter that was asked for. One that is named and cannot be read ends the command."""
    from ecm_rules.engine.program import Unreadable
    from ecm_rules.kernel import meter
    from ecm_rules.kernel.audit import meter_of

    if path == "-":
        found: Any = meter.parse(output.standard_input())
    else:
        found = meter.load(path if path is not None else os.path.join(project, meter_of(audit, None)))
    if isinstance(found, Unreadable) or (found is None and path is not None):
        reason = found.reason if isinstance(found, Unreadable) else "no such file"
        output.say(f"{printable(path or 'the meter')}: {reason}")
        raise typer.Exit(output.UNREADABLE)
    if found is None:
        output.say("the project has no meter yet; explaining what is decided without one")
    return found


def _text(verdict: Verdict, trace: Sequence[RowTrace], misses: Sequence[Miss]) -> str:
    near = {miss.rule: miss for miss in misses}
    ids, operations = max(len(row.id) for row in trace), max(len(row.operation) for row in trace)
    lines = [f"operation: {verdict.operation}  (rule {verdict.rule or 'none'}, as {an(verdict.role)})", ""]
    for row in trace:
        mark = "✓" if row.fired else "·" if row.held else "✗"
        lines.append(f"{mark} {row.id:<{ids}}  {row.operation:<{operations}}  {_why(row)}".rstrip())
        if row.id in near:
            lines.append(f"  {'':<{ids}}  {'':<{operations}}  {_nearest(near[row.id])}")
    return "\n".join(lines)


def _why(row: RowTrace) -> str:
    if row.held:
        held = " and ".join(output.condition(t.signal, t.operator, t.constant) for t in row.tests) or "asks nothing"
        return held if row.fired else f"{held}, but a row before it fires"
    failed = [f"{t.signal} {output.difference(t.value, t.operator, t.constant)}" for t in row.tests if not t.held]
    return "; ".join(failed)


def _nearest(miss: Miss) -> str:
    if miss.changes is None:
        return miss.reason
    return "would fire with " + ", ".join(f"{c.path} {_shown(c.before)} → {_shown(c.after)}" for c in miss.changes)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    if value is None:
        return "missing"
    return json.dumps(value) if isinstance(value, bool | int | float) else "unreadable"
