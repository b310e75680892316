"""Findings for machines: JSON, SARIF 2.1.0, and the annotations of GitHub's workflows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import attrs

from ecm_rules import __version__
from ecm_rules.tables.findings import CODES, ERROR, NOTE, WARNING, Finding, printable

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as plain data; `witness` and `fix` are null where there is none."""
    data = attrs.asdict(finding, filter=lambda attribute, _: attribute.name != "excerpt")
    return {**data, "docs": finding.docs}


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """A SARIF log of one run. Paths are relative to the working folder where they are below it."""
    codes = list(dict.fromkeys(finding.code for finding in findings))
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code]},
            "help": {"text": f"See docs/findings/{code}.md", "markdown": f"See `docs/findings/{code}.md`"},
        }
        for code in codes
    ]
    driver = {"name": "ecm-rules", "version": __version__, "rules": rules}
    results = [_result(finding, codes.index(finding.code)) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    text = f"{finding.message}. {finding.help}" if finding.help else finding.message
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(_relative(finding.file), errors="surrogateescape")}}
    if finding.line:
        place["region"] = {"startLine": finding.line, "startColumn": finding.column}
        if finding.end_column > finding.column:
            place["region"]["endColumn"] = finding.end_column
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }
    if finding.witness:
        result["properties"] = {"witness": attrs.asdict(finding.witness)}
    if finding.fix:
        span = finding.fix.span
        region = {"startLine": span.line, "startColumn": span.column, "endColumn": span.end_column}
        replacement = {"deletedRegion": region, "insertedContent": {"text": finding.fix.text}}
        change = {"artifactLocation": place["artifactLocation"], "replacements": [replacement]}
        result["fixes"] = [{"description": {"text": finding.help or finding.message}, "artifactChanges": [change]}]
    return result


def workflow_commands(findings: Iterable[Finding]) -> str:
    """One workflow command a finding, which GitHub shows at its line."""
    lines = []
    for finding in findings:
        properties = {"file": printable(_relative(finding.file))}
        if finding.line:
            properties |= {"line": str(finding.line), "col": str(finding.column)}
            if finding.end_column > finding.column:
                properties["endColumn"] = str(finding.end_column - 1)
        properties["title"] = f"{finding.code}: {CODES[finding.code]}"
        told = ",".join(f"{key}={_escape(value, ':,')}" for key, value in properties.items())
        text = "\n".join(part for part in (finding.message, finding.help) if part)
        if finding.witness:
            text += f"\n{finding.witness.label}: {finding.witness}"
        lines.append(f"::{_COMMANDS[finding.severity]} {told}::{_escape(text)}")
    return "\n".join(lines)


def _escape(text: str, more: str = "") -> str:
    """As GitHub's toolkit writes it: what would end the command, or a property, becomes its code."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _relative(path: str) -> str:
    """The path from the working folder where it lies below, with `/`; else as it is."""
    inside = os.path.relpath(path) if path else path
    return (path if inside.startswith(os.pardir) else inside).replace(os.sep, "/")
