"""The command line: one module a family of commands. It renders and decides nothing."""

from __future__ import annotations

import typer

from ecm_rules.cli import (
    budget,
    check,
    checkpoints,
    conformance,
    decide,
    diff,
    envelopes,
    explain,
    fmt,
    hosts,
    lifecycle,
    output,
    pins,
    policy,
    scenarios,
    schema,
    session,
    status,
    table,
)

app = typer.Typer(
    name="ecm-rules",
    help="Decide from observable signals what a coding session does with its context window.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(session.run)
app.command("install")(hosts.install)
app.command("remove")(hosts.remove)
app.command("doctor")(hosts.doctor)
app.command("status")(status.status)
app.command("policy")(policy.policy)
app.command("externalize")(checkpoints.externalize)
app.command("handoff")(checkpoints.handoff)
app.command("verify-envelope")(envelopes.verify_envelope)
app.command("budget")(budget.budget)
app.command("decide")(decide.decide)
app.command("check")(check.check)
app.command("explain")(explain.explain)
app.command("diff")(diff.diff)
app.command("test")(scenarios.scenarios)
app.command("table")(table.table)
app.add_typer(pins.app, name="pins")
app.command("fmt")(fmt.fmt)
app.command("schema")(schema.schema)
app.add_typer(lifecycle.app)
app.command("conformance")(conformance.conformance)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from ecm_rules import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point of the console script."""
    with output.safe_streams():
        app()
