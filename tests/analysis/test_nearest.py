"""The nearest miss: it makes the row fire, and nothing smaller does."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import pytest
from random_tables import as_text, random_table

from ecm_rules import Policy, load_table
from ecm_rules.analysis.misses import Miss, nearest


def misses(policy: Policy, meter: Any, role: str = "orchestrator") -> dict[str, Miss]:
    return {miss.rule: miss for miss in nearest(policy, meter, role)}


def changes(miss: Miss) -> list[tuple[str, Any, Any]]:
    assert miss.changes is not None
    return [(c.path, c.before, c.after) for c in miss.changes]


def test_one_signal_is_moved_to_the_threshold_and_not_beyond(policy: Policy) -> None:
    found = misses(policy, {"utilization": 0.6, "zone": "amber", "tool_result_share_est": 0.2, "compaction_count": 2})
    assert "P6" not in found  # it fires
    assert changes(found["P5"]) == [("tool_result_share_est", 0.2, 0.4)]
    assert changes(found["P4"]) == [("utilization", 0.6, 0.75), ("zone", "amber", "red")]
    assert changes(found["P2"]) == [("utilization", 0.6, 0.9), ("zone", "amber", "critical")]
    assert changes(found["P7"]) == [("utilization", 0.6, 0.49999999999999994), ("zone", "amber", "green")]
    # P3 needs another zone and fewer compactions.
    assert changes(found["P3"]) == [("utilization", 0.6, 0.75), ("zone", "amber", "red"), ("compaction_count", 2, 1)]


def test_a_zone_is_changed_by_itself_where_no_utilization_is_told(policy: Policy) -> None:
    assert changes(misses(policy, {"zone": "amber"})["P2"]) == [("zone", "amber", "critical")]


def test_a_signal_is_moved_to_what_it_is_compared_with(policy: Policy) -> None:
    meter = {"zone": "green", "budget": {"ceiling_tokens": 1000, "spent_tokens_est": 900}}
    assert changes(misses(policy, meter)["P1"]) in (
        [("budget.spent_tokens_est", 900, 1000)],
        [("budget.ceiling_tokens", 1000, 900)],
    )
    meter = {"zone": "green", "budget": {"ceiling_tokens": 1000, "spent_tokens_est": 1200}}
    # P7 does not fire for the budget alone.
    assert changes(misses(policy, meter)["P7"]) in (
        [("budget.spent_tokens_est", 1200, 999.9999999999999)],
        [("budget.ceiling_tokens", 1000, 1200.0000000000002)],
    )


def test_a_row_that_never_fires_is_told_apart_from_one_that_is_far(policy: Policy, tmp_path: pathlib.Path) -> None:
    assert misses(policy, {"zone": "green"}, "subagent")["P1"].reason == "never fires in this role"
    path = tmp_path / "t.yaml"
    path.write_text(
        "schema_version: 1\nfields: {a: {path: a, type: boolean}, b: {path: b, type: boolean}, c: {path: c, type: boolean}}\n"
        "operations: {continue: {}, stop: {}}\nrules:\n"
        "  - {id: FAR, when: {a: true, b: true, c: true}, operation: stop}\n  - {id: REST, when: {}, operation: continue}\n"
    )
    assert misses(load_table(path, project=None), {})["FAR"].reason == "more than two signals away"


def test_any_snapshot_is_taken(policy: Policy) -> None:
    meters: list[Any] = [None, [], "x", {"zone": 5, "budget": []}, {"utilization": float("nan")}, {"utilization": True}]
    for meter in meters:
        for miss in nearest(policy, meter, "orchestrator"):
            if miss.changes is not None:
                assert policy.rule_for(miss.snapshot) == miss.rule


VALUES: dict[str, list[Any]] = {
    "enum": ["a", "b", "c", "d", None],
    "boolean": [True, False, None],
    "integer": [*range(12), None],
    "number": [0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.75, 0.8, 0.9, 0.95, 1, None],
}


@pytest.mark.parametrize("seed", range(40))
def test_a_change_makes_the_row_fire_and_fewer_would_not(seed: int, tmp_path: pathlib.Path) -> None:
    document = random_table(3 + seed % 6, 3 + seed % 4, seed, tests=2)
    path = tmp_path / "table.yaml"
    path.write_text(as_text(document))
    policy = load_table(path, project=None)
    role = ("orchestrator", "subagent")[seed % 2]
    fields = {name: VALUES[spec["type"]] for name, spec in document["fields"].items()}
    meter = {name: values[seed % len(values)] for name, values in fields.items()}
    ones = {policy.rule_for({**meter, name: v}, role) for name, values in fields.items() for v in values}
    twos = {
        policy.rule_for({**meter, a: v, b: w}, role)
        for a, b in itertools.combinations(fields, 2)
        for v in fields[a]
        for w in fields[b]
    }
    for miss in nearest(policy, meter, role):
        if miss.changes is None:
            assert miss.rule not in ones | twos
            continue
        assert policy.rule_for(miss.snapshot, role) == miss.rule
        assert len(miss.changes) <= 2
        if len(miss.changes) == 2:
            assert miss.rule not in ones
