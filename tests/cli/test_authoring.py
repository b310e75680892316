"""`ecm-rules test`, `explain` and `diff` as a maintainer and a CI run them."""

from __future__ import annotations

import json
import pathlib
import subprocess
from xml.etree import ElementTree

import pytest

from tests.commands import run
from tests.conftest import FIXTURES, ROOT

SHIPPED = ROOT / "roster/context-policy.yaml"
SCENARIOS = FIXTURES / "scenarios"
WRONG = """\
schema_version: 1
scenarios:
  - {name: right, meter: {zone: red}, expect: {operation: compact}}
  - {name: "wrong <&> \\e[31m", meter: {zone: red}, expect: {operation: continue}}
  - name: later
    sequence:
      - {meter: {zone: green}, expect: {rule: P7}}
      - {meter: {zone: critical}, expect: {rule: P3}}
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    return tmp_path


# test


def test_the_default_are_the_scenarios_of_the_working_folder() -> None:
    done = run("test", cwd=ROOT)
    assert done.returncode == 0
    assert done.stdout.endswith("passed, 0 failed\n")


def test_a_failure_tells_where_what_was_decided_and_by_which_row(folder: pathlib.Path) -> None:
    done = run("test", "wrong.yaml", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "wrong.yaml:4:5: failed: wrong <&> \\u{001B}[31m: operation is compact, expected continue (by P3)",
        "wrong.yaml:8:9: failed: later, moment 2: rule is P2, expected P3",
        "1 passed, 2 failed",
    ]


def test_the_result_as_json_and_junit(folder: pathlib.Path) -> None:
    document = json.loads(run("test", "wrong.yaml", "--format", "json", cwd=folder).stdout)
    assert (document["passed"], document["failed"]) == (1, 2)
    assert [s["passed"] for s in document["scenarios"]] == [True, False, False]
    assert document["scenarios"][2]["moments"][1]["decided"]["rule"] == "P2"
    root = ElementTree.fromstring(run("test", "wrong.yaml", "--format", "junit", cwd=folder).stdout)
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    cases = {case.get("name"): case for case in suite}
    assert cases["right"].find("failure") is None
    failure = cases["later"].find("failure")
    assert failure is not None
    assert "rule is P2, expected P3" in str(failure.get("message"))


@pytest.mark.parametrize(
    ("content", "code"),
    [("schema_version: 1\nscenarios: []\n", 1), ("", 1), ("schema_version: 1\nscenarios: [{name: a}]\n", 1)],
)
def test_no_tests_are_no_success(content: str, code: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / "s.yaml").write_text(content)
    assert run("test", "s.yaml", cwd=tmp_path).returncode == code
    (tmp_path / "none").mkdir()
    assert run("test", "none", cwd=tmp_path).returncode == 2
    assert run("test", cwd=tmp_path).returncode == 2
    assert run("test", "missing.yaml", cwd=tmp_path).returncode == 2


def test_coverage_is_told_and_can_be_demanded(folder: pathlib.Path) -> None:
    (folder / "right.yaml").write_text(WRONG[: WRONG.index('  - {name: "wrong')])
    done = run("test", "right.yaml", "--coverage", cwd=folder)
    assert done.returncode == 0
    assert "  rows       1 of 7" in done.stdout
    assert "  not fired: P1" in done.stdout
    assert "  not exercised: P5: tool_result_share at 0.4 (0.4)" in done.stdout
    assert run("test", "right.yaml", "--fail-under", "1", cwd=folder).returncode == 0
    done = run("test", "right.yaml", "--fail-under", "90", cwd=folder)
    assert done.returncode == 1
    assert "is below 90%" in done.stderr
    assert run("test", str(SCENARIOS), "--fail-under", "100", cwd=folder).returncode == 0
    document = json.loads(run("test", str(SCENARIOS), "--coverage", "--format", "json", cwd=folder).stdout)
    assert document["coverage"]["context-policy"]["percent"] == 100


def test_what_is_generated_can_be_run(folder: pathlib.Path) -> None:
    (folder / "right.yaml").write_text(WRONG[: WRONG.index('  - {name: "wrong')])
    (folder / "more.yaml").write_text(run("test", "right.yaml", "--generate", cwd=folder).stdout)
    done = run("test", "right.yaml", "more.yaml", "--fail-under", "100", cwd=folder)
    assert done.returncode == 0
    assert run("test", "right.yaml", "more.yaml", "--generate", cwd=folder).stdout == "# nothing is missing\n"


def test_a_candidate_is_tested_by_the_scenarios_of_the_shipped_policy(tmp_path: pathlib.Path) -> None:
    candidate = tmp_path / "new.yaml"
    candidate.write_text(SHIPPED.read_text().replace("amber: 0.50", "amber: 0.51"))
    done = run("test", str(SCENARIOS), "--policy", str(candidate))
    assert done.returncode == 1
    assert "utilization at 0.5, where amber begins: rule is P7, expected P6" in done.stdout


# explain


def test_a_verdict_is_explained_with_its_nearest_misses(tmp_path: pathlib.Path) -> None:
    meter = json.dumps({"utilization": 0.55, "zone": "amber", "tool_result_share_est": 0.2})
    done = run("explain", "--meter", "-", cwd=tmp_path, stdin=meter)
    assert done.returncode == 0
    assert done.stdout.startswith("operation: externalize  (rule P6, as an orchestrator)\n")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "would fire with tool_result_share_est 0.2 → 0.4" in lines
    assert "would fire with utilization 0.55 → 0.9, zone amber → critical" in lines
    document = json.loads(run("explain", "--meter", "-", "--json", cwd=tmp_path, stdin=meter).stdout)
    (miss,) = [m for m in document["nearest"] if m["rule"] == "P5"]
    assert miss["changes"] == [{"path": "tool_result_share_est", "before": 0.2, "after": 0.4}]
    assert document["verdict"]["rule"] == "P6"
    assert [row["id"] for row in document["trace"] if row["fired"]] == ["P6"]


def test_the_meter_of_the_project_is_explained_by_default(tmp_path: pathlib.Path) -> None:
    done = run("explain", cwd=tmp_path)
    assert done.returncode == 0
    assert "no meter yet" in done.stderr
    state = tmp_path / ".eidolons/.context"
    state.mkdir(parents=True)
    (state / "meter.json").write_text('{"zone": "critical"}')
    assert "handoff_fresh  (rule P2" in run("explain", cwd=tmp_path).stdout
    assert "finish_and_return  (rule P2" in run("explain", "--subagent", cwd=tmp_path).stdout


@pytest.mark.parametrize("content", ["", "[]", "torn {", "\0", '{"a": NaN}'])
def test_a_meter_that_is_none_is_not_explained_away(content: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "m.json").write_text(content)
    for arguments in (["--meter", "m.json"], ["--meter", "-"]):
        done = run("explain", *arguments, cwd=tmp_path, stdin=content)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
    assert run("explain", "--meter", "none.json", cwd=tmp_path).returncode == 2


# diff


def edited(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "new.yaml"
    path.write_text(SHIPPED.read_text().replace("tool_result_share_gte", "tool_result_share_gt"))
    return path


SENTENCE = "zone amber and tool_result_share exactly 0.4, unless `P1` holds: prune_tool_results → externalize (looser)"


def test_a_difference_is_a_sentence_with_witnesses(tmp_path: pathlib.Path) -> None:
    edited(tmp_path)
    done = run("diff", "context-policy", "new.yaml", cwd=tmp_path)
    assert done.returncode == 1
    witness = '{"utilization": 0.5, "zone": "amber", "tool_result_share_est": 0.4}'
    assert done.stdout.splitlines() == [
        SENTENCE, f"  old  P5  {witness}", f"  new  P6  {witness}", "", "1 region: 1 looser",
    ]  # fmt: skip


def test_the_same_is_exit_0_and_unreadable_is_2(tmp_path: pathlib.Path) -> None:
    done = run("diff", "context-policy", str(SHIPPED), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no difference: every meter leads to the same operation\n")
    (tmp_path / "bad.yaml").write_text("rules: [")
    for other in ("bad.yaml", "missing.yaml", "git:nowhere", "no-such-table"):
        done = run("diff", "context-policy", other, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), other
    edited(tmp_path)
    assert run("diff", "context-policy", "new.yaml", "--log", "none.jsonl", cwd=tmp_path).returncode == 2


def test_a_difference_as_json_and_markdown(tmp_path: pathlib.Path) -> None:
    edited(tmp_path)
    document = json.loads(run("diff", "context-policy", "new.yaml", "--format", "json", cwd=tmp_path).stdout)
    (region,) = document["regions"]
    assert (document["same"], region["text"], region["change"]) == (False, SENTENCE, "looser")
    assert region["old"] == {
        "operation": "prune_tool_results",
        "rule": "P5",
        "witness": {
            "snapshot": {"utilization": 0.5, "zone": "amber", "tool_result_share_est": 0.4},
            "role": "orchestrator",
        },
    }
    markdown = run("diff", "context-policy", "new.yaml", "--format", "markdown", cwd=tmp_path).stdout
    row = markdown.splitlines()[-1]
    assert row.startswith(
        "| zone amber and tool_result_share exactly 0.4, unless `P1` holds | prune_tool_results (P5) | "
    )


def test_a_log_says_how_many_verdicts_it_would_have_changed(tmp_path: pathlib.Path) -> None:
    edited(tmp_path)
    for share in (0.4, 0.4, 0.5):
        meter = json.dumps({"zone": "amber", "tool_result_share_est": share})
        run("policy", "--meter", "-", cwd=tmp_path, stdin=meter)
    log = tmp_path / ".eidolons/.context/policy-log.jsonl"
    with log.open("a") as stream:
        stream.write('{"torn')
    done = run("diff", "context-policy", "new.yaml", "--log", str(log), cwd=tmp_path)
    assert "  log  2 of 3 verdicts\n" in done.stdout
    assert done.stdout.endswith("; 1 of the lines of the log could not be read as verdicts\n")


def git(folder: pathlib.Path, *arguments: str) -> None:
    options = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *options, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with tables and vocabulary in a folder of its own, committed."""
    for folder in ("roster", "rules"):
        (tmp_path / "deep" / folder).mkdir(parents=True)
        for file in (ROOT / folder).glob("*.yaml"):
            (tmp_path / "deep" / folder / file.name).write_text(file.read_text())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_revision_is_the_other_side(checkout: pathlib.Path) -> None:
    table = "deep/roster/context-policy.yaml"
    assert run("diff", "git:HEAD", table, cwd=checkout).returncode == 0
    path = checkout / table
    path.write_text(path.read_text().replace("tool_result_share_gte", "tool_result_share_gt"))
    done = run("diff", "git:HEAD", table, cwd=checkout)
    assert done.returncode == 1
    assert done.stdout.startswith(SENTENCE)
    git(checkout, "commit", "-qam", "second")
    assert run("diff", "git:HEAD", table, cwd=checkout).returncode == 0
    assert run("diff", "git:HEAD~1", table, cwd=checkout / "deep").returncode == 2  # no such file from there
    assert run("diff", "git:HEAD~1", "roster/context-policy.yaml", cwd=checkout / "deep").stdout.startswith(SENTENCE)


