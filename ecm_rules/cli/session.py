"""`ecm-rules run TRANSCRIPT`: what the policy decides for a recorded session, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable

_MOST = 10**12


def run(
    transcript: Annotated[
        str, typer.Argument(metavar="TRANSCRIPT", help="The transcript of a session, as its client wrote it.")
    ],
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
    import attrs

    from ecm_rules.cli.picture import show
    from ecm_rules.engine.policy import load_policy
    from ecm_rules.kernel.sessions import NoSession, measure

    with output.refusals(project):
        policy = load_policy(project=project)
    try:
        session = measure(policy, transcript, window=window_tokens, budget=budget_tokens)
    except (OSError, NoSession) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        output.say(f"{printable(transcript)}: {reason}")
        raise typer.Exit(output.UNREADABLE) from None
    if as_json:
        output.document(
            {
                "transcript": {
                    "path": transcript,
                    "format": session.format,
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
    show(session, policy)
