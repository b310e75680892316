"""`ecm-rules budget`: what a thread's sessions and subagents have spent. Exits 0 whatever happens, 2 on bad usage."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable

if TYPE_CHECKING:
    from ecm_rules.kernel.budget import Budget

_WIDEST = 60


def budget(
    session_id: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="A session of the thread. Default: the one measured last."),
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what the sessions and subagents of a thread have spent, against the ceiling."""
    from ecm_rules.kernel.budget import budget as read

    found = read(project, session_id)
    for complaint in found.complaints:
        output.say(printable(complaint))
    try:
        if as_json:
            output.document(found.to_dict())
        else:
            _show(found)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        output.broken_output(error)


def _show(found: Budget) -> None:
    """Print it: in colour on a terminal, plain in a pipe or with NO_COLOR; lines are never wrapped for a pipe."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if found.sessions:
        console.print(Text(f"thread {printable(found.thread or '')}\n", "bold"))
        lines = _lines(found)
        width = min(max(len(name) for name, _ in lines), _WIDEST)
        figures = max(len(figure) for _, figure in lines)
        for name, figure in lines:
            console.print(f"  {name:<{width}}  {figure:>{figures}}", style="dim" if name.startswith(" ") else None)
        console.print()
    else:
        console.print("no session has reported")
    style = "bold red" if found.left == 0 else "bold"
    console.print(Text(f"spent  {_tokens(found.spent)}{_share(found)}", style))
    if found.ceiling is None:
        console.print("left   no ceiling is set")
    else:
        console.print(f"left   {_tokens(found.left)}")
    if found.unread:
        console.print(Text(f"{found.unread:,} of the lines of the ledger could not be read", "yellow"))


def _lines(found: Budget) -> list[tuple[str, str]]:
    """What each session spent itself, and below it what each of its subagents did."""
    lines = []
    for account in found.sessions:
        behind = f", after {account.predecessor}" if account.predecessor else ""
        lines.append((printable(f"session {account.session}{behind}"), _figure(account.own)))
        lines += [(printable(f"  subagent {agent}"), _figure(spent)) for agent, spent in account.agents.items()]
    return lines


def _share(found: Budget) -> str:
    if found.ceiling is None:
        return ""
    share = "" if found.spent is None else f", {found.spent / found.ceiling:.1%}"
    return f" of {found.ceiling:,.0f}{share}"


def _tokens(count: float | None) -> str:
    return "unknown" if count is None else f"{count:,.0f} tokens"


def _figure(count: float | None) -> str:
    return "not reported" if count is None else f"{count:,.0f}"