def test_a_revision_brings_the_vocabulary_of_its_time(checkout: pathlib.Path) -> None:
    signals = checkout / "deep/rules/signals.yaml"
    text = signals.read_text()
    assert text.count("    max: 1\n    missing: 0\n") == 1
    signals.write_text(text.replace("    max: 1\n    missing: 0\n", "    max: 1\n    missing: 1\n"))
    done = run("diff", "git:HEAD", "deep/roster/context-policy.yaml", cwd=checkout)
    assert done.returncode == 1
    assert "tool_result_share_est missing" in done.stdout
    assert "externalize → prune_tool_results (stricter)" in done.stdout


@pytest.mark.parametrize(
    "revision", ["--output=pwned", "-h", "nowhere", "HEAD:other.yaml", "", "HEAD^{tree}:x", "a b", "\x1b[31m"]
)
def test_a_revision_that_is_none_is_refused_in_words(revision: str, checkout: pathlib.Path) -> None:
    done = run("diff", f"git:{revision}", "deep/roster/context-policy.yaml", cwd=checkout)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error ECM100" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert sorted(p.name for p in checkout.iterdir()) == [".git", "deep"]


def test_a_revision_is_never_the_working_file(checkout: pathlib.Path) -> None:
    path = checkout / "deep/roster/context-policy.yaml"
    path.write_text(path.read_text().replace("tool_result_share_gte", "tool_result_share_gt"))
    for given in (path, "deep/rules/../roster/context-policy.yaml", "./deep/roster/context-policy.yaml"):
        done = run("diff", f"git:HEAD:{given}", str(path), cwd=checkout)
        assert (done.returncode, done.stdout.startswith(SENTENCE)) == (1, True), given
    assert run("diff", "git:HEAD:../deep/roster/context-policy.yaml", str(path), cwd=checkout / "deep").returncode == 1
    assert run("diff", "git:HEAD:/etc/hostname", str(path), cwd=checkout).returncode == 2


