"""A project's layer: it lowers and appends; it raises nothing and takes nothing away."""

from __future__ import annotations

import pathlib

import pytest

from ecm_rules import EcmError, load_policy
from tests.marked import located, told, unmark


def write(folder: pathlib.Path, eidolons: str, ecm: str | None = None) -> str:
    (folder / "eidolons.yaml").write_text(eidolons)
    if ecm is not None:
        (folder / ".eidolons").mkdir(exist_ok=True)
        (folder / ".eidolons/ecm.yaml").write_text(ecm)
    return str(folder)


def test_no_project_no_layer(tmp_path: pathlib.Path) -> None:
    policy = load_policy(project=str(tmp_path))
    assert policy.digest == load_policy(project=None).digest
    assert not policy.table.enabled


@pytest.mark.parametrize("text", ["version: 1\n", "context: {enabled: false, thresholds: {amber: 0.3}}\n"])
def test_a_project_that_did_not_opt_in_changes_nothing(text: str, tmp_path: pathlib.Path) -> None:
    policy = load_policy(project=write(tmp_path, text))
    assert policy.digest == load_policy(project=None).digest
    assert not policy.table.enabled


def test_lowered_thresholds_and_cap_reach_the_rows(tmp_path: pathlib.Path) -> None:
    text = "context:\n  thresholds: {amber: 0.3, red: 0.5}\n  compaction_depth_cap: 0\n  budget_tokens: 900000\n"
    policy = load_policy(project=write(tmp_path, text))
    assert policy.table.zones == {"amber": 0.3, "red": 0.5, "critical": 0.9}
    assert policy.program["zones"]["amber"] == 0.3
    assert policy.table.budget_tokens == 900000
    assert policy.table.enabled
    assert policy.rule_for({"zone": "red", "compaction_count": 0}) == "P4"
    assert policy.digest != load_policy(project=None).digest


def test_an_override_reaches_another_policy_through_its_refs(tmp_path: pathlib.Path) -> None:
    from tests.conftest import FIXTURES

    folder = write(tmp_path, "context: {compaction_depth_cap: 1}\n")
    meter = {"zone": "red", "compaction_count": 1}
    assert load_policy(project=folder).rule_for(meter) == "P4"
    # Upstream's own rows hold the number itself, so that the override does not reach them.
    upstream = load_policy(str(FIXTURES / "upstream/context-policy.yaml"), project=folder)
    assert upstream.rule_for(meter) == "P3"


def test_pins_are_appended(tmp_path: pathlib.Path) -> None:
    folder = write(
        tmp_path,
        "context: {pins_extra: [release_freeze]}\n",
        "pins:\n  - {id: house_style, why: reviewers ask for it, marker: House style}\n",
    )
    pins = load_policy(project=folder).table.pins
    assert [p.id for p in pins[6:]] == ["release_freeze", "house_style"]
    assert (pins[7].marker, pins[7].origin) == ("House style", ".eidolons/ecm.yaml")
    assert len(pins) == 8


def test_what_the_nexus_takes_is_taken(tmp_path: pathlib.Path) -> None:
    text = "context: {budget_tokens: 0, pins_extra: [esl_enforcement_mode, mine, mine], thresholds: {}}\n"
    table = load_policy(project=write(tmp_path, text)).table
    assert table.budget_tokens is None
    assert [pin.id for pin in table.pins[6:]] == ["mine"]


def test_the_rest_of_eidolons_yaml_belongs_to_others(tmp_path: pathlib.Path) -> None:
    theirs = "hosts: &h [on, no]\nmembers: *h\n1: one\n? {a: b}\n: c\ncontext: {}\ndate: 2001-01-01\n"
    assert load_policy(project=write(tmp_path, theirs)).table.enabled


