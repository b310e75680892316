"""`ecm-rules run`: the main job, on recorded sessions."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from tests.commands import run
from tests.conftest import FIXTURES

SESSIONS = FIXTURES / "transcripts"
COMPACTED = str(SESSIONS / "02_claude_compact_boundary.jsonl")


def told(*arguments: str, cwd: pathlib.Path | str = ".") -> dict[str, Any]:
    done = run("run", "--json", *arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_person_sees_gauge_signals_rows_and_steps(tmp_path: pathlib.Path) -> None:
    done = run("run", COMPACTED, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "claude-opus-4-5-20251101 · 203 records" in lines[0]
    assert "57.0% amber" in done.stdout
    assert "green" in lines[3]
    assert "critical 90%" in lines[3]
    assert "114,039 of 200,000 tokens, from the usage record" in done.stdout
    assert "✗ P3  compact             zone is amber, not red" in done.stdout
    assert "✓ P5  prune_tool_results  zone = amber and tool_result_share ≥ 0.4: " in done.stdout
    assert "→ prune_tool_results:" in done.stdout
    assert "4. host_clear_tool_results  host, loses content" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_json_form(tmp_path: pathlib.Path) -> None:
    found = told(COMPACTED, cwd=tmp_path)
    assert found["meter"]["utilization"] == 0.570195
    assert (found["meter"]["estimate_source"], found["meter"]["compaction_count"]) == ("host", 1)
    assert found["verdict"]["rule"] == "P5"
    assert [row["id"] for row in found["trace"] if row["fired"]] == ["P5"]
    assert not os.path.exists(tmp_path / ".eidolons")


def test_a_window_and_a_budget_of_ones_own() -> None:
    assert told(COMPACTED, "--window-tokens", "130000")["verdict"]["rule"] == "P3"
    assert told(COMPACTED, "--window-tokens", "1000000")["verdict"]["rule"] == "P7"
    found = told(COMPACTED, "--budget-tokens", "100000")
    assert (found["verdict"]["rule"], found["verdict"]["operation"]) == ("P1", "wrap_up")


def test_more_than_the_window_is_unknown() -> None:
    found = told(COMPACTED, "--window-tokens", "100000")
    assert (found["meter"]["zone"], found["verdict"]["rule"]) == ("unknown", "P7")
    assert (
        "114,039 tokens used, 100,000 tokens in the window" in run("run", COMPACTED, "--window-tokens", "100000").stdout
    )


def test_right_after_a_compaction_there_is_an_estimate_and_it_says_so() -> None:
    meter = told(str(SESSIONS / "02b_claude_just_after_boundary.jsonl"))["meter"]
    assert (meter["estimate_source"], meter["basis"]) == ("transcript_heuristic", "content bytes")
    assert meter["used_tokens_est"] == 11477 // 4 + 40_000


def test_a_subagents_transcript_is_decided_for_a_subagent() -> None:
    path = str(SESSIONS / "07_claude_subagent_sidechain.jsonl")
    found = told(path, "--window-tokens", "75000", "--budget-tokens", "1")
    assert (found["verdict"]["rule"], found["verdict"]["operation"]) == ("P2", "finish_and_return")
    assert "(a subagent, so not handoff_fresh)" in run("run", path, "--window-tokens", "75000").stdout


def test_an_unknown_model_needs_a_window(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        json.dumps(
            {"type": "assistant", "message": {"model": "new-model\x1b[31m\u202e", "usage": {"input_tokens": 10}}}
        )
        + "\n"
    )
    done = run("run", str(path))
    assert "give the model's window with --window-tokens N" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_the_projects_layer_is_used(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.2}, budget_tokens: 1000000}\n")
    found = told(str(SESSIONS / "01_claude_small.jsonl"), "--project", str(tmp_path))
    assert found["meter"]["zone"] == "amber"
    assert found["meter"]["budget"]["ceiling_tokens"] == 1_000_000


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
def test_what_cannot_be_read_exits_2(kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    if kind == "directory":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    done = run("run", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("data", [b"", b'{"type":"user","message":{"content":"hi"}}', b'{"sessionId":"s"}\n\0\0\nx\n'])
def test_a_session_that_says_little_is_unknown(data: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    assert told(str(path))["verdict"]["rule"] == "P7"
    assert run("run", str(path), "--window-tokens", "50000").returncode == 0


@pytest.mark.parametrize("data", [b"\0" * 100, b"not a transcript\n" * 90_000, b"{}\n[]\n3\n", os.urandom(600_000)])
def test_what_is_no_session_is_refused_whatever_its_size(data: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    done = run("run", str(path), "--window-tokens", "100000")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{path}: found no record of a session\n"


@pytest.mark.parametrize(
    ("name", "format", "used", "compactions"),
    [
        ("06_gemini_session.json", "gemini-cli", 14200, 0),
        ("09_pi_large_session.jsonl", "pi-session", 64161, 0),
        ("11_codex_fork_replay_ccusage.jsonl", "codex-rollout", 5000, 0),
        ("codex_autocompact.jsonl", "codex-rollout", 1200, 1),
        ("copilot_autocompact.jsonl", "copilot-events", 1200, 1),
        ("gemini_autocompress.jsonl", "gemini-cli", 600_000, 2),
        ("opencode_autocompact.json", "opencode-export", 1240, 1),
        ("pi_compaction.jsonl", "pi-session", 1200, 1),
    ],
)
def test_a_session_of_any_client(name: str, format: str, used: int, compactions: int) -> None:
    found = told(str(SESSIONS / name))
    assert found["transcript"]["format"] == format
    meter = found["meter"]
    assert (meter["used_tokens_est"], meter["compaction_count"]) == (used, compactions)
    assert (meter["estimate_source"], meter["basis"].partition(";")[0]) == ("host", "usage record")


def test_a_known_count_is_kept_where_the_window_is_unknown() -> None:
    path = str(SESSIONS / "08_claude_acompact_subagent.jsonl")
    assert told(path)["meter"]["used_tokens_est"] == 173514
    assert "173,514 tokens, usage record; window unknown" in run("run", path).stdout


@pytest.mark.parametrize("columns", ["0", "1", "40", "500"])
def test_any_terminal_is_wide_enough(columns: str) -> None:
    done = run("run", COMPACTED, COLUMNS=columns)
    assert done.returncode == 0
    bar = next(line for line in done.stdout.split("\n") if "█" in line)
    assert bar.endswith("57.0% amber")
    assert len(bar) <= max(40, min(82, int(columns)))


@pytest.mark.parametrize("arguments", [[], ["x", "--window-tokens", "0"], ["x", "--budget-tokens", "many"]])
def test_bad_usage_exits_2(arguments: list[str]) -> None:
    assert run("run", *arguments).returncode == 2


def test_a_bad_project_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.9}}\n")
    done = run("run", COMPACTED, "--project", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "ECM401" in done.stderr
