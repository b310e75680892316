"""`ecm-rules check [PATH…]`: read, validate and analyse tables."""

from __future__ import annotations

import enum
import os
import stat
from collections.abc import Sequence
from typing import Annotated

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.kernel import files
from ecm_rules.tables.findings import ERROR, NOTE, WARNING, Finding, in_order, printable


class Format(enum.StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Tables, vocabularies, project files, or folders. Default: the shipped and the project's.",
        ),
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project whose layer is applied.")] = ".",
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.text,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Print the notes as well; they fail nothing.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Carry out the fixes that are certain first; comments stay.")
    ] = False,
) -> None:
    """Prove what can be proven about tables. Exit 0 when clean, 1 on findings, 2 where there is nothing to read."""
    from ecm_rules.analysis.files import check_file, targets
    from ecm_rules.cli import reports

    with output.refusals(project):
        named = targets(paths or [], project)
    repaired = (finding for file in named for finding in _repaired(file, project)) if fix else ()
    fixed = [attrs.evolve(finding, file=_from_here(finding.file)) for finding in repaired]
    found = (finding for file in named for finding in check_file(file, project))
    findings = in_order(attrs.evolve(finding, file=_from_here(finding.file)) for finding in found)
    shown = [f for f in findings if notes or f.severity != NOTE]
    match form:
        case Format.json:
            output.document(
                {
                    "files": named,
                    "fixed": [reports.as_data(f) for f in fixed],
                    "findings": [reports.as_data(f) for f in findings],
                }
            )
        case Format.sarif:
            output.document(reports.sarif(findings))
        case Format.github:
            if shown:
                print(reports.workflow_commands(shown))
        case Format.text:
            for f in fixed:
                print(f"{printable(f.file)}:{f.line}:{f.column}: fixed {f.code}: {f.message}")
            if shown:
                output.show_findings(shown)
                print()
            print(_summary(findings, len(named), len(fixed), notes))
    raise typer.Exit(_exit(findings, strict))


def _from_here(path: str) -> str:
    """One spelling of each file, from the working folder or absolute, so that what is found twice is told once."""
    inside = os.path.relpath(path) if path else path
    return os.path.abspath(path) if inside.startswith(os.pardir) else inside


def _repaired(path: str, project: str) -> list[Finding]:
    from ecm_rules.analysis.repair import repair

    try:
        return repair(path, project, lambda file, data: files.replace(file, data, stat.S_IMODE(os.stat(file).st_mode)))
    except OSError as error:
        output.say(f"{printable(path)}: not fixed: {(error.strerror or str(error)).lower()}")
        return []


def _summary(findings: Sequence[Finding], count: int, fixed: int, notes_shown: bool) -> str:
    counts = {severity: sum(f.severity == severity for f in findings) for severity in (ERROR, WARNING, NOTE)}
    told = [f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count]
    if not counts[ERROR] and not counts[WARNING]:
        told.insert(0, "no findings")
    if counts[NOTE] and not notes_shown:
        told[-1] += " (--notes shows them)"
    if fixed:
        told.append(f"{fixed} fixed")
    return f"{count} file{'' if count == 1 else 's'}: {', '.join(told)}"


def _exit(findings: Sequence[Finding], strict: bool) -> int:
    failing = [f for f in findings if f.severity == ERROR or (strict and f.severity == WARNING)]
    if failing and all(f.code == "ECM100" for f in failing):
        return output.UNREADABLE
    return output.FINDINGS if failing else 0
