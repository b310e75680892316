"""`ecm-rules budget`: a thread's spending for people and as one document; exit 0 whatever happens, 2 on bad usage."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from ecm_rules.kernel import ledger
from tests.commands import run

NOW = "2026-07-07T00:00:00Z"


def told(cwd: pathlib.Path, *arguments: str) -> dict[str, Any]:
    done = run("budget", "--json", *arguments, cwd=cwd)
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def spent(tmp_path: pathlib.Path) -> pathlib.Path:
    """A project with a ceiling and two threads, of which one has a successor."""
    (tmp_path / "eidolons.yaml").write_text("context: {budget_tokens: 500000}\n")
    for session, agent, tokens in (
        ("s1", None, 100_000),
        ("s1", None, 120_000),
        ("s1", "a1", 30_000),
        ("s1", "a2", None),
    ):
        ledger.report(str(tmp_path), {}, session, agent, tokens, NOW)
    ledger.succeed(str(tmp_path), {}, "s2", "s1", NOW)
    ledger.report(str(tmp_path), {}, "s2", None, 9000, NOW)
    ledger.report(str(tmp_path), {}, "other", None, 700_000, NOW)
    with open(tmp_path / ledger.FILE, "a") as stream:
        stream.write("torn\n")
    return tmp_path


def test_for_people(spent: pathlib.Path) -> None:
    done = run("budget", "--session", "s2", cwd=spent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "thread s1\n"
        "\n"
        "  session s1                 120,000\n"
        "    subagent a1               30,000\n"
        "    subagent a2         not reported\n"
        "  session s2, after s1         9,000\n"
        "\n"
        "spent  159,000 tokens of 500,000, 31.8%\n"
        "left   341,000 tokens\n"
        "1 of the lines of the ledger could not be read\n"
    )


def test_as_one_document(spent: pathlib.Path) -> None:
    assert told(spent, "--session", "s2") == {
        "session_id": "s2",
        "thread": "s1",
        "sessions": [
            {
                "session_id": "s1",
                "predecessor": None,
                "spent_tokens": 120_000,
                "subagents": [{"agent_id": "a1", "spent_tokens": 30_000}, {"agent_id": "a2", "spent_tokens": None}],
                "total_tokens": 150_000,
            },
            {"session_id": "s2", "predecessor": "s1", "spent_tokens": 9000, "subagents": [], "total_tokens": 9000},
        ],
        "spent_tokens_est": 159_000,
        "ceiling_tokens": 500_000,
        "left_tokens": 341_000,
        "budget_spent_gte_ceiling": False,
        "unread_lines": 1,
    }


def test_the_session_that_was_measured_last_is_shown_else_the_last_line(spent: pathlib.Path) -> None:
    found = told(spent)
    assert (found["session_id"], found["left_tokens"], found["budget_spent_gte_ceiling"]) == ("other", 0, True)
    (spent / ".eidolons/.context/meter.json").write_text('{"session_id": "s1"}')
    assert told(spent)["thread"] == "s1"
    (spent / ".eidolons/.context/meter.json").write_text('{"session_id": "unknown to the ledger"}')
    assert told(spent)["thread"] == "other"


def test_without_one_in_the_project_the_ceiling_is_the_meters(spent: pathlib.Path) -> None:
    (spent / "eidolons.yaml").unlink()
    assert (told(spent)["ceiling_tokens"], told(spent)["left_tokens"]) == (None, None)
    (spent / ".eidolons/.context/meter.json").write_text('{"session_id": "s1", "budget": {"ceiling_tokens": 159000}}')
    assert [told(spent)[key] for key in ("ceiling_tokens", "left_tokens", "budget_spent_gte_ceiling")] == [
        159_000,
        0,
        True,
    ]
    assert told(spent, "--session", "other")["ceiling_tokens"] is None
    assert "left   no ceiling is set\n" in run("budget", "--session", "other", cwd=spent).stdout


def test_where_nobody_has_reported(tmp_path: pathlib.Path) -> None:
    done = run("budget", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "no session has reported\nspent  unknown\nleft   no ceiling is set\n", ""
    )  # fmt: skip
    assert told(tmp_path)["sessions"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("session", ["nobody", "../../x", "s" * 300, "\x1b[31m"])
def test_a_session_that_the_ledger_does_not_know_is_said(session: str, spent: pathlib.Path) -> None:
    done = run("budget", "--session", session, "--json", cwd=spent)
    assert (done.returncode, json.loads(done.stdout)["sessions"]) == (0, [])
    assert done.stderr.startswith("no line of the ledger tells of session ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_names_do_not_reach_the_terminal_as_they_are(tmp_path: pathlib.Path) -> None:
    ledger.report(str(tmp_path), {}, "\x1b[31m[bold]", "\x07", 1, NOW)
    done = run("budget", cwd=tmp_path)
    assert not set(done.stdout) & set("\x1b\x07")
    assert "[bold]" in done.stdout


def test_a_ledger_that_cannot_be_read_is_said(spent: pathlib.Path) -> None:
    path = spent / ledger.FILE
    path.unlink()
    path.mkdir()
    done = run("budget", "--json", cwd=spent)
    assert (done.returncode, json.loads(done.stdout)["spent_tokens_est"]) == (0, None)
    assert done.stderr == "budget ledger: no regular file\n"


def test_a_table_that_does_not_load_leaves_the_spending(spent: pathlib.Path) -> None:
    (spent / "eidolons.yaml").write_text("context: {compaction_depth_cap: 9}\n")
    done = run("budget", "--json", cwd=spent)
    found = json.loads(done.stdout)
    assert (done.returncode, found["spent_tokens_est"], found["ceiling_tokens"]) == (0, 700_000, None)
    assert "ECM401" in done.stderr


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["stray"], ["--session"]])
def test_bad_usage_exits_2(arguments: list[str], tmp_path: pathlib.Path) -> None:
    done = run("budget", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
