"""`ecm-rules check` as a maintainer and a CI run it."""

from __future__ import annotations

import json
import os
import pathlib
import stat
from typing import Any

import pytest

from ecm_rules import load_policy
from ecm_rules.analysis import compare
from tests.commands import run
from tests.conftest import FIXTURES, ROOT

UPSTREAM = FIXTURES / "upstream/context-policy.yaml"
HEAD = """\
ecm_version: "0.1"
zones: {amber: 0.5, red: 0.75, critical: 0.9}
limits: {compaction_depth_cap: 2, tool_result_share_prune: 0.4}
subagents: {operation_remap: {handoff_fresh: finish_and_return, wrap_up: finish_and_return}}
"""
GAP = HEAD + "rules:\n  - {id: A, when: {zone: red}, operation: compact}\n"
WARNED = (
    HEAD
    + "rules:\n  - {id: A, when: {zone: critical, tool_result_share_gte: 0}, operation: handoff_fresh}\n  - {id: REST, when: {}, operation: continue}\n"
)


def test_the_shipped_tables_are_clean_even_when_strict(tmp_path: pathlib.Path) -> None:
    for options in ([], ["--strict"]):
        done = run("check", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "no findings" in done.stdout


def test_a_project_is_checked_with_its_layer(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.70}}\n")
    done = run("check", cwd=tmp_path)
    assert done.returncode == 1
    assert "eidolons.yaml:1:31: error ECM401:" in done.stdout
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.30}}\n")
    assert run("check", "--project", str(tmp_path)).returncode == 0


