"""`doctor`: what is wired as it should be, what each hook answers, what was measured last, and what is missing."""

from __future__ import annotations

import os
import shlex
from datetime import UTC, datetime
from typing import Any

import attrs

from ecm_rules.engine.policy import load_policy
from ecm_rules.hosts.installing import changes, created, install, jsonc, lock, settings, texts, toml_lines, trial
from ecm_rules.hosts.installing.changes import Situation
from ecm_rules.hosts.installing.jobs import Change, Job
from ecm_rules.hosts.installing.projects import Tree
from ecm_rules.hosts.installing.trial import Trial
from ecm_rules.kernel import audit, meter
from ecm_rules.tables import installs
from ecm_rules.tables.findings import ERROR, WARNING, EcmError, Finding, Source, Span, in_order, shown
from ecm_rules.tables.installs import Install
from ecm_rules.tables.models import Table

UNWIRED = "ECM911"
UNFIT = "ECM912"
FOREIGN = "ECM913"
OFF = "ECM914"
_AGAIN = "`ecm-rules doctor --fix` installs it again"
_SLOW_BY_DEFAULT = 300


@attrs.frozen
class Examined:
    """One installed host: how many of its entries are in place, of how many, and what its hook did."""

    install: Install
    wired: int
    wanted: int
    trial: Trial | None


