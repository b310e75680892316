"""Repairs that are certain, carried out: a table decides after one as it did before, or the file stays as it was."""

from __future__ import annotations

import os
import tempfile

from ecm_rules.analysis.files import check_file
from ecm_rules.tables.findings import Finding

_MOST = 200


def repair(path: str, project: str | None) -> int:
    """Carry out the certain fixes in a file, one after the other; how many there were. Raises OSError.

    A fix that brings about an error, or does not end the finding, is taken back.
    """
    done, refused = 0, set()
    for _ in range(_MOST):
        before = check_file(path, project)
        fixable = [f for f in before if f.fix and os.path.samefile(f.file, path) and f.message not in refused]
        if not fixable:
            break
        finding = fixable[0]
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        _write(path, _fixed(text, finding))
        after = check_file(path, project)
        if _errors(after) - _errors(before) or finding.message in {f.message for f in after}:
            refused.add(finding.message)
            _write(path, text)
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


def _write(path: str, text: str) -> None:
    """Replace the file in one step, with its mode."""
    target = os.path.realpath(path)
    handle, name = tempfile.mkstemp(dir=os.path.dirname(target))
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, os.stat(target).st_mode & 0o7777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
