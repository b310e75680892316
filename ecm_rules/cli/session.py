"""`ecm-rules run TRANSCRIPT`: what the policy decides for a recorded session, and why."""

from __future__ import annotations

from typing import Annotated, Any

import attrs
import typer
from rich.console import Console
from rich.text import Text

from ecm_rules.cli import output

_WIDTH = 60


def run(
    transcript: Annotated[str, typer.Argument(metavar="TRANSCRIPT", help="A Claude Code transcript (.jsonl).")],
    window_tokens: Annotated[
        int | None,
        typer.Option("--window-tokens", min=1, metavar="N", help="Tokens that the window holds. Default: the model's."),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option("--budget-tokens", min=1, metavar="N", help="The session's budget. Default: the project's."),
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Read a recorded session, measure its window, decide, and show why. Exit 2 where it cannot be read."""
    from ecm_rules.engine.policy import load_policy
    from ecm_rules.kernel.sessions import measure

    with output.refusals():
        policy = load_policy(project=project)
    try:
        session = measure(policy, transcript, window=window_tokens, budget=budget_tokens)
    except OSError as error:
        output.say(f"{transcript}: {(error.strerror or str(error)).lower()}")
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


def _heading(console: Console, session: Any) -> None:
    facts = [session.model or "model unknown", f"{session.records:,} records"]
    if session.bad_lines:
        facts.append(f"{session.bad_lines:,} lines could not be read")
    facts.append(
        f"decided for a {session.verdict.role}"
        if session.verdict.role != "orchestrator"
        else f"session {session.meter['session_id']}"
    )
    console.print(Text(output.printable(" · ".join(facts)), "dim"))


def _gauge(console: Console, meter: dict[str, Any], zones: Any) -> None:
    """A bar in the colours of the zones that it crosses, a ruler of their thresholds below it."""
    utilization, zone = meter["utilization"], meter["zone"]
    filled = round((utilization or 0) * _WIDTH)
    starts = sorted([("green", 0.0), *zones.items()], key=lambda z: z[1])
    bar, ruler, at = Text("  "), Text("  "), 0
    for index, (name, start) in enumerate(starts):
        end = starts[index + 1][1] if index + 1 < len(starts) else 1.0
        left, right = round(start * _WIDTH), round(end * _WIDTH)
        full = min(max(filled - left, 0), right - left)
        bar.append("█" * full + "░" * (right - left - full), output.ZONE_STYLES[name])
        label = f"{name} {output.percent(start)}" if start else name
        if left >= at:
            ruler.append(" " * (left - at) + label + " ", output.ZONE_STYLES[name])
            at = left + len(label) + 1
        else:
            ruler.append(label + " ", output.ZONE_STYLES[name])
            at += len(label) + 1
    console.print()
    reading = Text("  unknown" if utilization is None else f"  {utilization:.1%} ", "bold").append_text(
        output.zone_text(zone) if utilization is not None else Text()
    )
    console.print(bar.append_text(reading))
    console.print(ruler)
    window = f" of {output.number(meter['window_tokens'])}" if meter["window_tokens"] else ""
    used = (
        f"{output.number(meter['used_tokens_est'])}{window} tokens"
        if utilization is not None
        else "utilization unknown"
    )
    console.print(
        Text(
            f"  {used}, from the {output.printable(meter['basis'])}"
            if utilization is not None
            else f"  {used}: {output.printable(meter['basis'])}",
            "dim",
        )
    )
    if utilization is None and not meter["window_tokens"]:
        console.print(Text("  give the model's window with --window-tokens N", "dim"))


def _signals(console: Console, session: Any, declared: dict[str, Any]) -> None:
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


def _rows(console: Console, session: Any, why: dict[str, str]) -> None:
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


def _steps(console: Console, session: Any, known: dict[str, Any]) -> None:
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
