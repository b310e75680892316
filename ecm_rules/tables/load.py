"""A table by its name or path, read, validated and layered: everything that is wrong with it is reported together."""

from __future__ import annotations

import os
import re
from typing import Any

import attrs

from ecm_rules.tables import appended, embedded, invariants, operations, places, reader, rows, schemas, vocabulary
from ecm_rules.tables import pins as pin_tables
from ecm_rules.tables import project as projects
from ecm_rules.tables.findings import ERROR, EcmError, Finding, Source, in_order, shown, suggest
from ecm_rules.tables.models import Invariant, Pin, Row, Table, Vocabulary
from ecm_rules.tables.project import Project
from ecm_rules.tables.reader import Node

FOLDERS = ("roster", "rules")
POLICY = "roster/context-policy.yaml"
PINS = "roster/pins.yaml"
SIGNALS = "rules/signals.yaml"
OPERATIONS = "rules/operations.yaml"


@attrs.frozen
class _Setting:
    """What the rows of a table stand in. `vocabulary` and `document` are None where they are at fault themselves."""

    vocabulary: Vocabulary | None
    document: dict[str, Any] | None
    project: Project
    pins: tuple[Pin, ...]
    findings: list[Finding]
    unlowered: dict[str, Any] | None = None
    """The limits before the project's layer, where that is another thing."""


def load_policy(path: str | None, folder: str | None, home: str | None = None) -> Table:
    """The context policy at `path` (None: the shipped one), with the layer of the project in `folder`, if any. home: a
    folder with `roster` and `rules` whose vocabulary is used in the place of the shipped one.

    Raises EcmError with every finding of the policy's own file, of the shipped vocabulary and of the project's files.
    """
    path = places.shipped(POLICY) if path is None else path
    document = reader.load(path)
    shape = schemas.validate("context-policy", document)
    return _table(path, document, shape, _policy_setting(path, document.source, shape, folder, home))


def load_table(name: str, folder: str | None, home: str | None = None) -> Table:
    """Any decision table: a shipped one by its stem, or one by its path. Raises EcmError as `load_policy` does."""
    path = locate(name)
    document = reader.load(path)
    root = document.root
    # A policy says which ECM it is of; a table with words of its own brings them, or says of which schema it is.
    own = root is not None and root.get("ecm_version") is None and (root.get("fields") or root.get("schema_version"))
    if not own:
        return load_policy(path, folder, home)
    shape = schemas.validate("decision-table", document)
    return _table(path, document, shape, _own_setting(document.source, shape, folder))


def shipped_tables() -> dict[str, str]:
    """The path of every shipped decision table by its stem."""
    return _shipped_with("rules")


def extensible_tables() -> dict[str, str]:
    """Those of them to which a project may append rows."""
    return _shipped_with("project")


def _shipped_with(key: str) -> dict[str, str]:
    paths = {stem: places.shipped(f"{folder}/{stem}.yaml") for folder in FOLDERS for stem in places.stems(folder)}
    return {stem: path for stem, path in paths.items() if re.search(rf"^{key}:", _text(path), re.MULTILINE)}


def _text(path: str) -> str:
    with places.open_regular(path) as stream:
        return stream.read(reader.MAX_BYTES).decode("utf-8", "replace")


def _table(path: str, document: reader.Document, shape: schemas.Shape, setting: _Setting) -> Table:
    source, root, words, plain = document.source, shape.root, setting.vocabulary, setting.document
    findings = document.findings + shape.findings + setting.findings
    read: tuple[Row, ...] = ()
    promised: tuple[Invariant, ...] = ()
    remap: dict[str, dict[str, str]] = {}
    extension, project = None, setting.project
    # Where the words themselves are at fault, the rows are not blamed for using them.
    if root is not None and words is not None:
        context = rows.Context(source, words.declared(), [o.name for o in words.operations], plain, findings)
        if listed := root.get("rules"):
            read = rows.read_rows(context, listed)
        extension = appended.read_extension(context, root)
        if project.extra is not None and project.extra_source is not None:
            theirs = attrs.evolve(context, source=project.extra_source)
            if extension is not None:
                read = appended.append(theirs, extension, project.extra, read)
            elif root.get("project") is None:  # what a project promises is about the policy
                promised = invariants.read_invariants(theirs, project.extra, read)
        promised = invariants.read_invariants(context, root, read) + promised
        remap = _remap(source, root, words, findings)
    findings = in_order(findings, first=path)
    if root is None or words is None or plain is None or any(f.severity == ERROR for f in findings):
        raise EcmError(f for f in findings if f.severity == ERROR)
    return Table(
        version=str(plain.get("ecm_version", plain.get("schema_version"))),
        source=source,
        span=root.keys["rules"],
        vocabulary=words,
        rows=read,
        extension=extension,
        invariants=promised,
        remap=remap,
        zones=plain.get("zones", {}),
        limits=plain.get("limits", {}),
        unlowered=setting.unlowered if setting.unlowered is not None else plain.get("limits", {}),
        pins=setting.pins,
        audit=plain.get("audit", {}),
        budget_tokens=project.budget_tokens,
        window_tokens=project.window_tokens,
        context_sources=project.context_sources,
        enabled=project.enabled,
        notes=tuple(findings),
    )


def home_of(path: str) -> str | None:
    """The folder whose vocabulary a table belongs to: that of the checkout in which it stands, or None."""
    folder, name = os.path.split(os.path.dirname(os.path.abspath(path)))
    words = (SIGNALS, OPERATIONS, PINS, POLICY)
    return folder if name in FOLDERS and all(os.path.isfile(os.path.join(folder, word)) for word in words) else None


