"""`ecm-rules table`, `decide` and `conformance` as a maintainer runs them."""

from __future__ import annotations

import json
import pathlib

import pytest

from ecm_rules import load_policy
from tests.commands import run
from tests.conftest import FIXTURES, ROOT

BROKEN = (ROOT / "roster/context-policy.yaml").read_text().replace("zone: critical", "zonee: critical")


def test_a_table_as_people_read_it(tmp_path: pathlib.Path) -> None:
    done = run("table", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "P3 ",
        "zone = red and compaction_count < 2 (limits.compaction_depth_cap)",
        "75% to below 90%",
        "cortex_routing_digest",
    ):
        assert text in done.stdout


def test_a_table_as_data(tmp_path: pathlib.Path) -> None:
    data = json.loads(run("table", "--format", "json", cwd=tmp_path).stdout)
    assert data["digest"] == load_policy(project=None).digest
    assert data["rows"][2]["when"][1] == {
        "signal": "compaction_count",
        "operator": "lt",
        "value": 2,
        "ref": "limits.compaction_depth_cap",
    }
    assert data["operations"]["wrap_up"]["steps"][-1] == "emit_wrap_up_notice"
    assert data["remap"] == {"subagent": {"handoff_fresh": "finish_and_return", "wrap_up": "finish_and_return"}}
    assert len(data["pins"]) == 6


