"""Twenty ways in which tables of other rules engines went wrong, each with what is right here.

The comment names the report that showed it. Cases of reading and of rows are in `test_reader` and `test_tables` too, with
their cousins; here they stand together so that none is lost.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import pathlib

import pytest

from ecm_rules import EcmError, Policy, load_table
from ecm_rules.analysis.files import check_file
from tests.marked import located, told, unmark
from tests.tables.test_tables import HEAD, LAST, row


def refused(path: pathlib.Path, marked: str, *codes: str) -> None:
    text, places = unmark(marked)
    path.write_text(text)
    with pytest.raises(EcmError) as caught:
        load_table(str(path), project=None)
    assert told(caught.value.findings) == located(places, codes)


def table(path: pathlib.Path, rows: str) -> Policy:
    path.write_text(HEAD + "rules:\n" + rows)
    return load_table(str(path), project=None)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "table.yaml"


def test_01_duplicate_keys_and_merge_keys(path: pathlib.Path) -> None:
    # yaml/pyyaml#165, #610; yamllint#175: the last one won silently
    refused(path, row("zone: red, «zone»: amber"), "ECM102")
    refused(path, HEAD + "rules:\n  - «<<»: «*base»\n" + LAST, "ECM103", "ECM103")


def test_02_booleans_of_yaml_1_1(path: pathlib.Path) -> None:
    # pyyaml#613, #744: True, False
    refused(path, row("zone: «no»"), "ECM106")
    refused(path, "«on»: x\n" + HEAD + "rules:\n" + LAST, "ECM106")


def test_03_exponent_without_a_point(path: pathlib.Path) -> None:
    # pyyaml#173: the string '1e3'
    refused(path, row("compaction_count_gte: «1e3»"), "ECM106")


def test_04_octal_and_base_60(path: pathlib.Path) -> None:
    # pyyaml#107, #395; rule-engine#54: 8, 90; earlier conjuncts were dropped
    refused(path, row("zone: red, compaction_count: «010»"), "ECM106")
    refused(path, row("zone: red, compaction_count: «1:30»"), "ECM106")
    refused(path, row("zone: red, compaction_count: «01»"), "ECM106")


def test_05_alias_bombs(path: pathlib.Path) -> None:
    # pyyaml#235: blew up on traversal
    bomb = "a: &a [x]\n" + "".join(
        f"{c}: &{c} [{', '.join(['*' + p] * 9)}]\n" for p, c in itertools.pairwise("abcdefghi")
    )
    path.write_text(bomb)
    with pytest.raises(EcmError) as caught:
        load_table(str(path), project=None)
    assert {f.code for f in caught.value.findings} >= {"ECM103"}


def test_06_numbers_that_are_not_finite_and_empty_conditions(path: pathlib.Path, policy: Policy) -> None:
    # NAEOS#149: the threshold passed
    refused(path, row("tool_result_share_gte: «.nan»"), "ECM107")
    refused(path, row("tool_result_share_gte: «-.inf»"), "ECM107")
    refused(path, HEAD + "rules:\n  - {id: A, when: «{}», operation: compact}\n" + LAST, "ECM308")
    for number in (math.nan, math.inf, -math.inf):
        verdict = policy.decide({"zone": "amber", "tool_result_share_est": number})
        assert (verdict.rule, [d.path for d in verdict.degraded]) == ("P6", ["tool_result_share_est"])


def test_07_a_boolean_is_no_number(path: pathlib.Path, policy: Policy) -> None:
    # cerberus#144; voluptuous#443: accepted as 1
    refused(path, row("compaction_count: «true»"), "ECM304")
    refused(path, row("budget_ceiling_set: «1»"), "ECM304")
    verdict = policy.decide({"zone": "red", "compaction_count": True})
    assert [d.path for d in verdict.degraded] == ["compaction_count"]


def test_08_a_quoted_number_is_no_number(path: pathlib.Path, policy: Policy) -> None:
    # nools#110: == false yet <= true
    refused(path, row("tool_result_share_gte: «'0.80'»"), "ECM304")
    verdict = policy.decide({"zone": "amber", "tool_result_share_est": "0.80"})
    assert (verdict.rule, [d.path for d in verdict.degraded]) == ("P6", ["tool_result_share_est"])


def test_09_missing_satisfies_only_an_explicit_test(path: pathlib.Path) -> None:
    # json-rules-engine#111; MS AGT#3297: not_in failed open on an absent field
    path.write_text(
        "schema_version: 1\nfields: {region: {path: region, type: enum, values: [eu, us]}, flag: {path: flag, type: boolean}}\n"
        "operations: {continue: {}, other: {}, absent: {}, false_one: {}}\nrules:\n"
        "  - {id: OUT, when: {region_not_in: [eu]}, operation: other}\n"
        "  - {id: NE, when: {region_ne: eu}, operation: other}\n"
        "  - {id: FALSE_ONE, when: {flag: false}, operation: false_one}\n"
        "  - {id: GONE, when: {region_missing: true}, operation: absent}\n"
        "  - {id: REST, when: {}, operation: continue}\n"
    )
    policy = load_table(str(path), project=None)
    assert policy.decide({}).rule == "GONE"
    assert policy.decide({"region": None, "flag": None}).rule == "GONE"
    assert policy.decide({"region": "us"}).rule == "OUT"
    assert policy.decide({"region": "eu"}).rule == "REST"
    assert policy.decide({"region": "eu", "flag": False}).rule == "FALSE_ONE"


def test_10_an_unknown_signal_neither_kills_nor_widens_a_row(path: pathlib.Path) -> None:
    # MS AGT#3661: lint clean, row dead; ignoring the key would have widened the row
    refused(path, row("«toolname»: delete_file"), "ECM301")
    refused(path, row("zone: red, «compaction_cuont_lt»: 2"), "ECM301")


def test_11_unknown_keys_at_every_level(path: pathlib.Path) -> None:
    # microsoft-agentic-harness#384; trollbridge#125: ignored
    refused(path, "«defaultAction»: continue\n" + HEAD + "rules:\n" + LAST, "ECM201")
    refused(path, row("zone: red").replace("operation: compact", "operation: compact, «prio»: 1"), "ECM201")
    refused(path, HEAD.replace("amber: 0.5", "amber: 0.5, «ember»: 0.5") + "rules:\n" + LAST, "ECM201")


def test_12_an_empty_list_can_never_match(path: pathlib.Path) -> None:
    # MS AGT#3795: lint clean, dead row
    refused(path, row("zone: «[]»"), "ECM305")


@pytest.mark.parametrize(
    ("share", "rule"), [(0.4, "P5"), (math.nextafter(0.4, 0), "P6"), (math.nextafter(0.4, 1), "P5")]
)
def test_13_thresholds_are_inclusive_below(policy: Policy, share: float, rule: str) -> None:
    # flowable-engine#1264: >= 0.40 did not match 0.40
    assert policy.decide({"zone": "amber", "tool_result_share_est": share}).rule == rule


def test_14_file_order_is_the_sole_order(path: pathlib.Path) -> None:
    # casbin#740; pycasbin#310: the result depended on load order
    rows = [
        "  - {id: A, when: {zone: red}, operation: compact}\n",
        "  - {id: B, when: {zone: red}, operation: externalize}\n",
    ]
    assert table(path, "".join(rows)).decide({"zone": "red"}).rule == "A"
    assert table(path, "".join(reversed(rows))).decide({"zone": "red"}).rule == "B"


def test_15_conflicts_are_all_reported_and_in_order(path: pathlib.Path) -> None:
    # opa#5056: a random one was reported
    rows = "".join(
        f"  - {{id: «A», when: {{zone: red}}, operation: {o}}}\n" for o in ("compact", "externalize", "wrap_up")
    )
    rows = rows.replace("«A»", "A", 1)
    refused(path, HEAD + "rules:\n" + rows, "ECM206", "ECM206")


def test_16_an_unknown_operation_does_not_disable_a_ceiling(path: pathlib.Path) -> None:
    # vercel/ai#19978: an unknown decision meant no opinion
    refused(path, row("budget_ceiling_set: true", operation="«wrapup»"), "ECM307")


def test_17_integers_are_exact(path: pathlib.Path) -> None:
    # opa#3147, #8887; Zen#506: rounded; panicked
    policy = table(path, "  - {id: BIG, when: {compaction_count: 9007199254740993}, operation: compact}\n")
    assert policy.decide({"compaction_count": 9007199254740993}).rule == "BIG"
    assert policy.decide({"compaction_count": 9007199254740992}).rule is None
    for number in (10**400, -(10**400)):
        verdict = policy.decide({"compaction_count": number})
        assert [d.path for d in verdict.degraded] == ["compaction_count", "rows"]
        json.dumps(verdict.to_dict())


def test_18_no_value_of_a_strange_type_raises_and_each_is_named(policy: Policy) -> None:
    # rule-engine#22: a bare TypeError on comparing dates
    for value in (datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 1), b"red", {1}, (1,), object(), 1j):
        verdict = policy.decide({"zone": value, "compaction_count": value, "budget": value})
        assert verdict.rule == "P7"
        assert [d.path for d in verdict.degraded] == ["zone", "compaction_count", "budget"]


def test_19_look_alike_ids(path: pathlib.Path) -> None:
    # cedar#226, #1336: two ids that look identical
    refused(path, row("zone: red", id="«\u04207»"), "ECM205")


def test_20_a_row_that_others_cover_together_never_fires(path: pathlib.Path) -> None:
    # jdmn#271: checkers that compare pairs passed the fourth row
    policy = table(
        path,
        "  - {id: A, when: {zone: amber, tool_result_share_lt: 0.4}, operation: externalize}\n"
        "  - {id: B, when: {zone: amber, tool_result_share_gte: 0.4}, operation: prune_tool_results}\n"
        "  - {id: B2, when: {zone: amber, tool_result_share_missing: true}, operation: externalize}\n"
        "  - {id: C, when: {zone: amber, compaction_count_gte: 1}, operation: compact}\n",
    )
    shares = [None, 0, math.nextafter(0.4, 0), 0.4, math.nextafter(0.4, 1), 1, "bad"]
    fired = {
        policy.decide({"zone": zone, "tool_result_share_est": share, "compaction_count": count}).rule
        for zone in ("green", "amber", "red")
        for share in shares
        for count in (None, 0, 1, 2)
    }
    assert fired == {"A", "B", None}
    # With a default for the share, a missing one is A's; without one, B2 is needed to cover the fourth row.
    assert [m for m in covered(path) if m.startswith("C")] == ["C by A, B"]
    own = "schema_version: 1\nfields: {zone: {path: zone, type: enum, values: [green, amber]}, tool_result_share: {path: s, type: number}, "
    own += "compaction_count: {path: c, type: integer}}\noperations: {continue: {}, externalize: {}, prune_tool_results: {}, compact: {}}\n"
    path.write_text(own + path.read_text()[len(HEAD) :])
    assert covered(path) == ["C by A, B, B2"]


def covered(path: pathlib.Path) -> list[str]:
    """The rows that never fire, each with those that cover it; that each is found at its id."""
    told = []
    for finding in (f for f in check_file(str(path)) if f.code == "ECM603"):
        row, *others = finding.message.split("`")[1::2]
        assert finding.excerpt[finding.column - 1 : finding.end_column - 1] == row
        told.append(f"{row} by {', '.join(others)}")
    return told


def test_decimal_and_binary_are_not_mixed(policy: Policy) -> None:
    # Zen evaluates both a >= 0.3 and a <= 0.3 true for 0.1 + 0.2; here numbers are doubles, and 0.30000000000000004 > 0.3
    assert policy.decide({"zone": "amber", "tool_result_share_est": 0.1 + 0.3}).rule == "P5"
    assert policy.decide({"zone": "amber", "tool_result_share_est": 0.7 - 0.3}).rule == "P6"  # 0.39999999999999997
