"""Differences of tables: exactly what brute force finds over all cells, as sentences that can be checked by hand."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ecm_rules import EcmError, Policy, load_policy, load_table
from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.difference import Difference, compare
from ecm_rules.analysis.logs import count
from tests.conftest import ROOT

SHIPPED = ROOT / "roster/context-policy.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
ROLES = ("orchestrator", "subagent")


def near(*values: float) -> list[float]:
    """Each value with its neighbours."""
    return [n for v in values for n in (math.nextafter(v, -math.inf), v, math.nextafter(v, math.inf))]


THRESHOLDS = [0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
COUNTS = [None, 0, 1, 2, 3]
BUDGETS = [None, {"ceiling_tokens": 10}, {"ceiling_tokens": 10, "spent_tokens_est": 10}, {"spent_tokens_est": 11}]
BUDGETS += [{"ceiling_tokens": 10, "spent_tokens_est": 9}]


def zone(zones: dict[str, float], utilization: float | None) -> str:
    if utilization is None:
        return "unknown"
    passed = [name for name, start in zones.items() if utilization >= start]
    return max(passed, key=zones.__getitem__, default="green")


def edit(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The document with one edit: of a threshold, an operator, the order, an operation, a value, or a limit."""
    changed = copy.deepcopy(document)
    rules = changed["rules"]
    row = rng.choice(rules)
    kind = rng.choice(["zone", "operator", "order", "operation", "value", "limit", "test", "remap"])
    if kind == "zone":
        name = rng.choice(sorted(changed["zones"]))
        changed["zones"][name] = rng.choice(THRESHOLDS)
    elif kind == "order":
        one, other = rng.sample(range(len(rules)), 2)
        rules[one], rules[other] = rules[other], rules[one]
    elif kind == "operation":
        row["operation"] = rng.choice(sorted({r["operation"] for r in rules} | {"finish_and_return"}))
    elif kind == "limit":
        limits: dict[str, list[float]] = {
            "compaction_depth_cap": [0, 1, 3],
            "tool_result_share_prune": [0.3, 0.5, 0, 1],
        }
        limit = rng.choice(sorted(limits))
        changed["limits"][limit] = rng.choice(limits[limit])
    elif kind == "remap":
        remap = changed["subagents"]["operation_remap"]
        remap[rng.choice(["compact", "wrap_up", "handoff_fresh"])] = rng.choice(["continue", "externalize"])
    elif kind == "operator":
        numeric = [(r, key) for r in rules for key in r["when"] if key.endswith(("_lt", "_gte"))]
        row, key = rng.choice(numeric)
        stem = key.rpartition("_")[0]
        row["when"] = {
            (stem + rng.choice(["_lt", "_lte", "_gt", "_gte", "_ne", ""]) if k == key else k): v
            for k, v in row["when"].items()
        }
    elif kind == "test":
        row["when"].pop(rng.choice(sorted(row["when"])))
        row["when"].update(
            rng.choice([{"zone_ne": "critical"}, {"compaction_count_missing": True}, {"tool_result_share_lt": 0.3}])
        )
    else:
        key = rng.choice(sorted(row["when"]))
        value = row["when"][key]
        choices: list[Any] = [["green", "unknown"], "green", "amber", "red", "critical", ["amber", "red"]]
        if isinstance(value, bool):
            choices = [not value]
        elif isinstance(value, dict):
            choices = [0, 1, 3] if "count" in key else [0.3, 0.5, 0, 1]
        row["when"][key] = rng.choice(choices)
    return changed


def load(path: pathlib.Path, document: dict[str, Any]) -> Policy:
    path.write_text(json.dumps(document))
    return load_policy(path, project=None)