def test_the_projects_layer_is_shown(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text(
        "context: {thresholds: {amber: 0.3}, compaction_depth_cap: 1, pins_extra: [freeze]}\n"
    )
    shown = run("table", cwd=tmp_path).stdout
    assert "compaction_count < 1 (limits.compaction_depth_cap)" in shown
    assert "30% to below 75%" in shown
    assert "freeze" in shown


def test_any_table_is_shown() -> None:
    shown = run("table", "lateral-signals", "--format", "markdown").stdout
    assert "| L1 | failures_on_step ≥ 3 (limits.repeat_failure) | recover_fresh |" in shown
    assert "| L3 | anything else | continue |" in shown


def test_what_a_policy_embeds_is_compared_and_noted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text((FIXTURES / "upstream/context-policy.yaml").read_text().replace("  - esl_enforcement_mode\n", ""))
    done = run("table", str(path))
    assert done.returncode == 0
    assert "note ECM501: found other pins than the shipped ones" in done.stderr


@pytest.mark.parametrize("command", [["table"], ["decide"]])
def test_a_table_with_findings_exits_1_and_nothing_is_decided(command: list[str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(BROKEN)
    more = ["--signals", "{}"] if command == ["decide"] else []
    done = run(*command, str(path), *more)
    assert (done.returncode, done.stdout) == (1, "")
    line = BROKEN[: BROKEN.index("zonee")].count("\n") + 1
    assert f"{path}:{line}:12: error ECM301: found the unknown signal `zonee`" in done.stderr
    assert "did you mean `zone`?" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["table", "nope"],
        ["decide", "nope.yaml", "--signals", "{}"],
        ["table", "--format", "pdf"],
        ["table", "--project", "/nonexistent"],
        ["decide", "lateral-signals"],
    ],
)
def test_usage_and_unreadable_tables_exit_2(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")


def test_decide_on_the_command_line(tmp_path: pathlib.Path) -> None:
    done = run("decide", "lateral-signals", "--signals", '{"failures_on_step": 3}', cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == "operation: recover_fresh  (rule L1)\n  start_fresh_context\n  run_failed_attempt_recovery\n"
    done = run(
        "decide", "context-policy", "--signals", "-", "--subagent", "--json", cwd=tmp_path, stdin='{"zone": "critical"}'
    )
    assert json.loads(done.stdout)["operation"] == "finish_and_return"
    assert not (tmp_path / ".eidolons").exists()


def test_decide_says_what_it_did_not_read() -> None:
    done = run("decide", "context-policy", "--signals", '{"zone": "amber", "tool_result_share": 1}', cwd="/")
    assert done.stdout.startswith("operation: externalize")
    assert (
        done.stderr == "not read: tool_result_share; read are: budget, compaction_count, tool_result_share_est, zone\n"
    )


@pytest.mark.parametrize("name", ["pins", "signals", "operations", "hosts"])
def test_a_file_that_is_no_decision_table_is_no_name_of_one(name: str) -> None:
    done = run("table", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ECM100: found no table of this name" in done.stderr


def test_decide_says_what_it_could_not_use() -> None:
    done = run("decide", "lateral-signals", "--signals", '{"failures_on_step": "3"}')
    assert (done.returncode, done.stdout) == (0, "operation: continue  (rule L3)\n")
    assert done.stderr == 'degraded: failures_on_step: found "3", expected a whole number at least 0\n'


@pytest.mark.parametrize("signals", ["", "{", "[]", "null", "NaN"])
def test_signals_that_cannot_be_read_exit_2(signals: str) -> None:
    done = run("decide", "lateral-signals", "--signals", signals)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--signals: found ")


def test_conformance_counts_and_tells_failures_apart(tmp_path: pathlib.Path) -> None:
    vectors = tmp_path / "v.jsonl"
    lines = [
        {
            "meter": {"zone": "red"},
            "subagent": False,
            "expect": {"rule": "P3", "operation": "compact", "raw_operation": "compact"},
        },
        {"name": "wrong", "meter": {"zone": "red"}, "expect": {"rule": "P9", "operation": "compact"}},
        {"name": "other", "raw": "[]", "recommended": {"rule": "P1", "degraded": []}, "contested": True},
        {"name": "as good", "raw": '{"zone": "red"}', "recommended": {"rule": "P4"}, "accept_rules": ["P3", "P4"]},
    ]
    vectors.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("conformance", "policy", str(vectors))
    assert done.returncode == 1
    assert f"{vectors}: wrong: failed: given " in done.stdout
    assert 'given {"meter": {"zone": "red"}} as orchestrator; expected {"rule": "P9"' in done.stdout
    assert 'seen {"rule": "P3", "operation": "compact"}' in done.stdout
    assert f"{vectors}: other: contested: given " in done.stdout
    assert done.stdout.endswith("\n3 passed, 1 failed\n")


def test_no_vector_is_no_success(tmp_path: pathlib.Path) -> None:
    (tmp_path / "v.jsonl").write_text("\n")
    done = run("conformance", "policy", str(tmp_path / "v.jsonl"))
    assert (done.returncode, done.stdout) == (1, "0 passed, 0 failed\n")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]\n",
        "{}\n",
        '{"expect": 3}\n',
        '{"expect": {}}\n',
        '{"expect": {"rule": "P7"}}\n',
        '{"meter": {}, "expect": {"ruel": "P7"}}\n',
        '{"gen": {"parts": 3}, "expect": {"rule": "P7"}}\n',
        '{"gen": {"special": "moon"}, "expect": {"rule": "P7"}}\n',
    ],
)
def test_files_that_hold_no_vectors_exit_2(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(text)
    assert run("conformance", "policy", str(path)).returncode == 2
    assert run("conformance", "policy", str(tmp_path)).returncode == 2
    assert run("conformance", "weather", str(path)).returncode == 2


@pytest.mark.parametrize(
    "command", [["table"], ["decide", "--signals", "{}"], ["conformance", "policy"], ["run"], ["schema"]]
)
def test_a_name_cannot_steer_a_terminal(command: list[str]) -> None:
    done = run(*command, "no\x1b[31m\u202esuch")
    assert done.returncode == 2
    assert "\\u{001B}[31m" in done.stderr
    assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


def test_version_and_help() -> None:
    from ecm_rules import __version__

    assert run("--version").stdout == f"{__version__}\n"
    shown = run("--help").stdout
    assert all(name in shown for name in ("run", "policy", "decide", "table", "schema", "conformance"))
