"""Findings about tables that load: each at its place, each with a witness that shows it."""

from __future__ import annotations

import pathlib

import pytest
from random_tables import as_text, random_table

from ecm_rules import Policy, load_policy, load_table
from ecm_rules.analysis.files import check_file
from ecm_rules.analysis.proofs import check
from ecm_rules.tables.findings import ERROR, NOTE, WARNING, Finding, Witness
from tests.conftest import FIXTURES, ROOT
from tests.marked import located, told, unmark

POLICY = """\
ecm_version: "0.1"
zones: {amber: 0.5, red: 0.75, critical: 0.9}
limits: {compaction_depth_cap: 2, tool_result_share_prune: 0.4}
subagents: {operation_remap: {handoff_fresh: finish_and_return, wrap_up: finish_and_return}}
"""
OWN = """\
schema_version: 1
fields:
  zone: {path: zone, type: enum, values: [green, amber, red]}
  share: {path: share, type: number, min: 0, max: 1}
  count: {path: count, type: integer, min: 0, worse: more}
  spent: {path: spent, type: number, min: 0}
  ceiling: {path: ceiling, type: number, above: 0}
signals:
  over: {from: "spent >= ceiling", type: boolean, missing: false}
operations: {continue: {severity: 0}, trim: {severity: 1}, stop: {severity: 2}}
"""
REST = "  - {id: REST, when: {}, operation: continue}\n"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "table.yaml"


def found(path: pathlib.Path, text: str, *codes: str) -> list[Finding]:
    """The findings of some codes, and that they are where the marks are."""
    clean, places = unmark(text)
    path.write_text(clean)
    findings = [f for f in check_file(str(path)) if f.code in codes]
    assert told(findings) == located(places, codes)
    return findings


def failing(path: pathlib.Path, text: str) -> list[str]:
    path.write_text(text)
    return [f.code for f in check_file(str(path)) if f.severity != NOTE]


def test_the_shipped_tables_have_no_finding() -> None:
    for file in (*(ROOT / "roster").glob("*.yaml"), *(ROOT / "rules").glob("*.yaml")):
        assert [f for f in check_file(str(file)) if f.severity != NOTE] == []


def test_the_policy_of_the_nexus_repeats_its_limits_and_nothing_else() -> None:
    findings = check_file(str(FIXTURES / "upstream/context-policy.yaml"))
    assert [(f.line, f.column, f.code, f.severity) for f in findings if f.severity != NOTE] == [
        (31, 45, "ECM607", ERROR),
        (34, 46, "ECM607", ERROR),
        (37, 49, "ECM607", ERROR),
    ]
    assert [f.message.split("`")[5] for f in findings if f.code == "ECM607"] == [
        "limits.compaction_depth_cap",
        "limits.compaction_depth_cap",
        "limits.tool_result_share_prune",
    ]


def test_the_notes_about_the_shipped_policy(policy: Policy) -> None:
    notes = [(f.code, f.excerpt[f.column - 1 : f.end_column - 1]) for f in check(policy)]
    assert notes == [
        ("ECM605", "budget_ceiling_set"),
        ("ECM606", "P2"),
        ("ECM606", "P3"),
        ("ECM606", "P4"),
        ("ECM605", "compaction_count_gte"),
        ("ECM606", "P5"),
        ("ECM606", "P6"),
        ("ECM606", "P7"),
        ("ECM605", "zone"),
    ]


def test_a_row_that_others_cover_together_names_them(path: pathlib.Path) -> None:
    rows = """\
rules:
  - {id: A, when: {zone: amber, share_lt: 0.4}, operation: trim}
  - {id: B, when: {zone: amber, share_gte: 0.4}, operation: stop}
  - {id: B2, when: {zone: amber, share_missing: true}, operation: trim}
  - {id: «C», when: {zone: amber, count_gte: 1}, operation: stop}
"""
    (finding,) = found(path, OWN + rows + REST, "ECM603")
    assert finding.message == "found the row `C`, which is unreachable: covered by `A`, `B`, `B2`"
    # Each of the three is needed: without it, the row lives.
    for name in ("A", "B", "B2"):
        fewer = "".join(line for line in rows.splitlines(True) if f"id: {name}," not in line).replace("«C»", "C")
        assert "ECM603" not in failing(path, OWN + fewer + REST)


def test_a_gap_between_neighbouring_doubles_is_seen_and_one_where_none_lies_is_not(path: pathlib.Path) -> None:
    rows = "  - {{id: A, when: {{share_lte: {}}}, operation: trim}}\n  - {{id: B, when: {{share_gte: {}}}, operation: stop}}\n"
    rows += "  - {{id: C, when: {{share_missing: true}}, operation: continue}}\n"
    close = rows.format(0.4, 0.4000000000000001)  # the next double
    assert "ECM601" not in failing(path, OWN + "rules:\n" + close)
    (gap,) = found(path, OWN + "«rules»:\n" + rows.format(0.4, 0.40000000000000013), "ECM601")
    assert gap.message == "found no row for share above 0.4 and below 0.40000000000000013"
    assert gap.witness == Witness({"share": 0.4000000000000001}, "orchestrator")
    (gap,) = found(path, OWN + "«rules»:\n" + close.replace("share_lte", "share_lt"), "ECM601")
    assert gap.message == "found no row for share exactly 0.4"


