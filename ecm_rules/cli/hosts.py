"""`ecm-rules install`, `remove` and `doctor`: a project's clients wired, taken out and examined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import ERROR, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ecm_rules.hosts.installing.install import Outcome, Wired

_Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="HOST", help="A client; repeatable. `agents-md` is any other one's AGENTS.md."),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change as a unified diff; write nothing.")]
_Project = Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")]


def install(host: _Hosts = None, dry_run: _DryRun = False, project: _Project = ".") -> None:
    """Wire the clients of a project, by default those that it is used with, and switch the project on."""
    from ecm_rules.hosts.installing.install import install as run

    _report(run, project, host or [], dry_run, "installed")


def remove(host: _Hosts = None, dry_run: _DryRun = False, project: _Project = ".") -> None:
    """Take out what `install` wrote, to the byte: for the clients that are named, else for all."""
    from ecm_rules.hosts.installing.install import remove as run

    _report(run, project, host or [], dry_run, "removed")


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Install again what is missing, and look again.")] = False,
    project: _Project = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run each installed hook once, and say what is wired, measured and missing. Exit 1 on errors."""
    from ecm_rules.cli.examined import as_data, show
    from ecm_rules.hosts.installing.doctor import examine, repair

    with output.refusals(project):
        found = repair(project) if fix else examine(project)
    if as_json:
        output.document(as_data(found))
    else:
        show(found)
    if any(finding.severity == ERROR for finding in found.findings):
        raise typer.Exit(output.FINDINGS)


def _report(run: Callable[..., Outcome], project: str, names: list[str], dry_run: bool, done: str) -> None:
    from ecm_rules.hosts.installing.install import UnknownHost

    with output.refusals(project):
        try:
            outcome = run(project, names, dry_run)
        except UnknownHost as error:
            output.say(str(error))
            raise typer.Exit(output.UNREADABLE) from None
    if dry_run:
        print(outcome.diff, end="")
    else:
        for wired in outcome.hosts:
            if not wired.findings:
                print(_line(wired, done))
        if outcome.changed and not outcome.findings:
            print(f"{len(outcome.changed)} file{'s' * (len(outcome.changed) > 1)} written, `git diff` shows them")
    for wired in outcome.hosts:
        for file, key in wired.foreign:
            output.say(f"{wired.install.title}: `{key}` in {printable(file)} is not ours, and stays as it is")
    for note in outcome.notes:
        output.say(note)
    for finding in outcome.findings:
        output.say(_rendered(finding))
    if outcome.findings or (done == "installed" and not outcome.hosts):
        raise typer.Exit(output.FINDINGS)


def _line(wired: Wired, done: str) -> str:
    host = wired.install
    files = (
        ", ".join(wired.files)
        if wired.files
        else f"nothing to do, {done} already"
        if done == "installed"
        else "nothing"
    )
    return f"{host.title} ({host.tier}, {host.channel}): {printable(files)}"


def _rendered(finding: Any) -> str:
    from ecm_rules.tables.findings import render

    return render([finding])
