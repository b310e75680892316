"""The policy log: a number a line, and every line decides itself anew to the same bytes."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ecm_rules import Policy, load_table
from ecm_rules.engine import program as engine
from ecm_rules.kernel import audit, meter
from ecm_rules.kernel.policy import evaluate
from tests.commands import run
from tests.conftest import FIXTURES

NOW = "2026-07-07T00:00:00Z"


def lines(project: pathlib.Path) -> list[bytes]:
    return (project / audit.LOG).read_bytes().split(b"\n")[:-1]


def logged(project: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(project)]


def record(project: pathlib.Path, policy: Policy, snapshot: Any, role: str = "orchestrator", **who: Any) -> None:
    told = audit.answer(policy.program, policy.decide(snapshot, role).to_dict(), snapshot)
    audit.record(str(project), {}, told, who.get("session", "s1"), who.get("now", NOW), who.get("agent"))


def test_a_line_has_who_asked_and_all_that_was_seen(tmp_path: pathlib.Path, policy: Policy) -> None:
    record(tmp_path, policy, {"zone": "red", "compaction_count": "2"}, "subagent", agent="a1")
    (line,) = logged(tmp_path)
    assert (line["session_id"], line["sequence"], line["agent_id"], line["role"]) == ("s1", 1, "a1", "subagent")
    assert line["evaluated_at"] == NOW
    assert line["missing"] == [
        "compaction_count", "tool_result_share", "ceiling", "spent", "budget_ceiling_set", "budget_spent_gte_ceiling"
    ]  # fmt: skip
    assert line["signals"]["compaction_count"] == 0
    assert [d["path"] for d in line["degraded"]] == ["compaction_count"]
    assert line["digest"] == policy.digest


ODD: list[Any] = [
    None, True, -1, 0, 2, 2.0, 0.5, 0.4, -0.0, 5e-324, 1e308, 10**300, 1 / 3, "amber", "red", "Red", [], {}, [1], {"a": 1},
    "x" * 100, "\ud800", "é",
]  # fmt: skip


def meters() -> Iterator[Any]:
    """Ever other meters: right, odd, faulty, half there, or not there at all."""
    chance = random.Random(7)
    zones = ["green", "amber", "red", "critical", "unknown"]
    yield from (None, [], 3, "meter", {}, engine.Unreadable("found nothing, expected one JSON object"))
    while True:
        whole: dict[str, Any] = {
            "zone": chance.choice(zones),
            "utilization": chance.choice([None, chance.random(), 0.5, 1, "0.5"]),
            "compaction_count": chance.randrange(4),
            "tool_result_share_est": chance.random(),
            "budget": {"ceiling_tokens": chance.choice([None, 0, 500]), "spent_tokens_est": chance.randrange(1000)},
        }
        for key in chance.sample(list(whole), chance.randrange(3)):
            if chance.random() < 0.5:
                del whole[key]
            else:
                whole[key] = chance.choice(ODD)
        if isinstance(whole.get("budget"), dict) and chance.random() < 0.3:
            whole["budget"]["spent_tokens_est"] = chance.choice(ODD)
        yield whole


def test_a_log_of_ten_thousand_lines_replays_to_the_same_bytes(tmp_path: pathlib.Path, policy: Policy) -> None:
    given = meters()
    for n in range(10_000):
        role = engine.role_of(n % 3 == 0)
        record(tmp_path, policy, next(given), role, session=f"s{n % 7}", agent="a" if n % 3 == 0 else None)
    written = lines(tmp_path)
    assert len(written) == 10_000
    reloaded = engine.loads(engine.dumps(policy.program))
    assert [audit.replay(reloaded, line) for line in written] == written
    told = [json.loads(line) for line in written]
    assert {t["rule"] for t in told} == {"P1", "P2", "P3", "P4", "P5", "P6", "P7"}
    assert any(t["degraded"] for t in told)
    assert all([t["sequence"] for t in told if t["session_id"] == f"s{n}"][-1] == len(told[n::7]) for n in range(7))


def test_what_the_verb_and_the_hook_log_replays(project: pathlib.Path, policy: Policy) -> None:
    hostile = [json.loads(line) for line in (FIXTURES / "policy/hostile.jsonl").read_text().split("\n") if line]
    for n, vector in enumerate(v for v in hostile if "raw" in v):
        raw = vector["raw"].encode("utf-8", "surrogatepass")
        evaluate(str(project), snapshot=raw, session=None if n % 2 else "s", subagent=vector["subagent"])
    payload = (FIXTURES / "hosts/claude-code/statusline.after-turn.json").read_bytes()
    assert run("claude-code", cwd=project, stdin=payload, script="ecm-hook").returncode == 0
    written = lines(project)
    assert len(written) > 50
    assert [audit.replay(policy.program, line) for line in written] == written


def test_a_line_without_a_table_replays(tmp_path: pathlib.Path) -> None:
    for subagent in (False, True):
        evaluate(str(tmp_path), snapshot=b"{}", policy="nowhere.yaml", subagent=subagent)
    written = lines(tmp_path)
    assert [audit.replay(None, line) for line in written] == written
    assert [json.loads(line)["role"] for line in written] == ["orchestrator", "subagent"]


def test_another_table_with_expressions_of_the_library_replays(tmp_path: pathlib.Path) -> None:
    lateral = load_table("lateral-signals", project=None)
    for snapshot in (None, {}, {"failures_on_step": 3}, {"failures_on_step": "3"}, {"independent_subtask": True}):
        record(tmp_path, lateral, snapshot)
    written = lines(tmp_path)
    assert [audit.replay(lateral.program, line) for line in written] == written


def test_a_verdict_that_was_changed_does_not_replay_to_its_bytes(tmp_path: pathlib.Path, policy: Policy) -> None:
    record(tmp_path, policy, {"zone": "red", "compaction_count": 2, "budget": {"ceiling_tokens": 5}})
    (line,) = lines(tmp_path)
    entry = json.loads(line)
    changes: list[dict[str, Any]] = [
        {"rule": "P3"}, {"operation": "compact"}, {"raw_operation": "continue"}, {"steps": []}, {"zone": "green"},
        {"signals": {**entry["signals"], "budget_spent_gte_ceiling": True}},
        {"subagent": True}, {"role": "subagent"},
    ]  # fmt: skip
    for change in changes:
        changed = json.dumps({**entry, **change}, separators=(",", ":")).encode()
        assert changed != line
        assert audit.replay(policy.program, changed) != changed, change


@pytest.mark.parametrize(
    "change", [{"digest": "0" * 64}, {"digest": None}, {"signals": {}}, {"signals": None}, {"missing": 3}, {"role": "x"}, {"degraded": [3]}]
)  # fmt: skip
def test_what_is_no_line_of_this_table_is_refused(
    change: dict[str, Any], tmp_path: pathlib.Path, policy: Policy
) -> None:
    record(tmp_path, policy, {"zone": "red"})
    entry = {**logged(tmp_path)[0], **change}
    with pytest.raises(ValueError):  # noqa: PT011  the engine's own refusals are among them
        audit.replay(policy.program, json.dumps(entry).encode())


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b"null", b"{}", b'{"event": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_verdict_is_refused(line: bytes, policy: Policy) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  json's own errors are among them
        audit.replay(policy.program, line)


def test_numbers_rise_within_a_session_whatever_the_clock_does(tmp_path: pathlib.Path, policy: Policy) -> None:
    for year in (2026, 2025, 2001, 1970, 2027):
        for session in ("s1", "s2", None, "s"):
            record(tmp_path, policy, None, session=session, now=f"{year}-01-01T00:00:00Z")
    for session in ("s1", "s2", None, "s"):
        assert [x["sequence"] for x in logged(tmp_path) if x["session_id"] == session] == [1, 2, 3, 4, 5]


def test_numbers_go_on_behind_foreign_old_and_torn_lines(tmp_path: pathlib.Path, policy: Policy) -> None:
    record(tmp_path, policy, None)
    path = tmp_path / audit.LOG
    (first,) = lines(tmp_path)
    old = json.dumps({k: v for k, v in json.loads(first).items() if k not in ("sequence", "agent_id", "role")})
    again = first.replace(b'"sequence":1,', b'"sequence":12345,')
    for more in (
        old.encode() + b"\n",
        b"\0" * 300,
        b'{"session_id":"s1","sequence":77',
        b'"session_id":"s1","sequence":x,',
    ):
        path.write_bytes(first + b"\n" + again + b"\n" + more)
        record(tmp_path, policy, None)
        assert json.loads(lines(tmp_path)[-1])["sequence"] == 12346


@pytest.mark.parametrize("filler", [0, 10, 60_000, 65_400, 65_536, 196_400, 1_000_000])
def test_a_session_that_comes_back_goes_on(filler: int, tmp_path: pathlib.Path, policy: Policy) -> None:
    for back in range(0, 120, 3):  # the mark at every place of a chunk's end
        (tmp_path / audit.LOG).unlink(missing_ok=True)
        record(tmp_path, policy, None)
        with open(tmp_path / audit.LOG, "ab") as stream:
            stream.write(b"x" * (filler + back) + b"\n")
        record(tmp_path, policy, None)
        record(tmp_path, policy, None, session="s11")
        assert [json.loads(line)["sequence"] for line in lines(tmp_path)[-2:]] == [2, 1]


CROWD = """
import sys
from ecm_rules.kernel import audit, files
files.PATIENCE = 60  # on a busy machine a lock may well take longer than a prompt would wait
for n in range(int(sys.argv[3])):
    audit.record(sys.argv[1], {}, audit.no_table(False), sys.argv[2], "2026-07-07T00:00:00Z")
