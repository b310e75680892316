"""`install` and `remove`: for each host all its files or none, verified before anything is written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import attrs

from ecm_rules import __version__
from ecm_rules.hosts.installing import blocks, changes, created, lock, settings, texts, toml_lines
from ecm_rules.hosts.installing.changes import Situation
from ecm_rules.hosts.installing.jobs import Job
from ecm_rules.hosts.installing.lock import Entry, Lock
from ecm_rules.hosts.installing.projects import Tree
from ecm_rules.kernel import files
from ecm_rules.tables import installs, project
from ecm_rules.tables.findings import EcmError, Finding, suggest
from ecm_rules.tables.installs import Install
from ecm_rules.tables.load import load_policy
from ecm_rules.tables.models import Table

_EDITORS: dict[str, ModuleType] = {"block": blocks, "create": created}


class UnknownHost(ValueError):
    """A name that the table does not know; the text says which it knows."""


@attrs.frozen
class Wired:
    """What came of one host: the files that changed, and the keys that somebody else holds, each with its file."""

    install: Install
    files: tuple[str, ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()


@attrs.frozen
class Outcome:
    """What an installation or a removal came to, or would. `changed` are all files, `findings` what was refused."""

    hosts: tuple[Wired, ...]
    changed: tuple[str, ...]
    diff: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def install(folder: str, names: Iterable[str] = (), dry_run: bool = False) -> Outcome:
    """Wire the hosts (none named: those that are found in the project) and switch the project on.

    Raises UnknownHost, and EcmError where nothing can be installed at all: a table, eidolons.yaml or eidolons.lock that
    does not load. What one host is refused for is in the outcome, and the others are installed.
    """
    tree, program = Tree(folder), changes.program()
    known = lock.read(tree.read(lock.LOCK))
    chosen = select(folder, names, known)
    notes = []
    text = tree.read(lock.PROJECT)
    made = text is None
    text, new = lock.switch_on(text)
    tree.write(lock.PROJECT, text)
    table = table_of(folder, text)
    if not table.enabled:
        notes.append(f"{lock.PROJECT} says `enabled: false`, so the hooks do nothing: that is left as it is")
    results, entries = [], dict(known.hosts)
    for host in chosen:
        before = known.hosts.get(host.host)
        situation = Situation(program, table.zones, changes.window_of(host, table, tree))
        wired, entry, fork = _wire(host, situation, before, tree)
        results.append(wired)
        if entry is not None:
            entries[host.host] = entry
            tree.adopt(fork)
    if not entries and chosen:
        return Outcome(tuple(results), (), "", tuple(f for wired in results for f in wired.findings), tuple(notes))
    if not entries:
        return Outcome((), (), "", (), (*notes, _nobody()))
    entries = {name: entries[name] for name in [*installs.load_installs(), *entries] if name in entries}
    told = attrs.evolve(known, hosts=entries, switched_on=known.switched_on or new, made=known.made or (new and made))
    said = {"schema_version": 1, "ecm_version": table.version, "thresholds": dict(table.zones)}
    tree.write(lock.LOCK, lock.write(tree.read(lock.LOCK), told, _head(entries, said), __version__))
    first = [lock.LOCK]
    return _finish(tree, results, first, notes, dry_run, [w.install for w in results if not w.findings], {})


def remove(folder: str, names: Iterable[str] = (), dry_run: bool = False) -> Outcome:
    """Take out what was installed for the hosts (none named: for all), with the last one also what switched it on.

    Raises as `install` does.
    """
    tree = Tree(folder)
    known = lock.read(tree.read(lock.LOCK))
    chosen, notes = select(folder, names, known, present=True), []
    results, entries = [], dict(known.hosts)
    folders: dict[str, tuple[str, ...]] = {}
    refused: tuple[Finding, ...] = ()
    situation = Situation("", {"red": 1}, None)
    for host in chosen:
        entry, fork, touched = known.hosts.get(host.host), tree.fork(), []
        try:
            for job in changes.jobs(host, situation, entry.records if entry else ()):
                text = fork.read(job.file)
                stripped = editor_of(job).strip(job, text)
                if text is not None and stripped != text:
                    _demand(job, text, stripped)
                    fork.write(job.file, stripped)
                    touched.append(job.file)
                    folders[job.file] = job.record.folders if stripped is None and job.record else ()
        except EcmError as error:
            results.append(Wired(host, findings=error.findings))
            continue
        tree.adopt(fork)
        entries.pop(host.host, None)
        results.append(Wired(host, tuple(touched)))
    told = attrs.evolve(known, hosts=entries)
    if not entries:
        try:
            text = tree.read(lock.PROJECT)
            off = lock.switch_off(text, known)
            tree.write(lock.PROJECT, off)
            told = Lock({})
            if known.switched_on and off == text and text is not None:
                notes.append(f"`context:` in {lock.PROJECT} was changed since, and stays")
        except EcmError as error:
            refused = error.findings
    tree.write(lock.LOCK, lock.write(tree.read(lock.LOCK), told, _head(entries, known.head), __version__))
    last = [lock.PROJECT, lock.LOCK]
    sound = [wired.install for wired in results if not wired.findings]
    return _finish(tree, results, [], notes, dry_run, sound, folders, last, refused)


def select(folder: str, names: Iterable[str], known: Lock, present: bool = False) -> list[Install]:
    """The hosts that are named; without a name those found in the project, or, if `present`, those installed there."""
    table, names = installs.load_installs(), list(dict.fromkeys(names))
    unknown = [name for name in names if name not in table]
    if unknown:
        raise UnknownHost(f"unknown host {unknown[0]!r}: {suggest(unknown[0], table)}")
    if names:
        return [table[name] for name in names]
    if present:
        return [host for host in table.values() if host.host in known.hosts or _is_present(folder, host)]
    return [host for host in table.values() if host.found_in(folder) or host.host in known.hosts]


def table_of(folder: str, text: str | None) -> Table:
    """The project's policy as it will be with this eidolons.yaml. Raises EcmError with the project's own paths."""
    with tempfile.TemporaryDirectory() as copy:
        copy_tables(folder, copy, text)
        try:
            return load_policy(None, copy)
        except EcmError as error:
            moved = [attrs.evolve(f, file=f.file.replace(copy, folder.rstrip("/"))) for f in error.findings]
            raise EcmError(moved) from None


def copy_tables(folder: str, copy: str, text: str | None = None) -> None:
    """Copy the files of a project that its policy comes from into an empty folder; `text` is eidolons.yaml."""
    for name in project.FILES:
        path = os.path.join(copy, name)
        try:
            data = (
                text.encode("utf-8")
                if text is not None and name == lock.PROJECT
                else files.read(os.path.join(folder, name))
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise EcmError([Finding("ECM100", name, 0, 0, f"cannot be read: {reason}", "check the file")]) from None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(data)


def editor_of(job: Job) -> ModuleType:
    """What edits a job's file: `strip`, `put`, `plan` and `verify`."""
    kind = job.changes[0].kind
    return _EDITORS.get(kind) or (toml_lines if job.file.endswith(".toml") else settings)


