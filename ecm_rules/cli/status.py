"""`ecm-rules status`: the drop-in for `eidolons context status`. Exits 0 whatever happens, 2 on bad usage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ecm_rules.cli import output


def status(
    used_percentage: Annotated[
        str | None, typer.Option("--used-percentage", metavar="0-100", help="The client's own reading of the window.")
    ] = None,
    transcript: Annotated[
        str | None,
        typer.Option("--transcript", metavar="PATH", help="The session's transcript, of any client; else bytes ÷ 4."),
    ] = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read a payload of a client's hook or statusline. Options beat it.")
    ] = False,
    session_id: Annotated[str | None, typer.Option("--session-id", metavar="ID", help="The session.")] = None,
    subagent: Annotated[
        bool, typer.Option("--subagent", help="Measure a subagent, whose meter has its --session-id in its name.")
    ] = False,
    window_tokens: Annotated[
        str | None,
        typer.Option("--window-tokens", metavar="N", help="Tokens that the window holds. Where nobody knows: 200000."),
    ] = None,
    tool_result_share: Annotated[
        str | None, typer.Option("--tool-result-share", metavar="0-1", help="In the place of what is measured.")
    ] = None,
    compaction_count: Annotated[
        str | None, typer.Option("--compaction-count", metavar="N", help="In the place of what is measured.")
    ] = None,
    budget_ceiling: Annotated[
        str | None,
        typer.Option(
            "--budget-ceiling", metavar="N", help="The budget in tokens. Default: the project's, or as before."
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="NAME", help="Who sent the payload. Default: known by its keys.")
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print the meter that was written.")] = False,
) -> None:
    """Measure the window and write the meter."""
    from ecm_rules.kernel.status import MAX_PAYLOAD, Flags, UnknownHost, refresh

    flags = Flags(
        used_percentage,
        transcript,
        session_id,
        subagent,
        window_tokens,
        tool_result_share,
        compaction_count,
        budget_ceiling,
        host,
    )
    try:
        found = refresh(project, flags, output.standard_input(MAX_PAYLOAD) if stdin else None)
    except UnknownHost as error:
        output.say(str(error))
        raise typer.Exit(output.UNREADABLE) from None
    except Exception as error:  # fails open, whatever it is
        output.say(f"not measured: {error.__class__.__name__}: {error}")
        return
    if found.complaints:
        output.say("; ".join(" ".join(complaint.split()) for complaint in found.complaints))
    try:
        if as_json:
            output.document(found.meter)
        else:
            from ecm_rules.cli.picture import show_status

            show_status(found)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # the meter is written; whoever cannot read it is not stopped either
        output.broken_output(error)