@attrs.frozen
class Diagnosis:
    """All of it. `meter` is the project's own, `age` its age in seconds; `digest` is that of the tables, None where
    they do not load; `notes` is what no file can tell.
    """

    enabled: bool
    digest: str | None
    meter: dict[str, Any] | None
    age: float | None
    hosts: tuple[Examined, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def repair(project: str) -> Diagnosis:
    """Install again for every host at fault, or for the hosts that are found where none is; then examine.

    Raises EcmError as `install` does.
    """
    found = examine(project)
    names = [host.install.host for host in found.hosts]
    if any(finding.severity == ERROR for finding in found.findings):
        refused = install.install(project, names).findings
        found = examine(project)
        kept = {(finding.file, finding.line, finding.message) for finding in found.findings}
        new = [finding for finding in refused if (finding.file, finding.line, finding.message) not in kept]
        found = attrs.evolve(found, findings=(*found.findings, *new))
    return found


def examine(project: str) -> Diagnosis:
    """Look at everything; nothing in the project is written. Raises nothing for what it finds."""
    findings: list[Finding] = []
    tree = Tree(project)
    known = lock.Lock({})
    try:
        known = lock.read(tree.read(lock.LOCK))
        on = lock.switched(tree.read(lock.PROJECT))
        findings += [] if on else [_off(on)]
    except EcmError as error:
        findings += error.findings
    table, digest = None, None
    try:
        table = install.table_of(project, None)
        digest = load_policy(project=project).digest
    except EcmError as error:
        findings += error.findings
    chosen = install.select(project, (), known, present=True)
    examined = [_host(project, tree, host, known, table, findings) for host in chosen]
    findings += _nothing(project, chosen)
    paths = table.audit if table is not None else {}
    seen = meter.load(os.path.join(project, audit.meter_of(paths, None)))
    measured = seen if isinstance(seen, dict) else None
    return Diagnosis(
        enabled=table is not None and table.enabled,
        digest=digest,
        meter=measured,
        age=_age(measured),
        hosts=tuple(examined),
        findings=tuple(in_order(findings)),
        notes=tuple(note for host in chosen for note in host.notes),
    )


def _host(
    project: str, tree: Tree, host: Install, known: lock.Lock, table: Table | None, findings: list[Finding]
) -> Examined:
    """Examine one host; what is wrong with it is added to `findings`."""
    entry = known.hosts.get(host.host)
    if entry is None:
        message = (
            f"found {host.title} wired and nothing about it in the lock, expected what is needed to restore its files"
        )
        findings.append(Finding(UNWIRED, lock.LOCK, 0, 0, message, _AGAIN))
    wired = wanted = 0
    command: str | list[str] | None = None
    try:
        window = changes.window_of(host, table, tree) if table is not None else None
        situation = Situation(changes.program(), table.zones if table is not None else {"red": 0.75}, window)
        jobs = changes.jobs(host, situation, entry.records if entry else ())
    except EcmError as error:
        findings += error.findings
        return Examined(host, 0, len(host.edits), None)
    for job in jobs:
        asked = sum(change.wanted for change in job.changes)
        wanted += asked
        try:
            text = tree.read(job.file)
            wrong, sound = _file(job, text)
            command = command or _command(job, text, situation.program)
        except EcmError as error:
            wrong, sound = list(error.findings), 0
        findings += wrong
        wired += sound
    tried = None
    if command is not None and table is not None:
        try:
            tried = trial.run(host, command, project)
        except EcmError as error:
            findings += error.findings
    findings += _tried(host, tried, table.limits.get("prompt_path_ms", _SLOW_BY_DEFAULT) if table else 0, jobs[0].file)
    return Examined(host, wired, wanted, tried)


def _file(job: Job, text: str | None) -> tuple[list[Finding], int]:
    """What is wrong with what is ours in a file, and how much of it is in place."""
    kind, asked = job.changes[0].kind, [change for change in job.changes if change.wanted]
    if kind in ("append", "set"):
        return _entries(job, text, asked)
    editor = install.editor_of(job)
    if text is None or (kind == "block" and editor.strip(job, text) == text):
        what = "file" if text is None else "block of ours"
        return [Finding(UNWIRED, job.file, 0, 0, f"found no {what}, expected one", _AGAIN)], 0
    if editor.put(job, text)[0] != text:
        return [Finding(UNWIRED, job.file, 0, 0, "found another text than this version writes", _AGAIN)], 0
    return [], 1


def _entries(job: Job, text: str | None, asked: list[Change]) -> tuple[list[Finding], int]:
    """The same of single entries."""
    if text is None:
        return [Finding(UNWIRED, job.file, 0, 0, f"found no file, expected {len(asked)} entries of ours", _AGAIN)], 0
    toml = job.file.endswith(".toml")
    said = toml_lines.parse(job.file, text) if toml else {}
    root = jsonc.parse(job.file, text) if not toml else None
    found = settings.occurrences(job, text) if not toml else []
    wrong: list[Finding] = []
    sound = 0
    for change in asked:
        place: jsonc.Value | None = None
        if change.kind == "append":
            here = [(path, command) for path, command in found if path[: len(change.at)] == change.at]
            place = jsonc.at(root, here[-1][0]) if here and root is not None else None
            message, severity = _hook(job, change, [command for _, command in here])
            code = UNWIRED
        else:
            place = jsonc.at(root, change.at) if root is not None else None
            there = place is not None or change.at[0] in said
            value = place.plain() if place is not None else said.get(change.at[0])
            code, severity, message = _value(job, change, there, value)
        if message:
            finding = _at(job.file, text, place, code, severity, message)
            wrong.append(finding)
        sound += not message
    wanted = {change.at for change in asked}
    for path, _ in found:
        if not any(path[: len(at)] == at for at in wanted):
            message = (
                f"found a hook of ours at `{'.'.join(p for p in path if isinstance(p, str))}`, expected none there"
            )
            wrong.append(_at(job.file, text, jsonc.at(root, path) if root else None, UNWIRED, ERROR, message))
    return wrong, sound


def _hook(job: Job, change: Change, commands: list[str]) -> tuple[str, str]:
    """What is wrong with the hooks that stand at one event, if anything, and how much that matters."""
    if not commands:
        return f"found no hook of ours at `{change.name}`, expected one", ERROR
    if len(commands) > 1:
        return f"found our hook {len(commands)} times at `{change.name}`, expected it once", ERROR
    if commands[0] == job.command:
        return "", ERROR
    program = shlex.split(commands[0])[0]
    gone = os.path.isabs(program) and not os.access(program, os.X_OK)
    found = f"found the command {shown(commands[0])} at `{change.name}`"
    if gone:
        return f"{found}, which is not there any more; expected {shown(job.command)}", ERROR
    return f"{found}, expected that of this installation, {shown(job.command)}", WARNING


def _value(job: Job, change: Change, there: bool, value: Any) -> tuple[str, str, str]:
    """Code, severity and what is wrong with a value that we set, or would have."""
    wanted = "our command" if isinstance(change.value, dict) else shown(change.value)
    if not there:
        return UNWIRED, ERROR, f"found no `{change.name}`, expected {wanted}"
    if not job.owns(change, value):
        same = job.suits(change, value)
        return (
            FOREIGN,
            WARNING,
            "" if same else f"found {shown(value)} at `{change.name}`, which is not ours; we would set {wanted}",
        )
    return (
        UNWIRED,
        ERROR,
        "" if job.suits(change, value) else f"found {shown(value)} at `{change.name}`, expected {wanted}",
    )


def _command(job: Job, text: str | None, program: str) -> str | list[str] | None:
    """The command in a file as its client would run it, or None. Only this installation's program is run: a file that
    came with somebody's project could name any other.
    """
    if text is None or job.file.endswith(".toml"):
        return None
    kind = job.changes[0].kind
    said: list[str | list[str]] = []
    if kind == "create":
        said = [words for words in [created.command(text)] if words is not None]
    elif kind in ("append", "set"):
        said = [command for _, command in settings.occurrences(job, text)]
    for command in said:
        words = shlex.split(command) if isinstance(command, str) else command
        if words[1:] == [job.host] and os.path.realpath(words[0]) == os.path.realpath(program):
            return command
    return None


def _tried(host: Install, tried: Trial | None, most: float, file: str) -> list[Finding]:
    if tried is None:
        return []
    found = [
        Finding(UNFIT, file, 0, 0, f"{host.title}'s hook: {fault}", f"run it by hand: {tried.command} < payload")
        for fault in tried.faults
    ]
    if not found and (tried.late or tried.milliseconds > most):
        message = f"{host.title}'s hook: found {tried.milliseconds:g} ms, expected at most {most:g} (`prompt_path_ms`)"
        found.append(Finding(UNFIT, file, 0, 0, message, "look again when the machine is idle", WARNING))
    return found


def _off(on: bool | None) -> Finding:
    if on is None:
        message = f"found no `{lock.CONTEXT}:` in the project, without which every hook does nothing"
        return Finding(OFF, lock.PROJECT, 0, 0, message, "`ecm-rules install` adds it")
    message = f"found `{lock.CONTEXT}.enabled` at false, with which every hook does nothing"
    return Finding(OFF, lock.PROJECT, 0, 0, message, "set it to true", WARNING)


def _nothing(project: str, chosen: list[Install]) -> list[Finding]:
    """What the project is used with and not wired for."""
    wired = {host.host for host in chosen}
    seen = [host for host in installs.load_installs().values() if host.host not in wired and host.found_in(project)]
    found = [
        Finding(UNWIRED, host.found_by[0], 0, 0, f"found signs of {host.title}, for which nothing is installed",
                f"`ecm-rules install --host {host.host}`", WARNING)
        for host in seen
    ]  # fmt: skip
    if not chosen:
        message = "found nothing installed in this project"
        found.append(Finding(UNWIRED, lock.LOCK, 0, 0, message, "`ecm-rules install`, or with `--host` and a client"))
    return found


def _at(file: str, text: str, place: jsonc.Value | None, code: str, severity: str, message: str) -> Finding:
    help = "it is left as it is; remove it to have ours" if code == FOREIGN else _AGAIN
    if place is None:
        return Finding(code, file, 0, 0, message, help, severity)
    text = text.removeprefix(texts.BOM)
    line, start = text.count("\n", 0, place.start) + 1, text.rfind("\n", 0, place.start) + 1
    column = place.start - start + 1
    span = Span(line, column, column + max(1, len(text[place.start : place.end].split("\n")[0])))
    return Source(file, text).finding(code, span, message, help, severity)


def _age(measured: dict[str, Any] | None) -> float | None:
    try:
        told = datetime.fromisoformat(str((measured or {})["updated_at"]))
    except (KeyError, ValueError):
        return None
    return (datetime.now(UTC) - (told if told.tzinfo else told.replace(tzinfo=UTC))).total_seconds()
