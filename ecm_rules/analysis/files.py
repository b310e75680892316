"""Everything that is wrong with a file, whatever kind of file it is."""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from ecm_rules.analysis.case import LOOKS
from ecm_rules.analysis.promises import unsafe_operations
from ecm_rules.analysis.proofs import check
from ecm_rules.analysis.scenarios import misfits_of
from ecm_rules.engine.policy import Policy
from ecm_rules.tables import documents, load, places, reader
from ecm_rules.tables.findings import NOTE, EcmError, Finding
from ecm_rules.tables.project import FILES

# What says too much does no harm.
_IDLE = ("ECM602", "ECM603", "ECM605", "ECM609")


def targets(paths: Iterable[str], project: str | None) -> list[str]:
    """The files to check: those named, and those in a folder that is named; else what is shipped, or the tables of the
    checkout that the working folder is, what it has in `roster` and `rules`, and the project's files.

    Raises EcmError for a folder without any.
    """
    given = list(paths)
    if given:
        return documents.named(given)
    # The working folder's own tables; where it is no whole checkout, beside the shipped ones.
    own = [folder for folder in load.FOLDERS if documents.has_tables(folder)]
    shipped = [] if load.home_of(load.POLICY) else [places.shipped(folder) for folder in load.FOLDERS]
    theirs = [os.path.join(project, name) for name in FILES] if project is not None else []
    return documents.named([*shipped, *own, *(path for path in theirs if os.path.lexists(path))])


def check_file(path: str, project: str | None = None, looks: int = LOOKS) -> list[Finding]:
    """The findings about a table, a vocabulary, or a project's file; a policy is judged with the layer of `project`.

    A table in a checkout, `roster/x.yaml` beside `rules/`, is read with the vocabulary that stands there.
    """
    for name in FILES:
        if (folder := os.path.abspath(path).removesuffix(os.sep + name)) != os.path.abspath(path):
            tables = [None, *load.extensible_tables()]
            return [finding for table in tables for finding in check_table(table, folder, looks)]
    document = reader.load(path)
    kind = documents.kind_of(document)
    if kind is None:
        return check_table(path, project, looks)
    findings, words = documents.read(document, kind)
    if kind == "scenarios" and not findings:
        return misfits_of(path, project)
    findings += unsafe_operations(words) if words is not None else ()
    # Words are as good as what is said with them.
    home = load.home_of(path) if kind in ("signals", "operations", "pins") and not findings else None
    return findings + (check_table(os.path.join(home, load.POLICY), project, looks) if home else [])


def check_table(path: str | None, project: str | None, looks: int = LOOKS) -> list[Finding]:
    """The findings about a decision table (None: the shipped policy), whether it loads or not.

    What a row or a test is for no longer, only because of what a project lowers or appends, is no mistake of either: a
    note. A row that it appends is its own.
    """
    try:
        policy = _load(path, project)
        findings = check(policy, looks)
        if not policy.table.enabled:
            return findings
        before = {(f.code, f.line, f.column, f.severity) for f in check(_load(path, None), looks)}
    except EcmError as error:
        return list(error.findings)
    own = policy.table.source.file
    return [
        _of_the_layer(f) if f.file == own and (f.code, f.line, f.column, f.severity) not in before else f
        for f in findings
    ]


def _load(path: str | None, project: str | None) -> Policy:
    if path is None:
        return Policy.of(load.load_policy(None, project))
    return Policy.of(load.load_table(path, project, load.home_of(path)))


def _of_the_layer(finding: Finding) -> Finding:
    if finding.code not in _IDLE:
        return finding
    message = f"{finding.message}, with the project's layer"
    return attrs.evolve(finding, severity=NOTE, message=message, help="", fix=None)
