"""`ecm-rules externalize` and `ecm-rules handoff`: the drop-ins for `eidolons context externalize` and `handoff`.

They exit 0 whatever happens, 2 on bad usage; nothing is claimed to be saved that was not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable

if TYPE_CHECKING:
    from ecm_rules.kernel.checkpoints import Answer
    from ecm_rules.kernel.collect import Collected

_LONGEST = 500

Summary = Annotated[str, typer.Option("--summary", metavar="TEXT", help="What the checkpoint is about.")]
Anchors = Annotated[list[str] | None, typer.Option("--anchor", metavar="PATH:LINE", help="A place; repeatable.")]
Symbols = Annotated[list[str] | None, typer.Option("--symbol", metavar="NAME", help="A symbol; repeatable.")]
Decisions = Annotated[list[str] | None, typer.Option("--decision", metavar="ID", help="A decision; repeatable.")]
Failed = Annotated[
    list[str] | None, typer.Option("--failed-approach", metavar="TEXT", help="What did not work; repeatable.")
]
Variables = Annotated[list[str] | None, typer.Option("--open-var", metavar="TEXT", help="What is open; repeatable.")]
Steps = Annotated[list[str] | None, typer.Option("--next-step", metavar="TEXT", help="What comes next; repeatable.")]
Scope = Annotated[str | None, typer.Option("--scope-project", metavar="SLUG", help="The memory's name of the project.")]
Session = Annotated[str | None, typer.Option("--session-id", metavar="ID", help="The session.")]
Origin = Annotated[bool, typer.Option("--contains-tool-origin", help="Text from tools is in it.")]
Collect = Annotated[
    str | None, typer.Option("--collect", metavar="TRANSCRIPT", help="Add the identifiers of this transcript.")
]
Emergency = Annotated[
    bool, typer.Option("--emergency", help="Of the transcript's end: anchors, to-dos and the last request alone.")
]
Agent = Annotated[str | None, typer.Option("--agent", metavar="ID", help="Of the transcript, what this subagent did.")]
Store = Annotated[str | None, typer.Option("--store", metavar="DIR", help="A folder that serves as the memory.")]
Project = Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def externalize(
    summary: Summary = "",
    anchors: Anchors = None,
    symbols: Symbols = None,
    decisions: Decisions = None,
    failed_approaches: Failed = None,
    open_vars: Variables = None,
    envelope: Annotated[
        str | None, typer.Option("--envelope", metavar="FILE", help="An envelope that the memory ingests.")
    ] = None,
    scope_project: Scope = None,
    session_id: Session = None,
    contains_tool_origin: Origin = False,
    collect: Collect = None,
    emergency: Emergency = False,
    agent: Agent = None,
    store: Store = None,
    project: Project = ".",
    as_json: AsJson = False,
) -> None:
    """Write down what a lossy operation would lose: to the memory, else to a file."""
    from ecm_rules.kernel import checkpoints

    facts = {
        "summary": summary,
        **_listed(anchors, symbols, decisions, failed_approaches, open_vars),
        "contains_tool_origin": contains_tool_origin,
        "scope_project": scope_project,
        "envelope": envelope,
    }
    facts, collected, complaints = _collected(facts, collect, emergency, agent)
    answer = checkpoints.externalize(project, facts, session=session_id, store=_store(store))
    _say(complaints, answer)
    told = answer.told
    if told["commit_ok"]:
        text = "saved to the memory"
    elif told["file_floor_path"]:
        text = f"saved to {told['file_floor_path']}"
    else:
        text = "nothing was saved"
    if told["ingest_ok"]:
        text += "; the envelope was ingested"
    _show(answer, collected, [text], as_json)


def handoff(
    task_state: Annotated[str, typer.Option("--task-state", metavar="TEXT", help="Where the task stands.")] = "",
    narrative: Annotated[str, typer.Option("--narrative", metavar="TEXT", help="What led there.")] = "",
    anchors: Anchors = None,
    symbols: Symbols = None,
    decisions: Decisions = None,
    failed_approaches: Failed = None,
    open_vars: Variables = None,
    next_steps: Steps = None,
    thread_id: Annotated[
        str | None, typer.Option("--thread-id", metavar="ID", help="The thread. Default: the session's id, else new.")
    ] = None,
    session_id: Session = None,
    scope_project: Scope = None,
    contains_tool_origin: Origin = False,
    profile: Annotated[
        str, typer.Option("--profile", metavar="kernel|ecl", help="The envelope: the nexus' own, or valid by ECL 2.0.")
    ] = "kernel",
    collect: Collect = None,
    emergency: Emergency = False,
    agent: Agent = None,
    store: Store = None,
    project: Project = ".",
    as_json: AsJson = False,
) -> None:
    """Leave a brief and its envelope for the session that takes over."""
    from ecm_rules.kernel import checkpoints
    from ecm_rules.kernel.handoffs import PROFILES

    if profile not in PROFILES:
        raise typer.BadParameter(f"found {profile!r}, expected {' or '.join(PROFILES)}", param_hint="--profile")
    facts = {
        "task_state": task_state,
        "narrative": narrative,
        **_listed(anchors, symbols, decisions, failed_approaches, open_vars),
        "next_steps": next_steps or [],
        "contains_tool_origin": contains_tool_origin,
        "thread_id": thread_id,
        "scope_project": scope_project,
        "profile": profile,
    }
    facts, collected, complaints = _collected(facts, collect, emergency, agent)
    answer = checkpoints.handoff(project, facts, session=session_id, store=_store(store))
    _say(complaints, answer)
    told = answer.told
    lines = [f"brief     {told['brief_path'] or 'not saved'}", f"envelope  {told['envelope_path'] or 'not saved'}"]
    if told["tokens_est"] is not None:
        over = ", more than is aimed at; nothing was cut" if told["oversize"] else ""
        lines.append(f"size      {told['tokens_est']:,} tokens{over}")
    _show(answer, collected, lines, as_json)


def _listed(*given: list[str] | None) -> dict[str, Any]:
    keys = ("anchors", "symbols", "decisions", "failed_approaches", "open_vars")
    return {key: values or [] for key, values in zip(keys, given, strict=True)}


def _collected(
    facts: dict[str, Any], path: str | None, emergency: bool, agent: str | None
) -> tuple[dict[str, Any], Collected | None, list[str]]:
    """(the facts and what the transcript adds to them, that, complaints)."""
    if path is None:
        for option in ("--emergency",) * emergency + ("--agent",) * (agent is not None):
            raise typer.BadParameter("found no --collect, expected a transcript", param_hint=option)
        return facts, None, []
    from ecm_rules.kernel.collect import Collected, collect_file

    try:
        found = collect_file(path, emergency, agent=agent)
    except OSError as error:
        return facts, Collected(), [f"{path}: {error.strerror or error}"]
    except Exception as error:  # fails open, whatever it is
        return facts, Collected(), [f"{path}: {error.__class__.__name__}: {error}"]
    return found.added_to(facts), found, [f"{path}: {found.unread}"] if found.unread else []


def _store(path: str | None) -> Any:
    if path is None:
        return None
    from ecm_rules.kernel.stores import Directory

    return Directory(path)


def _say(complaints: list[str], answer: Answer) -> None:
    """All complaints on one line, as a hook's log has it."""
    told = "; ".join([*complaints, *answer.complaints])
    if told:
        line = printable(" ".join(told.split()))
        output.say(line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…")


def _show(answer: Answer, collected: Collected | None, lines: list[str], as_json: bool) -> None:
    more = {} if collected is None else {"collected": collected.to_list()}
    try:
        if as_json:
            output.document(answer.told | more)
        else:
            if collected is not None:
                from_tools = ", some of them from tools" if collected.contains_tool_origin else ""
                lines = [*lines, f"collected {len(collected.identifiers)} identifiers{from_tools}"]
            print("\n".join(printable(line) for line in lines))
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # what was saved is saved
        output.broken_output(error)
