"""`ecm-rules test [PATH…]`: scenarios, and how much of a table they exercise."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree import ElementTree

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable

if TYPE_CHECKING:
    from ecm_rules.analysis.coverage import Coverage
    from ecm_rules.analysis.scenarios import Result, Tested

FOLDER = os.path.join("fixtures", "scenarios")


class Format(enum.StrEnum):
    text = "text"
    json = "json"
    junit = "junit"


def scenarios(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help=f"Files of scenarios, or folders. Default: {FOLDER}.")
    ] = None,
    policy_file: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="Test this policy in the place of the shipped one.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="DIR", help="Apply the layer of this project. Default: none.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.text,
    coverage: Annotated[bool, typer.Option("--coverage", help="Say what the scenarios exercise of the table.")] = False,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", min=0, max=100, metavar="PCT", help="Fail below this coverage.")
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Print the missing scenarios as YAML and nothing else.")
    ] = False,
) -> None:
    """Run scenarios against tables. Exit 1 where one fails or a file has findings, 2 where there is nothing to read."""
    from ecm_rules.analysis.coverage import measure
    from ecm_rules.analysis.scenarios import run_files
    from ecm_rules.tables.documents import named

    if generate and (form is not Format.text or coverage or fail_under is not None):
        raise typer.BadParameter("--generate prints scenarios and nothing else", param_hint="--generate")
    with output.refusals(project):
        tested = run_files(named(paths or [FOLDER]), policy_file, project)
        asked = coverage or generate or fail_under is not None
        covered = [measure(t.policy, t.results) if asked else None for t in tested]
    if generate:
        failures = [line for t in tested for r in t.results for n in range(len(r.outcomes)) for line in _failure(r, n)]
        print(_generated(tested, covered), end="")
        for line in failures:
            output.say(line)
        raise typer.Exit(output.FINDINGS if failures else 0)
    match form:
        case Format.json:
            output.document(_data(tested, covered))
        case Format.junit:
            print(_junit([result for t in tested for result in t.results]))
        case Format.text:
            print(_text(tested, covered))
    low = [(t, c.percent) for t, c in zip(tested, covered, strict=True) if c and c.percent < (fail_under or 0)]
    for t, percent in low:
        output.say(f"{printable(t.name)}: coverage {percent:.1f}% is below {fail_under:g}%")
    if low or not all(result.passed for t in tested for result in t.results):
        raise typer.Exit(output.FINDINGS)


def _text(tested: Sequence[Tested], covered: Sequence[Coverage | None]) -> str:
    lines = []
    for t, coverage in zip(tested, covered, strict=True):
        lines += [line for result in t.results for n in range(len(result.outcomes)) for line in _failure(result, n)]
        lines += _covered(t.name, coverage) if coverage else []
    results = [result for t in tested for result in t.results]
    passed = sum(result.passed for result in results)
    return "\n".join([*lines, f"{passed} passed, {len(results) - passed} failed"])


def _failure(result: Result, number: int) -> list[str]:
    """What went wrong at one moment of a scenario, or nothing."""
    outcome = result.outcomes[number]
    if not outcome.wrong:
        return []
    node = outcome.moment.node
    place = f"{printable(result.source.file)}:{node.span.line}:{node.span.column}"
    at = f", moment {number + 1}" if len(result.outcomes) > 1 else ""
    decided, expected = outcome.decided, outcome.moment.expect
    told = [f"{key} is {decided[key] or 'none'}, expected {expected[key] or 'none'}" for key in outcome.wrong]
    by = "" if "rule" in outcome.wrong else f" (by {decided['rule'] or 'no row'})"
    return [f"{place}: failed: {printable(result.scenario.name)}{at}: {'; '.join(told)}{by}"]


def _covered(name: str, coverage: Coverage) -> list[str]:
    fired = [hit for _, hit in coverage.rows]
    regions, boundaries = [part.hit for part in coverage.parts], [edge.hit for edge in coverage.boundaries]
    return [
        f"coverage of {printable(name)}: {coverage.percent:.1f}%",
        *(
            f"  {what:<10} {sum(hit)} of {len(hit)}"
            for what, hit in (("rows", fired), ("regions", regions), ("boundaries", boundaries))
        ),
        *(f"  not fired: {row}" for row, hit in coverage.rows if not hit),
        *(f"  not exercised: {p.text}: {p.operation} ({p.rule})" for p in coverage.parts if not p.hit),
        *(f"  not exercised: {edge.name} ({edge.value!r})" for edge in coverage.boundaries if not edge.hit),
    ]


def _data(tested: Sequence[Tested], covered: Sequence[Coverage | None]) -> dict[str, Any]:
    results = [result for t in tested for result in t.results]
    data: dict[str, Any] = {
        "passed": sum(result.passed for result in results),
        "failed": sum(not result.passed for result in results),
        "scenarios": [
            {
                "file": result.source.file,
                "line": result.scenario.span.line,
                "name": result.scenario.name,
                "passed": result.passed,
                "moments": [
                    {"expected": o.moment.expect, "decided": o.decided, "wrong": list(o.wrong)} for o in result.outcomes
                ],
            }
            for result in results
        ],
    }
    told = {t.name: _coverage_data(coverage) for t, coverage in zip(tested, covered, strict=True) if coverage}
    return {**data, "coverage": told} if told else data


def _coverage_data(coverage: Coverage) -> dict[str, Any]:
    return {
        "percent": coverage.percent,
        "rows": [{"rule": row, "hit": hit} for row, hit in coverage.rows],
        "regions": [
            {"where": p.where, "roles": p.roles, "rule": p.rule, "operation": p.operation, "hit": p.hit}
            for p in coverage.parts
        ],
        "boundaries": [{"name": edge.name, "value": edge.value, "hit": edge.hit} for edge in coverage.boundaries],
    }


def _junit(results: Iterable[Result]) -> str:
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="ecm-rules")
    failed = 0
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(result.source.file), name=printable(result.scenario.name)
        )
        failures = [line for n in range(len(result.outcomes)) for line in _failure(result, n)]
        if failures:
            failed += 1
            ElementTree.SubElement(case, "failure", message=failures[0]).text = "\n".join(failures)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failed))
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _generated(tested: Sequence[Tested], covered: Sequence[Coverage | None]) -> str:
    """One file of scenarios; those of a second table need a file of their own."""
    from ecm_rules.analysis.coverage import missing
    from ecm_rules.tables.scenarios import written

    found = [(t.name, written(t.name, missing(t.policy, c))) for t, c in zip(tested, covered, strict=True) if c]
    texts = [(name, text) for name, text in found if text]
    for name, _ in texts[1:]:
        output.say(f"more are missing for {printable(name)}: name its files alone")
    return texts[0][1] if texts else "# nothing is missing\n"
