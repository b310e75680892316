"""What clients send: each recorded payload is known by its keys, and says of the window what it says."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import Policy
from ecm_rules.kernel import ladder, meter, payloads
from ecm_rules.kernel.payloads import Told
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "hosts"
KNOWN = load_hosts()
HOSTS = KNOWN["hosts"]
RECORDED = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/**/*.json"))


def payload(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def told(name: str, **more: object) -> Told:
    return payloads.read(HOSTS[name.partition("/")[0]], {**payload(name), **more})


def measured(policy: Policy, said: Told, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return ladder.measure({**KNOWN, "program": policy.program}, said, None, before)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_payload_is_known_by_its_keys(name: str) -> None:
    assert payloads.recognise(HOSTS, payload(name)) == name.partition("/")[0]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"hello": 1},
        {"event": "x"},
        {"cwd": "/"},
        {"type": "user"},
    ],
)
def test_what_no_client_sends_is_known_as_nobodys(given: dict[str, Any]) -> None:
    assert payloads.recognise(HOSTS, given) is None


@pytest.mark.parametrize(
    "given",
    [
        {"context_window": {"used_percentage": 42}},
        {"session_id": "s", "transcript_path": "t"},
        {"session_id": "s", "hook_event_name": "UserPromptSubmit", "transcript_path": "t", "permission_mode": "plan"},
        {"session_id": "s", "hook_event_name": "SessionEnd", "transcript_path": "/x/s.jsonl", "reason": "clear"},
    ],
)
def test_what_the_nexus_takes_and_older_versions_sent_is_claude_codes(given: dict[str, Any]) -> None:
    assert payloads.recognise(HOSTS, given) == "claude-code"


READINGS = {
    "claude-code/statusline.after-turn.json": (150_000, 15, 1_000_000),
    "claude-code/statusline.start.json": (None, None, 1_000_000),
    "claude-code/statusline.after-compact.json": (None, None, 1_000_000),
    "claude-code/UserPromptSubmit.json": (None, None, None),
    "codex/PostModelRequest.json": (1200, None, None),
    "codex/PostModelRequest.compaction.json": (None, None, None),
    "codex/PostToolUse.json": (None, None, None),
    "gemini-cli/AfterModel.text.json": (None, None, None),
    "copilot/agentStop.json": (None, None, None),
    "opencode/event.message.updated.assistant.json": (1240, None, None),
    "opencode/event.message.updated.summary.json": (None, None, None),
    "opencode/chat.params.json": (None, None, 200_000),
    "opencode/chat.params.title-agent.json": (None, None, None),
    "pi/context.json": (1361, 0.6805, 200_000),
    "pi/turn_start.json": (None, None, 200_000),
    "pi/context.after-compaction.json": (None, None, 200_000),
}


@pytest.mark.parametrize(("name", "reading"), READINGS.items())
def test_what_a_payload_says_of_the_window(name: str, reading: tuple[float | None, ...]) -> None:
    said = told(name)
    assert (said.used, said.used_percentage, said.window) == reading


@pytest.mark.parametrize(
    ("name", "session", "agent"),
    [
        ("claude-code/PostToolUse.in-subagent.json", "d0399770-c8cb-4c99-b561-90ed7db7337b", "ab3a794d614668627"),
        (
            "codex/PostToolUse.in-subagent.json",
            "01a22d05-13e4-7a11-9453-1ca377838be2",
            "01a22d05-1615-7a11-aa93-79644ec5d591",
        ),
        (
            "copilot/postToolUse.in-subagent.json",
            "18b1bcbc-ddaa-4499-b27e-14abe2660450",
            "9240fee1-ad66-4f6d-9234-64d869b64b99",
        ),
        (
            "copilot/subagentStop.json",
            "18b1bcbc-ddaa-4499-b27e-14abe2660450",
            "9240fee1-ad66-4f6d-9234-64d869b64b99",
        ),
        (
            "opencode/event.session.created.subagent.json",
            "ses_dd2f2be10ffeZBB3zWQQ9aN5ZG",
            "ses_dd2f2b8d9ffegR3X4wsVNjQfyi",
        ),
        # The `parentID` of a message is a message.
        ("opencode/event.message.updated.assistant.json", "ses_dd2f3c4adffeeudRNWSlk2lRP9", None),
        ("opencode/tool.execute.after.task.json", "ses_dd2f2be10ffeZBB3zWQQ9aN5ZG", None),
    ],
)
def test_a_subagent_is_one_of_its_parents_session(name: str, session: str, agent: str | None) -> None:
    said = told(name)
    assert (said.session, said.agent) == (session, agent)


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("opencode/experimental.chat.messages.transform.json", "ses_dd2f3c4adffeeudRNWSlk2lRP9"),
        ("opencode/experimental.chat.messages.transform.compaction.json", "ses_dd2f32fa9ffelhZZwvywUkzSl6"),
        ("opencode/experimental.chat.messages.transform.after-compaction.json", "ses_dd2f32fa9ffelhZZwvywUkzSl6"),
    ],
)
def test_a_request_that_names_no_session_is_that_of_its_messages(name: str, session: str) -> None:
    assert (told(name).session, told(name).agent) == (session, None)
    messages = payload(name)["output"]["messages"]
    assert told(name, output={"messages": [*messages, {"info": {"role": "user"}}]}).session == session
    empty: list[Any] = [[], [None], [{}], [{"info": {"sessionID": 5}}], {}, {"-1": messages[0]}, None]
    for nothing in empty:
        assert told(name, output={"messages": nothing}).session is None


@pytest.mark.parametrize("name", ["codex/PostToolUse.in-subagent.json", "codex/SubagentStop.json"])
def test_a_codex_subagents_own_rollout_is_named_by_itself_or_beside_its_parents(name: str) -> None:
    assert "1615-7a11" in str(told(name).transcript)


def test_where_a_payload_names_no_file_the_table_says_where_it_stands(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session-state/0adbbeaf-8fad-4afb-98bf-f7f964412367/events.jsonl"
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    assert told("copilot/postToolUse.json").transcript is None
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert told("copilot/postToolUse.json").transcript == str(path)
    assert told("copilot/postToolUse.json", sessionId="../session-state/x").transcript is None
    monkeypatch.delenv("COPILOT_HOME")
    os.rename(tmp_path / "session-state", tmp_path / "moved")
    (tmp_path / ".copilot").mkdir()
    os.rename(tmp_path / "moved", tmp_path / ".copilot/session-state")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert told("copilot/postToolUse.json").transcript == str(tmp_path / ".copilot" / path.relative_to(tmp_path))


def test_a_claude_code_subagents_own_file_stands_beside_its_parents(tmp_path: pathlib.Path) -> None:
    own = tmp_path / "s/subagents/agent-ab3a794d614668627.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("")
    said = told("claude-code/PostToolUse.in-subagent.json", transcript_path=str(tmp_path / "s.jsonl"))
    assert said.transcript == str(own)
    assert told("claude-code/PostToolUse.in-subagent.json").transcript is None


def test_more_tokens_than_the_window_is_a_wrong_window_and_not_a_full_one(policy: Policy) -> None:
    window = {"total_input_tokens": 380_000, "context_window_size": 200_000, "used_percentage": 100}
    made = measured(policy, told("claude-code/statusline.after-turn.json", context_window=window))
    assert (made["zone"], made["used_tokens_est"]) == ("unknown", None)
    assert made["basis"].startswith("contradiction: 380,000 tokens used")


def test_a_percentage_is_the_reading_and_tokens_that_agree_are_its_tokens(policy: Policy) -> None:
    window = {"total_input_tokens": 83_123, "context_window_size": 200_000, "used_percentage": 42}
    made = measured(policy, told("claude-code/statusline.after-turn.json", context_window=window))
    assert (made["utilization"], made["used_tokens_est"]) == (0.42, 83_123)
    window["total_input_tokens"] = 3
    made = measured(policy, told("claude-code/statusline.after-turn.json", context_window=window))
    assert (made["utilization"], made["used_tokens_est"]) == (0.42, 84_000)


def test_a_compaction_that_is_announced_counts_where_no_transcript_does(policy: Policy) -> None:
    before = {
        "session_id": told("opencode/event.session.compacted.json").session, "updated_at": meter.now(),
        "compaction_count": 1, "utilization": 0.8, "used_tokens_est": 160_000, "window_tokens": 200_000,
    }  # fmt: skip
    made = measured(policy, told("opencode/event.session.compacted.json"), before)
    assert (made["compaction_count"], made["utilization"], made["zone"]) == (2, None, "unknown")
    begun: dict[str, Any] = {
        "type": "message.updated",
        "properties": {"info": {"role": "assistant", "tokens": {"input": 0}}},
    }
    begun["properties"]["sessionID"] = before["session_id"]
    made = measured(policy, told("opencode/event.message.updated.assistant.json", input=begun), before)
    assert (made["utilization"], made["basis"]) == (0.8, "earlier reading")
    idle = {"properties": {"sessionID": before["session_id"]}}
    made = measured(policy, told("opencode/event.session.idle.json", input=idle), before)
    assert (made["compaction_count"], made["utilization"], made["basis"]) == (1, 0.8, "earlier reading")


def test_what_may_be_a_subagents_is_a_reading_only_where_there_is_no_other(policy: Policy) -> None:
    made = measured(policy, told("gemini-cli/AfterModel.text.json"))
    assert (made["used_tokens_est"], made["window_tokens"], made["zone"]) == (1200, 1_048_576, "green")
    made = measured(policy, told("claude-code/SessionStart.resume.json"))
    assert (made["used_tokens_est"], made["basis"]) == (30_040, "client's reading; window unknown")


def test_the_window_is_the_clients_word_then_the_earlier_one_then_the_models(policy: Policy) -> None:
    before = {"window_tokens": 50_000, "window_basis": "client"}
    made = measured(policy, told("pi/context.json"), before)
    assert (made["window_tokens"], made["window_basis"]) == (200_000, "client")
    made = measured(policy, told("gemini-cli/AfterModel.text.json"), before)
    assert (made["window_tokens"], made["window_basis"]) == (50_000, "client")
    made = measured(policy, told("gemini-cli/AfterModel.text.json"), {**before, "window_basis": "model"})
    assert (made["window_tokens"], made["window_basis"]) == (1_048_576, "model")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def places() -> list[tuple[str, str, str | None]]:
    """Each field of each recorded payload, and those in it."""
    found: list[tuple[str, str, str | None]] = []
    for name in RECORDED:
        for key, value in payload(name).items():
            found += [(name, key, inner) for inner in (None, *(value if isinstance(value, dict) else ()))]
    return found


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(places()), JSON)
def test_no_field_of_any_type_makes_it_raise(policy: Policy, place: tuple[str, str, str | None], value: object) -> None:
    name, key, inner = place
    given = payload(name)
    given[key] = value if inner is None else {**given[key], inner: value}
    payloads.recognise(HOSTS, given)
    for host in HOSTS.values():
        measured(policy, payloads.read(host, given))