def test_a_finding_is_told_with_caret_code_help_witness_and_page(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.yaml").write_text(GAP)
    done = run("check", "t.yaml", cwd=tmp_path)
    assert done.returncode == 1
    expected = """\
t.yaml:5:1: error ECM601: found no row for zone not red
  5 | rules:
    | ^^^^^
  help: add a row, or a catch-all `when: {}` as the last; now the operation is `continue` and no row says so
  witness: {"utilization": 0.2, "zone": "green"}
  docs: docs/findings/ECM601.md
"""
    assert expected in done.stdout


def test_a_witness_can_be_pasted_into_the_policy(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.yaml").write_text(GAP)
    finding = findings(run("check", "t.yaml", "--format", "json", cwd=tmp_path).stdout, "ECM601")[0]
    meter = json.dumps(finding["witness"]["snapshot"])
    done = run("policy", "--policy", "t.yaml", "--meter", "-", "--json", cwd=tmp_path, stdin=meter)
    assert json.loads(done.stdout)["rule"] is None


def findings(text: str, code: str = "ECM") -> list[dict[str, Any]]:
    return [f for f in json.loads(text)["findings"] if f["code"].startswith(code)]


def test_warnings_fail_when_strict_and_notes_never_do(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.yaml").write_text(WARNED)
    done = run("check", "t.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "warning ECM605" in done.stdout
    assert "note" in done.stdout.splitlines()[-1]
    assert "note ECM606" not in done.stdout
    assert run("check", "t.yaml", "--strict", cwd=tmp_path).returncode == 1
    assert "note ECM606" in run("check", "t.yaml", "--notes", cwd=tmp_path).stdout


def test_what_cannot_be_read_is_not_called_clean(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\0")
    for name in ("missing.yaml", "pipe.yaml", "empty"):
        done = run("check", name, cwd=tmp_path)
        assert done.returncode == 2, name
        assert name in done.stdout + done.stderr
    assert run("check", "binary.yaml", cwd=tmp_path).returncode == 1
    assert run("check", "--project", "nowhere", cwd=tmp_path).returncode == 2


def test_a_vocabulary_is_checked_with_the_tables_that_stand_beside_it(tmp_path: pathlib.Path) -> None:
    for folder in ("roster", "rules"):
        (tmp_path / folder).mkdir()
        for file in (ROOT / folder).glob("*.yaml"):
            (tmp_path / folder / file.name).write_text(file.read_text())
    assert run("check", "roster", "rules", cwd=tmp_path).returncode == 0
    signals = tmp_path / "rules/signals.yaml"
    signals.write_text(signals.read_text().replace("  compaction_count:", "  compactions:"))
    done = run("check", "rules/signals.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "context-policy.yaml" in done.stdout
    assert "ECM301" in done.stdout


def test_fixes_keep_comments_and_decide_the_same(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(UPSTREAM.read_bytes())
    path.chmod(0o640)
    before = path.read_text()
    done = run("check", "t.yaml", "--fix", cwd=tmp_path)
    assert done.returncode == 0
    assert "3 fixed" in done.stdout
    after = path.read_text()
    assert after == (
        before.replace("compaction_count_lt: 2", "compaction_count_lt: {ref: limits.compaction_depth_cap}")
        .replace("compaction_count_gte: 2", "compaction_count_gte: {ref: limits.compaction_depth_cap}")
        .replace("tool_result_share_gte: 0.40", "tool_result_share_gte: {ref: limits.tool_result_share_prune}")
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run("diff", str(UPSTREAM), "t.yaml", cwd=tmp_path).returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["t.yaml"]


@pytest.mark.parametrize(
    ("when", "fixed"),
    [
        ("{zone: critical, tool_result_share_gte: 0}", "{zone: critical}"),
        ("{tool_result_share_gte: 0, zone: critical}", "{zone: critical}"),
        ("{zone: critical, tool_result_share_gte: 0, compaction_count: 1}", "{zone: critical, compaction_count: 1}"),
        ("{zone: critical, zone_in: [critical]}", "{zone_in: [critical]}"),  # either says it, and one stays
        ("{zone: critical, zone_ne: amber}", "{zone: critical}"),
    ],
)
def test_a_test_that_changes_nothing_is_taken_out(when: str, fixed: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    text = WARNED.replace("{zone: critical, tool_result_share_gte: 0}", when + "  # why")
    text = (
        text.replace("- {id: A, when:", "- id: A\n    when:")
        .replace("# why, operation", "# why\n    operation")
        .replace("handoff_fresh}", "handoff_fresh")
    )
    path.write_text(text)
    done = run("check", "t.yaml", "--fix", "--strict", cwd=tmp_path)
    assert "warning ECM605" not in done.stdout
    assert "fixed ECM605" in done.stdout
    assert path.read_text() == text.replace(when, fixed)


def test_nothing_is_fixed_in_a_table_that_does_not_load(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(WARNED.replace("handoff_fresh}", "handoff}"))
    before = path.read_bytes()
    assert run("check", "t.yaml", "--fix", cwd=tmp_path).returncode == 1
    assert path.read_bytes() == before


def test_sarif_has_places_levels_rules_and_fixes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a table.yaml").write_bytes(UPSTREAM.read_bytes())
    done = run("check", "a table.yaml", "--format", "sarif", cwd=tmp_path)
    assert done.returncode == 1
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    (sarif,) = log["runs"]
    rules = [rule["id"] for rule in sarif["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in sarif["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "a%20table.yaml"
        region = place["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["endColumn"] > region["startColumn"] >= 1
    error = next(r for r in sarif["results"] if r["level"] == "error")
    (change,) = error["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == "{ref: limits.compaction_depth_cap}"
    assert change["replacements"][0]["deletedRegion"] == {"startLine": 31, "startColumn": 45, "endColumn": 46}


def test_workflow_commands_cannot_be_smuggled_in(tmp_path: pathlib.Path) -> None:
    name = "t,file=x::y.yaml"
    (tmp_path / name).write_text(GAP.replace("zone: red", '"zo\\n::error ::hacked": red'))
    done = run("check", name, "--format", "github", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines
    for line in lines:
        assert line.startswith("::error file=t%2Cfile=x%3A%3Ay.yaml,line=6,col=20,")
    assert "::error ::hacked" not in done.stdout.replace("\\u{000A}::error ::hacked", "")


def test_an_annotation_stands_at_its_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.yaml").write_text(GAP)
    done = run("check", "t.yaml", "--format", "github", cwd=tmp_path)
    gap = next(line for line in done.stdout.splitlines() if "ECM601" in line)
    assert gap.startswith(
        "::error file=t.yaml,line=5,col=1,endColumn=5,title=ECM601%3A signals that no row holds for::"
    )
    assert 'witness: {"utilization": 0.2, "zone": "green"}' in gap
    assert run("check", "--format", "github").stdout == ""


def test_json_is_one_document_with_everything(tmp_path: pathlib.Path) -> None:
    done = run("check", str(UPSTREAM), "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["files"] == [str(UPSTREAM)]
    first = findings(done.stdout, "ECM607")[0]
    assert (first["line"], first["column"], first["end_column"], first["severity"]) == (31, 45, 46, "error")
    assert first["docs"] == "docs/findings/ECM607.md"
    assert first["fix"]["text"] == "{ref: limits.compaction_depth_cap}"


def test_a_name_with_control_characters_is_shown_harmless(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a\x1b[31mb.yaml"
    path.write_text(GAP)
    done = run("check", str(path), cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_names_that_are_no_text_or_empty_are_told_in_every_format(form: str, tmp_path: pathlib.Path) -> None:
    name = os.fsdecode(b"bad\xff\x1b.yaml")
    (tmp_path / name).write_text(GAP)
    done = run("check", name, "--format", form, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout
    done = run("check", "", "--format", form, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_two_rows_with_the_same_mistake_are_both_fixed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    rows = "  - {id: B, when: {zone: red, tool_result_share_gte: 0}, operation: handoff_fresh}\n"
    path.write_text(WARNED.replace("  - {id: REST", rows + "  - {id: REST"))
    done = run("check", "t.yaml", "--fix", "--strict", cwd=tmp_path)
    assert "2 fixed" in done.stdout
    assert "tool_result_share_gte" not in path.read_text()


def test_what_a_project_lowers_is_no_reason_to_fix_a_table(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {enabled: true, compaction_depth_cap: 1}\n")
    path = tmp_path / "t.yaml"
    text = (ROOT / "roster/context-policy.yaml").read_text()
    text = text.replace("compaction_count_lt: {ref: limits.compaction_depth_cap}", "compaction_count_lt: 1")
    path.write_text(text)
    assert "ECM607" not in run("check", "t.yaml", "--fix", cwd=tmp_path).stdout
    assert path.read_text() == text
    # What the table itself repeats is found though the project has lowered it.
    path.write_text(text.replace("compaction_count_lt: 1", "compaction_count_lt: 2"))
    assert "ECM607" in run("check", "t.yaml", cwd=tmp_path).stdout


def test_a_file_that_cannot_be_written_is_told_and_left(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real.yaml").write_bytes(UPSTREAM.read_bytes())
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    done = run("check", "link.yaml", "--fix", cwd=tmp_path)
    assert done.returncode == 1
    assert "link.yaml: not fixed:" in done.stderr
    assert (tmp_path / "real.yaml").read_bytes() == UPSTREAM.read_bytes()


def test_each_finding_is_told_once_however_its_file_is_reached(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.70}}\n")
    done = run("check", cwd=tmp_path)
    assert done.stdout.count("error ECM401") == 1
    for folder in ("roster", "rules"):
        (tmp_path / folder).mkdir()
        for file in (ROOT / folder).glob("*.yaml"):
            (tmp_path / folder / file.name).write_text(file.read_text())
    (tmp_path / "eidolons.yaml").unlink()
    policy = tmp_path / "roster/context-policy.yaml"
    policy.write_text(policy.read_text().replace("operation: wrap_up", "operation: wrapup"))
    for paths in (["roster", "rules"], []):  # a checkout's own tables are what is checked in it
        done = run("check", *paths, cwd=tmp_path)
        assert done.stdout.count("error ECM307") == 1
        assert "roster/context-policy.yaml:" in done.stdout


def test_scenarios_are_checked_as_they_are_run(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "schema_version: 1\nscenarios:\n  - {name: a, meter: {}, expect: {rule: P9}}\n  - {name: a, meter: {}}\n"
    )
    assert {f["code"] for f in findings(run("check", "s.yaml", "--format", "json", cwd=tmp_path).stdout)} == {
        "ECM202",
        "ECM206",
    }
    path.write_text("schema_version: 1\nscenarios:\n  - {name: a, meter: {}, expect: {rule: P9}}\n")
    assert {f["code"] for f in findings(run("check", "s.yaml", "--format", "json", cwd=tmp_path).stdout)} == {"ECM307"}


def test_a_fix_needs_no_layer_to_be_right(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {enabled: true, compaction_depth_cap: 1}\n")
    path = tmp_path / "t.yaml"
    cap = "compaction_count_gte: {ref: limits.compaction_depth_cap}"
    text = (ROOT / "roster/context-policy.yaml").read_text().replace(cap, f"{cap}, compaction_count_ne: 0")
    path.write_text(text)
    before = load_policy(path, project=tmp_path)
    run("check", "t.yaml", "--fix", cwd=tmp_path)
    assert not compare(before, load_policy(path, project=tmp_path)).regions
    assert not compare(load_policy(ROOT / "roster/context-policy.yaml", project=tmp_path), before).regions


def test_what_a_layer_makes_idle_is_a_note(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {enabled: true, compaction_depth_cap: 0}\n")
    done = run("check", "--strict", "--notes", cwd=tmp_path)
    assert done.returncode == 0
    assert "note ECM602: found the row `P3`, which is impossible" in done.stdout
    assert "with the project's layer" in done.stdout


def test_the_tables_of_the_working_folder_are_not_passed_over(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/own.yaml").write_text(GAP)
    for arguments in ([], ["."]):
        done = run("check", *arguments, cwd=tmp_path)
        assert done.returncode == 1
        assert "rules/own.yaml:5:1: error ECM601" in done.stdout