def cells(old: Policy, new: Policy) -> Iterator[tuple[dict[str, Any], str, tuple[str, str]]]:
    """A meter in every cell and role, and both operations there."""
    starts = {start for policy in (old, new) for start in policy.table.zones.values()}
    shares = {t.constant for p in (old, new) for row in p.table.rows for t in row.tests if "share" in t.signal}
    utilizations = [None, *(u for u in (0, *near(*starts), 1) if 0 <= u <= 1)]
    asked = [None, *(s for s in (0, *near(*shares), 1) if 0 <= s <= 1)]  # type: ignore[arg-type]
    operations = [{row.id: row.operation for row in policy.table.rows} for policy in (old, new)]
    for utilization, share, compactions, budget in itertools.product(utilizations, asked, COUNTS, BUDGETS):
        given = {"tool_result_share_est": share, "compaction_count": compactions, "budget": budget}
        meters = [{**given, "zone": zone(dict(p.table.zones), utilization)} for p in (old, new)]
        for role in ROLES:
            rules = [p.rule_for(m, role) for p, m in zip((old, new), meters, strict=True)]
            raw = [o.get(r, "continue") if r else "continue" for o, r in zip(operations, rules, strict=True)]
            both = [p.table.remap.get(role, {}).get(o, o) for p, o in zip((old, new), raw, strict=True)]
            yield {**given, "utilization": utilization}, role, (both[0], both[1])


@pytest.mark.parametrize("batch", range(7))
def test_regions_are_where_brute_force_over_all_cells_differs(
    batch: int, policy: Policy, tmp_path: pathlib.Path
) -> None:
    done = differing = 0
    rng = random.Random(batch)
    while done < 30:
        document = edit(DOCUMENT, rng)
        if document == DOCUMENT:
            continue
        try:
            new = load(tmp_path / "new.yaml", document)
        except EcmError:
            continue  # a table that does not load has no regions
        done += 1
        difference = compare(policy, new)
        differing += bool(difference.regions)
        hit = set()
        for meter, role, both in cells(policy, new):
            region = difference.find(meter, role)
            assert (region is not None) == (both[0] != both[1]), (document["rules"], meter, role, both)
            if region is not None:
                assert (region.old.operation, region.new.operation) == both
                hit.add(difference.regions.index(region))
        assert hit == set(range(len(difference.regions)))
        for region in difference.regions:
            for side, table in ((region.old, policy), (region.new, new)):
                assert side.witness is not None
                verdict = table.decide(side.witness.snapshot, side.witness.role)
                assert (verdict.operation, verdict.rule) == (side.operation, side.rule)
    assert differing > 10


def edited(policy: Policy, tmp_path: pathlib.Path, before: str, after: str) -> Difference:
    text = SHIPPED.read_text()
    assert text.count(before) == 1
    path = tmp_path / "edited.yaml"
    path.write_text(text.replace(before, after))
    return compare(policy, load_policy(path, project=None))


def test_a_changed_operator_is_one_sentence(policy: Policy, tmp_path: pathlib.Path) -> None:
    (region,) = edited(policy, tmp_path, "tool_result_share_gte", "tool_result_share_gt").regions
    assert region.text == (
        "zone amber and tool_result_share exactly 0.4, unless `P1` holds: prune_tool_results → externalize (looser)"
    )
    assert region.roles == ROLES


def test_a_moved_threshold_has_a_witness_a_side(policy: Policy, tmp_path: pathlib.Path) -> None:
    regions = edited(policy, tmp_path, "red: 0.75", "red: 0.70").regions
    assert {r.where.split(" and tool")[0] for r in regions} == {
        "utilization at least 0.7 and below 0.75 and compaction_count below 2",
        "utilization at least 0.7 and below 0.75 and compaction_count at least 2",
    }
    for region in regions:
        assert region.old.witness is not None
        assert region.new.witness is not None
        old, new = region.old.witness.snapshot, region.new.witness.snapshot
        assert (old["zone"], new["zone"]) == ("amber", "red")
        assert {**old, "zone": ""} == {**new, "zone": ""}
        assert region.change == "stricter"


def test_the_roles_are_told_where_they_differ(policy: Policy, tmp_path: pathlib.Path) -> None:
    texts = [r.text for r in edited(policy, tmp_path, "compaction_depth_cap: 2", "compaction_depth_cap: 1").regions]
    assert texts == [
        "zone red and compaction_count exactly 1, unless `P1` holds, as an orchestrator: compact → handoff_fresh (stricter)",
        "zone red and compaction_count exactly 1, as a subagent: compact → finish_and_return (stricter)",
    ]


def test_what_changes_no_operation_is_no_difference(policy: Policy, tmp_path: pathlib.Path) -> None:
    assert edited(policy, tmp_path, "  - id: P7", "  - id: P8").regions == ()
    assert compare(policy, policy).regions == ()