def test_a_table_outside_a_repository_has_no_revision(tmp_path: pathlib.Path) -> None:
    edited(tmp_path)
    done = run("diff", "git:HEAD", "new.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_a_project_is_compared_by_its_layer(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {compaction_depth_cap: 1}\n")
    done = run("diff", "context-policy", str(tmp_path))
    assert done.returncode == 1
    assert "compaction_count exactly 1" in done.stdout


def test_an_operation_that_does_something_else_is_a_difference(checkout: pathlib.Path) -> None:
    path = checkout / "deep/rules/operations.yaml"
    text = path.read_text()
    path.write_text(
        text.replace(
            "[externalize, host_clear_tool_results]", "[externalize, host_clear_tool_results, emit_return_notice]"
        )
    )
    table = "deep/roster/context-policy.yaml"
    done = run("diff", "git:HEAD", table, cwd=checkout)
    assert done.returncode == 1
    assert done.stdout.startswith("steps of prune_tool_results: + emit_return_notice\n")
    assert (
        "- steps of prune_tool_results" in run("diff", "git:HEAD", table, "--format", "markdown", cwd=checkout).stdout
    )
    document = json.loads(run("diff", "git:HEAD", table, "--format", "json", cwd=checkout).stdout)
    assert document["same"] is False
    assert document["redefined"] == [
        {"operation": "prune_tool_results", "removed": [], "added": ["emit_return_notice"]}
    ]
    path.write_text(text.replace("[externalize, emit_return_notice]", "[emit_return_notice, externalize]"))
    assert "steps of finish_and_return: in another order\n" in run("diff", "git:HEAD", table, cwd=checkout).stdout