def test_no_integer_lies_between_two_that_follow_each_other(path: pathlib.Path) -> None:
    rows = "rules:\n  - {id: A, when: {count_lte: 2}, operation: trim}\n  - {id: B, when: {count_gt: 2, count_lt: «3»}, operation: stop}\n"
    clean = rows.replace("«", "").replace("»", "")
    path.write_text(OWN + clean + REST)
    impossible = [f for f in check_file(str(path)) if f.code == "ECM602"]
    assert [f.message for f in impossible] == [
        "found the row `B`, which is impossible: `count_lt` and `count_gt` never hold together"
    ]


def test_a_missing_signal_is_a_gap_of_its_own(path: pathlib.Path) -> None:
    rows = "«rules»:\n  - {id: A, when: {zone: [green, amber, red]}, operation: trim}\n"
    (gap,) = found(path, OWN + rows, "ECM601")
    assert (gap.message, gap.witness) == ("found no row for zone missing", Witness({}, "orchestrator"))


def test_signals_that_hang_together_are_one_dimension(path: pathlib.Path) -> None:
    # `over` needs a ceiling and a spending; that it is true without one of them is no case.
    rows = "rules:\n  - {id: A, when: {over: true, «ceiling_missing»: true}, operation: stop}\n"
    (finding,) = found(path, OWN + rows + REST, "ECM602")
    assert "never hold together" in finding.message
    rows = "rules:\n  - {id: A, when: {spent: 7, ceiling: 7, «over»: false}, operation: stop}\n"
    found(path, OWN + rows + REST, "ECM602")
    rows = "rules:\n  - {id: A, when: {spent: 7, ceiling_gt: 7, over: false}, operation: stop}\n"
    assert "ECM602" not in failing(path, OWN + rows + REST)


def test_a_zone_follows_its_thresholds(path: pathlib.Path) -> None:
    # With amber from 0 on there is no green.
    text = (
        POLICY.replace("amber: 0.5", "amber: 0") + "rules:\n  - {id: G, when: {«zone»: green}, operation: continue}\n"
    )
    found(path, text + REST, "ECM602")


def test_what_a_subagent_never_sees_is_no_case_for_it(path: pathlib.Path) -> None:
    rows = "rules:\n  - {id: A, when: {budget_ceiling_set: true}, operation: wrap_up}\n  - {id: B, when: {budget_ceiling_set: false}, operation: compact}\n"
    path.write_text(
        POLICY
        + "invariants:\n  - {id: never, assume: {role: subagent, budget_ceiling_set: true}, assert: {operation: compact}}\n"
        + rows
    )
    messages = {f.code: f.message for f in check_file(str(path)) if f.severity == ERROR}
    assert messages == {
        "ECM612": "found the invariant `never`, whose assumption nothing can meet",
        "ECM601": "found no row for every meter, as a subagent",  # an orchestrator always has the signal
    }
    gap = next(f for f in check_file(str(path)) if f.code == "ECM601")
    assert gap.witness == Witness({}, "subagent")


def test_a_test_that_its_row_implies_is_a_warning_or_a_note(path: pathlib.Path) -> None:
    rows = "rules:\n  - {id: A, when: {«count_gte»: 0, zone: red}, operation: stop}\n"
    path.write_text("")
    text = OWN.replace("type: integer, min: 0", "type: integer, min: 0, missing: 0") + rows + REST
    (finding,) = found(path, text, "ECM605")
    assert (finding.severity, finding.message) == (
        WARNING,
        "found `count_gte` in `A`, which changes nothing: every `count` meets it",
    )
    # Where the count may be missing the test does say something.
    assert "ECM605" not in failing(path, OWN + rows.replace("«", "").replace("»", "") + REST)


def test_a_threshold_equal_to_a_limit_of_another_signal_is_no_repetition(path: pathlib.Path) -> None:
    rows = "rules:\n  - {id: A, when: {compaction_count_gte: 4}, operation: compact}\n"
    assert "ECM607" not in failing(path, POLICY.replace("}\nsub", ", bytes_per_token: 4}\nsub", 1) + rows + REST)
    rows = "limits: {most: 3}\nrules:\n  - {id: A, when: {count_gte: «3»}, operation: trim}\n"
    found(path, OWN + rows + REST, "ECM607")  # a vocabulary that relates no limits: equal is enough


