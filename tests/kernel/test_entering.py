"""Entering, not being: an operation with effects runs once on entering the state that demands it. RULINGS ECM 8, 15."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules import Policy
from ecm_rules.kernel import entering, files, playbook
from tests.kernel.state import STATE


def verdict(policy: Policy, zone: str, count: int = 0, share: float = 0, spent: int = 0) -> dict[str, Any]:
    budget = {"ceiling_tokens": 100, "spent_tokens_est": spent}
    meter = {"zone": zone, "compaction_count": count, "tool_result_share_est": share, "budget": budget}
    return policy.decide(meter).to_dict()


def enter(project: pathlib.Path, policy: Policy, told: dict[str, Any], outcome: str = "done", **who: Any) -> bool:
    """Whether an operation is to be carried out; then this is what comes of it."""
    entry = entering.begin(str(project), {}, who.get("session", "s1"), who.get("agent"))
    try:
        entry.decide(playbook.of(policy.table), told)
        if entry.entered:
            entry.close(outcome, who.get("handed_out", False))
        return entry.entered
    finally:
        entry.close()


def walk(project: pathlib.Path, policy: Policy, *states: tuple[Any, ...]) -> list[bool]:
    return [enter(project, policy, verdict(policy, *state)) for state in states]


def test_an_operation_runs_on_entering_a_zone_and_not_for_being_there(tmp_path: pathlib.Path, policy: Policy) -> None:
    told = walk(tmp_path, policy, ("green",), ("amber",), ("amber",), ("red",), ("red",), ("green",), ("amber",))
    assert told == [False, True, False, True, False, False, True]


def test_within_a_zone_only_a_more_severe_row_runs_again(tmp_path: pathlib.Path, policy: Policy) -> None:
    told = walk(
        tmp_path, policy, ("amber", 0, 0.5), ("amber",), ("amber", 0, 0.5), ("green",), ("amber",), ("amber", 0, 0.5)
    )
    assert told == [True, False, False, False, True, True]


def test_a_new_boundary_is_a_new_state_and_a_count_that_reads_lower_is_none(
    tmp_path: pathlib.Path, policy: Policy
) -> None:
    told = walk(tmp_path, policy, ("red", 0), ("red", 1), ("red", 1), ("red", 0), ("red", 1), ("red", 2))
    assert told == [True, True, False, False, False, True]


def test_not_to_know_is_not_to_leave(tmp_path: pathlib.Path, policy: Policy) -> None:
    assert walk(tmp_path, policy, ("amber",), ("unknown",), ("amber",)) == [True, False, False]


def test_a_budget_that_is_spent_is_one_state_in_every_zone(tmp_path: pathlib.Path, policy: Policy) -> None:
    over = [
        (zone, count, 0, 100) for zone, count in (("amber", 0), ("red", 0), ("red", 1), ("green", 1), ("unknown", 1))
    ]
    assert walk(tmp_path, policy, *over) == [True, False, False, False, False]
    # The ceiling was raised, and is met again.
    assert walk(tmp_path, policy, ("green", 1, 0, 50), over[0]) == [False, True]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["green", "amber", "red", "critical", "unknown"]),
            st.integers(0, 3),
            st.sampled_from([0.0, 0.5]),
            st.sampled_from([0, 100]),
        ),
        max_size=12,
    )
)
def test_the_same_state_twice_runs_nothing(policy: Policy, states: list[tuple[Any, ...]]) -> None:
    book = playbook.of(policy.table)
    state: dict[str, Any] = {"zoned": {}, "lasting": {}}
    for each in states:
        told = verdict(policy, *each)
        slot, entered = entering.judge(state, book, told)
        assert not (entered and not told["steps"])
        if entered:
            slot["outcome"], slot["attempts"] = "done", 1
        assert not entering.judge(state, book, told)[1]
        json.dumps(state)


@pytest.mark.parametrize(("outcome", "handed_out", "runs"), [
    ("failed", False, 3), ("begun", False, 3), ("failed", True, 1), ("degraded", False, 1), ("host", True, 1), ("done", False, 1),
])  # fmt: skip
def test_what_failed_is_tried_again_but_not_for_ever(
    outcome: str, handed_out: bool, runs: int, tmp_path: pathlib.Path, policy: Policy
) -> None:
    red = verdict(policy, "red")
    told = [enter(tmp_path, policy, red, outcome, handed_out=handed_out) for _ in range(6)]
    assert told == [True] * runs + [False] * (6 - runs)
    assert enter(tmp_path, policy, verdict(policy, "critical"))


def test_sessions_and_subagents_enter_by_themselves(tmp_path: pathlib.Path, policy: Policy) -> None:
    who: list[dict[str, Any]] = [
        {"session": s, "agent": a}
        for s, a in (("s1", None), ("s1", "a1"), ("s2", None), (None, None), ("../../x", None), ("s1/a1", None))
    ]
    amber = verdict(policy, "amber")
    assert [enter(tmp_path, policy, amber, **each) for each in who] == [True] * 5 + [True]
    assert [enter(tmp_path, policy, amber, **each) for each in who[:5]] == [False] * 4 + [False]
    assert sorted(os.listdir(tmp_path)) == [".eidolons"]
    assert all(name.startswith("entered") for name in os.listdir(tmp_path / STATE))


CORRUPT = [
    b"", b"{", b"[]", b"null", b"\0" * 300, b"\xff", b'{"format": 1}', b'{"format":1,"session_id":"s1","agent_id":null,"zoned":[],"lasting":{}}',
    b'{"format":1,"session_id":"s1","agent_id":null,"zoned":{"zone":"amber"},"lasting":{}}', b"[" * 100_000,
    b'{"format":1,"session_id":"other","agent_id":null,"zoned":{},"lasting":{}}',
]  # fmt: skip


@pytest.mark.parametrize("data", CORRUPT)
def test_a_state_that_is_corrupt_is_a_new_one(data: bytes, tmp_path: pathlib.Path, policy: Policy) -> None:
    path = pathlib.Path(files.state_path(str(tmp_path), entering.file_of({}, "s1", None)))
    path.write_bytes(data)
    assert walk(tmp_path, policy, ("amber",), ("amber",)) == [True, False]
    assert json.loads(path.read_bytes())["zoned"]["zone"] == "amber"


@pytest.mark.parametrize("suffix", [".json", ".lock"])
def test_a_link_at_a_state_path_is_refused(suffix: str, tmp_path: pathlib.Path, policy: Policy) -> None:
    path = pathlib.Path(files.state_path(str(tmp_path), entering.file_of({}, "s1", None))).with_suffix(suffix)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    for _ in range(2):  # and the lock is given back
        with pytest.raises(OSError, match="symbolic link"):
            walk(tmp_path, policy, ("amber",))
    assert victim.read_text() == "precious"


AT_ONCE = """
import json, sys, time
from ecm_rules.kernel import entering
project, book, verdict = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
try:
    entry = entering.begin(project, {}, "s1", None, 30)
