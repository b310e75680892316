"""What all commands share: a console, words for tests and values, and refusals with their exit code."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from ecm_rules.tables.findings import EcmError

FINDINGS = 1
UNREADABLE = 2

ZONE_STYLES = {"green": "green", "amber": "yellow", "red": "red", "critical": "bold red", "unknown": "dim"}
_OPERATORS = {
    "eq": "=",
    "ne": "≠",
    "lt": "<",
    "lte": "≤",
    "gt": ">",
    "gte": "≥",
    "in": "is one of",
    "not_in": "is none of",
}


def console() -> Console:
    """Colour on a terminal, plain text in a pipe or with NO_COLOR; lines are never wrapped for a pipe."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str) -> None:
    """A line for people on stderr."""
    print(text, file=sys.stderr)


def document(data: Any) -> None:
    """Exactly one JSON document on stdout."""
    print(json.dumps(data, allow_nan=False))


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Findings on stderr and exit 1; 2 where there was nothing to read."""
    try:
        yield
    except EcmError as error:
        say(str(error))
        unreadable = all(f.code == "ECM100" for f in error.findings)
        raise typer.Exit(UNREADABLE if unreadable else FINDINGS) from None


def condition(signal: str, operator: str, constant: Any) -> str:
    """A test as people read it: `compaction_count < 2`."""
    if operator == "missing":
        return f"{signal} is {'missing' if constant else 'given'}"
    if operator == "eq" and isinstance(constant, bool):
        return f"{signal} is {value(constant)}"
    return f"{signal} {_OPERATORS[operator]} {value(constant)}"


def difference(seen: Any, operator: str, constant: Any) -> str:
    """Why a test did not hold: `is 3, not < 2`."""
    if operator == "missing":
        return f"is {'given' if constant else 'missing'}"
    wanted = value(constant) if operator == "eq" else f"{_OPERATORS[operator].removeprefix('is ')} {value(constant)}"
    return f"is {value(seen)}, not {wanted}"


def value(constant: Any) -> str:
    if isinstance(constant, list | tuple):
        return ", ".join(value(c) for c in constant)
    if constant is None:
        return "missing"
    if isinstance(constant, bool):
        return "true" if constant else "false"
    if isinstance(constant, float):
        return f"{constant:.6g}"
    return printable(str(constant))


def number(count: float | None) -> str:
    return "unknown" if count is None else f"{count:,.0f}"


def percent(share: float) -> str:
    return f"{share * 100:g}%"


def printable(text: str) -> str:
    """Text of somebody else's, safe to show: controls and what reorders a line become code points."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):04X}}}" for c in text)


def zone_text(zone: str) -> Text:
    return Text(printable(zone), ZONE_STYLES.get(zone, ""))
