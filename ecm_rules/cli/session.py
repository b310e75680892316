"""`ecm-rules run TRANSCRIPT`: what the policy decides for a recorded session, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
import typer
from rich.console import Console
from rich.text import Text

from ecm_rules.cli import output
from ecm_rules.engine import program
from ecm_rules.kernel.sessions import NoSession, Session, measure
from ecm_rules.tables.models import Declared, Step

_WIDTH = 60
_MOST = 10**12


def run(
    transcript: Annotated[str, typer.Argument(metavar="TRANSCRIPT", help="A Claude Code transcript (.jsonl).")],
    window_tokens: Annotated[
        int | None,
        typer.Option(
            "--window-tokens", min=1, max=_MOST, metavar="N", help="Tokens that the window holds. Default: the model's."
        ),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(
            "--budget-tokens", min=1, max=_MOST, metavar="N", help="The session's budget. Default: the project's."
        ),
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Read a recorded session, measure its window, decide, and show why. Exit 2 where it cannot be read."""
    from ecm_rules.engine.policy import load_policy

    with output.refusals(project):
        policy = load_policy(project=project)
    try:
        session = measure(policy, transcript, window=window_tokens, budget=budget_tokens)
    except (OSError, NoSession) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        output.say(f"{output.printable(transcript)}: {reason.lower()}")
        raise typer.Exit(output.UNREADABLE) from None
    if as_json:
        output.document(
            {
                "transcript": {
                    "path": transcript,
                    "model": session.model,
                    "records": session.records,
                    "bad_lines": session.bad_lines,
                },
                "meter": session.meter,
                "verdict": session.verdict.to_dict(),
                "trace": [attrs.asdict(row) for row in session.trace],
            }
        )
        return
    console = output.console()
    _heading(console, session)
    _gauge(console, session.meter, policy.table.zones)
    _signals(console, session, policy.table.vocabulary.declared())
    _rows(console, session, {row.id: row.why for row in policy.table.rows})
    _steps(console, session, {step.name: step for step in policy.table.vocabulary.steps})


def _heading(console: Console, session: Session) -> None:
    facts = [session.model or "model unknown", f"{session.records:,} records"]
    if session.bad_lines:
        facts.append(f"{session.bad_lines:,} of its lines unreadable")
    if session.verdict.role != program.ROLES[0]:
        facts.append(f"decided for a {session.verdict.role}")
    elif session.meter["session_id"]:
        facts.append(f"session {session.meter['session_id']}")
    console.print(Text(output.printable(" · ".join(facts)), "dim"))


def _gauge(console: Console, meter: dict[str, Any], zones: Mapping[str, float]) -> None:
    """A bar in the colours of the zones that it crosses, a ruler of their thresholds below it."""
    utilization, width = meter["utilization"], min(_WIDTH, console.width - 20)
    filled = round((utilization or 0) * width)
    starts = sorted([("green", 0.0), *zones.items()], key=lambda zone: zone[1])
    ends = [start for _, start in starts[1:]] + [1.0]
    bar, ruler = Text("  "), Text("  ")
    for (name, start), end in zip(starts, ends, strict=True):
        style, left, right = output.ZONE_STYLES[name], round(start * width), round(end * width)
        full = min(max(filled - left, 0), right - left)
        bar.append("█" * full + "░" * (right - left - full), style)
        label = f"{name} {output.percent(start)}" if start else name
        ruler.append(" " * (left + 2 - len(ruler)) + label + " ", style)
    ruler.rstrip()
    console.print()
    if utilization is None:
        console.print(bar.append("  unknown", "bold"))
    else:
        console.print(bar.append(f"  {utilization:.1%} ", "bold").append_text(output.zone_text(meter["zone"])))
    console.print(ruler)
    used, window, basis = meter["used_tokens_est"], meter["window_tokens"], output.printable(meter["basis"])
    tokens = "" if used is None else f"{used:,} of {window:,} tokens, from the " if window else f"{used:,} tokens, "
    console.print(Text(f"  {tokens}{basis}", "dim"))
    if utilization is None and not window:
        console.print(Text("  give the model's window with --window-tokens N", "dim"))


def _signals(console: Console, session: Session, declared: dict[str, Declared]) -> None:
    console.print("\nSignals", style="bold")
    missing = set(session.verdict.missing)
    shown = {}
    for name, value in session.verdict.signals.items():
        shown[name] = (
            output.number(value) if isinstance(value, int) and not isinstance(value, bool) else output.value(value)
        )
        if name in missing and value is not None:
            shown[name] = f"missing, read as {shown[name]}"
    names, values = max(map(len, shown)), max(map(len, shown.values()))
    for name, text in shown.items():
        line = Text(f"  {name:<{names}}  ").append(f"{text:<{values}}", "dim" if name in missing else "")
        console.print(line.append(f"  {declared[name].why}", "dim"))
    for fault in session.verdict.degraded:
        console.print(Text(f"  degraded: {fault.path}: {fault.reason}", "yellow"))


def _rows(console: Console, session: Session, why: dict[str, str]) -> None:
    console.print("\nRows, the first that holds wins", style="bold")
    width = max(len(row.operation) for row in session.trace)
    for row in session.trace:
        if row.fired:
            conditions = (
                " and ".join(output.condition(t.signal, t.operator, t.constant) for t in row.tests) or "nothing asked"
            )
            fired = Text(f"  ✓ {row.id}  {row.operation:<{width}}", "bold green")
            console.print(fired.append(f"  {conditions}: {why[row.id]}", "default not bold"))
            return
        failed = next(test for test in row.tests if not test.held)
        told = output.difference(failed.value, failed.operator, failed.constant)
        console.print(Text(f"  ✗ {row.id}  {row.operation:<{width}}  {failed.signal} {told}", "dim"))
    console.print("  none of them holds")


def _steps(console: Console, session: Session, known: dict[str, Step]) -> None:
    verdict = session.verdict
    remapped = (
        f" (a {verdict.role}, so not {verdict.raw_operation})" if verdict.operation != verdict.raw_operation else ""
    )
    console.print(
        Text(f"\n→ {verdict.operation}", "bold").append(
            f"{remapped}{':' if verdict.steps else ': nothing to do'}", "default not bold"
        )
    )
    for number, name in enumerate(verdict.steps, 1):
        step = known[name]
        line = Text(f"  {number}. {name}").append(f"  {step.surface}{', loses content' if step.lossy else ''}", "cyan")
        console.print(line.append(f"  {step.why}", "dim"))
