"""What all commands share: a console, words for tests and values, and refusals with their exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from ecm_rules.kernel import files
from ecm_rules.tables.findings import ERROR, NOTE, WARNING, EcmError, Finding, printable, render

_STYLES = {ERROR: "bold red", WARNING: "bold yellow", NOTE: "bold cyan"}

FINDINGS = 1
UNREADABLE = 2

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


def say(text: str) -> None:
    """A line for people on stderr, or nowhere where there is none."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def document(data: Any) -> None:
    """Exactly one JSON document on stdout."""
    print(json.dumps(data, allow_nan=False))


def raw(data: bytes) -> None:
    """Exactly these bytes on stdout, whatever its encoding."""
    if sys.stdout is not None:
        sys.stdout.buffer.write(data)


def standard_input(limit: int = files.MAX_BYTES) -> bytes:
    """What stands on stdin, as far as it may be long and one byte more; nothing where it is closed."""
    return sys.stdin.buffer.read(limit + 1) if sys.stdin is not None else b""


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """Output that its reader cannot take ends the command with one line, not with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        broken_output(error)
        raise SystemExit(UNREADABLE) from None


def broken_output(error: OSError) -> None:
    """Say that stdout cannot be written, and see to it that Python does not say so again at its end."""
    if not isinstance(error, BrokenPipeError):
        say(f"cannot write: {(error.strerror or str(error)).lower()}")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  it stays open to the end of the process


@contextlib.contextmanager
def refusals(project: str | None = None, code: int = FINDINGS) -> Iterator[None]:
    """Findings on stderr and exit `code`; 2 where there was nothing to read, or no such project."""
    if project is not None and not os.path.isdir(project):
        say(f"{printable(project)}: no such folder")
        raise typer.Exit(UNREADABLE)
    try:
        yield
    except EcmError as error:
        say(str(error))
        unreadable = all(f.code == "ECM100" for f in error.findings)
        raise typer.Exit(UNREADABLE if unreadable else code) from None


def show_findings(findings: Iterable[Finding]) -> None:
    """The findings on stdout: plain, and on a terminal with what matters in colour."""
    if sys.stdout is None or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        print(render(findings))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        text = Text(render([finding]))
        text.highlight_regex(r"(?m)\^+$|(?<=: )(error|warning|note) ECM\d+", _STYLES[finding.severity])
        text.highlight_regex(r"(?m)^  (help|witness|docs)[^:\n]*:", "dim")
        console.print(text)


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