def test_tables_of_different_vocabularies_are_compared_by_what_they_read(tmp_path: pathlib.Path) -> None:
    head = "schema_version: 1\noperations: {continue: {}, stop: {}}\n"
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(
        head + "fields: {num: {path: a.n, type: integer, max: 9}}\n"
        "rules: [{id: A, when: {num_gte: 5}, operation: stop}, {id: B, when: {}, operation: continue}]\n"
    )
    new.write_text(
        head + "fields: {m: {path: a.n, type: number}, f: {path: f, type: boolean}}\n"
        "rules: [{id: A, when: {m_gte: 5, f: true}, operation: stop}, {id: B, when: {}, operation: continue}]\n"
    )
    difference = compare(load_table(old, project=None), load_table(new, project=None))
    for n, f in itertools.product([None, 4, 5, 5.5, 9, 10], [None, True, False]):
        both = ["stop" if n in (5, 9) else "continue", "stop" if n is not None and n >= 5 and f else "continue"]
        region = difference.find({"a": {"n": n}, "f": f})
        assert (region is not None) == (both[0] != both[1]), (n, f)


def test_a_comparison_that_is_too_large_is_not_called_the_same(policy: Policy) -> None:
    with pytest.raises(Inconclusive):
        compare(policy, policy, looks=3)


def entry(**keys: Any) -> str:
    told = {"rule": "P5", "operation": "prune_tool_results", "subagent": False, "zone": "amber", "compaction_count": 0}
    return json.dumps({**told, "budget_ceiling_set": False, "budget_spent_gte_ceiling": False, **keys}) + "\n"


def test_logged_verdicts_are_counted_where_they_certainly_lie(policy: Policy, tmp_path: pathlib.Path) -> None:
    difference = edited(policy, tmp_path, "tool_result_share_gte", "tool_result_share_gt")
    log = tmp_path / "log.jsonl"
    lines = [entry(tool_result_share_est=0.4)] * 3 + [entry(tool_result_share_est=0.41), entry(zone="red")]
    lines += [
        '{"event":"handoff_brief_oversize","path":"x"}\n',
        entry(event="a table may have a field of that name", raw_operation="x"),
    ]
    lines += ["torn {", "\n", "[]\n", "\0\0\n", entry(tool_result_share_est=0.4, subagent=True)]
    log.write_text("".join(lines))
    counts = count(difference, str(log))
    assert (counts.inside, counts.undecided) == ((4,), (1,))
    assert (counts.verdicts, counts.unread) == (7, 3)


def test_a_moved_threshold_needs_the_utilization_of_a_line(policy: Policy, tmp_path: pathlib.Path) -> None:
    difference = edited(policy, tmp_path, "amber: 0.50", "amber: 0.60")
    log = tmp_path / "log.jsonl"
    known = {"tool_result_share_est": 0.1}
    log.write_text(entry(**known) + entry(**known, utilization=0.55) + entry(**known, utilization=0.65))
    counts = count(difference, str(log))
    (number,) = [n for n, r in enumerate(difference.regions) if r.old.operation == "externalize"]
    assert (counts.inside[number], counts.undecided[number]) == (1, 1)


def test_what_our_own_log_says_is_read(policy: Policy, tmp_path: pathlib.Path) -> None:
    from ecm_rules.kernel.policy import evaluate

    evaluate(str(tmp_path), snapshot=b'{"zone": "amber", "tool_result_share_est": 0.4}')
    evaluate(str(tmp_path), snapshot=b'{"zone": "amber"}')
    log = tmp_path / ".eidolons/.context/policy-log.jsonl"
    difference = edited(policy, tmp_path, "tool_result_share_gte", "tool_result_share_gt")
    counts = count(difference, str(log))
    assert (counts.inside, counts.undecided, counts.verdicts) == ((1,), (0,), 2)
    # Before lines had a role and a number they were the same but for these.
    young = ("role", "sequence", "agent_id")
    lines = [{k: v for k, v in json.loads(line).items() if k not in young} for line in log.read_text().splitlines()]
    with log.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    counts = count(difference, str(log))
    assert (counts.inside, counts.undecided, counts.verdicts, counts.unread) == ((2,), (0,), 4, 0)
