"""`ecm-rules policy`, the drop-in: flags, JSON keys, exit codes and defaults of `eidolons context policy`."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from tests.commands import run
from tests.conftest import FIXTURES, ROOT

KEYS = [
    "rule", "operation", "raw_operation", "zone", "compaction_count", "tool_result_share_est", "budget_ceiling_set",
    "budget_spent_gte_ceiling", "subagent",
]  # fmt: skip
LOG = ".eidolons/.context/policy-log.jsonl"
UPSTREAM = {
    json.loads(line)["name"]: json.loads(line)
    for line in (FIXTURES / "policy/hostile.jsonl").read_text().split("\n")
    if line
}


def told(*arguments: str, cwd: pathlib.Path, stdin: str = "") -> dict[str, Any]:
    done = run("policy", "--json", *arguments, cwd=cwd, stdin=stdin)
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    assert list(found)[: len(KEYS)] == KEYS
    return found


def test_the_text_form_and_the_log(tmp_path: pathlib.Path) -> None:
    done = run("policy", "--meter", "-", "--session-id", "s1", cwd=tmp_path, stdin='{"zone": "amber"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "operation: externalize  (rule P6, zone amber)\n", "")
    (line,) = (tmp_path / LOG).read_text().splitlines()
    logged = json.loads(line)
    assert list(logged)[: len(KEYS)] == KEYS
    assert (logged["session_id"], logged["signals"]["zone"]) == ("s1", "amber")
    assert len(logged["digest"]) == 64
    assert logged["evaluated_at"].endswith("Z")


@pytest.mark.parametrize(
    "name",
    [
        "subagent, budget exceeded, zone green",
        "compaction_count 1.0 in red",
        "spent float equal",
        "crlf",
        "zone missing, utilization 0.97",
    ],
)
def test_it_prints_what_the_upstream_kernel_printed(name: str, tmp_path: pathlib.Path) -> None:
    vector = UPSTREAM[name]
    given = told("--meter", "-", *(["--subagent"] if vector["subagent"] else []), cwd=tmp_path, stdin=vector["raw"])
    assert {key: given[key] for key in KEYS} == {key: vector["kernel"][key] for key in KEYS}


def test_without_a_meter_it_continues_and_complains_of_nothing(tmp_path: pathlib.Path) -> None:
    done = run("policy", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "operation: continue  (rule P7, zone unknown)\n", "")


def test_the_meter_of_the_project_and_of_a_subagent(tmp_path: pathlib.Path) -> None:
    state = tmp_path / ".eidolons/.context"
    state.mkdir(parents=True)
    (state / "meter.json").write_text('{"zone": "red"}')
    (state / "meter-s9.json").write_text('{"zone": "critical"}')
    assert told(cwd=tmp_path)["rule"] == "P3"
    assert told("--session-id", "s9", cwd=tmp_path)["rule"] == "P3"
    assert told("--subagent", "--session-id", "s9", cwd=tmp_path)["operation"] == "finish_and_return"
    assert told("--subagent", "--session-id", "../../meter", cwd=tmp_path)["rule"] == "P7"
    assert told("--project", str(tmp_path), cwd=ROOT)["rule"] == "P3"


def test_another_policy(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        (ROOT / "roster/context-policy.yaml").read_text().replace("operation: externalize", "operation: compact")
    )
    assert (
        told("--policy", str(path), "--meter", "-", cwd=tmp_path, stdin='{"zone": "amber"}')["operation"] == "compact"
    )


@pytest.mark.parametrize("text", ["", "rules: [", "ecm_version: '0.1'\nrules: []\n"])
def test_a_table_that_does_not_load_answers_p7_with_the_finding_on_stderr(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    done = run("policy", "--json", "--policy", str(path), "--meter", "-", cwd=tmp_path, stdin='{"zone": "critical"}')
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["rule"], answer["operation"]) == (0, "P7", "continue")
    assert list(answer)[: len(KEYS)] == KEYS
    assert answer["degraded"] == [{"path": "table", "reason": "the table did not load"}]
    assert f"{path}:" in done.stderr
    assert json.loads((tmp_path / LOG).read_text())["rule"] == "P7"


def test_a_missing_policy_and_a_bad_project_answer_p7(tmp_path: pathlib.Path) -> None:
    assert told("--policy", "nowhere.yaml", cwd=tmp_path)["rule"] == "P7"
    (tmp_path / "eidolons.yaml").write_text("context: {compaction_depth_cap: 9}\n")
    done = run("policy", "--meter", "-", cwd=tmp_path, stdin='{"zone": "red"}')
    assert (done.returncode, done.stdout) == (0, "operation: continue  (rule P7, zone unknown)\n")
    assert "eidolons.yaml:1:33: error ECM401" in done.stderr


@pytest.mark.parametrize(
    "meter", ["", "{", "[]", "{}{}", '{"zone": "Red"}', '{"zone": "red", "compaction_count": "2"}']
)
def test_a_bad_meter_exits_0_and_says_what(meter: str, tmp_path: pathlib.Path) -> None:
    done = run("policy", "--json", "--meter", "-", cwd=tmp_path, stdin=meter)
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["rule"] in ("P7", "P3")
    assert [f"meter degraded: {d['path']}: {d['reason']}" for d in answer["degraded"]] == done.stderr.splitlines()
    assert answer["degraded"]


def test_a_log_that_cannot_be_written_is_said(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".eidolons").write_text("a file")
    done = run("policy", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "operation: continue  (rule P7, zone unknown)\n")
    assert done.stderr.startswith("not logged: ")


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["stray"], ["--meter"]])
def test_bad_usage_exits_2(arguments: list[str], tmp_path: pathlib.Path) -> None:
    done = run("policy", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
