"""Repairs that are certain, carried out: a table decides after one as it did before, or the file stays as it was."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

from ecm_rules.analysis.files import check_file
from ecm_rules.tables.findings import ERROR, Finding


def repair(path: str, project: str | None, write: Callable[[str, bytes], None]) -> list[Finding]:
    """Carry out the certain fixes in a file, one after the other, with `write`; what was fixed.

    What a project lowers is no reason to edit a table, and no reason not to: only what is found with its layer and
    without it is fixed. A fix that brings about an error, or leaves as many findings of its kind as there were, is
    taken back. Where `write` raises OSError, the fixes before it stand; the first one raises.
    """
    done: list[Finding] = []
    refused: set[str] = set()
    before = check_file(path)
    while fixable := [f for f in before if f.fix and os.path.samefile(f.file, path) and f.message not in refused]:
        layered = {(f.code, f.line, f.column) for f in check_file(path, project) if f.fix}
        finding = fixable[0]
        if (finding.code, finding.line, finding.column) not in layered:
            refused.add(finding.message)
            continue
        with open(path, "rb") as file:
            data = file.read()
        try:
            write(path, _fixed(data.decode("utf-8"), finding).encode("utf-8"))
        except OSError:
            if not done:
                raise
            break
        after = check_file(path)
        if _told(after)[finding.message] < _told(before)[finding.message] and not _errors(after) - _errors(before):
            done.append(finding)
            before = after
        else:
            refused.add(finding.message)
            write(path, data)
    return done


def _told(findings: list[Finding]) -> Counter[str]:
    return Counter(finding.message for finding in findings)


def _errors(findings: list[Finding]) -> set[str]:
    return {finding.message for finding in findings if finding.severity == ERROR}


def _fixed(text: str, finding: Finding) -> str:
    """The text with the fix in it; line ends stay as they are."""
    assert finding.fix is not None
    span = finding.fix.span
    lines = text.split("\n")
    line = lines[span.line - 1]
    bom = 1 if span.line == 1 and text.startswith("\ufeff") else 0
    lines[span.line - 1] = line[: span.column - 1 + bom] + finding.fix.text + line[span.end_column - 1 + bom :]
    return "\n".join(lines)
