"""`ecm-rules lifecycle`: what Markdown declares, what a request's view makes of it, and what was audited."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import EcmError, Finding, printable, render, shown, suggest

if TYPE_CHECKING:
    from ecm_rules.lifecycle import Document, Session, Shape

app = typer.Typer(
    name="lifecycle",
    help="Read declared lifetimes of messages and blocks, and show what they do to a request.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Place(enum.StrEnum):
    last = "last"
    first = "first"
    system = "system"


@app.command("parse")
def parse(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Markdown files; - reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Print what Markdown files declare, as if they were loaded in this order. Exit 1 where one declares something in
    vain, 2 where one cannot be read.
    """
    from ecm_rules.cli import inputs, lifetimes
    from ecm_rules.lifecycle import conflicts_of, findings_of, grammar

    read: list[Document] = []
    found: dict[str, list[Finding]] = {}
    refused: list[Finding] = []
    for path in dict.fromkeys(files):
        try:
            text = inputs.markdown(path)
        except EcmError as error:
            refused += error.findings
            continue
        document = grammar.parse(text, inputs.name(path))
        read.append(document)
        found[document.source] = findings_of(document, text, document.source)
    for finding in conflicts_of(read):
        found[finding.file].append(finding)
    for findings in found.values():
        findings.sort(key=lambda finding: finding.line)
    if refused:
        output.say(render(refused))
    if as_json:
        output.document(lifetimes.documents(read, found))
    else:
        lifetimes.show_documents(read, found)
    if refused:
        raise typer.Exit(output.UNREADABLE)
    if any(found.values()):
        raise typer.Exit(output.FINDINGS)


@app.command("view")
def view(
    messages: Annotated[
        str, typer.Argument(metavar="MESSAGES", help="The history, a JSON list of messages; - reads stdin.")
    ],
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="FILE", help="Markdown that is loaded as context; repeatable."),
    ] = None,
    controls: Annotated[
        list[str] | None,
        typer.Option("--control", metavar="FILE", help="Markdown whose discard lines a workflow gives; repeatable."),
    ] = None,
    shape: Annotated[str, typer.Option("--shape", metavar="NAME", help="How messages are read.")] = "neutral",
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="FILE", help="Go on with the session in this file, and keep it there."),
    ] = None,
    inject: Annotated[Place, typer.Option("--inject", help="Where active blocks go.")] = Place.last,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project whose layer is applied.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what a request sends in the place of a history, and why. Exit 2 where something cannot be read or kept."""
    from ecm_rules.cli import inputs, lifetimes
    from ecm_rules.lifecycle import Session, Source, conflicts_of, load_trust

    messages_are = _shape(shape)
    if [messages, *(sources or ()), *(controls or ())].count(inputs.STDIN) > 1:
        raise typer.BadParameter("stdin is read once: give one - alone")
    with output.refusals(project, output.UNREADABLE):
        session = Session(load_trust(project), shape=messages_are, inject=inject.value)
        history = inputs.history(messages)
        loaded = [(path, inputs.markdown(path)) for path in sources or ()]
        ordered = [(path, inputs.markdown(path)) for path in controls or ()]
        if state is not None:
            _restore(session, state)
    before = len(session.audit)
    declared = [(session.load_source(text, path), text) for path, text in loaded]
    given = [(session.control(text, Source(path, "host_workflow")), text) for path, text in ordered]
    seen = session.view(history)
    held = {block["id"]: (block["source"], block["content"]) for block in session.blocks}
    findings = [*_findings(declared + given), *conflicts_of([document for document, _ in declared], held)]
    told = lifetimes.viewed(seen, session.audit[before:], findings)
    text = json.dumps(told, allow_nan=False) if as_json else ""
    if state is not None:
        _keep(session, state)
    if as_json:
        print(text)
        return
    if findings:
        output.say(render(findings[: lifetimes.MOST]))
    lifetimes.show_view(seen, session, history, session.audit[before:])


@app.command("audit")
def audit(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A file that `view --state` keeps.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Print what was audited in a session, oldest first, and its blocks. Exit 2 where the file holds no session."""
    from ecm_rules.cli import inputs, lifetimes
    from ecm_rules.lifecycle import Session, Trust

    session = Session(Trust({}))  # it is read, and asked nothing
    with output.refusals(code=output.UNREADABLE):
        if not _restore(session, state):
            raise inputs.unreadable(state, "cannot be read: no such file or directory", "check the path")
    if as_json:
        output.document(lifetimes.audited(session))
        return
    lifetimes.show_audit(session)


def _shape(name: str) -> Shape:
    from ecm_rules.lifecycle import SHAPES

    if name not in SHAPES:
        raise typer.BadParameter(f"found {shown(name)}, {suggest(name, SHAPES)}", param_hint="--shape")
    return SHAPES[name]


def _findings(documents: list[tuple[Document, str]]) -> list[Finding]:
    from ecm_rules.lifecycle import findings_of

    return [found for document, text in documents for found in findings_of(document, text, document.source)]


def _restore(session: Session, path: str) -> bool:
    """Go on with what a file keeps; false where there is none. Raises EcmError where the file holds something else."""
    from ecm_rules.cli import inputs

    try:
        snapshot = inputs.state(path)
    except FileNotFoundError:
        return False
    try:
        session.restore(snapshot)
    except ValueError as error:
        raise inputs.unreadable(path, f"found {error}", "give a file that `view --state` wrote") from None
    return True


def _keep(session: Session, path: str) -> None:
    from ecm_rules.cli import inputs
    from ecm_rules.kernel import files

    try:
        data = json.dumps(session.snapshot()).encode()
        if len(data) > inputs.MAX_BYTES:
            raise ValueError(f"more than {inputs.MAX_BYTES} bytes, which could not be read again")
        files.replace(path, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        output.say(f"{printable(path)}: not kept: {reason.lower()}")
        raise typer.Exit(output.UNREADABLE) from None