def home_above(path: str) -> str | None:
    """The nearest folder above a path that is a checkout with tables and vocabulary of its own, or None."""
    folder = os.path.abspath(path)
    while True:
        if home_of(os.path.join(folder, POLICY)) is not None:
            return folder
        if os.path.dirname(folder) == folder:
            return None
        folder = os.path.dirname(folder)


def _policy_setting(path: str, source: Source, shape: schemas.Shape, folder: str | None, home: str | None) -> _Setting:
    """The shipped vocabulary, and the policy's zones and limits as the project's layer leaves them."""
    project, findings = projects.read(folder)
    words, shipped_pins = shipped_vocabulary(home), _shipped_pins(home)
    pins, repeated = projects.pins(project, shipped_pins, pin_tables.rules())
    findings = findings + repeated
    root, plain, unlowered = shape.root, None, None
    if root is not None:
        findings += embedded.compare(source, root, words.operations, shipped_pins) + _outside(source, root)
        zones, limits = root.get("zones"), root.get("limits")
        if zones is not None and limits is not None and not shape.broken & {"zones", "limits"}:
            unfit = projects.bands(source, zones.span, zones.plain(), zones, own=True)
            unlowered = {**_shipped_limits(path, home), **limits.plain()}
            plain = {**root.plain(), "limits": unlowered}
            plain, raised = projects.lower(project, plain, check_bands=not unfit)
            findings += unfit + raised
    return _Setting(words, plain, project, pins, findings, unlowered)


def _own_setting(source: Source, shape: schemas.Shape, folder: str | None) -> _Setting:
    """The vocabulary that a table brings. A project has no layer for it but the rows that it may append."""
    takes = shape.root is not None and shape.root.get("project") is not None and "project" not in shape.broken
    project, findings = projects.read(folder if takes else None)
    wrong: list[Finding] = []
    words = None
    if shape.root is not None and not shape.broken & {"fields", "signals", "steps", "operations"}:
        limits = [name for name, _, _ in shape.root.entries("limits")]
        fields, signals = vocabulary.read_declared(source, shape.root, limits, wrong)
        steps, listed = operations.read_operations(source, shape.root, wrong)
        words = None if wrong else Vocabulary(_snapshot(shape.root), fields, signals, steps, listed, source)
    plain = shape.root.plain() if shape.root is not None and "limits" not in shape.broken else None
    return _Setting(words, plain, project, (), findings + wrong)


def locate(name: str) -> str:
    """The path of a table: a shipped one's by its stem, else `name` itself."""
    known = shipped_tables()
    if name in known:
        return known[name]
    if os.sep in name or name.endswith((".yaml", ".yml")) or os.path.lexists(name):
        return name
    raise EcmError([Finding("ECM100", name, 0, 0, "found no table of this name", suggest(name, known))])


def _shipped(name: str, home: str | None = None) -> tuple[Source, Node]:
    document = reader.load(places.shipped(name) if home is None else os.path.join(home, name))
    shape = schemas.validate(name.rpartition("/")[2].removesuffix(".yaml"), document)
    findings = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    return document.source, shape.root


def _shipped_limits(path: str, home: str | None) -> dict[str, Any]:
    """The shipped limits, which hold where another policy says nothing; none where the policy is the shipped one."""
    if path == places.shipped(POLICY) or (home is not None and os.path.samefile(path, os.path.join(home, POLICY))):
        return {}
    limits: dict[str, Any] = _shipped(POLICY, home)[1].value["limits"].plain()
    return limits


def _shipped_pins(home: str | None) -> tuple[Pin, ...]:
    source, root = _shipped(PINS, home)
    listed, findings = pin_tables.read(source, root, projects.SHIPPED, pin_tables.rules())
    if findings:
        raise EcmError(in_order(findings))
    return tuple(pin for pin, _ in listed)


def shipped_vocabulary(home: str | None = None) -> Vocabulary:
    """What the rows of a context policy may test and order."""
    findings: list[Finding] = []
    source, root = _shipped(SIGNALS, home)
    fields, signals = vocabulary.read_declared(source, root, vocabulary.known_limits(), findings)
    source, operations_root = _shipped(OPERATIONS, home)
    steps, listed = operations.read_operations(source, operations_root, findings)
    if findings:
        raise EcmError(in_order(findings))
    return Vocabulary(_snapshot(root), fields, signals, steps, listed, source)


def _snapshot(root: Node) -> str:
    return root.text("snapshot") or "snapshot"


def _remap(source: Source, root: Node, words: Vocabulary, findings: list[Finding]) -> dict[str, dict[str, str]]:
    subagents = root.get("subagents")
    node = subagents.get("operation_remap") if subagents else None
    if node is None:
        return {}
    known = [o.name for o in words.operations]
    for name, value in node.value.items():
        for text, place in ((name, node.keys[name]), (value.value, value.span)):
            if text not in known:
                findings.append(
                    source.finding("ECM307", place, f"found the unknown operation {shown(text)}", suggest(text, known))
                )
    return {"subagent": node.plain()}


def _outside(source: Source, root: Node) -> list[Finding]:
    """Audit paths that leave the folder of the state."""
    audit = root.get("audit")
    return [
        source.finding("ECM204", node.span, f"found {shown(node.value)}, expected a path below `{places.STATE}`")
        for node in (audit.value.values() if audit else ())
        if not places.is_state(node.value)
    ]
