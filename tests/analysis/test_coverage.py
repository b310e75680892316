"""Scenarios and what they exercise of a table."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import pytest
from random_tables import as_text, random_table

from ecm_rules import EcmError, Policy, load_policy, load_table
from ecm_rules.analysis.coverage import Coverage, Example, measure, missing
from ecm_rules.analysis.scenarios import Result, run, run_files
from ecm_rules.tables.scenarios import load_scenarios, written
from tests.conftest import FIXTURES, ROOT
from tests.marked import located, told, unmark

HEAD = "schema_version: 1\nscenarios:\n"


def results(policy: Policy, path: pathlib.Path, text: str) -> list[Result]:
    path.write_text(text)
    return run(policy, load_scenarios(str(path)))


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "scenarios.yaml"


def test_the_shipped_scenarios_pass_and_exercise_all_of_the_policy(policy: Policy) -> None:
    found = []
    for file in sorted((FIXTURES / "scenarios").glob("context-policy*.yaml")):
        found += run(policy, load_scenarios(str(file)))
    assert found
    assert all(result.passed for result in found)
    assert measure(policy, found).percent == 100


def test_signals_by_name_replace_what_would_be_computed(policy: Policy, path: pathlib.Path) -> None:
    text = HEAD + (
        "  - {name: a, signals: {zone: green, budget_ceiling_set: true, budget_spent_gte_ceiling: true}, expect: {rule: P1}}\n"
        "  - {name: b, signals: {spent: 5, ceiling: 5}, expect: {operation: wrap_up}}\n"
        "  - {name: c, role: subagent, signals: {budget_ceiling_set: true, budget_spent_gte_ceiling: true}, expect: {rule: P7}}\n"
        "  - {name: d, signals: {zone: null}, expect: {rule: P7}}\n"
    )
    assert [r.passed for r in results(policy, path, text)] == [True] * 4


def test_a_meter_without_a_zone_has_the_one_of_the_thresholds(policy: Policy, path: pathlib.Path) -> None:
    text = HEAD + (
        "  - {name: derived, meter: {utilization: 0.75}, expect: {rule: P3}}\n"
        "  - {name: stated, meter: {utilization: 0.75, zone: amber}, expect: {rule: P6}}\n"
        "  - {name: unknown, meter: {utilization: null}, expect: {rule: P7}}\n"
        "  - {name: impossible, meter: {utilization: 1.5}, expect: {rule: P7}}\n"
    )
    assert [r.passed for r in results(policy, path, text)] == [True] * 4


def test_what_was_expected_and_what_was_decided_are_told_apart(policy: Policy, path: pathlib.Path) -> None:
    text = HEAD + (
        "  - name: fills\n    sequence:\n"
        "      - {meter: {zone: amber}, expect: {operation: externalize}}\n"
        "      - {meter: {zone: red}, expect: {operation: externalize, rule: P3}}\n"
        "      - {role: subagent, meter: {zone: critical}, expect: {raw_operation: handoff_fresh, operation: handoff_fresh}}\n"
    )
    (result,) = results(policy, path, text)
    assert not result.passed
    assert [outcome.wrong for outcome in result.outcomes] == [(), ("operation",), ("operation",)]
    assert result.outcomes[2].decided == {
        "rule": "P2",
        "operation": "finish_and_return",
        "raw_operation": "handoff_fresh",
    }


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("  - {name: a, meter: {}, expect: {operation: «compat»}}\n", ["ECM307"]),
        ("  - {name: a, meter: {}, expect: {rule: «P9»}}\n", ["ECM307"]),
        ("  - {name: a, signals: {«zonee»: red}, expect: {rule: P1}}\n", ["ECM301"]),
        ("  - {name: a, signals: {zone: «orange»}, expect: {rule: P1}}\n", ["ECM304"]),
        ("  - «{»name: a, expect: {rule: P1}}\n", ["ECM202"]),
        ("  - «{»name: a, meter: {}, signals: {}, expect: {rule: P1}}\n", ["ECM202"]),
        ("  - «{»name: a, meter: {}}\n", ["ECM202"]),
        ("  - {name: a, meter: {}, expect: «{»}}\n", ["ECM204"]),
        ("  - {name: a, «meter»: {}, sequence: [{meter: {}, expect: {rule: P7}}]}\n", ["ECM201"]),
        ("  - {name: a, meter: {}, expect: {rule: P7}}\n  - {name: «a», meter: {}, expect: {rule: P7}}\n", ["ECM206"]),
        ("  - {name: a, meter: {}, expect: {«rul»: P7}}\n", ["ECM201"]),
        ("  - {name: a, meter: {}, role: «agent», expect: {rule: P7}}\n", ["ECM204"]),
    ],
)
def test_a_scenario_that_says_nothing_sound_is_refused(
    policy: Policy, path: pathlib.Path, text: str, codes: list[str]
) -> None:
    clean, places = unmark(HEAD + text)
    with pytest.raises(EcmError) as caught:
        results(policy, path, clean)
    assert told(caught.value.findings) == located(places, codes)


def test_no_scenarios_are_refused(policy: Policy, path: pathlib.Path) -> None:
    with pytest.raises(EcmError):
        results(policy, path, "schema_version: 1\nscenarios: []\n")


def test_coverage_names_rows_regions_and_boundaries(policy: Policy, path: pathlib.Path) -> None:
    share = "  - {{name: {0}, meter: {{utilization: 0.5, tool_result_share_est: {1}}}, expect: {{operation: {2}}}}}\n"
    text = (
        HEAD + share.format("at", 0.4, "prune_tool_results") + share.format("below", 0.39999999999999997, "externalize")
    )
    coverage = measure(policy, results(policy, path, text))
    assert dict(coverage.rows) == {f"P{n}": n in (5, 6) for n in range(1, 8)}
    hit = [part.where for part in coverage.parts if part.hit]
    assert hit == [
        "zone amber and tool_result_share at least 0.4 and budget_spent_gte_ceiling false",
        "zone amber and tool_result_share below 0.4 and budget_spent_gte_ceiling false",
    ]
    reached = {boundary.name for boundary in coverage.boundaries if boundary.hit}
    assert reached == {
        "P5: tool_result_share at 0.4",
        "P5: tool_result_share just below 0.4",
        "utilization at 0.5, where amber begins",
    }


def test_a_boundary_counts_only_where_the_rest_of_its_row_holds(policy: Policy, path: pathlib.Path) -> None:
    text = HEAD + "  - {name: a, meter: {utilization: 0.2, tool_result_share_est: 0.4}, expect: {rule: P7}}\n"
    coverage = measure(policy, results(policy, path, text))
    assert not any(boundary.hit for boundary in coverage.boundaries)


def test_each_threshold_and_the_nearest_value_on_each_side_is_generated(policy: Policy) -> None:
    values: dict[str, list[Any]] = {}
    for boundary in measure(policy, []).boundaries:
        values.setdefault(".".join(boundary.path), []).append(boundary.value)
    for start in (0.5, 0.75, 0.9):
        assert {math.nextafter(start, 0), start, math.nextafter(start, 1)} <= set(values["utilization"])
    assert set(values["tool_result_share_est"]) == {math.nextafter(0.4, 0), 0.4, math.nextafter(0.4, 1)}
    assert set(values["compaction_count"]) == {1, 2, 3}
    assert len(values["budget.spent_tokens_est"]) == 3


def complete(policy: Policy, path: pathlib.Path, found: list[Result], table: str) -> Coverage:
    """The coverage with what is generated for what is missing."""
    text = written(table, missing(policy, measure(policy, found)))
    generated = results(policy, path, text) if text else []
    assert all(result.passed for result in generated)
    return measure(policy, [*found, *generated])


def test_what_is_generated_passes_and_completes_the_coverage(policy: Policy, path: pathlib.Path) -> None:
    assert complete(policy, path, [], "context-policy").percent == 100
    for name in ("lateral-signals", "trust-sources"):
        assert complete(load_table(name, project=None), path, [], name).percent == 100


@pytest.mark.parametrize("seed", range(30))
def test_regions_of_random_tables_are_all_reached_by_what_is_generated(
    seed: int, path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(as_text(random_table(3 + seed % 5, 3 + seed % 4, seed, tests=2)))
    policy = load_table(table, project=None)
    coverage = complete(policy, path, [], str(table))
    assert all(part.hit for part in coverage.parts)
    live = {part.rule for part in coverage.parts}
    assert {row for row, hit in coverage.rows if hit} == live


def test_names_that_no_snapshot_gives_together_are_refused(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(
        "schema_version: 1\nfields: {x: {path: a, type: integer}, z: {path: a.b, type: integer}}\n"
        "operations: {continue: {}}\nrules: [{id: B, when: {}, operation: continue}]\n"
    )
    policy = load_table(table, project=None)
    for order in ("x: 5, z: «6»", "z: 6, x: «5»"):
        clean, _ = unmark(HEAD + f"  - {{name: a, signals: {{{order}}}, expect: {{rule: B}}}}\n")
        with pytest.raises(EcmError) as caught:
            results(policy, path, clean)
        assert [f.code for f in caught.value.findings] == ["ECM204"]


def test_numbers_that_no_table_can_hold_are_not_generated(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(
        "schema_version: 1\nfields: {x: {path: x, type: number}}\noperations: {continue: {}, stop: {}}\n"
        "rules:\n  - {id: A, when: {x_gte: 1.0e+20}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    )
    assert complete(load_table(table, project=None), path, [], str(table)).percent == 100


def test_fields_that_are_no_numbers_have_no_boundary(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(
        "schema_version: 1\nfields: {count: {path: count, type: integer}, label: {path: label, type: string}}\n"
        'signals: {same: {from: "count == label", type: boolean}}\noperations: {continue: {}, stop: {}}\n'
        "rules:\n  - {id: A, when: {same: false, label: x}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    assert complete(load_table(table, project=None), path, [], str(table)).percent == 100


def test_generated_names_are_all_different(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(
        "schema_version: 1\nfields: {spent: {path: spent, type: number}, ceiling: {path: ceiling, type: number}}\n"
        'signals: {over: {from: "spent >= ceiling", type: boolean}}\noperations: {continue: {}, stop: {}}\n'
        "rules:\n  - {id: A, when: {over: true, over_missing: false}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    assert complete(load_table(table, project=None), path, [], str(table)).percent == 100
    long = [Example("a" * 300, "orchestrator", {}, {"rule": "P7"})] * 3
    results(load_policy(project=None), path, written("context-policy", long))


def test_a_boundary_that_no_snapshot_has_is_none(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(
        "schema_version: 1\nfields: {x: {path: a, type: integer}, z: {path: a.b, type: integer}}\n"
        "operations: {continue: {}, stop: {}}\n"
        "rules:\n  - {id: A, when: {x_missing: true, z_gte: 3}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    coverage = measure(load_table(table, project=None), [])
    assert {b.value for b in coverage.boundaries} == {2, 3, 4}


def test_a_derived_zone_may_stand_anywhere(tmp_path: pathlib.Path) -> None:
    for folder in ("roster", "rules"):
        (tmp_path / folder).mkdir()
        for file in (ROOT / folder).glob("*.yaml"):
            (tmp_path / folder / file.name).write_text(file.read_text())
    signals = tmp_path / "rules/signals.yaml"
    signals.write_text(
        signals.read_text()
        .replace("path: zone\n", "path: window.zone\n")
        .replace("zone_of: utilization", "zone_of: window.share")
    )
    (tmp_path / "s.yaml").write_text(HEAD + "  - {name: a, meter: {window: {share: 0.95}}, expect: {rule: P2}}\n")
    (tested,) = run_files([str(tmp_path / "s.yaml")])
    assert tested.results[0].passed  # and by the vocabulary of the checkout in which the scenarios stand