def _wire(host: Install, situation: Situation, before: Entry | None, tree: Tree) -> tuple[Wired, Entry | None, Tree]:
    fork, records, foreign, touched = tree.fork(), [], [], []
    try:
        for job in changes.jobs(host, situation, before.records if before else ()):
            editor, text = editor_of(job), fork.read(job.file)
            stripped = editor.strip(job, text)
            made, record = editor.plan(job, text)
            if record.created:
                missing = fork.missing_folders(job.file)
                record = attrs.evolve(record, folders=missing or (job.record.folders if job.record else ()))
            again = attrs.evolve(job, record=record)
            if editor.strip(again, made) != stripped:
                raise EcmError([_unsure(job)])
            _demand(again, made, stripped)
            fork.write(job.file, made)
            records.append(record)
            foreign += [(job.file, at) for at, held in record.values.items() if not held.managed]
            touched += [job.file] if made != text else []
    except EcmError as error:
        return Wired(host, findings=error.findings), None, tree
    entry = Entry(host.tier, host.channel, tuple(host.features), tuple(records))
    return Wired(host, tuple(touched), tuple(foreign)), entry, fork


def _demand(job: Job, text: str, stripped: str | None) -> None:
    """Raise where an edit would change more than what is ours."""
    if not editor_of(job).verify(job, text, stripped):
        raise EcmError([_unsure(job)])


def _unsure(job: Job) -> Finding:
    message = "found a layout in which our entries cannot be told from the others without loss"
    return Finding(texts.OTHER_KIND, job.file, 0, 0, message, "lay the file out with one entry a line, and try again")


def _finish(
    tree: Tree,
    results: list[Wired],
    first: list[str],
    notes: list[str],
    dry_run: bool,
    sound: list[Install],
    folders: Mapping[str, tuple[str, ...]],
    last: Iterable[str] = (lock.PROJECT,),
    refused: Iterable[Finding] = (),
) -> Outcome:
    """Write what changed, what the restoring needs first, and say what came of it."""
    changed, diff = tuple(tree.changed()), tree.diff()
    findings = [*(finding for wired in results for finding in wired.findings), *refused]
    if not dry_run:
        named = [edit.file for host in sound for edit in host.edits]
        for file in dict.fromkeys([*first, *named, *last]):
            try:
                tree.save(file)
                tree.drop(folders.get(file, ()))
            except EcmError as error:
                findings += error.findings
    return Outcome(tuple(results), changed, diff, tuple(findings), tuple(notes))


def _head(entries: Mapping[str, Entry], said: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of the lock's `context:` before the hosts, as the nexus' schema has them."""
    flags: dict[str, bool] = {}
    for host in installs.load_installs().values():
        entry = entries.get(host.host)
        values = {at: held for record in (entry.records if entry else ()) for at, held in record.values.items()}
        for edit in host.edits:
            if edit.lock:
                held = values.get(".".join(edit.at))
                flags[edit.lock] = held is not None and held.managed
    kept = {key: said[key] for key in ("schema_version", "ecm_version") if key in said}
    tiers = {"host_tier": max(entry.tier for entry in entries.values())} if entries else {}
    rest = {key: said[key] for key in said if key not in (*kept, *tiers, *flags)}
    return {**kept, **tiers, **rest, **flags} if entries else {}


def _is_present(folder: str, host: Install) -> bool:
    """Whether there is anything of ours, also where no lock says so."""
    tree = Tree(folder)
    try:
        for job in changes.jobs(host, Situation("", {"red": 1}, None)):
            text = tree.read(job.file)
            if text is not None and editor_of(job).strip(job, text) != text:
                return True
    except EcmError:
        return False  # what it is refused for is said where the host is named
    return False


def _nobody() -> str:
    names = ", ".join(f"`{name}`" for name in installs.load_installs())
    return f"found no client's files in this project: name one with --host ({names})"