REFUSED = {
    "raising a threshold": ("context: {thresholds: {amber: «0.6»}}\n", ["ECM401"]),
    "raising all of them": (
        "context:\n  thresholds:\n    amber: «0.55»\n    red: «0.8»\n    critical: «0.95»\n",
        ["ECM401", "ECM401", "ECM401"],
    ),
    "raising the depth cap": ("context: {compaction_depth_cap: «3»}\n", ["ECM401"]),
    "a band too narrow": ("context: {thresholds: {red: «0.55»}}\n", ["ECM402"]),
    "thresholds out of order": ("context: {thresholds: {critical: «0.6»}}\n", ["ECM402"]),
    "two bands too narrow": (
        "context: {thresholds: {amber: 0.5, red: «0.55», critical: «0.6»}}\n",
        ["ECM402", "ECM402"],
    ),
    "mistakes of every kind together": (
        "context:\n  «foo»: 1\n  thresholds: {amber: «0.6»}\n  compaction_depth_cap: «9»\n  pins_extra: [«A»]\n",
        ["ECM201", "ECM401", "ECM401", "ECM205"],
    ),
    "a threshold of another type beside sound ones": (
        "context: {thresholds: {amber: 0.4, red: «x», critical: 0.8}}\n",
        ["ECM203"],
    ),
    "a raised threshold beside a lowered one": (
        "context: {thresholds: {amber: «0.7», critical: 0.8}}\n",
        ["ECM401"],
    ),
    "an unknown key": ("context: {«treshold»: 1}\n", ["ECM201"]),
    "an unknown zone": ("context: {thresholds: {«orange»: 0.6}}\n", ["ECM201"]),
    "an empty context": ("context:«»\n", ["ECM203"]),
    "a context that is a list": ("context: «[]»\n", ["ECM203"]),
    "a threshold that is a percentage": ("context: {thresholds: {amber: «50»}}\n", ["ECM204"]),
    "a budget as a string": ("context: {budget_tokens: «'1000'»}\n", ["ECM203"]),
    "an enabled that YAML 1.1 would read": ("context: {enabled: «yes»}\n", ["ECM106"]),
    "an alias within the context": ("a: &a 0.3\ncontext: {thresholds: {amber: «*a»}}\n", ["ECM103"]),
    "a context that stands twice": ("context: {}\n«context»: {enabled: false}\n", ["ECM102"]),
    "an attempt to remove a pin": ("context: {pins_extra: [«'-esl_enforcement_mode'»]}\n", ["ECM205"]),
    "broken YAML anywhere": ("a: [1\ncontext«:» {}\n", ["ECM101"]),
}


@pytest.mark.parametrize(("text", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_each_refusal_is_located_in_the_projects_file(text: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(text)
    folder = write(tmp_path, clean)
    with pytest.raises(EcmError) as caught:
        load_policy(project=folder)
    assert told(caught.value.findings) == located(places, codes)
    assert {f.file for f in caught.value.findings} == {str(tmp_path / "eidolons.yaml")}


APPENDED = {
    "unknown key": ("schema_version: 1\n«pin»: []\n", ["ECM201"]),
    "a shipped pin defined anew": (
        "schema_version: 1\npins: [{id: «cortex_routing_digest», why: mine is better}]\n",
        ["ECM403"],
    ),
    "a pin without a reason": ("schema_version: 1\npins: [«{id: a}»]\n", ["ECM202"]),
    "two pins of one id": ("schema_version: 1\npins: [{id: a, why: b}, {id: «a», why: c}]\n", ["ECM403"]),
    "another version": ("schema_version: «2»\n", ["ECM204"]),
    "sources outside of the project": ("context_sources: [a.md, «../b.md», «/c.md»]\n", ["ECM204", "ECM204"]),
    "a source that is no path": ("context_sources: [«7»]\n", ["ECM203"]),
}


@pytest.mark.parametrize(("text", "codes"), APPENDED.values(), ids=APPENDED.keys())
def test_what_is_appended_is_checked(text: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(text)
    with pytest.raises(EcmError) as caught:
        load_policy(project=write(tmp_path, "context: {}\n", clean))
    assert told(caught.value.findings) == located(places, codes)


def test_a_project_names_the_sources_whose_blocks_last(tmp_path: pathlib.Path) -> None:
    project = write(tmp_path, "context: {}\n", "context_sources: [docs/phase.md, NOTES.md]\n")
    assert load_policy(project=project).table.context_sources == ("docs/phase.md", "NOTES.md")
    assert load_policy(project=None).table.context_sources == ()


def test_what_belongs_to_others_may_be_deep(tmp_path: pathlib.Path) -> None:
    assert load_policy(project=write(tmp_path, "theirs: " + "[" * 50 + "]" * 50 + "\ncontext: {}\n")).table.enabled


def test_files_that_cannot_be_read_are_found_beside_the_rest(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").mkdir()
    (tmp_path / "t.yaml").write_text("rules: no\n")
    with pytest.raises(EcmError) as caught:
        load_policy(str(tmp_path / "t.yaml"), project=str(tmp_path))
    assert {"ECM100", "ECM106"} <= {f.code for f in caught.value.findings}


def test_findings_of_the_table_and_of_the_project_come_together(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "t.yaml"
    table.write_text(
        "ecm_version: '0.1'\nzones: {amber: 0.5, red: 0.75, critical: 0.9}\nlimits: {compaction_depth_cap: 2}\n"
        "rules:\n  - {id: A, when: {zonee: red}, operation: compact}\n"
    )
    with pytest.raises(EcmError) as caught:
        load_policy(str(table), project=write(tmp_path, "context: {compaction_depth_cap: 9}\n"))
    assert [f.code for f in caught.value.findings] == ["ECM301", "ECM401"]
