"""Files that are no decision tables: which kind one is, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from ecm_rules.tables import installs, load, operations, pins, scenarios, schemas, vocabulary
from ecm_rules.tables.findings import EcmError, Finding, in_order
from ecm_rules.tables.models import Vocabulary
from ecm_rules.tables.project import FILES
from ecm_rules.tables.reader import Document

# A key that only one kind has, and the kind's schema. A table has `rules` beside any of them.
_TOLD_BY = {
    "scenarios": "scenarios",
    "fields": "signals",
    "operations": "operations",
    "hosts": "hosts",
    "pins": "pins",
}


# What reads the kinds that are more than their schema says.
_LOADERS: dict[str, Callable[[str], object]] = {"hosts": installs.load_installs, "scenarios": scenarios.load_scenarios}


def tables_in(folder: str) -> list[str]:
    """The paths of the files `*.yaml` in a folder and in its `roster` and `rules`, and of its `.eidolons/ecm.yaml`.

    Raises EcmError where there is none, or the folder cannot be read.
    """
    found = _yaml_in(folder)
    for inside in (os.path.join(folder, name) for name in load.FOLDERS):
        found += _yaml_in(inside) if os.path.isdir(inside) else []
    extra = os.path.join(folder, FILES[1])
    found += [extra] if os.path.isfile(extra) else []
    if not found:
        raise EcmError([Finding("ECM100", folder, 0, 0, "found no *.yaml in this folder", "name a file")])
    return found


def has_tables(folder: str) -> bool:
    """Whether a folder is there and has a file `*.yaml`."""
    return os.path.isdir(folder) and bool(_yaml_in(folder))


def _yaml_in(folder: str) -> list[str]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".yaml") and not name.startswith("."))
    except OSError as error:
        message = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise EcmError([Finding("ECM100", folder, 0, 0, message, "check the path")]) from None
    return [os.path.join(folder, name) for name in names]


def named(paths: Iterable[str]) -> list[str]:
    """The files that are named, and those in folders that are named, each once. Raises EcmError as `tables_in` does."""
    found = [file for path in paths for file in (tables_in(path) if os.path.isdir(path) else [path])]
    return list(dict.fromkeys(found))


def kind_of(document: Document) -> str | None:
    """The schema of a document, or None where it is a decision table, or nothing that is known."""
    root = document.root
    if root is None or not isinstance(root.value, dict) or "rules" in root.keys or "ecm_version" in root.keys:
        return None
    return next((schema for key, schema in _TOLD_BY.items() if key in root.keys), None)


def read(document: Document, kind: str) -> tuple[list[Finding], Vocabulary | None]:
    """What is wrong with a document of a kind, and the operations that it defines, if it is about these."""
    if kind in _LOADERS:
        return _refusals(_LOADERS[kind], document.source.file), None
    shape = schemas.validate(kind, document)
    findings = document.findings + shape.findings
    words = None
    if shape.root is not None and not findings:
        if kind == "signals":
            vocabulary.read_declared(document.source, shape.root, vocabulary.known_limits(), findings)
        if kind == "pins":
            findings += pins.read(document.source, shape.root, "", pins.rules())[1]
        if kind == "operations":
            steps, listed = operations.read_operations(document.source, shape.root, findings)
            words = Vocabulary("", (), (), steps, listed, document.source) if not findings else None
    return in_order(findings), words


def _refusals(load: Callable[[str], object], path: str) -> list[Finding]:
    try:
        load(path)
    except EcmError as error:
        return list(error.findings)
    return []
