"""Tables with marks: `«text»` is where a finding is expected. The marks are taken out before the text is read."""

from __future__ import annotations

import re

from ecm_rules.tables.findings import Finding

_MARK = re.compile("«|»")


def unmark(text: str) -> tuple[str, list[tuple[int, int]]]:
    """(the text without marks, the line and column of each)."""
    places, clean = [], ""
    for piece in re.split("(«|»)", text):
        if piece == "«":
            places.append((clean.count("\n") + 1, len(clean) - clean.rfind("\n")))
        elif piece != "»":
            clean += piece
    return clean, places


def told(findings: list[Finding] | tuple[Finding, ...]) -> list[tuple[int, int, str]]:
    return [(f.line, f.column, f.code) for f in findings]


def located(places: list[tuple[int, int]], codes: list[str] | tuple[str, ...]) -> list[tuple[int, int, str]]:
    """What must be told: one code at each mark, in order."""
    return [(*place, code) for place, code in zip(places, codes, strict=True)]