"""


def test_many_processes_of_one_session_get_a_number_each(tmp_path: pathlib.Path) -> None:
    crowd = [subprocess.Popen([sys.executable, "-c", CROWD, str(tmp_path), "s1", "25"]) for _ in range(8)]
    assert [process.wait() for process in crowd] == [0] * 8
    assert [x["sequence"] for x in logged(tmp_path)] == list(range(1, 201))


def test_while_the_lock_is_held_for_ever_no_line_is_lost_and_every_number_is_one_of_them(
    tmp_path: pathlib.Path,
) -> None:
    audit.record(str(tmp_path), {}, audit.no_table(False), "s1", NOW)
    holder = (
        "import os, sys; h = os.open(sys.argv[1], os.O_RDWR); os.lockf(h, os.F_LOCK, 0); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / audit.LOG)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for _ in range(3):
                pool.submit(audit.record, str(tmp_path), {}, audit.no_table(False), "s1", NOW)
        process.kill()
    numbers = [x["sequence"] for x in logged(tmp_path)]
    assert len(numbers) == 4
    assert set(numbers) <= {1, 2, 3, 4}


def test_an_id_of_a_megabyte_becomes_a_short_one(tmp_path: pathlib.Path, policy: Policy) -> None:
    for _ in range(2):
        record(tmp_path, policy, meter.parse(b"{}"), session="s" * 1_000_000, agent="a" * 1_000_000)
    assert [x["sequence"] for x in logged(tmp_path)] == [1, 2]
    assert (tmp_path / audit.LOG).stat().st_size < 4000


def test_an_event_between_verdicts_is_no_verdict_and_takes_no_number(tmp_path: pathlib.Path, policy: Policy) -> None:
    record(tmp_path, policy, {"zone": "red"})
    audit.event(str(tmp_path), {}, {"event": "operation", "evaluated_at": NOW, "session_id": "s1", "agent_id": None})
    record(tmp_path, policy, {"zone": "red"})
    assert [line.get("sequence") for line in logged(tmp_path)] == [1, None, 2]
    assert all(audit.replay(policy.program, line) == line for line in lines(tmp_path))
    assert [engine.is_event(line) for line in logged(tmp_path)] == [False, True, False]
    odd: list[Any] = [None, [], {}, {"event": 1}, {"event": "x", "raw_operation": "continue"}]
    for each in odd:
        assert not engine.is_event(each)
