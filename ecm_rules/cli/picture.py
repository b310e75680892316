"""A measured session as a person sees it: gauge, signals, the rows and why, the steps that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ecm_rules.cli import output
from ecm_rules.engine import program
from ecm_rules.engine.policy import Policy
from ecm_rules.kernel.sessions import Session
from ecm_rules.kernel.status import Status
from ecm_rules.tables.findings import printable
from ecm_rules.tables.models import Declared, Step

_WIDTH = 60
_NARROWEST = 40
_ZONE_STYLES = {"green": "green", "amber": "yellow", "red": "red", "critical": "bold red", "unknown": "dim"}


def show(session: Session, policy: Policy) -> None:
    """Print it: in colour on a terminal, plain in a pipe or with NO_COLOR; lines are never wrapped for a pipe."""
    console, table = _console(), policy.table
    _heading(console, session)
    _gauge(console, session.meter, table.zones)
    _signals(console, session, table.vocabulary.declared())
    _rows(console, session, {row.id: row.why for row in table.rows})
    _steps(console, session, {step.name: step for step in table.vocabulary.steps})


def show_status(status: Status) -> None:
    """Print a meter: the gauge, what else was measured, and where it was written."""
    console, meter = _console(), status.meter
    facts = [
        f"compactions {meter['compaction_count']}",
        f"tool results {meter['tool_result_share_est']:.0%} of the content",
    ]
    budget = meter["budget"]
    if budget["spent_tokens_est"] is not None:
        ceiling = f" of {output.number(budget['ceiling_tokens'])}" if budget["ceiling_tokens"] else ""
        facts.append(f"spent {output.number(budget['spent_tokens_est'])}{ceiling} tokens")
    elif budget["ceiling_tokens"]:
        facts.append(f"budget {output.number(budget['ceiling_tokens'])} tokens")
    facts.append(f"turns since the last checkpoint {meter['externalize_age_turns']}")
    if meter["session_id"]:
        console.print(Text(printable(f"session {meter['session_id']}"), "dim"))
    _gauge(console, meter, status.zones)
    console.print(Text("  " + " · ".join(facts), "dim"))
    console.print(Text(f"  written to {status.path}" if status.path else "  not written", "dim"))


def _console() -> Console:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < _NARROWEST:
        console.width = _NARROWEST
    return console


def _heading(console: Console, session: Session) -> None:
    facts = [session.model or "model unknown", f"{session.records:,} records"]
    if session.bad_lines:
        facts.append(f"{session.bad_lines:,} of its lines unreadable")
    if session.verdict.role != program.ROLES[0]:
        facts.append(f"decided for a {session.verdict.role}")
    elif session.meter["session_id"]:
        facts.append(f"session {session.meter['session_id']}")
    console.print(Text(printable(" · ".join(facts)), "dim"))


def _gauge(console: Console, meter: dict[str, Any], zones: Mapping[str, float]) -> None:
    """A bar in the colours of the zones that it crosses, a ruler of their thresholds below it."""
    utilization, width = meter["utilization"], min(_WIDTH, console.width - 20)
    filled = round((utilization or 0) * width)
    starts = sorted([("green", 0.0), *zones.items()], key=lambda zone: zone[1])
    ends = [start for _, start in starts[1:]] + [1.0]
    bar, ruler = Text("  "), Text("  ")
    for (name, start), end in zip(starts, ends, strict=True):
        style, left, right = _ZONE_STYLES[name], round(start * width), round(end * width)
        full = min(max(filled - left, 0), right - left)
        bar.append("█" * full + "░" * (right - left - full), style)
        label = f"{name} {output.percent(start)}" if start else name
        ruler.append(" " * (left + 2 - len(ruler)) + label + " ", style)
    ruler.rstrip()
    console.print()
    if utilization is None:
        console.print(bar.append("  unknown", "bold"))
    else:
        console.print(
            bar.append(f"  {utilization:.1%} ", "bold").append(meter["zone"], _ZONE_STYLES.get(meter["zone"], ""))
        )
    console.print(ruler)
    used, window, basis = meter["used_tokens_est"], meter["window_tokens"], printable(meter["basis"])
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
