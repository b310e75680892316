"""`ecm-rules status`, the drop-in: flags, JSON keys, defaults and exit codes of `eidolons context status`."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

import pytest

from ecm_rules.kernel import status
from ecm_rules.kernel.status import Flags
from tests.commands import examples, run, unprinted
from tests.conftest import FIXTURES, ROOT

KEYS = [
    "ecm_version", "session_id", "window_tokens", "used_tokens_est", "utilization", "estimate_source", "zone",
    "tool_result_share_est", "compaction_count", "externalize_age_turns", "budget", "updated_at",
]  # fmt: skip
STATE = ".eidolons/.context"
TRANSCRIPTS = FIXTURES / "transcripts"
COMPACTED = str(TRANSCRIPTS / "02_claude_compact_boundary.jsonl")
RECORDED = sorted(str(path.relative_to(FIXTURES / "hosts")) for path in (FIXTURES / "hosts").glob("*/**/*.json"))


def told(*arguments: str, cwd: pathlib.Path, stdin: bytes | str = b"", complaint: str = "") -> dict[str, Any]:
    done = run("status", "--json", *arguments, cwd=cwd, stdin=stdin)
    assert done.returncode == 0
    assert done.stderr == (f"{complaint}\n" if complaint else "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert [key for key in found if key in KEYS] == KEYS
    assert set(found["budget"]) == {"ceiling_tokens", "spent_tokens_est"}
    return found


def meter(project: pathlib.Path, name: str = "meter.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / STATE / name).read_text())
    return found


def test_the_example_of_the_nexus(tmp_path: pathlib.Path) -> None:
    found = told("--used-percentage", "42", cwd=tmp_path)
    assert found == meter(tmp_path)
    assert (found["ecm_version"], found["session_id"], found["window_tokens"]) == ("0.1", None, 200_000)
    assert (found["used_tokens_est"], found["utilization"]) == (84_000, 0.42)
    assert (found["estimate_source"], found["zone"]) == ("host", "green")
    assert (found["tool_result_share_est"], found["compaction_count"], found["externalize_age_turns"]) == (0, 0, 0)
    assert found["budget"]["ceiling_tokens"] is None
    assert found["updated_at"].endswith("Z")


def test_the_page_shows_what_is_printed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs/status.md").read_text(), re.DOTALL)
    ((command, shown),) = [example for block in blocks for example in examples(block)]
    assert unprinted(shown, run(*command.split(), cwd=tmp_path).stdout) == []


@pytest.mark.parametrize(
    ("percentage", "zone"),
    [("0", "green"), ("49.9", "green"), ("50", "amber"), ("75", "red"), ("90", "critical"), ("100", "critical")],
)
def test_a_percentage_is_a_zone(percentage: str, zone: str, tmp_path: pathlib.Path) -> None:
    found = status.refresh(str(tmp_path), Flags(percentage)).meter
    assert (found["zone"], found["utilization"]) == (zone, float(percentage) / 100)


def test_a_person_sees_the_gauge_and_where_it_was_written(tmp_path: pathlib.Path) -> None:
    done = run("status", "--transcript", COMPACTED, "--budget-ceiling", "2000000", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "57.0% amber" in done.stdout
    assert "114,039 of 200,000 tokens, from the usage record" in done.stdout
    assert "compactions 1 · tool results 58% of the content · spent 394,229 of 2,000,000 tokens" in done.stdout
    assert f"written to {STATE}/meter.json" in done.stdout
    assert "\x1b" not in done.stdout


def test_everything_is_measured_from_a_transcript_of_any_client(tmp_path: pathlib.Path) -> None:
    found = told("--transcript", COMPACTED, cwd=tmp_path)
    assert (found["used_tokens_est"], found["basis"], found["window_basis"]) == (114_039, "usage record", "model")
    assert (found["tool_result_share_est"], found["compaction_count"]) == (0.583552, 1)
    assert (found["externalize_age_turns"], found["budget"]["spent_tokens_est"]) == (4, 394_229)
    assert found["session_id"] == "d6f7e01b-1777-466c-8191-3ae41d66894a"
    found = told("--transcript", str(TRANSCRIPTS / "codex_autocompact.jsonl"), cwd=tmp_path)
    assert (found["used_tokens_est"], found["window_tokens"], found["compaction_count"]) == (1200, 190_000, 1)


def test_a_file_of_no_known_format_is_its_bytes_by_four(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("plain words\n" * 1000)
    found = told("--transcript", str(path), "--compaction-count", "1", cwd=tmp_path)
    assert (found["estimate_source"], found["used_tokens_est"]) == ("transcript_heuristic", 3000)
    assert told("--transcript", str(path), cwd=tmp_path)["compaction_count"] == 1


def test_flags_beat_stdin(tmp_path: pathlib.Path) -> None:
    given = {
        "session_id": "theirs",
        "transcript_path": COMPACTED,
        "context_window": {"used_percentage": 10, "context_window_size": 1_000_000},
    }
    payload = json.dumps(given)
    found = told("--stdin", cwd=tmp_path, stdin=payload)
    assert (found["session_id"], found["utilization"], found["window_tokens"]) == ("theirs", 0.1, 1_000_000)
    assert found["compaction_count"] == 1
    flags = ["--used-percentage", "80", "--session-id", "mine", "--window-tokens", "500000", "--transcript"]
    flags += [str(TRANSCRIPTS / "01_claude_small.jsonl"), "--tool-result-share", "0.25", "--compaction-count", "7"]
    found = told("--stdin", *flags, "--budget-ceiling", "9", cwd=tmp_path, stdin=payload)
    assert (found["session_id"], found["utilization"], found["window_tokens"]) == ("mine", 0.8, 500_000)
    assert (found["window_basis"], found["used_tokens_est"]) == ("given", 400_000)
    assert (found["tool_result_share_est"], found["compaction_count"]) == (0.25, 7)
    assert found["budget"]["ceiling_tokens"] == 9


def test_what_is_not_given_is_inherited_from_the_meter_before(tmp_path: pathlib.Path) -> None:
    first = ["--used-percentage", "80", "--compaction-count", "2", "--budget-ceiling", "5000"]
    told(*first, cwd=tmp_path)
    (tmp_path / STATE / "meter.json").write_text(json.dumps({**meter(tmp_path), "externalize_age_turns": 6}))
    found = told("--used-percentage", "30", "--session-id", "s", cwd=tmp_path)
    assert (found["compaction_count"], found["externalize_age_turns"]) == (2, 6)
    assert found["budget"]["ceiling_tokens"] == 5000
    assert told("--used-percentage", "30", cwd=tmp_path)["session_id"] == "s"
    found = told("--used-percentage", "30", "--session-id", "another", cwd=tmp_path)
    assert (found["compaction_count"], found["externalize_age_turns"]) == (0, 0)
    assert found["budget"]["ceiling_tokens"] is None


def test_the_projects_layer_is_used(project: pathlib.Path) -> None:
    (project / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.1}, budget_tokens: 70}\n")
    (project / ".eidolons").mkdir()
    (project / ".eidolons/ecm.yaml").write_text("window_tokens: 400000\n")
    found = told("--transcript", COMPACTED, cwd=project)
    assert (found["zone"], found["budget"]["ceiling_tokens"]) == ("amber", 70)
    assert (found["window_tokens"], found["window_basis"]) == (400_000, "project")
    assert told("--transcript", COMPACTED, "--window-tokens", "500000", cwd=project)["window_tokens"] == 500_000


def test_a_subagent_has_a_meter_of_its_own(tmp_path: pathlib.Path) -> None:
    own = str(TRANSCRIPTS / "07_claude_subagent_sidechain.jsonl")
    found = told("--subagent", "--session-id", "a1", "--transcript", own, cwd=tmp_path)
    assert found == meter(tmp_path, "meter-a1.json")
    assert found["used_tokens_est"] == 71_257
    assert not (tmp_path / STATE / "meter.json").exists()
    payload = (FIXTURES / "hosts/claude-code/PostToolUse.in-subagent.json").read_bytes()
    told("--stdin", cwd=tmp_path, stdin=payload)
    assert meter(tmp_path, "meter-ab3a794d614668627.json")["zone"] == "unknown"
    told("--subagent", cwd=tmp_path)
    assert meter(tmp_path)["zone"] == "unknown"
    told("--subagent", "--session-id", "../../x", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".eidolons"]


def test_a_session_that_another_began_has_a_meter_of_its_own(tmp_path: pathlib.Path) -> None:
    created = json.loads((FIXTURES / "hosts/opencode/event.session.created.subagent.json").read_text())
    child = created["input"]["properties"]["info"]["id"]
    parent = created["input"]["properties"]["info"]["parentID"]
    told("--session-id", parent, "--used-percentage", "80", cwd=tmp_path)
    before = meter(tmp_path)
    answer = json.loads((FIXTURES / "hosts/opencode/event.message.updated.assistant.json").read_text())
    answer["input"]["properties"]["sessionID"] = child
    for given, used in ((created, None), (answer, 1240)):
        found = told("--stdin", cwd=tmp_path, stdin=json.dumps(given))
        assert found == meter(tmp_path, f"meter-{child}.json")
        assert (found["session_id"], found["used_tokens_est"]) == (parent, used)
    assert meter(tmp_path) == before


@pytest.mark.parametrize("name", RECORDED)
def test_stdin_takes_every_recorded_payload(name: str, tmp_path: pathlib.Path) -> None:
    data = (FIXTURES / "hosts" / name).read_bytes()
    found = status.refresh(str(tmp_path), Flags(), data)
    assert found.complaints == ()
    assert found == attrs_evolved(status.refresh(str(tmp_path), Flags(host=name.partition("/")[0]), data), found)


def attrs_evolved(one: status.Status, other: status.Status) -> status.Status:
    """The one with the time of the other, and what a second announcement of a compaction adds taken away."""
    announced = one.meter["compaction_count"] - other.meter["compaction_count"]
    assert announced in (0, 1)
    made = one.meter | {key: other.meter[key] for key in ("updated_at", "compaction_count")}
    if made["read_at"] is not None:
        made["read_at"] = other.meter["read_at"]
    return status.Status(made, one.path, one.zones, one.complaints)


def test_an_unknown_host_is_bad_usage_and_a_known_one_is_believed(tmp_path: pathlib.Path) -> None:
    done = run("status", "--stdin", "--host", "vim", cwd=tmp_path, stdin="{}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("unknown host 'vim', known: codex, ")
    given = json.dumps({"ctx": {"usage": {"percent": 12.5, "contextWindow": 1000}}})
    assert told("--stdin", "--host", "pi", cwd=tmp_path, stdin=given)["utilization"] == 0.125


BAD = {
    "nothing": (b"", "found nothing"),
    "no JSON": (b"{", "found no JSON"),
    "two documents": (b"{}{}", "found no JSON"),
    "a list": (b"[]", "found an array"),
    "latin-1": (b'{"session_id": "caf\xe9"}', "found bytes that are not UTF-8"),
    "nobody's": (b'{"hello": 1}', "found the keys of no known host"),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_an_unreadable_payload_is_one_line_and_unknown(data: bytes, reason: str, tmp_path: pathlib.Path) -> None:
    done = run("status", "--stdin", "--json", cwd=tmp_path, stdin=data)
    assert (done.returncode, json.loads(done.stdout)["zone"]) == (0, "unknown")
    assert done.stderr.startswith(f"payload: {reason}")
    assert done.stderr.count("\n") == 1


METERS = {
    "an object and an orphaned tail": b'{"zone":"red","compaction_count":9}\n "zone":"red"}',
    "NULs": b"\0" * 700,
    "NULs behind it": b'{"zone":"red","compaction_count":9}' + b"\0" * 300,
    "truncated": b'{"zone":"red","compaction_count":9',
    "empty": b"",
    "a list": b'[{"compaction_count":9}]',
}


@pytest.mark.parametrize("data", METERS.values(), ids=METERS.keys())
def test_a_corrupt_meter_counts_as_absent_and_heals(data: bytes, tmp_path: pathlib.Path) -> None:
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "meter.json").write_bytes(data)
    done = run("status", "--used-percentage", "60", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("earlier meter: ")
    assert meter(tmp_path) == json.loads(done.stdout)
    assert (meter(tmp_path)["zone"], meter(tmp_path)["compaction_count"]) == ("amber", 0)
    assert run("status", "--used-percentage", "60", cwd=tmp_path).stderr == ""


@pytest.mark.parametrize("value", ["abc", {"a": 1}, -1, True, [1], None, "9"])
@pytest.mark.parametrize("key", ["compaction_count", "externalize_age_turns", "budget", "window_tokens", "session_id"])
def test_a_field_of_another_type_is_not_inherited(key: str, value: object, tmp_path: pathlib.Path) -> None:
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "meter.json").write_text(json.dumps({"window_basis": "client", key: value}))
    found = status.refresh(str(tmp_path), Flags("60")).meter
    assert (found["zone"], found["compaction_count"], found["window_tokens"]) == ("amber", 0, 200_000)
    assert found["budget"]["ceiling_tokens"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--used-percentage", "null"], ""),
        (["--used-percentage", ""], ""),
        (["--used-percentage", "many"], "--used-percentage: found 'many', expected a number from 0 to 100"),
        (["--used-percentage", "140"], "--used-percentage: found '140', expected a number from 0 to 100"),
        (["--used-percentage", "nan"], "--used-percentage: found 'nan', expected a number from 0 to 100"),
        (["--window-tokens", "0"], "--window-tokens: found '0', expected a number from 1 to 1000000000000"),
        (["--tool-result-share", "2"], "--tool-result-share: found '2', expected a number from 0 to 1"),
        (["--transcript", "nowhere"], "transcript: no such file"),
        (["--transcript", "."], "transcript: no regular file"),
    ],
)
def test_what_a_script_passes_on_never_stops_a_session(
    arguments: list[str], complaint: str, tmp_path: pathlib.Path
) -> None:
    assert told(*arguments, cwd=tmp_path, complaint=complaint)["zone"] == "unknown"


def test_more_than_the_window_is_unknown_and_says_why(tmp_path: pathlib.Path) -> None:
    found = told("--transcript", COMPACTED, "--window-tokens", "100000", cwd=tmp_path)
    assert (found["zone"], found["estimate_source"], found["used_tokens_est"]) == ("unknown", "unknown", None)
    assert found["basis"] == "contradiction: 114,039 tokens used, 100,000 tokens in the window"


def test_without_anything_it_is_unknown(tmp_path: pathlib.Path) -> None:
    found = told(cwd=tmp_path)
    assert (found["zone"], found["utilization"], found["used_tokens_est"]) == ("unknown", None, None)
    assert found["estimate_source"] == "unknown"


def test_turns_are_counted_from_the_last_time_that_the_ledger_names(tmp_path: pathlib.Path) -> None:
    session = "d6f7e01b-1777-466c-8191-3ae41d66894a"
    prompts = sorted(
        record["timestamp"]
        for record in map(json.loads, pathlib.Path(COMPACTED).read_text().split("\n"))
        if record["type"] == "user" and isinstance(record["message"]["content"], str) and not record.get("isMeta")
    )
    assert told("--transcript", COMPACTED, cwd=tmp_path)["externalize_age_turns"] == 4
    ledger = tmp_path / STATE / "budget-ledger.jsonl"
    event = {"ts": prompts[-1][:19] + "Z", "session_id": session, "operation": "externalize"}
    ledger.write_text(json.dumps(event) + '\nno json\n{"session_id": 1}\n')
    assert told("--transcript", COMPACTED, cwd=tmp_path)["externalize_age_turns"] == 0
    for other in ({"session_id": "another"}, {"operation": "continue"}, {"ts": 7}):
        ledger.write_text(json.dumps(event | other) + "\n")
        assert told("--transcript", COMPACTED, cwd=tmp_path)["externalize_age_turns"] == 4
    ledger.unlink()
    os.mkfifo(ledger)
    done = run("status", "--transcript", COMPACTED, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "budget ledger: no regular file\n")
    assert json.loads(done.stdout)["externalize_age_turns"] == 4


def test_a_subagents_own_transcript_is_not_its_sessions(tmp_path: pathlib.Path) -> None:
    session = "9f58a95f-9277-4cbc-8587-a03d27999a18"
    told("--session-id", session, "--used-percentage", "92", cwd=tmp_path)
    path = tmp_path / "agent-a494c5c.jsonl"
    path.write_bytes((ROOT / "fixtures/transcripts/07_claude_subagent_sidechain.jsonl").read_bytes())
    assert told("--transcript", str(path), cwd=tmp_path)["session_id"] == session
    assert meter(tmp_path)["utilization"] == 0.92
    assert (tmp_path / STATE / "meter-a494c5c.json").exists()
    spent = json.loads(run("budget", "--json", cwd=tmp_path).stdout)
    assert "a494c5c" in json.dumps(spent)


def test_the_window_of_the_model_holds_for_the_session(tmp_path: pathlib.Path) -> None:
    first = told("--transcript", COMPACTED, cwd=tmp_path)
    again = told("--used-percentage", "30", cwd=tmp_path)
    assert (again["window_tokens"], again["window_basis"]) == (first["window_tokens"], first["window_basis"])


def test_a_line_without_an_end_is_bytes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "notes.txt").write_text("x" * 4000)
    found = told("--transcript", "notes.txt", cwd=tmp_path)
    assert (found["used_tokens_est"], found["estimate_source"]) == (1000, "transcript_heuristic")


def test_a_compaction_that_freed_nothing_or_went_past_the_cap_is_an_event(tmp_path: pathlib.Path) -> None:
    for count, percentage in enumerate(("80", "81", "40", "82")):
        told("--session-id", "s1", "--used-percentage", percentage, "--compaction-count", str(count), cwd=tmp_path)
    log = (tmp_path / STATE / "policy-log.jsonl").read_text().split("\n")[:-1]
    events = [(event["event"], event["compaction_count"]) for event in map(json.loads, log)]
    assert events == [("compaction_ineffective", 1), ("cap_exceeded", 3), ("compaction_ineffective", 3)]


def test_the_log_names_the_session_of_the_meter(tmp_path: pathlib.Path) -> None:
    told("--session-id", "s1", "--used-percentage", "80", cwd=tmp_path)
    run("policy", cwd=tmp_path)
    line = json.loads((tmp_path / STATE / "policy-log.jsonl").read_text())
    assert (line["session_id"], line["sequence"]) == ("s1", 1)


def test_a_clock_that_went_back_changes_nothing(tmp_path: pathlib.Path) -> None:
    told("--used-percentage", "80", "--compaction-count", "1", cwd=tmp_path)
    path = tmp_path / STATE / "meter.json"
    path.write_text(json.dumps({**meter(tmp_path), "updated_at": "2999-01-01T00:00:00Z"}))
    os.utime(path, (32_000_000_000, 32_000_000_000))
    found = told("--transcript", COMPACTED, cwd=tmp_path)
    assert found["updated_at"] < "2999"
    for reading in (tmp_path / STATE).glob("reading-*"):
        os.utime(reading, (32_000_000_000, 32_000_000_000))
    assert told("--transcript", COMPACTED, cwd=tmp_path)["used_tokens_est"] == found["used_tokens_est"]


def test_a_project_that_does_not_load_is_one_line_and_no_zone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.9}, compaction_depth_cap: 9}\n")
    done = run("status", "--used-percentage", "95", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["zone"], found["utilization"]) == (0, "unknown", 0.95)
    assert done.stderr.count("\n") == 1
    assert "ECM401" in done.stderr
    assert run("status", "--used-percentage", "95", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("kind", ["a file", "a link"])
def test_a_meter_that_cannot_be_written_is_said(kind: str, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "a file":
        (tmp_path / ".eidolons").write_text("")
    else:
        (tmp_path / ".eidolons").symlink_to(elsewhere)
    done = run("status", "--used-percentage", "80", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "not written: " in done.stderr
    assert "not written" in done.stdout
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["stray"], ["--transcript"]])
def test_bad_usage_exits_2(arguments: list[str], tmp_path: pathlib.Path) -> None:
    done = run("status", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
