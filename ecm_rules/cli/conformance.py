"""`ecm-rules conformance KIND FILE…`: language-neutral vectors, for us and for anyone who ports a part."""

from __future__ import annotations

from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable


def conformance(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What the vectors are about: policy.")],
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of vectors, one JSON object a line.")],
) -> None:
    """Run conformance vectors against the shipped tables. Exit 1 on a failure."""
    from ecm_rules.engine.policy import load_policy
    from ecm_rules.kernel.conformance import RUNNERS

    if kind not in RUNNERS:
        raise typer.BadParameter(f"unknown kind {kind!r}, known: {', '.join(RUNNERS)}", param_hint="KIND")
    passed = failed = 0
    with output.refusals():
        policy = load_policy(project=None)
    for path in files:
        shown = printable(path)
        try:
            for result in RUNNERS[kind](policy, path):
                passed += result.passed or result.contested
                failed += not (result.passed or result.contested)
                if not result.passed:
                    word = "contested" if result.contested else "failed"
                    told = f"given {result.given}; expected {result.expected}; seen {result.seen}"
                    print(f"{shown}: {printable(result.name)}: {word}: {told}")
        except (OSError, ValueError, RecursionError) as error:
            output.say(f"{shown}: {getattr(error, 'strerror', None) or error}")
            raise typer.Exit(output.UNREADABLE) from None
    print(f"{passed} passed, {failed} failed")
    if failed or not passed:
        raise typer.Exit(output.FINDINGS)
