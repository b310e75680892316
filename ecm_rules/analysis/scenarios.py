"""Scenarios carried out: what the table decides about each snapshot, beside what is expected of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import attrs

from ecm_rules.analysis.sources import Sources, put
from ecm_rules.analysis.space import rezoned
from ecm_rules.engine import program as engine
from ecm_rules.engine.policy import Policy
from ecm_rules.tables import load, places
from ecm_rules.tables.domains import accept, expected
from ecm_rules.tables.findings import EcmError, Finding, Source, in_order, shown
from ecm_rules.tables.scenarios import DEFAULT, Moment, Scenario, Scenarios, load_scenarios, misfits


@attrs.frozen
class Reading:
    """What the engine reads of a moment: the values of all names, those that are missing, and the leaves it gives."""

    role: str
    values: dict[str, Any]
    missing: tuple[str, ...]
    snapshot: Any


@attrs.frozen
class Outcome:
    """A moment: the rule, operation and raw operation that were decided, and the keys of which another was expected."""

    moment: Moment
    reading: Reading
    decided: dict[str, Any]
    wrong: tuple[str, ...]


@attrs.frozen
class Result:
    scenario: Scenario
    source: Source
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        return not any(outcome.wrong for outcome in self.outcomes)


@attrs.frozen
class Tested:
    """A table by the name that its scenarios give it, and what became of all of these."""

    name: str
    policy: Policy
    results: tuple[Result, ...]


def run_files(paths: Iterable[str], policy: str | None = None, project: str | None = None) -> list[Tested]:
    """Every scenario of some files, by table. policy: a table in the place of the shipped policy. project: the folder
    whose layer is applied to policies.

    Raises EcmError with everything that is wrong with the files and their tables.
    """
    found: dict[str, list[Scenarios]] = {}
    findings: list[Finding] = []
    for path in paths:
        try:
            scenarios = load_scenarios(path)
            found.setdefault(_table_of(scenarios), []).append(scenarios)
        except EcmError as error:
            findings += error.findings
    tested = []
    for table, files in found.items():
        try:
            loaded = _load(policy if policy is not None and files[0].table == DEFAULT else table, project)
            results = [result for scenarios in files for result in run(loaded, scenarios)]
            tested.append(Tested(files[0].table, loaded, tuple(results)))
        except EcmError as error:
            findings += error.findings
    if findings:
        raise EcmError(in_order(findings))
    return tested


def misfits_of(path: str, project: str | None) -> list[Finding]:
    """What a file of scenarios names that its table does not have, and what is wrong with that table's file."""
    try:
        run_files([path], project=project)
    except EcmError as error:
        return list(error.findings)
    return []


def run(policy: Policy, scenarios: Scenarios) -> list[Result]:
    """Every scenario of a file. Raises EcmError where they name what the table does not have."""
    findings = misfits(scenarios, policy.table)
    results = []
    for scenario in scenarios.scenarios:
        outcomes = tuple(_outcome(policy, moment, scenarios.source, findings) for moment in scenario.moments)
        results.append(Result(scenario, scenarios.source, outcomes))
    if findings:
        raise EcmError(in_order(findings))
    return results


def read(policy: Policy, meter: Any, role: str) -> Reading:
    """A meter as the engine reads it; one that tells its utilization and no zone has the table's zone for it."""
    (source,) = Sources.all_of([policy.program])
    zoned = rezoned(meter, source, keep=True)
    values, missing, _ = engine.read(policy.program, zoned, role)
    return Reading(role, values, tuple(missing), zoned)


def decide(policy: Policy, reading: Reading) -> dict[str, Any]:
    """The rule, operation and raw operation of what was read."""
    row = engine.first(policy.program, reading.values, list(reading.missing))
    raw, operation = engine.outcome(policy.program, row, reading.role)
    return {"rule": row["id"] if row else None, "operation": operation, "raw_operation": raw}


def _table_of(scenarios: Scenarios) -> str:
    """The path of the table: the shipped one of that name, or the one of the checkout in which the scenarios stand."""
    shipped = load.shipped_tables()
    if scenarios.table in shipped:
        home = load.home_above(os.path.dirname(scenarios.source.file))
        inside = os.path.relpath(shipped[scenarios.table], places.shipped("."))
        own = os.path.join(home, inside) if home else ""
        return own if os.path.isfile(own) else shipped[scenarios.table]
    return os.path.normpath(os.path.join(os.path.dirname(scenarios.source.file), scenarios.table))


def _load(name: str, project: str | None) -> Policy:
    path = load.locate(name)
    return Policy.of(load.load_table(path, project, load.home_of(path)))


def _outcome(policy: Policy, moment: Moment, source: Source, findings: list[Finding]) -> Outcome:
    reading = _named(policy, moment, source, findings) if moment.by_name else read(policy, moment.given, moment.role)
    decided = decide(policy, reading)
    wrong = tuple(key for key, value in moment.expect.items() if decided[key] != value)
    return Outcome(moment, reading, decided, wrong)


def _named(policy: Policy, moment: Moment, source: Source, findings: list[Finding]) -> Reading:
    """Values by the names of fields and signals; a signal's own expression is not asked where its value is given."""
    given = dict(moment.given)
    snapshot: dict[str, Any] = {}
    for spec in (*policy.program["fields"], *policy.program["signals"]):
        value = given.get(spec["name"])
        if value is None:
            given.pop(spec["name"], None)
        elif accept(spec, value) is None:
            node = moment.node.at(("signals", spec["name"]))
            message = f"found {shown(value)} for `{spec['name']}`, expected {expected(spec)}"
            findings.append(source.finding("ECM304", node.span, message))
        elif "path" in spec and not put(snapshot, tuple(spec["path"]), given.pop(spec["name"])):
            node = moment.node.at(("signals", spec["name"]))
            message = f"found `{spec['name']}` inside or in the place of another, which no snapshot can give together"
            findings.append(source.finding("ECM204", node.span, message, "leave one of the two out"))
    values, missing, _ = engine.read(policy.program, snapshot, moment.role)
    for spec in (*policy.program["fields"], *policy.program["signals"]):
        if spec["name"] in given and spec.get("scope", moment.role) == moment.role:
            values[spec["name"]] = given[spec["name"]]
            missing = [name for name in missing if name != spec["name"]]
    return Reading(moment.role, values, tuple(missing), snapshot)