def test_a_milder_operation_for_a_worse_signal(path: pathlib.Path) -> None:
    rows = """\
rules:
  - {id: HIGH, when: {zone: critical}, operation: externalize}
  - {id: MID, when: {zone: [amber, red]}, operation: compact}
"""
    path.write_text(POLICY + rows + REST)
    (finding,) = [f for f in check_file(str(path)) if f.code == "ECM608"]
    assert finding.message == (
        "found `HIGH`, which leads to `externalize` where `zone` is worse than where `MID` leads to `compact`"
    )
    assert finding.witness is not None
    assert finding.witness.snapshot["zone"] == "critical"
    assert '"zone": "red"' in finding.help


def test_steps_are_judged_where_they_are_defined(path: pathlib.Path) -> None:
    text = (ROOT / "rules/operations.yaml").read_text()
    wrong = text.replace(
        "steps: [externalize, host_clear_tool_results]", "steps: [host_clear_tool_results, externalize]"
    )
    path.write_text(wrong)
    assert [f.code for f in check_file(str(path))] == ["ECM701"]
    path.write_text(text.replace("pin_reinject, pin_verify_repair]\n    severity", "pin_verify_repair]\n    severity"))
    assert [f.code for f in check_file(str(path))] == ["ECM702"]


def test_a_subagent_that_could_start_a_successor(path: pathlib.Path) -> None:
    text = POLICY.replace("handoff_fresh: finish_and_return, ", "")
    rows = "rules:\n  - {id: A, when: {zone: critical}, operation: «handoff_fresh»}\n"
    (finding,) = found(path, text + rows + REST, "ECM703")
    assert finding.witness == Witness({"utilization": 0.9, "zone": "critical"}, "subagent")


def test_a_project_may_state_invariants_of_its_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.4}}\n")
    (tmp_path / ".eidolons").mkdir()
    extra = tmp_path / ".eidolons/ecm.yaml"
    clean, places = unmark(
        "invariants:\n  - {id: «calm», assume: {zone: amber}, assert: {operation_in: [externalize, continue]}}\n"
    )
    extra.write_text(clean)
    findings: list[Finding] = []
    for file in (extra, tmp_path / "eidolons.yaml"):
        findings = [f for f in check_file(str(file)) if f.severity == ERROR]
        assert told(findings) == located(places * 2, ["ECM611"] * 2)  # P1 for a budget, P5 for many tool results
    # The witness obeys the project's thresholds.
    assert {f.witness.snapshot["utilization"] for f in findings if f.witness} == {0.4}


def test_an_invariant_is_read_as_strictly_as_a_row(path: pathlib.Path) -> None:
    invariants = "invariants:\n  - {id: a, assume: {«zonee»: red}, assert: {operation: compact}}\n  - {id: b, assume: {}, assert: {operation: «compat»}}\n"
    invariants += "  - {id: «a», assume: {zone: red}, assert: {«operation_lt»: compact}}\n"
    clean, places = unmark(POLICY + invariants + "rules:\n" + REST)
    path.write_text(clean)
    assert told(check_file(str(path))) == located(places, ["ECM301", "ECM304", "ECM206", "ECM303"])


def test_too_large_is_never_clean(policy: Policy) -> None:
    for looks in range(0, 40, 7):
        findings = check(policy, looks=looks)
        assert "ECM610" in {f.code for f in findings if f.severity == ERROR}
    assert "ECM610" not in {f.code for f in check(policy)}


def test_an_expression_that_is_not_looked_into_is_told_with_what_follows_from_it(path: pathlib.Path) -> None:
    text = OWN.replace("signals:\n", 'signals:\n  big: {from: "abs(share) > `0.5`", type: boolean}\n')
    rows = (
        "«rules»:\n  - {id: A, when: {big: true}, operation: stop}\n  - {id: B, when: {big: false}, operation: trim}\n"
    )
    (gap,) = found(path, text + rows, "ECM601")
    assert gap.message == "found no row for big missing (whatever the expression of `big` can give)"


@pytest.mark.parametrize("seed", range(60))
def test_every_witness_shows_what_its_finding_says(seed: int, path: pathlib.Path) -> None:
    document = random_table(3 + seed % 9, 3 + seed % 7, seed, tests=2, catch_all=seed % 3 == 0)
    path.write_text(as_text(document))
    policy = load_table(path, project=None)
    shown = 0
    for finding in check(policy):
        if finding.witness is None:
            continue
        shown += 1
        snapshot, role = finding.witness.snapshot, finding.witness.role
        assert policy.decide(snapshot, role).degraded == () or finding.code == "ECM601"
        trace = {row.id: row for row in policy.trace(snapshot, role)}
        names = finding.message.split("`")[1::2]
        if finding.code == "ECM601":
            assert policy.decide(snapshot, role).rule is None
        if finding.code == "ECM606":
            assert trace[names[0]].held
            assert any(trace[name].fired for name in names[1:]) or len(names) == 6
    assert shown or not any(f.code in ("ECM601", "ECM606") for f in check(policy))


def test_the_analysis_of_a_policy_is_the_same_twice(policy: Policy) -> None:
    other = load_policy(project=None)
    assert check(policy) == check(other)
