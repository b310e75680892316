"""Repairs that are certain, carried out: a table decides after one as it did before, or the file stays as it was."""

from __future__ import annotations

import os
from collections.abc import Callable

from ecm_rules.analysis.files import check_file
from ecm_rules.tables.findings import Finding

_MOST = 200


def repair(path: str, project: str | None, write: Callable[[str, bytes], None]) -> int:
    """Carry out the certain fixes in a file, one after the other, with `write`; how many there were. Raises OSError.

    A fix that brings about an error, or does not end the finding, is taken back.
    """
    done, refused = 0, set()
    for _ in range(_MOST):
        before = check_file(path, project)
        fixable = [f for f in before if f.fix and os.path.samefile(f.file, path) and f.message not in refused]
        if not fixable:
            break
        finding = fixable[0]
        with open(path, "rb") as file:
            data = file.read()
        write(path, _fixed(data.decode("utf-8"), finding).encode("utf-8"))
        after = check_file(path, project)
        if _errors(after) - _errors(before) or finding.message in {f.message for f in after}:
            refused.add(finding.message)
            write(path, data)
        else:
            done += 1
    return done


def _errors(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(f.code, f.message) for f in findings if f.severity == "error"}


def _fixed(text: str, finding: Finding) -> str:
    """The text with the fix in it; line ends stay as they are."""
    assert finding.fix is not None
    span = finding.fix.span
    lines = text.split("\n")
    line = lines[span.line - 1]
    bom = 1 if span.line == 1 and text.startswith("\ufeff") else 0
    lines[span.line - 1] = line[: span.column - 1 + bom] + finding.fix.text + line[span.end_column - 1 + bom :]
    return "\n".join(lines)
