"""What compactions came to: judged by the meters around a boundary, and always counted. RULINGS ECM 7 and 12."""

from __future__ import annotations

import itertools
import os
import pathlib
from typing import Any

import pytest

from ecm_rules import Policy
from ecm_rules.kernel import audit, compactions
from tests.kernel.state import NOW, STATE, lines


def meter(used: int | None, count: int, source: str = "host", session: str = "s1") -> dict[str, Any]:
    return {
        "session_id": session, "used_tokens_est": used, "utilization": None if used is None else used / 1000,
        "estimate_source": source if used is not None else "unknown", "compaction_count": count, "updated_at": NOW,
        "zone": "unknown" if used is None else "critical" if used >= 900 else "red",
    }  # fmt: skip


def seen(project: pathlib.Path, *meters: dict[str, Any], cap: int = 2) -> list[str]:
    """The events of a session's meters, one after the other."""
    told = []
    for before, after in itertools.pairwise(meters):
        told += compactions.observe(str(project), {}, cap, before, after)
    if told:
        assert lines(project, "policy-log.jsonl") == told
    return [event["event"] for event in told]


def test_one_that_freed_something_is_no_event(tmp_path: pathlib.Path) -> None:
    assert seen(tmp_path, meter(950, 0), meter(400, 1), meter(960, 1)) == []
    assert not (tmp_path / STATE).exists() or os.listdir(tmp_path / STATE) == []


@pytest.mark.parametrize("after", [950, 951, 1000])
def test_one_that_freed_nothing_is(after: int, tmp_path: pathlib.Path) -> None:
    assert seen(tmp_path, meter(950, 0), meter(after, 1), meter(after, 1)) == ["compaction_ineffective"]
    (event,) = lines(tmp_path, "policy-log.jsonl")
    assert [event[k] for k in ("used_tokens_est_before", "used_tokens_est", "compaction_count", "session_id")] == [
        950, after, 1, "s1"
    ]  # fmt: skip
    assert os.listdir(tmp_path / STATE) == ["policy-log.jsonl"]


def test_where_nobody_knows_just_after_it_is_judged_later(tmp_path: pathlib.Path) -> None:
    states = meter(950, 0), meter(None, 1), meter(None, 1), meter(960, 1), meter(970, 1)
    assert seen(tmp_path, *states) == ["compaction_ineffective"]
    assert os.listdir(tmp_path / STATE) == ["policy-log.jsonl"]
    assert seen(tmp_path, meter(970, 1), meter(None, 2), meter(300, 2)) == []


def test_readings_of_two_sources_are_not_compared(tmp_path: pathlib.Path) -> None:
    states = meter(950, 0), meter(980, 1, "transcript_heuristic"), meter(500, 1)
    assert seen(tmp_path, *states) == []
    assert compactions.freed(meter(950, 0), meter(980, 1, "transcript_heuristic")) is None
    assert compactions.freed({"estimate_source": "host", "utilization": 0.9}, meter(100, 1)) is True


def test_other_sessions_and_odd_meters_are_no_boundary(tmp_path: pathlib.Path) -> None:
    assert seen(tmp_path, meter(950, 0), meter(960, 1, session="s2")) == []
    assert compactions.observe(str(tmp_path), {}, 2, {}, {}) == []
    assert compactions.observe(str(tmp_path), {}, 2, {"compaction_count": "x"}, {"compaction_count": "y"}) == []


def test_past_the_cap_one_is_logged_and_not_blocked(tmp_path: pathlib.Path) -> None:
    states = [meter(950 if n % 2 else 940, n) for n in range(4)]
    told = seen(tmp_path, *states)
    assert told.count("cap_exceeded") == 1
    assert told == ["compaction_ineffective", "cap_exceeded", "compaction_ineffective"]


def test_a_loop_that_frees_nothing_ends_at_the_depth_cap(tmp_path: pathlib.Path, policy: Policy) -> None:
    states = [{**meter(800, n), "zone": "red"} for n in range(3)]
    assert seen(tmp_path, *states) == ["compaction_ineffective"] * 2
    assert [policy.decide(state).operation for state in states] == ["compact", "compact", "handoff_fresh"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"session_id": "other"}', b"\xff\0"])
def test_what_was_kept_and_cannot_be_read_is_done_without(data: bytes, tmp_path: pathlib.Path) -> None:
    compactions.observe(str(tmp_path), {}, 2, meter(950, 0), meter(None, 1))
    (kept,) = (tmp_path / STATE).iterdir()
    kept.write_bytes(data)
    assert seen(tmp_path, meter(None, 1), meter(960, 1)) == []
    assert seen(tmp_path, meter(960, 1), meter(970, 2)) == ["compaction_ineffective"]


def test_an_event_is_read_by_no_one_as_a_verdict(tmp_path: pathlib.Path, policy: Policy) -> None:
    seen(tmp_path, meter(950, 0), meter(960, 1))
    line = (tmp_path / audit.LOG).read_bytes().rstrip()
    assert audit.replay(policy.program, line) == line
    assert audit.replay(None, line) == line
