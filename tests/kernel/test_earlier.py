"""An earlier reading stands while it is still the truth, of the same session and for a time; else nobody knows."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import pytest

from ecm_rules import Policy
from ecm_rules.hosts import hook
from ecm_rules.kernel import ladder, payloads, status, transcripts
from ecm_rules.kernel.payloads import Told
from ecm_rules.kernel.status import Flags
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES
from tests.kernel.state import STATE

KNOWN = load_hosts()
MOST = 1800


def ago(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


def before(**more: Any) -> dict[str, Any]:
    return {
        "session_id": "s1", "utilization": 0.8, "used_tokens_est": 160_000, "window_tokens": 200_000,
        "window_basis": "client", "estimate_source": "host", "compaction_count": 1, "updated_at": ago(5), **more,
    }  # fmt: skip


def told(**more: Any) -> Told:
    found = Told()
    found.session = "s1"
    for name, value in more.items():
        setattr(found, name, value)
    return found


def read(policy: Policy, meter: dict[str, Any], said: Told) -> dict[str, Any]:
    return ladder.measure({**KNOWN, "program": policy.program}, said, None, meter)


def test_between_two_readings_the_window_is_what_it_was(policy: Policy) -> None:
    made = read(policy, before(), told())
    assert (made["utilization"], made["zone"], made["basis"]) == (0.8, "red", "earlier reading")
    made = read(policy, before(utilization=None, window_tokens=None), told(window=200_000, window_basis="client"))
    assert (made["utilization"], made["basis"]) == (0.8, "earlier reading")
    made = read(policy, before(estimate_source="transcript_heuristic"), told())
    assert made["estimate_source"] == "transcript_heuristic"


def test_it_ages_from_when_it_was_taken_however_often_it_is_taken_over(policy: Policy) -> None:
    taken = ago(MOST - 60)
    meter = before(updated_at=taken)
    for _ in range(3):
        meter = read(policy, meter, told())
        assert (meter["basis"], meter["read_at"]) == ("earlier reading", taken)
        assert meter["updated_at"] > taken
    made = read(policy, {**meter, "read_at": ago(MOST + 60)}, told())
    assert (made["utilization"], made["used_tokens_est"], made["zone"], made["read_at"]) == (
        None,
        None,
        "unknown",
        None,
    )
    assert (made["basis"], made["estimate_source"]) == (
        "no reading; the earlier one is over 1800 seconds old", "unknown"
    )  # fmt: skip
    assert read(policy, made, told())["basis"] == "no reading"


VOID: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "of another session": ({"session_id": "s2"}, {}, "nobody says whose the earlier one is"),
    "of nobody's": ({"session_id": None}, {"session": None}, "nobody says whose the earlier one is"),
    "the client has none": ({}, {"about": True}, "the client itself has none now"),
    "a compaction that counts": ({}, {"compacted": True, "emptied": True}, "a compaction came after the earlier one"),
    "a compaction that is counted elsewhere": ({}, {"emptied": True}, "a compaction came after the earlier one"),
    "something that could not be read": ({}, {"unread": True}, "what has happened since could not be read"),
    "without a time": ({"updated_at": None}, {}, "nobody knows when the earlier one was"),
    "of a time that is none": ({"updated_at": "yesterday"}, {}, "nobody knows when the earlier one was"),
    "of a number": ({"read_at": 5}, {}, "nobody knows when the earlier one was"),
    "of the future": ({"read_at": ago(-3600)}, {}, "nobody knows when the earlier one was"),
    "of another window": (
        {"used_tokens_est": None}, {"window": 1e6, "window_basis": "client"}, "the earlier one was of another window",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("meter", "said", "why"), VOID.values(), ids=VOID.keys())
def test_otherwise_nobody_knows_and_it_is_said_why(
    meter: dict[str, Any], said: dict[str, Any], why: str, policy: Policy
) -> None:
    made = read(policy, before(**meter), told(**said))
    assert (made["utilization"], made["used_tokens_est"], made["zone"]) == (None, None, "unknown")
    assert made["basis"] == f"no reading; {why}"


def test_of_a_larger_window_the_same_tokens_are_a_smaller_part(policy: Policy) -> None:
    made = read(policy, before(), told(window=1_000_000, window_basis="client"))
    assert (made["utilization"], made["used_tokens_est"], made["zone"]) == (0.16, 160_000, "green")


def test_a_boundary_near_the_end_of_a_huge_transcript_voids_it(policy: Policy, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "huge.jsonl"
    filler = json.dumps({"type": "user", "sessionId": "s1", "message": {"content": "x" * 10_000}}) + "\n"
    boundary = json.dumps({"type": "system", "sessionId": "s1", "subtype": "compact_boundary"}) + "\n"
    for text, basis in (
        (filler * 9, "earlier reading"),
        (filler * 8 + boundary, "no usage record near the end; a compaction came after the earlier one"),
    ):
        path.write_text(text)
        tally = transcripts.read(str(path), KNOWN, 30_000)
        assert tally.partial
        assert ladder.measure({**KNOWN, "program": policy.program}, told(), tally, before())["basis"] == basis


def test_the_session_that_begins_anew_after_a_compaction_has_no_reading() -> None:
    for host in ("claude-code", "codex"):
        given = json.loads((FIXTURES / f"hosts/{host}/SessionStart.compact.json").read_text())
        said = payloads.read(KNOWN["hosts"][host], given)
        assert (said.emptied, said.compacted) == (True, False)
        given = json.loads((FIXTURES / f"hosts/{host}/SessionStart.startup.json").read_text())
        assert payloads.read(KNOWN["hosts"][host], given).emptied is False


@pytest.mark.parametrize("payload", [b"{", b"", b"[]", b'{"hello": 1}', b'{"session_id": 5}'])
def test_a_payload_that_cannot_be_read_leaves_the_count_and_no_reading(payload: bytes, project: pathlib.Path) -> None:
    status.refresh(str(project), Flags("80", session="s1", compaction_count="2", budget_ceiling="900"))
    made = status.refresh(str(project), Flags(), payload).meter
    assert (made["session_id"], made["utilization"], made["zone"]) == ("s1", None, "unknown")
    assert (made["compaction_count"], made["budget"]["ceiling_tokens"]) == (2, 900)


def test_what_the_verb_is_told_of_a_compaction_voids_it_too(project: pathlib.Path) -> None:
    status.refresh(str(project), Flags("80", session="s1", compaction_count="2"))
    made = status.refresh(str(project), Flags(session="s1", compaction_count="2")).meter
    assert (made["zone"], made["basis"]) == ("red", "earlier reading")
    made = status.refresh(str(project), Flags(session="s1", compaction_count="3")).meter
    assert (made["zone"], made["compaction_count"]) == ("unknown", 3)
    status.refresh(str(project), Flags("80"))  # of a session that nobody names
    (project / STATE / "meter.json").write_text(json.dumps(before(session_id=None)))
    assert status.refresh(str(project), Flags()).meter["zone"] == "unknown"


def test_a_hook_says_unknown_when_the_reading_has_aged(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def send(name: str, **more: Any) -> dict[str, Any]:
        given = {**json.loads((FIXTURES / f"hosts/claude-code/{name}.json").read_text()), "session_id": "s1", **more}
        hook.handle("claude-code", json.dumps(given).encode(), str(project))
        made: dict[str, Any] = json.loads((project / STATE / "meter.json").read_text())
        return made

    window = {"used_percentage": 80, "context_window_size": 200_000}
    send("statusline.after-turn", context_window=window)
    assert send("UserPromptSubmit")["zone"] == "red"
    later = time.time() + MOST + 5
    monkeypatch.setattr(time, "time", lambda: later)
    assert send("UserPromptSubmit")["zone"] == "unknown"
