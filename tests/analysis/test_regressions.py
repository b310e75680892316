"""What once was answered wrongly, each with its smallest table."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from ecm_rules import Policy, load_table
from ecm_rules.analysis.difference import compare
from ecm_rules.analysis.files import check_file
from ecm_rules.analysis.logs import count
from ecm_rules.analysis.misses import nearest
from ecm_rules.tables.findings import NOTE, Finding

HEAD = "schema_version: 1\noperations: {continue: {severity: 0}, ext: {severity: 1}, stop: {severity: 2}}\n"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "table.yaml"


def table(path: pathlib.Path, text: str) -> Policy:
    path.write_text(HEAD + text)
    return load_table(path, project=None)


def found(path: pathlib.Path, text: str) -> list[Finding]:
    path.write_text(HEAD + text)
    return [f for f in check_file(str(path)) if f.severity != NOTE and f.code != "ECM609"]


def codes(path: pathlib.Path, text: str) -> list[str]:
    return [f.code for f in found(path, text)]


GIVEN = "rules:\n  - {id: A, when: {%s_missing: false}, operation: stop}\n  - {id: B, when: {%s_missing: true}, operation: continue}\n"


def test_a_number_that_is_no_integer_is_a_case_where_an_integer_is_asked(path: pathlib.Path) -> None:
    two = "fields: {whole: {path: a, type: integer}, part: {path: a, type: number}}\n" + GIVEN % ("whole", "part")
    (gap,) = found(path, two)
    assert gap.code == "ECM601"
    assert gap.witness is not None
    assert gap.witness.snapshot["a"] % 1
    signal = "fields: {a: {path: a, type: number}}\nsignals: {s: {from: a, type: integer}}\n" + GIVEN % ("s", "a")
    assert codes(path, signal) == ["ECM601"]


def test_tables_that_differ_between_the_integers_differ(path: pathlib.Path) -> None:
    rows = "rules:\n  - {id: A, when: {f_lte: 0}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    old = table(path, "fields: {f: {path: a, type: integer}}\n" + rows)
    new = table(path, "fields: {f: {path: a, type: number}}\n" + rows)
    difference = compare(old, new)
    assert [(r.old.operation, r.new.operation) for r in difference.regions] == [("continue", "stop")]
    assert difference.find({"a": -0.5}) is not None
    assert difference.find({"a": 0.5}) is None


def test_a_string_is_tried_with_the_values_of_what_reads_it(path: pathlib.Path) -> None:
    rest = "  - {id: B, when: {}, operation: continue}\n"
    signal = "fields: {s: {path: s, type: string}}\nsignals: {k: {from: s, type: enum, values: [x, z]}}\n"
    assert codes(path, signal + "rules:\n  - {id: A, when: {k_missing: false}, operation: stop}\n" + rest) == []
    compared = "fields: {e: {path: e, type: enum, values: [x, z]}, s: {path: s, type: string, missing: q}}\n"
    compared += 'signals: {same: {from: "e == s", type: boolean}}\n'
    assert codes(path, compared + "rules:\n  - {id: A, when: {same: true}, operation: stop}\n" + rest) == []


def test_what_is_missing_is_as_bad_as_what_takes_its_place(path: pathlib.Path) -> None:
    text = "fields: {m: {path: m, type: integer, min: 1, missing: 1, worse: more}}\nrules:\n"
    text += "  - {id: A, when: {m_missing: true}, operation: continue}\n  - {id: B, when: {m: 1}, operation: stop}\n"
    text += "  - {id: C, when: {}, operation: ext}\n"
    (finding,) = found(path, text)
    assert finding.code == "ECM608"
    assert "`C`, which leads to `ext`" in finding.message


def test_an_operation_without_a_rank_does_not_hide_what_is_behind_it(path: pathlib.Path) -> None:
    text = "fields: {m: {path: m, type: integer, min: 0, missing: 0, worse: more}}\nrules:\n"
    text += "  - {id: A, when: {m: 1}, operation: stop}\n  - {id: B, when: {m: 2}, operation: odd}\n"
    text += "  - {id: C, when: {}, operation: continue}\n"
    path.write_text(HEAD.replace("stop: {severity: 2}", "stop: {severity: 2}, odd: {}") + text)
    assert "ECM608" in {f.code for f in check_file(str(path))}


def test_a_worse_witness_is_worse(path: pathlib.Path) -> None:
    text = "fields: {m: {path: m, type: integer, worse: more}}\n"
    text += "rules:\n  - {id: A, when: {m: 1}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    (finding,) = found(path, text)
    assert finding.witness is not None
    assert finding.witness.snapshot["m"] > 1
    assert '{"m": 1}' in finding.help


def test_no_witness_is_made_up_for_an_expression(path: pathlib.Path) -> None:
    fields = 'fields: {items: {path: "length(things)", type: integer, missing: 0}}\n'
    text = (
        fields
        + "rules:\n  - {id: A, when: {items_gte: 3}, operation: ext}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    text += "invariants: [{id: I, assume: {}, assert: {operation_ne: ext}}]\n"
    (finding,) = found(path, text)
    assert (finding.code, finding.witness) == ("ECM611", None)
    assert finding.message.startswith("found `ext` by `A` (whatever the expression of `items` can give)")
    old = table(path, text)
    new = table(path, text.replace("items_gte: 3", "items_gte: 4"))
    (region,) = compare(old, new).regions
    assert region.old.witness is None
    (miss,) = nearest(old, {"things": []}, "orchestrator")
    assert miss.reason == "not found: it depends on the expression of `items`"


def test_strings_that_nothing_names_are_told_by_those_that_are(path: pathlib.Path) -> None:
    text = "fields: {s: {path: s, type: string}}\n"
    text += "rules:\n  - {id: A, when: {s: x}, operation: stop}\n  - {id: B, when: {s_missing: true}, operation: continue}\n"
    (gap,) = found(path, text)
    assert gap.message == "found no row for s not x or missing"
    text = text.replace("s_missing: true", 's_in: [other 1, ""]')
    (gap,) = found(path, text)
    assert gap.message == 'found no row for s not "", "other 1" or x'


def test_numbers_and_others_on_one_leaf_are_both_told(path: pathlib.Path) -> None:
    rest = "  - {id: B, when: {}, operation: continue}\n"
    old = table(
        path, "fields: {f: {path: a, type: number}}\nrules:\n  - {id: A, when: {f_gt: 1}, operation: stop}\n" + rest
    )
    new = table(
        path, "fields: {f: {path: a, type: boolean}}\nrules:\n  - {id: A, when: {f: true}, operation: stop}\n" + rest
    )
    assert [r.text for r in compare(old, new).regions] == [
        "a above 1: stop → continue (looser)",
        "a true: continue → stop (stricter)",
    ]


def test_the_fewest_rows_that_cover_in_both_roles_are_named(path: pathlib.Path) -> None:
    text = "fields: {a: {path: a, type: enum, values: [t], missing: t}, s: {path: s, type: boolean, scope: orchestrator, missing: true}}\n"
    text += "rules:\n  - {id: A, when: {s: true}, operation: stop}\n  - {id: B, when: {a: t}, operation: stop}\n"
    text += "  - {id: C, when: {a: t}, operation: ext}\n"
    assert [f.message for f in found(path, text) if f.code == "ECM603"] == [
        "found the row `C`, which is unreachable: covered by `B`"
    ]


def test_a_share_that_is_also_a_field_of_its_own_has_the_zone_of_what_it_is(tmp_path: pathlib.Path) -> None:
    from tests.conftest import ROOT

    for folder in ("roster", "rules"):
        (tmp_path / folder).mkdir()
        for file in (ROOT / folder).glob("*.yaml"):
            (tmp_path / folder / file.name).write_text(file.read_text())
    signals = tmp_path / "rules/signals.yaml"
    for kind, asked in (("string", "raw: x"), ("number, min: 0, max: 5", "raw_gt: 2")):
        field = f"fields:\n  raw: {{path: utilization, type: {kind}}}\n"
        signals.write_text((ROOT / "rules/signals.yaml").read_text().replace("fields:\n", field, 1))
        policy = tmp_path / "roster/context-policy.yaml"
        rows = f"rules:\n  - {{id: A, when: {{{asked}, zone: critical}}, operation: compact}}\n  - {{id: B, when: {{{asked}, zone: unknown}}, operation: compact}}\n"
        policy.write_text((ROOT / "roster/context-policy.yaml").read_text().replace("rules:\n", rows, 1))
        assert [f.message.split("`")[1] for f in check_file(str(policy)) if f.code == "ECM602"] == ["A"]


def entry(signals: dict[str, Any], *missing: str) -> str:
    line = {"rule": "B", "operation": "continue", "signals": signals, "missing": list(missing), "subagent": False}
    return json.dumps(line) + "\n"


def logged(path: pathlib.Path, old: str, new: str, line: str) -> dict[str, tuple[int, int]]:
    rows = "rules:\n  - {id: A, when: {x_gte: 3}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    difference = compare(table(path, old + rows), table(path, new + rows.replace("3", "5" if "5" in new else "3")))
    log = path.with_name("log.jsonl")
    log.write_text(line)
    counts = count(difference, str(log))
    told = zip(difference.regions, counts.inside, counts.undecided, strict=True)
    return {region.where: (inside, undecided) for region, inside, undecided in told}


def test_a_line_tells_nothing_of_a_leaf_that_the_old_table_did_not_read(path: pathlib.Path) -> None:
    old, new = (
        "fields: {x: {path: x, type: integer, missing: 0}}\n",
        "fields: {x: {path: other, type: integer, missing: 0}}\n",
    )
    counts = logged(path, old, new, entry({"x": 4}))
    assert counts
    assert all(inside == 0 for inside, _ in counts.values())
    assert any(undecided for _, undecided in counts.values())


def test_what_is_missing_takes_the_value_of_each_table(path: pathlib.Path) -> None:
    old, new = (
        "fields: {x: {path: x, type: integer, missing: 0}}\n",
        "fields: {x: {path: x, type: integer, missing: 4}}\n",
    )
    assert logged(path, old, new, entry({"x": 0}, "x")) == {"x missing": (1, 0)}
    assert logged(path, old, new, entry({"x": 0})) == {"x missing": (0, 0)}


@pytest.mark.parametrize("value", ["seven", [1], {}, True, 3.5, None])
def test_a_logged_value_of_another_kind_is_not_known(value: Any, path: pathlib.Path) -> None:
    old, new = (
        "fields: {x: {path: x, type: integer, missing: 0}}\n",
        "fields: {x: {path: x, type: integer, missing: 4}}\n",
    )
    counts = logged(path, old, new, entry({"x": value}))
    assert all(inside == 0 for inside, _ in counts.values())


def test_the_nearest_value_of_an_integer_signal_is_an_integer(path: pathlib.Path) -> None:
    text = "fields: {c: {path: c, type: number}}\nsignals: {s: {from: c, type: integer}}\n"
    text += "rules:\n  - {id: A, when: {s_gt: 2}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    (miss,) = nearest(table(path, text), {"c": 2}, "orchestrator")
    assert [(c.before, c.after) for c in miss.changes or ()] == [(2, 3)]


def test_a_change_of_kind_is_a_change(path: pathlib.Path) -> None:
    text = "fields: {c: {path: c, type: boolean}}\nrules:\n  - {id: A, when: {c: true}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n"
    (miss,) = nearest(table(path, text), {"c": 1}, "orchestrator")
    assert [(c.before, c.after) for c in miss.changes or ()] == [(1, True)]


def test_a_region_is_told_whole_where_names_do_not_tell_it(tmp_path: pathlib.Path) -> None:
    head = (
        'ecm_version: "0.1"\nzones: {amber: 0.5, red: 0.75, critical: 0.9}\nlimits: {compaction_depth_cap: 2}\nrules:\n'
    )
    rows = "  - {id: R0, when: {ceiling_lt: 200, budget_spent_gte_ceiling: true}, operation: compact}\n"
    rows += "  - {id: R1, when: {ceiling_missing: false}, operation: externalize}\n"
    last = "  - {id: R2, when: {}, operation: continue}\n"
    policies = []
    for text in (head + rows + last, head + last):
        (tmp_path / "t.yaml").write_text(text)
        policies.append(load_table(tmp_path / "t.yaml", project=None))
    old, new = policies
    assert [region.where for region in compare(old, new).regions if region.old.rule == "R1"] == [
        "((not budget_spent_gte_ceiling true and ceiling given) or (not ceiling below 200 and ceiling given))",
        "ceiling given",
    ]


def test_a_default_is_no_end_of_an_interval(path: pathlib.Path) -> None:
    (gap,) = found(
        path, "fields: {a: {path: a, type: number, missing: 2.5}}\nrules: [{id: A, when: {a: 3}, operation: stop}]\n"
    )
    assert gap.message == "found no row for a below 3 or above 3"


@pytest.mark.parametrize(
    "bounds", ["number, min: 0, max: 1, missing: 0", "integer, min: 0, missing: 0", "integer, missing: 5"]
)
def test_a_given_value_worse_than_the_default_is_compared_with_it(bounds: str, path: pathlib.Path) -> None:
    text = f"fields: {{a: {{path: a, type: {bounds}, worse: more}}}}\n"
    text += (
        "rules:\n  - {id: A, when: {a_missing: true}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    assert codes(path, text) == ["ECM608"]


@pytest.mark.parametrize(
    ("bound", "asked", "given"),
    [
        ("min: 1.0e+19", "a_lt: 2.0e+19", 15 * 10**18),
        ("max: -1.0e+19", "a_gt: -2.0e+19", -15 * 10**18),
        ("max: 1.7976931348623157e+308", "a_lt: 2", 1),
        ("min: -1.7976931348623157e+308", "a_gt: -2", 1),
    ],
)
def test_bounds_of_any_size_are_kept(bound: str, asked: str, given: float, path: pathlib.Path) -> None:
    text = f"fields: {{a: {{path: a, type: number, {bound}}}}}\nrules:\n  - {{id: A, when: {{{asked}}}, operation: stop}}\n"
    text += "  - {id: Z, when: {}, operation: continue}\n"
    assert codes(path, text) == []
    assert load_table(path, project=None).decide({"a": given}).rule == "A"


def test_a_leaf_of_strings_and_numbers_is_told_by_both(path: pathlib.Path) -> None:
    text = "fields: {s: {path: b, type: string}, k: {path: b, type: number}}\n"
    text += "rules:\n  - {id: A, when: {s: q}, operation: stop}\n  - {id: B, when: {k_gt: 5}, operation: stop}\n"
    (gap,) = found(path, text)
    assert gap.message == "found no row for b at most 5, missing or a string but q"


def test_a_region_of_both_roles_is_told_once(path: pathlib.Path) -> None:
    rows = (
        "rules:\n  - {id: A, when: {a_lt: %d, b_lt: %d}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    fields = "fields: {a: {path: a, type: %s}, b: {path: b, type: %s}}\n"
    old = table(path, fields % ("integer", "integer") + rows % (5, 5))
    new = table(path, fields % ("number", "number") + rows % (1, 1))
    regions = compare(old, new).regions
    assert {region.roles for region in regions} == {("orchestrator", "subagent")}
    assert len({region.text for region in regions}) == len(regions)


def test_the_nearest_of_two_values_without_a_range_is_the_nearer(path: pathlib.Path) -> None:
    text = "fields: {a: {path: a, type: number}}\n"
    text += (
        "rules:\n  - {id: A, when: {a_in: [-100, -1]}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    (miss,) = nearest(table(path, text), {"a": 5}, "orchestrator")
    assert [(c.before, c.after) for c in miss.changes or ()] == [(5, -1)]


def test_a_line_of_the_nexus_does_not_tell_what_was_given(path: pathlib.Path) -> None:
    fields = "fields: {x: {path: x, type: integer, missing: 0}}\n"
    old = table(
        path,
        fields
        + "rules:\n  - {id: A, when: {x_missing: true}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n",
    )
    new = table(path, fields + "rules: [{id: B, when: {}, operation: continue}]\n")
    log = path.with_name("log.jsonl")
    log.write_text('{"rule": "A", "operation": "stop", "x": 0, "subagent": false}\n')
    counts = count(compare(old, new), str(log))
    assert (counts.inside, counts.undecided) == ((0,), (1,))


def test_a_limit_that_an_invariant_repeats_is_found(path: pathlib.Path) -> None:
    text = "limits: {most: 3}\nfields: {m: {path: m, type: integer, limit: most}}\n"
    text += "invariants: [{id: I, assume: {m_gte: 3}, assert: {operation: continue}}]\nrules: [{id: Z, when: {}, operation: continue}]\n"
    (finding,) = found(path, text)
    assert (finding.code, finding.message) == ("ECM607", "found `m_gte: 3` in `I`, which repeats `limits.most`")


def test_what_stands_in_for_a_missing_value_is_told_with_it(path: pathlib.Path) -> None:
    fields = "fields: {c: {path: c, type: number}, s: {path: s, type: number, missing: 0}}\n"
    fields += 'signals: {g: {from: "s >= c", type: boolean, missing: false}}\n'
    (gap,) = found(
        path,
        fields
        + "rules:\n  - {id: A, when: {c_lte: 100}, operation: stop}\n  - {id: B, when: {g: true}, operation: continue}\n",
    )
    assert gap.witness is not None
    assert gap.witness.snapshot == {}
    assert "c missing" in gap.message or "or missing" in gap.message or "not c at most 100" in gap.message
    shared = "fields: {i: {path: a, type: integer, missing: 3}, k: {path: a, type: number}}\n"
    (gap,) = found(path, shared + "rules: [{id: A, when: {k_ne: 5, i_ne: 1}, operation: stop}]\n")
    assert "missing" in gap.message or "not k other than 5" in gap.message


def test_a_changed_default_is_a_difference_of_what_is_missing(path: pathlib.Path) -> None:
    fields = "fields: {flag: {path: f, type: boolean, missing: %s}}\n"
    old = table(
        path,
        fields % "false"
        + "rules:\n  - {id: A, when: {flag: false}, operation: stop}\n  - {id: B, when: {}, operation: continue}\n",
    )
    new = table(path, fields % "true" + "rules: [{id: B, when: {}, operation: continue}]\n")
    assert [region.where for region in compare(old, new).regions] == ["f false or missing"]


def test_two_integers_are_not_told_as_one(path: pathlib.Path) -> None:
    text = "fields: {f: {path: a, type: integer}}\nsignals: {m: {from: f, type: number}}\nrules:\n"
    text += "  - {id: A, when: {m_lt: 0.5}, operation: stop}\n  - {id: B, when: {m_gt: 2.5}, operation: stop}\n"
    text += "  - {id: C, when: {m_missing: true}, operation: stop}\n"
    (gap,) = found(path, text)
    assert gap.message == "found no row for m above 0.5 and below 2.5"


def test_a_value_that_reads_like_a_word_is_quoted(path: pathlib.Path) -> None:
    text = "fields: {x: {path: x, type: enum, values: [missing, red]}}\nrules:\n"
    (gap,) = found(
        path,
        text + "  - {id: A, when: {x: red}, operation: stop}\n  - {id: B, when: {x_missing: true}, operation: stop}\n",
    )
    assert gap.message == 'found no row for x "missing"'
    (gap,) = found(path, text + "  - {id: A, when: {x: [red, missing]}, operation: stop}\n")
    assert gap.message == "found no row for x missing"


def test_the_near_edge_of_what_is_wanted_is_nearest(path: pathlib.Path) -> None:
    text = "fields: {c: {path: c, type: number}}\n"
    text += (
        "rules:\n  - {id: A, when: {c_gt: 0, c_ne: 1}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    )
    (miss,) = nearest(table(path, text), {"c": -0.5}, "orchestrator")
    assert [(c.before, c.after) for c in miss.changes or ()] == [(-0.5, 5e-324)]


def test_a_zone_that_does_not_fit_its_utilization_is_changed_by_itself(policy: Policy) -> None:
    for meter, rule in (({"utilization": 0.8}, "P3"), ({"utilization": 0.95, "zone": "amber"}, "P2")):
        (miss,) = [m for m in nearest(policy, meter, "orchestrator") if m.rule == rule]
        assert [c.path for c in miss.changes or ()] == ["zone"]


def test_an_integer_one_beside_a_limit_repeats_it(path: pathlib.Path) -> None:
    fields = "limits: {most: 3}\nfields: {m: {path: m, type: integer, limit: most}}\n"
    for asked, other in (("m_gt: 2", "m_gte"), ("m_lte: 2", "m_lt")):
        text = (
            fields
            + f"rules:\n  - {{id: A, when: {{{asked}}}, operation: stop}}\n  - {{id: Z, when: {{}}, operation: continue}}\n"
        )
        (finding,) = found(path, text)
        assert (finding.code, finding.fix) == ("ECM607", None)
        assert f"write `{other}: {{ref: limits.most}}`" in finding.help


def test_a_value_is_moved_to_what_stands_in_for_the_other(path: pathlib.Path) -> None:
    text = "fields: {a: {path: a, type: integer, missing: 7, scope: orchestrator}, b: {path: b, type: number}}\n"
    text += 'signals: {same: {from: "a == b", type: boolean}}\n'
    text += "rules:\n  - {id: A, when: {same: true}, operation: stop}\n  - {id: Z, when: {}, operation: continue}\n"
    (miss,) = nearest(table(path, text), {"a": 1, "b": 2}, "subagent")
    assert [(c.path, c.after) for c in miss.changes or ()] == [("b", 7)]
