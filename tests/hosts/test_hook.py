"""`ecm-hook` as a client calls it: payload on stdin; meter and log in the project; nothing on stdout; exit 0."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from ecm_rules.hosts import cache
from ecm_rules.kernel import ledger
from ecm_rules.kernel.meter import now
from tests.commands import BIN, run
from tests.conftest import FIXTURES

PAYLOADS = FIXTURES / "hosts/claude-code"
STATE = ".eidolons/.context"


def hook(
    project: pathlib.Path, payload: bytes | dict[str, object], *arguments: str, **env: str
) -> subprocess.CompletedProcess[str]:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = run(*(arguments or ("claude-code",)), cwd=project, stdin=data, script="ecm-hook", **env)
    assert done.returncode == 0
    if b'"context_window"' in data:
        assert done.stdout.count("\n") <= 1
    else:
        assert not done.stdout or isinstance(json.loads(done.stdout), dict)
    return done


def payload(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((PAYLOADS / name).read_text())
    return found


def meter(project: pathlib.Path, name: str = "meter.json") -> dict[str, object]:
    found: dict[str, object] = json.loads((project / STATE / name).read_text())
    return found


def log(project: pathlib.Path) -> list[dict[str, object]]:
    """The verdicts of the log, without the events."""
    lines = [json.loads(line) for line in (project / STATE / "policy-log.jsonl").read_text().splitlines()]
    return [line for line in lines if "event" not in line]


def test_the_clients_own_reading_becomes_the_meter(project: pathlib.Path) -> None:
    done = hook(project, payload("statusline.after-turn.json"))
    assert done.stderr == ""
    made = meter(project)
    assert (made["utilization"], made["window_tokens"], made["zone"]) == (0.15, 1_000_000, "green")
    assert (made["estimate_source"], made["basis"]) == ("host", "client's reading")
    (line,) = log(project)
    assert (line["rule"], line["operation"], line["session_id"]) == ("P7", "continue", made["session_id"])
    assert line["evaluated_at"] == made["updated_at"]


@pytest.mark.parametrize("name", ["statusline.start.json", "statusline.after-compact.json"])
def test_null_and_zero_are_no_reading(name: str, project: pathlib.Path) -> None:
    hook(project, payload(name))
    assert (meter(project)["zone"], log(project)[0]["rule"]) == ("unknown", "P7")


def test_a_prompt_is_measured_from_the_transcript(project: pathlib.Path) -> None:
    path = FIXTURES / "transcripts/02_claude_compact_boundary.jsonl"
    hook(project, {**payload("UserPromptSubmit.json"), "transcript_path": str(path)})
    made = meter(project)
    assert (made["used_tokens_est"], made["window_tokens"], made["compaction_count"]) == (114039, 200000, 1)
    assert log(project)[0]["rule"] == "P5"


SESSION = "4be76715-2ae1-4e9c-8952-9d75579ca13e"


def earlier(project: pathlib.Path, **known: object) -> None:
    (project / STATE).mkdir(parents=True, exist_ok=True)
    (project / STATE / "meter.json").write_text(json.dumps({"session_id": SESSION, **known}))


def test_what_a_payload_does_not_say_is_kept_within_a_session(project: pathlib.Path) -> None:
    earlier(project, compaction_count=2, tool_result_share_est=0.5, budget={"spent_tokens_est": 77})
    hook(project, payload("statusline.after-turn.json"))
    made = meter(project)
    assert (made["compaction_count"], made["tool_result_share_est"]) == (2, 0.5)
    assert made["budget"] == {"ceiling_tokens": None, "spent_tokens_est": 77}


def test_nothing_of_another_session_is_kept(project: pathlib.Path) -> None:
    earlier(project, compaction_count=2, tool_result_share_est=0.5, budget={"spent_tokens_est": 77})
    hook(project, {**payload("statusline.after-turn.json"), "session_id": "another"})
    made = meter(project)
    assert (made["compaction_count"], made["tool_result_share_est"]) == (0, None)
    assert made["budget"] == {"ceiling_tokens": None, "spent_tokens_est": None}


@pytest.mark.parametrize("key", ["compaction_count", "tool_result_share_est", "budget", "window_tokens", "zone"])
@pytest.mark.parametrize("value", ["abc", {"a": 1}, -1, True, [1]])
def test_a_corrupt_meter_heals_on_the_next_payload(key: str, value: object, project: pathlib.Path) -> None:
    from ecm_rules.hosts.hook import handle

    earlier(project, window_basis="client", **{key: value})
    given = {"session_id": SESSION, "transcript_path": str(FIXTURES / "transcripts/01_claude_small.jsonl")}
    assert handle("claude-code", json.dumps(given).encode(), str(project))[1] is None
    assert (meter(project)["zone"], meter(project)["compaction_count"]) == ("green", 0)
    assert handle("claude-code", json.dumps(payload("statusline.after-turn.json")).encode(), str(project))[1] is None


def test_the_clients_window_holds_for_the_session_and_the_models_does_not(project: pathlib.Path) -> None:
    path = str(FIXTURES / "transcripts/01_claude_small.jsonl")
    hook(project, payload("statusline.after-turn.json"))
    hook(project, {"session_id": SESSION, "transcript_path": path})
    assert (meter(project)["window_tokens"], meter(project)["window_basis"]) == (1_000_000, "client")
    hook(project, {"session_id": "another", "transcript_path": path})
    assert (meter(project)["window_tokens"], meter(project)["window_basis"]) == (200_000, "model")
    earlier(project, window_tokens=50_000, window_basis="model")
    hook(project, {"session_id": SESSION, "transcript_path": path})
    assert meter(project)["window_tokens"] == 200_000


def test_a_payload_that_says_nothing_of_the_window_leaves_the_reading(project: pathlib.Path) -> None:
    statusline = payload("statusline.after-turn.json")
    hook(project, {**statusline, "context_window": {"used_percentage": 91, "context_window_size": 200_000}})
    hook(project, {"session_id": SESSION, "hook_event_name": "PostToolUse"})
    made = meter(project)
    assert (made["zone"], made["used_tokens_est"], made["basis"]) == ("critical", 182_000, "earlier reading")
    assert [line["rule"] for line in log(project)] == ["P2", "P2"]
    hook(project, {**statusline, "context_window": {"used_percentage": None, "context_window_size": 200_000}})
    assert meter(project)["zone"] == "unknown"


def test_a_percentage_without_a_size_is_a_reading(project: pathlib.Path) -> None:
    hook(project, {"context_window": {"used_percentage": 88}})
    made = meter(project)
    assert (made["zone"], made["utilization"], made["used_tokens_est"]) == ("red", 0.88, None)


def test_of_a_huge_transcript_the_tail_is_read_and_that_is_said(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    record = {
        "type": "assistant",
        "sessionId": SESSION,
        "message": {"id": "m", "model": "claude-opus-4-5", "usage": {"input_tokens": 160_000}},
    }
    filler = json.dumps({"type": "user", "message": {"content": "x" * 100_000}}) + "\n"
    path = tmp_path / "huge.jsonl"
    path.write_text(filler * 60 + json.dumps(record) + "\n")
    earlier(project, compaction_count=2)
    hook(project, {"session_id": SESSION, "transcript_path": str(path)})
    made = meter(project)
    assert (made["zone"], made["basis"], made["compaction_count"]) == ("red", "usage record, partial", 2)
    assert log(project)[0]["rule"] == "P4"


def answer(**message: object) -> str:
    more = {key: message.pop(key) for key in ("isSidechain",) if key in message}
    return (
        json.dumps(
            {"type": "assistant", "sessionId": SESSION, "message": {"model": "claude-opus-4-5", **message}, **more}
        )
        + "\n"
    )


def test_a_tail_forgets_neither_spending_nor_the_reading(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {budget_tokens: 100000}\n")
    path = tmp_path / "t.jsonl"
    given: dict[str, object] = {"session_id": SESSION, "transcript_path": str(path)}
    filler = json.dumps({"type": "user", "isSidechain": True, "message": {"content": "x" * 1_000_000}}) + "\n"
    path.write_text(answer(id="m1", usage={"input_tokens": 90_000, "output_tokens": 20_000}))
    hook(tmp_path, given)
    path.write_text(
        path.read_text() + filler * 5 + answer(id="m2", usage={"input_tokens": 120_000, "output_tokens": 10})
    )
    hook(tmp_path, given)
    path.write_text(path.read_text() + filler * 5 + answer(id="s1", isSidechain=True, usage={"input_tokens": 3000}))
    hook(tmp_path, given)
    made = meter(tmp_path)
    assert [line["rule"] for line in log(tmp_path)] == ["P1", "P1", "P1"]
    assert (made["used_tokens_est"], made["zone"], made["basis"]) == (120_000, "amber", "earlier reading")


def test_a_transcript_that_outgrew_the_limit_while_it_was_followed_is_known_whole(project: pathlib.Path) -> None:
    path = project / "t.jsonl"
    given: dict[str, object] = {"session_id": SESSION, "transcript_path": str(path)}
    filler = json.dumps({"type": "user", "message": {"content": "x" * 1_000_000}}) + "\n"
    boundary = json.dumps({"type": "system", "subtype": "compact_boundary"}) + "\n"
    with path.open("a") as stream:
        for number in range(6):
            stream.write(
                (boundary if number == 1 else "") + filler + answer(id=f"m{number}", usage={"input_tokens": 900})
            )
            stream.flush()
            hook(project, given)
    made = meter(project)
    assert path.stat().st_size > 4 << 20
    assert (made["basis"], made["compaction_count"]) == ("usage record", 1)
    assert made["budget"] == {"ceiling_tokens": None, "spent_tokens_est": 6 * 900}


def test_a_statusline_too_brings_what_only_the_transcript_tells(project: pathlib.Path) -> None:
    path = str(FIXTURES / "transcripts/02_claude_compact_boundary.jsonl")
    hook(project, {**payload("statusline.after-turn.json"), "transcript_path": path})
    made = meter(project)
    assert (made["utilization"], made["basis"]) == (0.15, "client's reading")
    assert (made["compaction_count"], made["tool_result_share_est"]) == (1, 0.583552)


def test_a_transcript_that_cannot_be_read_is_said_and_is_no_reading(project: pathlib.Path) -> None:
    (project / "t.jsonl").mkdir()
    given: dict[str, object] = {"session_id": SESSION, "transcript_path": str(project / "t.jsonl")}
    done = hook(project, given)
    assert done.stderr == "ecm-hook: transcript: no regular file\n"
    assert (meter(project)["zone"], log(project)[0]["rule"]) == ("unknown", "P7")


def test_a_transcript_that_vanishes_before_it_is_opened(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecm_rules.hosts.hook import handle
    from ecm_rules.kernel import transcripts

    def vanished(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(transcripts, "read", vanished)
    earlier(project, utilization=0.8, used_tokens_est=160_000, updated_at=now())
    given = {"session_id": SESSION, "transcript_path": str(FIXTURES / "transcripts/01_claude_small.jsonl")}
    _, complaint = handle("claude-code", json.dumps(given).encode(), str(project))
    assert complaint == "transcript: No such file or directory"
    assert (meter(project)["basis"], meter(project)["zone"]) == ("earlier reading", "red")


def opencode(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((FIXTURES / f"hosts/opencode/{name}.json").read_text())
    return found


def test_a_request_that_names_no_session_leaves_the_meter_of_its_session(project: pathlib.Path) -> None:
    session = "ses_dd2f3c4adffeeudRNWSlk2lRP9"
    for name in ("chat.params", "event.message.updated.assistant", "experimental.chat.messages.transform"):
        hook(project, opencode(name), "opencode")
    assert [meter(project)[key] for key in ("session_id", "used_tokens_est", "zone")] == [session, 1240, "green"]
    assert [line["session_id"] for line in log(project)] == [session] * 2


def counts(project: pathlib.Path, host: str, recorded: str, payloads: list[dict[str, object]]) -> list[object]:
    """The compactions that each of these payloads leaves in the meter, for every record by which a recorded transcript
    grows.
    """
    from ecm_rules.hosts.hook import handle

    found: list[object] = []
    path = pathlib.Path(str(payloads[0].get("transcript_path") or payloads[0].get("transcriptPath")))
    path.parent.mkdir(parents=True)
    for line in (FIXTURES / "transcripts" / recorded).read_bytes().splitlines(keepends=True):
        with path.open("ab") as stream:
            stream.write(line)
        for given in payloads:
            assert handle(host, json.dumps(given).encode(), str(project))[1] is None
        found.append(meter(project)["compaction_count"])
    return found


def recorded(host: str, name: str, **more: object) -> dict[str, object]:
    return {**json.loads((FIXTURES / f"hosts/{host}/{name}.json").read_text()), **more}


def test_gemini_compresses_where_its_transcript_says_so_and_not_at_every_request(project: pathlib.Path) -> None:
    who = {"session_id": "84eccfa3-659d-41ba-9659-ee80defad01d", "transcript_path": str(project / "chats/s.jsonl")}
    names = ("BeforeAgent", "PreCompress.auto", "PreCompress.manual", "BeforeModel", "AfterAgent")
    found = counts(
        project, "gemini-cli", "gemini_autocompress.jsonl", [recorded("gemini-cli", name, **who) for name in names]
    )
    # Where a summary takes the place of the history; not where the session is resumed with it, before each of the two.
    assert [line for line in range(1, len(found)) if found[line] != found[line - 1]] == [21, 36]
    assert (found[0], found[-1]) == (0, 2)
    hook(project, recorded("gemini-cli", "PreCompress.auto", session_id="another"), "gemini-cli")
    hook(project, recorded("gemini-cli", "AfterAgent", session_id="another"), "gemini-cli")
    assert (meter(project)["session_id"], meter(project)["compaction_count"]) == ("another", 0)


def test_copilot_compacts_where_its_transcript_says_that_it_was_applied(
    project: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = "05456964-a764-4e4a-8367-aab29a140df7"
    monkeypatch.setenv("COPILOT_HOME", str(project / "home"))
    path = str(project / f"home/session-state/{session}/events.jsonl")
    # Of these two one names the file, and the other leaves it to be found.
    given = [recorded("copilot", "preCompact.auto", sessionId=session, transcriptPath=path)]
    given.append(recorded("copilot", "postToolUse", sessionId=session))
    assert "transcriptPath" not in given[1]
    found = counts(project, "copilot", "copilot_autocompact.jsonl", given)
    started, applied = 24, 37  # `session.compaction_start` and, in the background, `session.compaction_complete`
    assert [found[line] for line in (0, started, applied - 1, applied, -1)] == [0, 0, 0, 1, 1]


def test_where_a_client_writes_no_transcript_its_announcement_counts(project: pathlib.Path) -> None:
    from ecm_rules.hosts.hook import handle

    for name in ("experimental.session.compacting", "event.session.compacted", "event.session.idle"):
        given = json.dumps(opencode(name))
        session = json.loads(given)["input"].get("sessionID") or json.loads(given)["input"]["properties"]["sessionID"]
        assert handle("opencode", given.replace(session, "ses_one").encode(), str(project))[1] is None
    assert (meter(project)["session_id"], meter(project)["compaction_count"]) == ("ses_one", 1)


PARENT, CHILD = "ses_dd2f2be10ffeZBB3zWQQ9aN5ZG", "ses_dd2f2b8d9ffegR3X4wsVNjQfyi"


def of_session(name: str, session: str, tokens: int | None = None) -> dict[str, object]:
    """A recorded payload, told of another session."""
    given: dict[str, object] = json.loads(json.dumps(opencode(name)).replace("ses_dd2f3c4adffeeudRNWSlk2lRP9", session))
    return given if tokens is None else json.loads(json.dumps(given).replace("1240", str(tokens)))


def test_a_session_of_its_own_that_another_began_is_that_ones_subagent(project: pathlib.Path) -> None:
    for given in (
        of_session("chat.params", PARENT),
        of_session("event.message.updated.assistant", PARENT, 150_000),
        opencode("event.session.created.subagent"),
        of_session("chat.params", CHILD),
        of_session("event.message.updated.assistant", CHILD, 190_000),
        of_session("experimental.chat.messages.transform", CHILD),
        of_session("event.session.idle", CHILD),
    ):
        hook(project, given, "opencode")
    own, parents = meter(project, f"meter-{CHILD}.json"), meter(project)
    assert [(m["session_id"], m["used_tokens_est"], m["zone"]) for m in (own, parents)] == [
        (PARENT, 190_000, "critical"), (PARENT, 150_000, "red")
    ]  # fmt: skip
    asked = [(line["agent_id"], line["session_id"], line["operation"]) for line in log(project)]
    assert asked[1:3] == [(None, PARENT, "compact"), (CHILD, PARENT, "continue")]
    assert asked[-2:] == [(CHILD, PARENT, "finish_and_return")] * 2
    # Back in the parent, nothing of the subagent is its own.
    hook(project, of_session("event.session.idle", PARENT), "opencode")
    assert (meter(project)["used_tokens_est"], log(project)[-1]["agent_id"]) == (150_000, None)


def test_what_our_plugin_says_of_a_subagent_is_enough(project: pathlib.Path) -> None:
    given: dict[str, dict[str, object]] = json.loads(json.dumps(of_session("event.message.updated.assistant", CHILD)))
    given["input"]["parentID"] = PARENT
    hook(project, json.dumps(given).encode(), "opencode")
    assert meter(project, f"meter-{CHILD}.json")["session_id"] == PARENT
    assert not (project / STATE / "meter.json").exists()


def test_a_subagents_subagent_is_one_of_the_first_session(project: pathlib.Path) -> None:
    hook(project, opencode("event.session.created.subagent"), "opencode")
    text = json.dumps(opencode("event.session.created.subagent")).replace(CHILD, "ses_third").replace(PARENT, CHILD)
    hook(project, text.encode(), "opencode")
    hook(project, of_session("event.message.updated.assistant", "ses_third"), "opencode")
    assert meter(project, "meter-ses_third.json")["session_id"] == PARENT
    assert {line["session_id"] for line in log(project)} == {PARENT}
    assert not (project / STATE / "meter.json").exists()


@pytest.mark.parametrize(
    "known", ["{", "[]", "{}", '{"session_id": null}', '{"session_id": 5}', '{"session_id": ""}', f'{{"session_id": "{CHILD}"}}']
)  # fmt: skip
def test_a_meter_that_names_no_other_session_makes_no_subagent(known: str, project: pathlib.Path) -> None:
    (project / STATE).mkdir(parents=True)
    (project / STATE / f"meter-{CHILD}.json").write_text(known)
    hook(project, of_session("event.message.updated.assistant", CHILD), "opencode")
    assert (meter(project)["session_id"], log(project)[0]["subagent"]) == (CHILD, False)
    # Of a client whose payloads name their subagents, no session is one.
    (project / STATE / f"meter-{SESSION}.json").write_text(json.dumps({"session_id": "another"}))
    hook(project, payload("statusline.after-turn.json"))
    assert meter(project)["session_id"] == SESSION


HOSTS = ["claude-code", "codex", "copilot", "gemini-cli", "opencode", "pi"]


@pytest.mark.parametrize("host", HOSTS)
def test_every_recorded_payload_of_every_host_is_taken(host: str, project: pathlib.Path) -> None:
    from ecm_rules.hosts.hook import handle

    for path in sorted((FIXTURES / "hosts" / host).rglob("*.json")):
        assert handle(host, path.read_bytes(), str(project))[1] is None, path
    assert None not in {line["rule"] for line in log(project)}


@pytest.mark.parametrize("name", ["PostToolUse.in-subagent.json", "SubagentStop.json"])
def test_a_recorded_payload_from_within_a_subagent(name: str, project: pathlib.Path) -> None:
    given = payload(name)
    hook(project, given)
    assert meter(project, f"meter-{given['agent_id']}.json")["zone"] == "unknown"
    assert [(line["subagent"], line["session_id"]) for line in log(project)] == [(True, given["session_id"])]
    assert not (project / STATE / "meter.json").exists()


def test_a_session_id_of_a_megabyte_becomes_a_short_one(project: pathlib.Path) -> None:
    hook(project, {**payload("statusline.after-turn.json"), "session_id": "s" * 1_000_000})
    assert str(meter(project)["session_id"]).startswith("h-")
    assert (project / STATE / "meter.json").stat().st_size < 2000


def test_a_subagent_is_never_measured_by_its_parents_transcript(project: pathlib.Path) -> None:
    parent = str(FIXTURES / "transcripts/02_claude_compact_boundary.jsonl")
    hook(project, {"session_id": SESSION, "agent_id": "a1", "transcript_path": parent})
    assert meter(project, "meter-a1.json")["zone"] == "unknown"
    own = str(FIXTURES / "transcripts/07_claude_subagent_sidechain.jsonl")
    hook(project, {"session_id": SESSION, "agent_id": "a1", "transcript_path": parent, "agent_transcript_path": own})
    assert meter(project, "meter-a1.json")["used_tokens_est"] == 71257


def test_a_subagent_has_a_meter_and_a_role_of_its_own(project: pathlib.Path) -> None:
    given = {**payload("statusline.after-turn.json"), "agent_id": "../../a"}
    given["context_window"] = {"used_percentage": 95, "context_window_size": 200_000}
    hook(project, given)
    assert not (project / STATE / "meter.json").exists()
    (own,) = (project / STATE).glob("meter-h-*.json")
    assert json.loads(own.read_text())["zone"] == "critical"
    assert [(x["operation"], x["raw_operation"], x["subagent"]) for x in log(project)] == [
        ("finish_and_return", "handoff_fresh", True)
    ]


def test_the_projects_thresholds_and_budget_are_used(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.1}, budget_tokens: 5000}\n")
    hook(tmp_path, payload("statusline.after-turn.json"))
    made = meter(tmp_path)
    assert made["zone"] == "amber"
    assert made["budget"] == {"ceiling_tokens": 5000, "spent_tokens_est": None}


@pytest.mark.parametrize("text", [None, "version: 1\n", "context: {enabled: false}\n", "# context\nmembers: []\n"])
def test_without_opting_in_nothing_is_measured_or_logged(text: str | None, tmp_path: pathlib.Path) -> None:
    if text is not None:
        (tmp_path / "eidolons.yaml").write_text(text)
    hook(tmp_path, payload("statusline.after-turn.json"))
    assert not (tmp_path / ".eidolons").exists()


def test_a_changed_table_is_read_anew(project: pathlib.Path) -> None:
    hook(project, payload("statusline.after-turn.json"))
    (project / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.1}}\n")
    hook(project, payload("statusline.after-turn.json"))
    assert [x["rule"] for x in log(project)] == ["P7", "P6"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"key": "stale", "checksum": "", "data": "{}"}', b"\0" * 100, b"[" * 100_000]
)
def test_a_stale_or_corrupt_cache_is_replaced(content: bytes, project: pathlib.Path) -> None:
    path = project / cache.FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    hook(project, payload("statusline.after-turn.json"))
    assert log(project)[0]["rule"] == "P7"
    assert json.loads(path.read_bytes().split(b"\n")[1])["enabled"] is True


@pytest.mark.parametrize("part", ["data", "checksum", "key"])
def test_a_cache_that_was_changed_is_built_anew(part: str, project: pathlib.Path) -> None:
    hook(project, payload("statusline.after-turn.json"))
    path = project / cache.FILE
    written = path.read_bytes()
    head, data, _ = written.split(b"\n")
    outer = json.loads(head)
    changed = b"{}" if part == "data" else data
    path.write_bytes(json.dumps({**outer, part: "{}"} if part in outer else outer).encode() + b"\n" + changed + b"\n")
    hook(project, payload("statusline.after-turn.json"))
    assert path.read_bytes() == written
    path.write_bytes(json.dumps({k: v for k, v in outer.items() if k != part}).encode() + b"\n" + data[:-1])
    hook(project, payload("statusline.after-turn.json"))
    assert [line["rule"] for line in log(project)] == ["P7"] * 3


def test_while_the_cache_is_current_the_authoring_side_is_not_imported(project: pathlib.Path) -> None:
    given = json.dumps(
        {**payload("UserPromptSubmit.json"), "transcript_path": str(FIXTURES / "transcripts/01_claude_small.jsonl")}
    )
    hook(project, given.encode())
    code = "import sys, os, json, re; before = set(sys.modules); from ecm_rules.hosts import hook; hook.main(); print(chr(10), *sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code, "claude-code"],
        cwd=project,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name for name in done.stdout.split("\n")[-2].split() if not name.startswith("ecm_rules")}
    assert loaded <= {"_blake2"}
    assert len(log(project)) == 2


BAD = {
    "nothing": b"",
    "no JSON": b"{",
    "two documents": b"{}{}",
    "a list": b"[]",
    "latin-1": b'{"session_id": "caf\xe9"}',
    "deep": b"[" * 100_000,
    "NaN": b'{"context_window": {"used_percentage": NaN}}',
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_an_unreadable_payload_is_one_line_on_stderr(data: bytes, project: pathlib.Path) -> None:
    done = hook(project, data)
    assert done.stderr.startswith("ecm-hook: payload: ")
    assert done.stderr.count("\n") == 1


WRONG: list[object] = [None, True, 0, -5, 1e400, "x" * 100_000, [], {}, {"a": 1}]


@pytest.mark.parametrize("name", ["statusline.after-turn.json", "UserPromptSubmit.json"])
def test_every_field_may_be_missing_or_of_another_type(name: str, project: pathlib.Path) -> None:
    # In this process: the console script around it is tested above.
    from ecm_rules.hosts.hook import handle

    whole = payload(name)
    for key in [*whole, "agent_id"]:
        for value in WRONG:
            text = json.dumps({**whole, key: value}).replace("Infinity", "1e400")
            assert handle("claude-code", text.encode(), str(project))[1] is None
        rest = {k: v for k, v in whole.items() if k != key}
        assert handle("claude-code", json.dumps(rest).encode(), str(project))[1] is None
    for key in ("used_percentage", "context_window_size"):
        for value in WRONG:
            window = {"used_percentage": 50, "context_window_size": 1000, key: value}
            text = json.dumps({**whole, "context_window": window}).replace("Infinity", "1e400")
            assert handle("claude-code", text.encode(), str(project))[1] is None
    assert {line["operation"] for line in log(project)} <= {"continue", "externalize"}


def test_a_number_beside_the_window_is_no_reading(project: pathlib.Path) -> None:
    hook(project, {"context_window": {"used_percentage": 190, "context_window_size": 200_000}})
    assert meter(project)["zone"] == "unknown"


def test_bad_usage_and_unknown_hosts_are_said_and_nothing_more(project: pathlib.Path) -> None:
    assert (
        "unknown host 'vim', known: codex, copilot, gemini-cli, opencode, pi, claude-code"
        in hook(project, b"{}", "vim").stderr
    )
    for arguments in ([], ["--help"], ["claude-code", "more"]):
        done = run(*arguments, cwd=project, script="ecm-hook")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "ecm-hook: usage: ecm-hook HOST < payload\n")


def test_a_folder_that_cannot_be_written_is_said(project: pathlib.Path) -> None:
    (project / ".eidolons").write_text("not a folder")
    done = hook(project, payload("statusline.after-turn.json"))
    assert done.stderr.count("\n") == 1


def test_a_link_for_the_state_folder_is_not_followed(
    project: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / ".eidolons").symlink_to(elsewhere)
    done = hook(project, payload("statusline.after-turn.json"))
    assert "symbolic link" in done.stderr
    assert os.listdir(elsewhere) == []


def test_a_project_file_that_cannot_be_read_is_said(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "eidolons.yaml")
    assert "no regular file" in hook(tmp_path, payload("statusline.after-turn.json")).stderr
    (tmp_path / "eidolons.yaml").unlink()
    (tmp_path / "eidolons.yaml").write_text("context: {}\n#" + "x" * (1 << 20))
    assert "more than" in hook(tmp_path, payload("statusline.after-turn.json")).stderr


def test_a_bad_table_is_one_line_and_no_meter(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {thresholds: {amber: 0.9}}\n")
    done = hook(tmp_path, payload("statusline.after-turn.json"))
    assert "ECM401" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / STATE / "policy-log.jsonl").exists()


def test_a_deleted_working_folder_and_closed_streams_do_not_raise(tmp_path: pathlib.Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && {BIN / 'ecm-hook'} claude-code < /dev/null; echo $?"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr.count("Traceback")) == ("0\n", 0)
    done = subprocess.run(
        ["bash", "-c", f"{BIN / 'ecm-hook'} claude-code <&- 2>&-; echo $?"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_warnings_and_development_mode_print_nothing(project: pathlib.Path) -> None:
    done = hook(project, payload("statusline.after-turn.json"), PYTHONWARNINGS="always", PYTHONDEVMODE="1")
    assert done.stderr == ""


def test_thirty_hooks_at_once_on_one_session(project: pathlib.Path) -> None:
    data = json.dumps(payload("statusline.after-turn.json")).encode()
    running = [
        subprocess.Popen(
            [BIN / "ecm-hook", "claude-code"],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(30)
    ]
    answers = [process.communicate(data) for process in running]
    assert {(out.count(b"\n"), err) for out, err in answers} == {(1, b"")}
    assert len(log(project)) == 30
    assert meter(project)["zone"] == "green"


def usage(path: pathlib.Path, tokens: int, identity: str = "m1") -> str:
    path.write_text(answer(id=identity, usage={"input_tokens": tokens}))
    return str(path)


def test_the_ceiling_is_met_by_the_spending_of_the_whole_thread_and_for_the_orchestrator_alone(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {budget_tokens: 1000}\n")
    own, theirs = usage(tmp_path / "own.jsonl", 400), usage(tmp_path / "theirs.jsonl", 600, "m2")
    hook(tmp_path, {"session_id": "s1", "transcript_path": own})
    assert (meter(tmp_path)["budget"], log(tmp_path)[-1]["rule"]) == (
        {"ceiling_tokens": 1000, "spent_tokens_est": 400}, "P7"
    )  # fmt: skip
    agent: dict[str, object] = {
        "session_id": "s1",
        "agent_id": "a1",
        "transcript_path": own,
        "agent_transcript_path": theirs,
    }
    for _ in range(3):
        hook(tmp_path, agent)
        assert (meter(tmp_path, "meter-a1.json")["budget"], log(tmp_path)[-1]["rule"]) == (
            {"ceiling_tokens": 1000, "spent_tokens_est": 600}, "P7"
        )  # fmt: skip
    # The verb sees what was spent since the meter was written.
    assert json.loads(run("policy", "--json", cwd=tmp_path).stdout)["rule"] == "P1"
    for _ in range(3):
        hook(tmp_path, {"session_id": "s1", "transcript_path": own})
        assert (meter(tmp_path)["budget"], log(tmp_path)[-1]["rule"]) == (
            {"ceiling_tokens": 1000, "spent_tokens_est": 1000}, "P1"
        )  # fmt: skip


def test_a_successor_goes_on_spending_and_a_fresh_session_begins(tmp_path: pathlib.Path) -> None:
    (tmp_path / "eidolons.yaml").write_text("context: {budget_tokens: 1000}\n")
    path = usage(tmp_path / "t.jsonl", 600)
    statusline = payload("statusline.after-turn.json")
    hook(tmp_path, {"session_id": "s1", "transcript_path": path})
    ledger.succeed(str(tmp_path), {}, "s2", "s1", "2026-07-07T00:00:00Z")
    for session, spent in (("s2", 1200), ("s1", 1200), ("s3", 600)):
        hook(tmp_path, {"session_id": session, "transcript_path": path})
        assert meter(tmp_path)["budget"] == {"ceiling_tokens": 1000, "spent_tokens_est": spent}
        hook(tmp_path, {**statusline, "session_id": session})  # which says nothing of spending
        assert meter(tmp_path)["budget"] == {"ceiling_tokens": 1000, "spent_tokens_est": spent}
    assert ledger.spent(str(tmp_path), {}, "s1") == 1200


def test_a_ledger_that_cannot_be_read_is_one_line_and_the_meter_is_the_sessions_own(project: pathlib.Path) -> None:
    (project / ledger.FILE).mkdir(parents=True)
    done = hook(project, {"session_id": "s1", "transcript_path": usage(project / "t.jsonl", 600)})
    assert done.stderr == "ecm-hook: budget ledger: no regular file\n"
    assert meter(project)["budget"] == {"ceiling_tokens": None, "spent_tokens_est": 600}
    assert len(log(project)) == 1
