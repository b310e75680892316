"""The evaluator that adapters embed: verdicts, what is degraded, roles, digests, the trace."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import Policy, Verdict, load_policy, load_table
from ecm_rules.engine import program

PRUNE = ("plan_checkpoint", "commit_identifier_manifest", "ingest_envelope_if_present", "host_clear_tool_results")


def test_the_three_lines_of_the_readme(policy: Policy) -> None:
    v = policy.decide({"zone": "amber", "tool_result_share_est": 0.41})
    assert (v.rule, v.operation, v.raw_operation, v.role) == (
        "P5",
        "prune_tool_results",
        "prune_tool_results",
        "orchestrator",
    )
    assert v.steps == PRUNE
    assert v.degraded == ()
    assert v.missing == ("compaction_count", "ceiling", "spent", "budget_spent_gte_ceiling")
    assert v.signals["tool_result_share"] == 0.41
    assert v.signals["ceiling"] is None


def test_a_subagent_skips_the_budget_row_and_spawns_no_successor(policy: Policy) -> None:
    spent = {"zone": "critical", "budget": {"ceiling_tokens": 1, "spent_tokens_est": 2}}
    assert policy.decide(spent).rule == "P1"
    v = policy.decide(spent, role="subagent")
    assert (v.rule, v.operation, v.raw_operation, v.role) == ("P2", "finish_and_return", "handoff_fresh", "subagent")
    assert v.steps[-1] == "emit_return_notice"
    assert v.signals["budget_ceiling_set"] is None
    assert policy.rule_for(spent, "subagent") == "P2"


@pytest.mark.parametrize("role", ["", "Subagent", "kernel", None])
def test_an_unknown_role_is_refused(policy: Policy, role: str) -> None:
    for call in (policy.decide, policy.rule_for, policy.trace):
        with pytest.raises(ValueError, match="expected one of orchestrator, subagent"):
            call({}, role)


def test_paths_may_be_path_objects(tmp_path: pathlib.Path) -> None:
    from tests.conftest import ROOT

    assert load_policy(ROOT / "roster/context-policy.yaml", project=tmp_path).rule_for({"zone": "red"}) == "P3"
    assert load_table(ROOT / "rules/lateral-signals.yaml", project=tmp_path).decide({}).rule == "L3"


def test_no_meter_is_no_fault_and_a_wrong_one_is(policy: Policy) -> None:
    assert policy.decide(None).degraded == ()
    assert policy.decide({}).degraded == ()
    not_objects: tuple[object, ...] = ([], "critical", 3, True, 1.5)
    for wrong in not_objects:
        v = policy.decide(wrong)
        assert v.rule == "P7"
        assert [d.path for d in v.degraded] == ["meter"]


def test_each_fault_is_named_by_its_path_and_none_hides_another(policy: Policy) -> None:
    v = policy.decide(
        {
            "zone": "Red",
            "compaction_count": -1,
            "tool_result_share_est": "0.5",
            "budget": {"ceiling_tokens": True, "spent_tokens_est": [1]},
        }
    )
    assert [d.path for d in v.degraded] == [
        "zone",
        "compaction_count",
        "tool_result_share_est",
        "budget.ceiling_tokens",
        "budget.spent_tokens_est",
    ]
    assert v.degraded[0].reason == 'found "Red", expected one of green, amber, red, critical, unknown'
    assert v.degraded[1].reason == "found -1, expected a whole number at least 0"
    assert v.degraded[2].reason == 'found "0.5", expected a number from 0 to 1'
    assert v.degraded[3].reason == "found a boolean, expected a number above 0"


def test_the_nearest_part_of_the_wrong_kind_is_named_once(policy: Policy) -> None:
    v = policy.decide({"zone": "critical", "budget": "100"})
    assert [(d.path, d.reason) for d in v.degraded] == [("budget", "found a string, expected an object")]


def test_a_reason_is_short_and_printable_whatever_was_found(policy: Policy) -> None:
    for value in ("x" * 1_000_000, "\x1b[31m\u202e", 10**5000, -(10**5000), 1e300, float("nan"), "\ud800"):
        for degraded in policy.decide(
            {"zone": value, "compaction_count": value, "tool_result_share_est": value}
        ).degraded:
            assert len(degraded.reason) < 200
            assert degraded.reason.isascii()
            assert degraded.reason.isprintable()


def test_whole_floats_are_counts_and_come_out_as_integers(policy: Policy) -> None:
    v = policy.decide({"zone": "red", "compaction_count": 2.0})
    assert v.rule == "P4"
    assert type(v.signals["compaction_count"]) is int


def test_no_row_continues_and_says_so(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "ecm_version: '0.1'\nzones: {amber: 0.5, red: 0.75, critical: 0.9}\nlimits: {compaction_depth_cap: 2}\n"
        "rules:\n  - {id: A, when: {zone: red}, operation: compact}\n"
    )
    policy = load_policy(str(path), project=None)
    v = policy.decide({"zone": "green"})
    assert (v.rule, v.operation, v.steps) == (None, "continue", ())
    assert [(d.path, d.reason) for d in v.degraded] == [("rows", "no row holds")]
    assert policy.rule_for({"zone": "green"}) is None


def test_a_verdict_goes_to_json_and_back_byte_for_byte(policy: Policy) -> None:
    meters = [
        None,
        {},
        {"zone": "red", "compaction_count": 2.0},
        {"zone": 3},
        {"budget": {"ceiling_tokens": 5, "spent_tokens_est": 7}},
    ]
    for meter in meters:
        for role in program.ROLES:
            v = policy.decide(meter, role)
            again = Verdict.from_json(v.to_json())
            assert again == v
            assert hash(again) == hash(v)
            assert again.to_json() == v.to_json()


def own_table(tmp_path: pathlib.Path, fields: str, rows: str, signals: str = "{}") -> Policy:
    path = tmp_path / "t.yaml"
    path.write_text(
        f"schema_version: 1\nfields: {fields}\nsignals: {signals}\noperations: {{continue: {{}}, go: {{}}}}\nrules:\n{rows}"
    )
    return load_table(str(path), project=None)


def test_keys_with_points_in_them_are_keys(tmp_path: pathlib.Path) -> None:
    policy = own_table(
        tmp_path,
        """{x: {path: '"a.b".x', type: number}, z: {path: a.b.z, type: number}}""",
        "  - {id: A, when: {x_gt: 1}, operation: go}\n  - {id: B, when: {z_gt: 1}, operation: go}\n",
    )
    for snapshot in ({}, {"a": {"b": {"z": 2}}}, {"a.b": {"x": 2}}, {"a.b": 5, "a": {"b": 5}}):
        assert policy.rule_for(snapshot) == policy.decide(snapshot).rule
    assert [d.path for d in policy.decide({"a.b": 5, "a": {"b": 5}}).degraded] == ['"a.b"', "a.b", "rows"]


def test_an_expression_that_fails_is_a_fault_of_its_field(tmp_path: pathlib.Path) -> None:
    policy = own_table(
        tmp_path,
        "{size: {path: length(items), type: integer, missing: 0}}",
        "  - {id: A, when: {size_gt: 1}, operation: go}\n",
        '{twice: {from: "sum([size, size])", type: integer}, bad: {from: "abs(to_array(size))", type: integer}}',
    )
    assert policy.decide({"items": [1, 2]}).rule == policy.rule_for({"items": [1, 2]}) == "A"
    assert policy.decide({"items": [1, 2]}).signals["twice"] == 4
    verdict = policy.decide({"items": 5})
    assert verdict.rule is policy.rule_for({"items": 5}) is None
    assert [(d.path, d.reason) for d in verdict.degraded][:2] == [
        ("size", "its expression failed: JMESPathTypeError"),
        ("bad", "its expression failed: JMESPathTypeError"),
    ]


def test_the_library_is_given_whole_numbers_as_integers(tmp_path: pathlib.Path) -> None:
    policy = own_table(
        tmp_path,
        "{size: {path: size, type: integer}}",
        '  - {id: A, when: {text: "2"}, operation: go}\n  - {id: B, when: {text: "0"}, operation: go}\n',
        '{text: {from: "to_string(size)", type: string}}',
    )
    for size, rule in ((2, "A"), (2.0, "A"), (-0.0, "B"), (0, "B"), (1, None), ("2", None)):
        assert policy.decide({"size": size}).rule == policy.rule_for({"size": size}) == rule


def test_an_expression_of_constants_is_one(tmp_path: pathlib.Path) -> None:
    rows = "  - {id: A, when: {never: true}, operation: go}\n  - {id: B, when: {always: true}, operation: go}\n"
    signals = """{never: {from: "'a' == `null`", type: boolean}, always: {from: "`1` != `true`", type: boolean}}"""
    policy = own_table(tmp_path, "{x: {path: x, type: number}}", rows, signals)
    assert policy.decide({}).rule == policy.rule_for({}) == "B"


def test_a_whole_default_of_a_count_is_a_count(tmp_path: pathlib.Path) -> None:
    policy = own_table(
        tmp_path, "{x: {path: x, type: integer, missing: 2.0}}", "  - {id: A, when: {x: 2}, operation: go}\n"
    )
    assert type(policy.decide({}).signals["x"]) is int


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "[" * 100_000, '{"rule": 1}', '{"rule": null, "operation": 1, "steps": 3}']
)
def test_what_is_no_verdict_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  json's own errors are among them
        Verdict.from_json(text)


@pytest.mark.parametrize("key", ["rule", "operation", "steps", "digest", "degraded", "signals", "missing", "role"])
def test_a_verdict_with_a_part_of_another_kind_is_refused(key: str, policy: Policy) -> None:
    others: tuple[object, ...] = ([[]], 3, {"a": []})
    for value in others if key != "signals" else others[:2]:
        with pytest.raises(ValueError, match="no verdict"):
            Verdict.from_dict({**policy.decide({"zone": "red"}).to_dict(), key: value})


def test_the_digest_names_the_meaning_and_nothing_else(tmp_path: pathlib.Path, policy: Policy) -> None:
    from tests.conftest import ROOT

    text = (ROOT / "roster/context-policy.yaml").read_text()
    path = tmp_path / "copy.yaml"
    path.write_text("# another comment\n" + text.replace("why: the budget is spent", "why: spent is the budget"))
    assert load_policy(str(path), project=None).digest == policy.digest
    path.write_text(text.replace("tool_result_share_prune: 0.40", "tool_result_share_prune: 0.41"))
    assert load_policy(str(path), project=None).digest != policy.digest
    path.write_text(text.replace("zone: [green, unknown]", "zone: [unknown, green]"))
    assert load_policy(str(path), project=None).digest != policy.digest


def test_the_same_input_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "import ecm_rules; p = ecm_rules.load_policy(project=None);"
        "print(p.digest, p.decide({'zone': 'amber', 'compaction_count': 'x'}).to_json())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(runs) == 1


def test_the_trace_says_what_each_test_saw(policy: Policy) -> None:
    rows = policy.trace({"zone": "red", "compaction_count": 3})
    assert [(r.id, r.held, r.fired) for r in rows] == [
        ("P1", False, False),
        ("P2", False, False),
        ("P3", False, False),
        ("P4", True, True),
        ("P5", False, False),
        ("P6", False, False),
        ("P7", False, False),
    ]
    zone, count = rows[2].tests
    assert (zone.signal, zone.value, zone.held) == ("zone", "red", True)
    assert (count.operator, count.constant, count.value, count.missing, count.held) == ("lt", 2, 3, False, False)


def test_only_the_first_row_that_holds_fires() -> None:
    lateral = load_table("lateral-signals", project=None)
    rows = lateral.trace({"failures_on_step": 5, "subtask_independent": True})
    assert [(r.held, r.fired) for r in rows] == [(True, True), (True, False), (True, False)]


@pytest.mark.parametrize(
    ("signals", "operation"),
    [
        ({}, "continue"),
        ({"failures_on_step": 2}, "continue"),
        ({"failures_on_step": 3}, "recover_fresh"),
        ({"failures_on_step": 4, "subtask_independent": True}, "recover_fresh"),
        ({"subtask_independent": True}, "isolate_subagent"),
        ({"subtask_independent": "yes"}, "continue"),
    ],
)
def test_lateral_signals_are_a_table_like_any_other(signals: dict[str, object], operation: str) -> None:
    assert load_table("lateral-signals", project=None).decide(signals).operation == operation


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["green", "amber", "red", "critical", "unknown"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
METERS = st.fixed_dictionaries(
    {},
    optional={
        "zone": JSON,
        "compaction_count": JSON,
        "tool_result_share_est": JSON,
        "budget": JSON | st.fixed_dictionaries({}, optional={"ceiling_tokens": JSON, "spent_tokens_est": JSON}),
        "more": JSON,
    },
)


@settings(max_examples=500, deadline=None)
@given(JSON | METERS, st.sampled_from(program.ROLES))
def test_decide_never_raises_and_the_interpreter_agrees(policy: Policy, meter: object, role: str) -> None:
    verdict = policy.decide(meter, role)
    assert verdict.to_dict() == program.decide(policy.program, meter, role)
    assert policy.rule_for(meter, role) == verdict.rule
    assert Verdict.from_json(verdict.to_json()) == verdict
    json.dumps(verdict.to_dict(), allow_nan=False)
    fired = [row.id for row in policy.trace(meter, role) if row.fired]
    assert fired == ([verdict.rule] if verdict.rule else [])
