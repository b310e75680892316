"""The command line: one module a family of commands. It renders and decides nothing."""

from __future__ import annotations

import typer

from ecm_rules.cli import conformance, decide, policy, session, table

app = typer.Typer(
    name="ecm-rules",
    help="Decide from observable signals what a coding session does with its context window.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(session.run)
app.command("policy")(policy.policy)
app.command("decide")(decide.decide)
app.command("table")(table.table)
app.command("conformance")(conformance.conformance)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from ecm_rules import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point of the console script."""
    app()