except entering.Busy:
    sys.exit()
entry.decide(book, verdict)
if entry.entered:
    time.sleep(0.05)
    print("ran")
entry.close("done" if entry.entered else None)
"""


def test_of_many_processes_at_once_one_enters(tmp_path: pathlib.Path, policy: Policy) -> None:
    given = [str(tmp_path), json.dumps(playbook.of(policy.table)), json.dumps(verdict(policy, "red"))]
    running = [subprocess.Popen([sys.executable, "-c", AT_ONCE, *given], stdout=subprocess.PIPE) for _ in range(12)]
    assert sorted(process.communicate()[0] for process in running) == [b""] * 11 + [b"ran\n"]
    assert [process.returncode for process in running] == [0] * 12


def test_of_many_threads_at_once_one_enters(tmp_path: pathlib.Path, policy: Policy) -> None:
    entry = entering.begin(str(tmp_path), {}, "s1", None)
    entry.decide(playbook.of(policy.table), verdict(policy, "red"))
    said = []

    def other() -> None:
        try:
            entering.begin(str(tmp_path), {}, "s1", None, 0.01)
        except entering.Busy:
            said.append("busy")

    threads = [threading.Thread(target=other) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["busy"] * 4
    entry.close("done")
    assert walk(tmp_path, policy, ("red",)) == [False]


def test_who_was_killed_holds_up_nobody(tmp_path: pathlib.Path, policy: Policy) -> None:
    given = [str(tmp_path), json.dumps(playbook.of(policy.table)), json.dumps(verdict(policy, "red"))]
    code = AT_ONCE.replace("time.sleep(0.05)", "print('begun', flush=True); time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-c", code, *given], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    with pytest.raises(entering.Busy):
        entering.begin(str(tmp_path), {}, "s1", None, 0)
    process.kill()
    process.communicate()
    assert walk(tmp_path, policy, ("red",), ("red",)) == [True, False]
