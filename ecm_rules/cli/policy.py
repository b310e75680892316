"""`ecm-rules policy`: the drop-in for `eidolons context policy`. Exits 0 whatever happens, 2 on bad usage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ecm_rules.cli import output


def policy(
    meter: Annotated[
        str | None,
        typer.Option(
            "--meter", metavar="FILE|-", help="The meter; - reads stdin. Default: the project's, or the subagent's."
        ),
    ] = None,
    session_id: Annotated[str | None, typer.Option("--session-id", metavar="ID", help="The session that asks.")] = None,
    subagent: Annotated[
        bool, typer.Option("--subagent", help="Decide for a subagent: no budget row, no successors.")
    ] = False,
    policy_file: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="Another policy than the shipped one.")
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Evaluate the policy over a meter, print the verdict and log it."""
    from ecm_rules.kernel.policy import evaluate

    snapshot = output.standard_input() if meter == "-" else None
    answer = evaluate(project, snapshot=snapshot, path=meter, session=session_id, subagent=subagent, policy=policy_file)
    for complaint in answer.complaints:
        output.say(complaint)
    told = answer.told
    try:
        if as_json:
            output.document(told)
        else:
            print(
                f"operation: {told['operation']}  (rule {told['rule'] or 'none'}, zone {told.get('zone', 'unknown')})"
            )
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # the verdict is logged; whoever cannot read it is not stopped either
        output.broken_output(error)
