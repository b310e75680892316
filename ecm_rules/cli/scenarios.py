"""`ecm-rules test [PATH…]`: scenarios, and how much of a table they exercise."""

from __future__ import annotations

import enum
import os
from typing import Annotated, Any
from xml.etree import ElementTree

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import EcmError, Finding, printable

FOLDER = os.path.join("fixtures", "scenarios")


class Format(enum.StrEnum):
    text = "text"
    json = "json"
    junit = "junit"


@attrs.frozen
class Tested:
    """A table, its results over all files, and its coverage where that was asked for."""

    name: str
    policy: Any
    results: list[Any]
    coverage: Any = None


def scenarios(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help=f"Files of scenarios, or folders. Default: {FOLDER}."),
    ] = None,
    policy_file: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="Test this policy in the place of the shipped one.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.text,
    coverage: Annotated[bool, typer.Option("--coverage", help="Say what the scenarios exercise of the table.")] = False,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", min=0, max=100, metavar="PCT", help="Fail below this coverage.")
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Print the missing scenarios as YAML instead; see what they expect.")
    ] = False,
) -> None:
    """Run scenarios against tables. Exit 1 where one fails, or where there are none; 2 where nothing can be read."""
    from ecm_rules.analysis.boxes import Inconclusive

    with output.refusals(code=output.UNREADABLE):
        tested = _run(_files(paths or [FOLDER]), policy_file)
    try:
        if coverage or generate or fail_under is not None:
            from ecm_rules.analysis.coverage import measure

            tested = [attrs.evolve(t, coverage=measure(t.policy, t.results)) for t in tested]
    except Inconclusive as reason:
        output.say(f"coverage is inconclusive: {reason}")
        raise typer.Exit(output.FINDINGS) from None
    if generate:
        print(_generated(tested), end="")
        raise typer.Exit(0)
    results = [result for t in tested for result in t.results]
    match form:
        case Format.json:
            output.document(_data(tested))
        case Format.junit:
            print(_junit(results))
        case Format.text:
            print(_text(tested))
    low = [t for t in tested if fail_under is not None and t.coverage.percent < fail_under]
    for t in low:
        output.say(f"{printable(t.name)}: coverage {t.coverage.percent:.1f}% is below {fail_under:g}%")
    if low or not results or not all(result.passed for result in results):
        raise typer.Exit(output.FINDINGS)


def _files(paths: list[str]) -> list[str]:
    from ecm_rules.tables.documents import tables_in

    found = [file for path in paths for file in (tables_in(path) if os.path.isdir(path) else [path])]
    return list(dict.fromkeys(found))


def _run(files: list[str], policy_file: str | None) -> list[Tested]:
    from ecm_rules.analysis.scenarios import run
    from ecm_rules.engine.policy import Policy
    from ecm_rules.tables import load
    from ecm_rules.tables.scenarios import DEFAULT, load_scenarios

    tables: dict[str, Tested] = {}
    findings: list[Finding] = []
    for file in files:
        try:
            scenarios = load_scenarios(file)
            name = scenarios.table
            if name not in load.shipped_tables():
                name = os.path.join(os.path.dirname(file), name)
            if name == DEFAULT and policy_file is not None:
                name = policy_file
            if name not in tables:
                path = load.locate(name)
                tables[name] = Tested(name, Policy.of(load.load_table(path, None, load.home_of(path))), [])
            tables[name].results.extend(run(tables[name].policy, scenarios))
        except EcmError as error:
            findings += error.findings
    if findings:
        raise EcmError(findings)
    return list(tables.values())


def _text(tested: list[Tested]) -> str:
    lines = []
    for t in tested:
        for result in t.results:
            lines += [line for n in range(len(result.outcomes)) for line in _failure(result, n)]
        if t.coverage is not None:
            lines += _covered(t)
    results = [result for t in tested for result in t.results]
    passed = sum(result.passed for result in results)
    return "\n".join([*lines, f"{passed} passed, {len(results) - passed} failed"])


def _failure(result: Any, number: int) -> list[str]:
    """What went wrong at one moment of a scenario, or nothing."""
    outcome = result.outcomes[number]
    if not outcome.wrong:
        return []
    node = outcome.moment.node
    place = f"{printable(result.source.file)}:{node.span.line}:{node.span.column}"
    at = f", moment {number + 1}" if len(result.outcomes) > 1 else ""
    told = [
        f"{key} is {outcome.decided[key] or 'none'}, expected {outcome.moment.expect[key] or 'none'}"
        for key in outcome.wrong
    ]
    by = "" if "rule" in outcome.wrong else f" (by {outcome.decided['rule'] or 'no row'})"
    return [f"{place}: failed: {printable(result.scenario.name)}{at}: {'; '.join(told)}{by}"]


def _covered(t: Tested) -> list[str]:
    coverage = t.coverage
    lines = [f"coverage of {printable(t.name)}: {coverage.percent:.1f}%"]
    for what, hit in (
        ("rows", coverage.rows_hit),
        ("regions", coverage.parts_hit),
        ("boundaries", coverage.boundaries_hit),
    ):
        lines.append(f"  {what:<10} {sum(hit)} of {len(hit)}")
    for row, hit in zip(coverage.rows, coverage.rows_hit, strict=True):
        lines += [] if hit else [f"  not fired: {row}"]
    for part, hit in zip(coverage.parts, coverage.parts_hit, strict=True):
        lines += [] if hit else [f"  not exercised: {_part(part)}"]
    for edge, hit in zip(coverage.boundaries, coverage.boundaries_hit, strict=True):
        lines += [] if hit else [f"  not exercised: {edge.name} ({edge.value!r})"]
    return lines


def _part(part: Any) -> str:
    return f"{part.where}{part.as_role}: {part.operation} ({part.rule})"


def _data(tested: list[Tested]) -> dict[str, Any]:
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
    covered = [t for t in tested if t.coverage is not None]
    if covered:
        data["coverage"] = {t.name: _coverage_data(t.coverage) for t in covered}
    return data


def _coverage_data(coverage: Any) -> dict[str, Any]:
    return {
        "percent": coverage.percent,
        "rows": [{"rule": row, "hit": hit} for row, hit in zip(coverage.rows, coverage.rows_hit, strict=True)],
        "regions": [
            {
                "where": p.where,
                "roles": [role for role, _ in p.boxes],
                "rule": p.rule,
                "operation": p.operation,
                "hit": hit,
            }
            for p, hit in zip(coverage.parts, coverage.parts_hit, strict=True)
        ],
        "boundaries": [
            {"name": b.name, "value": b.value, "hit": hit}
            for b, hit in zip(coverage.boundaries, coverage.boundaries_hit, strict=True)
        ],
    }


def _junit(results: list[Any]) -> str:
    failed = sum(not result.passed for result in results)
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="ecm-rules", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(result.source.file), name=printable(result.scenario.name)
        )
        failures = [line for n in range(len(result.outcomes)) for line in _failure(result, n)]
        if failures:
            ElementTree.SubElement(case, "failure", message=failures[0]).text = "\n".join(failures)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _generated(tested: list[Tested]) -> str:
    from ecm_rules.analysis.coverage import missing
    from ecm_rules.tables.scenarios import written

    texts = [written(t.name, missing(t.policy, t.coverage)) for t in tested]
    found = [(t.name, text) for t, text in zip(tested, texts, strict=True) if text]
    for name, _ in found[1:]:
        output.say(f"more are missing for {printable(name)}: name its files alone")
    return found[0][1] if found else "# nothing is missing\n"
