"""Everything that is wrong with a file, whatever kind of file it is."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ecm_rules.analysis.case import LOOKS
from ecm_rules.analysis.promises import unsafe_operations
from ecm_rules.analysis.proofs import check
from ecm_rules.analysis.scenarios import misfits_of
from ecm_rules.engine.policy import Policy
from ecm_rules.tables import documents, load, places, reader
from ecm_rules.tables.findings import EcmError, Finding
from ecm_rules.tables.project import FILES


def targets(paths: Iterable[str], project: str | None) -> list[str]:
    """The files to check: those named, and those in a folder that is named; else what is shipped, which in a checkout
    with tables of its own are these, and the project's.

    Raises EcmError for a folder without any.
    """
    given = list(paths)
    if given:
        return documents.named(given)
    own = [os.path.join(project, name) for name in FILES] if project is not None else []
    home = load.home_of(load.POLICY)  # the working folder, where it is a checkout with tables of its own
    shipped = [os.path.join(home, folder) if home else places.shipped(folder) for folder in load.FOLDERS]
    return documents.named([*shipped, *(path for path in own if os.path.lexists(path))])


def check_file(path: str, project: str | None = None, looks: int = LOOKS) -> list[Finding]:
    """The findings about a table, a vocabulary, or a project's file; a policy is judged with the layer of `project`.

    A table in a checkout, `roster/x.yaml` beside `rules/`, is read with the vocabulary that stands there.
    """
    for name in FILES:
        if (folder := os.path.abspath(path).removesuffix(os.sep + name)) != os.path.abspath(path):
            return check_table(None, folder, looks)
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
    """The findings about a decision table (None: the shipped policy), whether it loads or not."""
    try:
        table = load.load_policy(None, project) if path is None else load.load_table(path, project, load.home_of(path))
    except EcmError as error:
        return list(error.findings)
    return check(Policy.of(table), looks)
