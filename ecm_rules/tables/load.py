"""A table by its name or path, read, validated and layered: everything that is wrong with it is reported together."""

from __future__ import annotations

import os

from ecm_rules.tables import embedded, reader, rows, schemas, shipped, vocabulary
from ecm_rules.tables import project as projects
from ecm_rules.tables.findings import ERROR, EcmError, Finding, Source, in_order, shown, suggest
from ecm_rules.tables.models import Pin, Row, Table, Vocabulary
from ecm_rules.tables.reader import Node

SIGNALS = "rules/signals.yaml"
OPERATIONS = "rules/operations.yaml"
PINS = "roster/pins.yaml"


def load(name: str, folder: str | None) -> Table:
    """The table `name` (a shipped one's stem, or a path) with the layer of the project in `folder`, if any.

    Raises EcmError with every finding of the table's own file, of the vocabulary and of the project's files.
    """
    path = locate(name)
    document = reader.load(path)
    own = document.root is not None and document.root.get("fields") is not None
    shape = schemas.validate("decision-table" if own else "context-policy", document)
    source, root = document.source, shape.root
    findings = document.findings + shape.findings
    project, amiss = projects.read(None if own else folder)
    if root is None:
        raise EcmError(in_order(findings + amiss))
    words = _own_vocabulary(source, shape, findings) if own else _shipped_vocabulary()
    plain = None if shape.broken & {"zones", "limits"} else root.plain()
    pins: tuple[Pin, ...] = ()
    if not own:
        shipped_pins = _shipped_pins()
        pins, added = projects.pins(project, shipped_pins)
        if words is not None:
            findings += embedded.compare(source, root, words.operations, shipped_pins) + _outside(source, root)
        if plain is not None:
            findings += projects.bands(source, root.value["zones"].span, plain["zones"], root.value["zones"])
            plain, raised = projects.lower(project, plain)
            added = raised + added
        amiss = amiss + added
    read: tuple[Row, ...] = ()
    remap: dict[str, dict[str, str]] = {}
    # Where the words themselves are at fault, the rows are not blamed for using them.
    if words is not None:
        context = rows.Context(source, words.declared(), [o.name for o in words.operations], plain, findings)
        if listed := root.get("rules"):
            read = rows.read_rows(context, listed)
        remap = _remap(source, root, words, findings)
    findings = in_order(findings + amiss)
    if plain is None or words is None or any(f.severity == ERROR for f in findings):
        raise EcmError(f for f in findings if f.severity == ERROR)
    return Table(
        name=os.path.basename(path).removesuffix(".yaml"),
        version=str(plain.get("ecm_version", plain.get("schema_version"))),
        file=path,
        vocabulary=words,
        rows=read,
        remap=remap,
        zones=plain.get("zones", {}),
        limits=plain.get("limits", {}),
        pins=pins,
        audit=plain.get("audit", {}),
        budget_tokens=project.setting("budget_tokens") if project.enabled else None,
        enabled=project.enabled,
        notes=tuple(findings),
    )


def locate(name: str) -> str:
    """The path of a table: a shipped one's by its stem, else `name` itself."""
    known = shipped.names()
    if name in known:
        return known[name]
    if os.sep in name or name.endswith((".yaml", ".yml")) or os.path.lexists(name):
        return name
    raise EcmError([Finding("ECM100", name, 0, 0, "found no table of this name", suggest(name, known))])


def _shipped(name: str) -> tuple[Source, Node]:
    document = reader.load(shipped.path(name))
    shape = schemas.validate(name.rpartition("/")[2].removesuffix(".yaml"), document)
    findings = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    return document.source, shape.root


def _shipped_pins() -> tuple[Pin, ...]:
    _, root = _shipped(PINS)
    return tuple(pin for pin, _ in projects.read_pins(root, "shipped"))


def _shipped_vocabulary() -> Vocabulary:
    findings: list[Finding] = []
    source, root = _shipped(SIGNALS)
    fields, signals = vocabulary.read_declared(source, root, findings)
    source, operations_root = _shipped(OPERATIONS)
    steps, operations = vocabulary.read_operations(source, operations_root, findings)
    if findings:
        raise EcmError(in_order(findings))
    return Vocabulary(_snapshot(root), fields, signals, steps, operations)


def _own_vocabulary(source: Source, shape: schemas.Shape, findings: list[Finding]) -> Vocabulary | None:
    """The vocabulary that a table brings, or None where it is at fault."""
    if shape.root is None or shape.broken & {"fields", "signals", "steps", "operations"}:
        return None
    amiss: list[Finding] = []
    fields, signals = vocabulary.read_declared(source, shape.root, amiss)
    steps, operations = vocabulary.read_operations(source, shape.root, amiss)
    findings += amiss
    return None if amiss else Vocabulary(_snapshot(shape.root), fields, signals, steps, operations)


def _snapshot(root: Node) -> str:
    return root.text("snapshot") or "snapshot"


def _remap(source: Source, root: Node, words: Vocabulary, findings: list[Finding]) -> dict[str, dict[str, str]]:
    subagents = root.get("subagents")
    node = subagents.get("operation_remap") if subagents else None
    if node is None or not node.sound:
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
    """Audit paths that leave the project."""
    audit = root.get("audit")
    paths = [node for node in audit.value.values() if node.sound] if audit else []
    return [
        source.finding("ECM204", node.span, f"found {shown(node.value)}, expected a path within the project")
        for node in paths
        if os.path.isabs(node.value) or ".." in node.value.replace("\\", "/").split("/")
    ]