def test_two_revisions_are_compared(checkout: pathlib.Path) -> None:
    path = checkout / "deep/roster/context-policy.yaml"
    path.write_text(path.read_text().replace("tool_result_share_gte", "tool_result_share_gt"))
    git(checkout, "commit", "-qam", "second")
    table = "deep/roster/context-policy.yaml"
    done = run("diff", f"git:HEAD~1:{table}", f"git:HEAD:{table}", cwd=checkout)
    assert (done.returncode, done.stdout.startswith(SENTENCE)) == (1, True)
    assert run("diff", "git:HEAD~1", "git:HEAD", cwd=checkout).returncode == 2


def test_a_comparison_that_is_too_large_is_neither_the_same_nor_different(tmp_path: pathlib.Path) -> None:
    page = (ROOT / "docs/findings/ECM610.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "t.yaml").write_text("schema_version: 1\noperations: {continue: {}, stop: {}}\n" + example)
    done = run("diff", "t.yaml", "t.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "too large" in done.stderr


def test_generating_prints_scenarios_and_nothing_else(folder: pathlib.Path) -> None:
    for options in (["--format", "json"], ["--fail-under", "3"], ["--coverage"]):
        assert run("test", "wrong.yaml", "--generate", *options, cwd=folder).returncode == 2


def test_generating_does_not_hide_a_failure(folder: pathlib.Path) -> None:
    done = run("test", "wrong.yaml", "--generate", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("schema_version: 1\n")
    assert "failed: later" in done.stderr


def test_scenarios_see_a_project_only_where_it_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.4}}\n")
    (tmp_path / "s.yaml").write_text(
        "schema_version: 1\nscenarios:\n  - {name: a, meter: {utilization: 0.45}, expect: {rule: P6}}\n"
    )
    assert run("test", "s.yaml", cwd=tmp_path).returncode == 1
    assert run("test", "s.yaml", "--project", ".", cwd=tmp_path).returncode == 0


def test_our_own_log_is_judged_by_moved_thresholds(tmp_path: pathlib.Path) -> None:
    for utilization, zone in ((0.55, "amber"), (0.65, "amber"), (0.2, "green")):
        run("policy", "--meter", "-", cwd=tmp_path, stdin=json.dumps({"utilization": utilization, "zone": zone}))
    (tmp_path / "new.yaml").write_text(SHIPPED.read_text().replace("amber: 0.50", "amber: 0.60"))
    log = ".eidolons/.context/policy-log.jsonl"
    document = json.loads(
        run("diff", "context-policy", "new.yaml", "--log", log, "--format", "json", cwd=tmp_path).stdout
    )
    assert [r["logged"] for r in document["regions"] if r["old"]["operation"] == "externalize"] == [
        {"inside": 1, "undecided": 0}
    ]
