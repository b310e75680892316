"""Within a turn: the meter's line, what a changed zone says, and operations, each carried out once on entering it."""

from __future__ import annotations

import json
import pathlib
import re
import shutil

import pytest

from tests.hosts import clients
from tests.hosts.clients import Client

SAVED = re.compile(r"State is written down in \.eidolons/\.context/externalized-\d{8}T\d{6}Z(-\d+)?\.json\.")
BRIEF = re.compile(r"The brief for a fresh session is (\.eidolons/\.context/handoff-\d{8}T\d{6}Z(?:-\d+)?\.md)\.")
COMPACT = "The window is nearly full; compact it now."
CLEAR = "Old tool results fill the window; clear them."
FRESH = "Finish the step at hand, then stop and ask for a fresh session"
BUDGET = "The token budget of this thread is spent. Finish the step at hand, then stop; start nothing new."
RETURN = "Return what there is now, and say what is missing."


def begun(host: str, project: pathlib.Path, share: float | None = 0.1) -> Client:
    client = Client(host, project)
    if share is not None:
        client.fill(share)
    client.send("start")
    client.send("prompt")
    return client


@pytest.mark.parametrize("host", clients.HOSTS)
def test_a_prompt_is_told_the_meter_and_the_verdict_and_a_tool_nothing(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    assert client.send("prompt") == "Context: zone=green util=0.10 policy=continue(P7)."
    assert client.send("tool") == ""
    assert client.send("stop") == ""
    assert client.log()[-1]["operation"] == "continue"
    assert client.made("externalized-*") + client.made("handoff-*") == []


@pytest.mark.parametrize("host", clients.HOSTS)
def test_nobody_knows_how_full_the_window_is(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied, None)
    assert client.send("prompt") == "Context: zone=unknown util=unknown policy=continue(P7)."


@pytest.mark.parametrize("host", clients.HOSTS)
def test_amber_writes_down_once_over_many_tools_and_tells_its_zone_once(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    client.fill(0.55)
    told = client.send("tool")
    assert told.startswith("Context zone changed: green -> amber.\n")
    assert SAVED.search(told)
    for share in (0.56, 0.6, 0.57):
        client.fill(share)
        assert client.send("tool") == ""
    assert client.send("prompt") == "Context: zone=amber util=0.57 policy=externalize(P6)."
    (name,) = client.made("externalized-*.json")
    manifest = json.loads((copied / clients.STATE / name).read_text())
    assert (manifest["session_id"], manifest["file_floor_reason"]) == (client.session, "crystalium absent")
    (event,) = client.log("operation")
    assert (event["rule"], event["operation"], event["zone"], event["outcome"]) == (
        "P6", "externalize", "amber", "degraded",
    )  # fmt: skip
    assert event["made"]["file_floor_path"] == f"{clients.STATE}/{name}"
    assert client.ledger() == ["externalize"]
    assert {verdict["rule"] for verdict in client.log()} == {"P7", "P6"}
    client.fill(0.2)
    assert client.send("tool") == "Context zone changed: amber -> green."
    client.fill(0.55)
    assert SAVED.search(client.send("tool"))
    assert len(client.made("externalized-*.json")) == 2


@pytest.mark.parametrize("host", ["claude-code", "copilot", "gemini-cli"])
def test_in_the_same_zone_a_new_boundary_is_a_new_state(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied, 0.55)
    assert len(client.made("externalized-*")) == 1
    client.boundary()
    client.fill(0.55)
    assert SAVED.search(client.send("tool"))
    assert len(client.made("externalized-*")) == 2
    client.send("tool")
    assert client.ledger() == ["externalize"] * 2


def test_a_prompt_that_enters_a_state_says_what_was_done(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.fill(0.8)
    told = client.send("prompt")
    first, _, rest = told.partition("\n")
    assert first == "Context: zone=red util=0.80 policy=compact(P3)."
    assert SAVED.search(rest)
    assert COMPACT in rest
    assert clients.tokens(told) <= 200
    assert client.send("prompt") == first
    (event,) = client.log("operation")
    outcomes = {step["step"]: step["outcome"] for step in event["steps"]}
    assert (outcomes["host_compact"], outcomes["commit_identifier_manifest"]) == ("degraded", "degraded")


def test_amber_with_much_of_it_from_tools_prunes(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "x" * 4000}]
    client.write(type="user", sessionId=client.session, message={"role": "user", "content": result})
    client.fill(0.55)
    told = client.send("prompt")
    assert told.startswith("Context: zone=amber util=0.55 policy=prune_tool_results(P5).\n")
    assert SAVED.search(told)
    assert CLEAR in told
    assert client.log()[-1]["tool_result_share_est"] == 1
    assert client.ledger() == ["prune_tool_results"]
    # The milder row of the same zone checkpoints nothing anew.
    client.write(type="user", sessionId=client.session, message={"role": "user", "content": "y" * 40_000})
    assert client.send("prompt") == "Context: zone=amber util=0.55 policy=externalize(P6)."
    assert len(client.made("externalized-*")) == 1


@pytest.mark.parametrize("host", clients.HOSTS)
@pytest.mark.parametrize("moment", ["prompt", "tool"])
def test_critical_leaves_a_brief_and_says_where(host: str, moment: str, copied: pathlib.Path) -> None:
    if (host, moment) not in {(h, "prompt") for h in clients.HOSTS} | {("claude-code", "tool"), ("pi", "tool")}:
        pytest.skip("as the others")
    client = begun(host, copied)
    client.fill(0.95)
    told = client.send(moment)
    found = BRIEF.search(told)
    assert found
    assert (copied / found[1]).stat().st_size > 100
    assert FRESH in told
    assert clients.tokens(told) <= 200
    assert (len(client.made("handoff-*.md")), len(client.made("handoff-*.envelope.json"))) == (1, 1)
    assert len(client.made("externalized-*")) == 1
    assert client.ledger() == ["handoff_fresh"]
    assert client.send("tool") == ""
    assert client.send("prompt") == "Context: zone=critical util=0.95 policy=handoff_fresh(P2)."
    assert len(client.made("handoff-*.md")) == 1
    successor = Client(host, copied, "successor")
    assert "Prior session handoff" in successor.send("start") + successor.send("prompt")


def test_red_behind_two_compactions_leaves_a_brief_and_compacts_no_more(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.boundary()
    client.boundary()
    client.fill(0.8)
    told = client.send("prompt")
    assert told.startswith("Context: zone=red util=0.80 policy=handoff_fresh(P4).\n")
    assert BRIEF.search(told)
    assert COMPACT not in told
    assert client.ledger() == ["handoff_fresh"]


@pytest.mark.parametrize("host", ["claude-code", "codex", "copilot", "gemini-cli"])
def test_past_the_ceiling_the_first_prompt_gets_brief_and_notice_and_later_ones_the_notice(
    host: str, copied: pathlib.Path
) -> None:
    (copied / "eidolons.yaml").write_text("context: {budget_tokens: 1000}\n")
    client = begun(host, copied)
    client.fill(0.1, new=1200)
    told = client.send("prompt")
    assert told.startswith("Context: zone=green util=0.10 policy=wrap_up(P1).\n")
    assert BRIEF.search(told)
    assert BUDGET in told
    for _ in range(2):
        assert client.send("prompt") == f"Context: zone=green util=0.10 policy=wrap_up(P1).\n{BUDGET}"
        assert client.send("tool") == ""
    assert client.send("stop") == ""
    assert client.send("stop", stop_hook_active=True) == ""
    assert len(client.made("handoff-*.md")) == 1
    assert len(client.log("operation")) == 1
    meter = client.meter()["budget"]
    assert (meter["ceiling_tokens"], meter["spent_tokens_est"]) == (1000, 1210)


@pytest.mark.parametrize("host", clients.HOSTS)
def test_a_stop_is_never_answered_whatever_the_zone(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    client.fill(0.95)
    assert client.send("stop") == ""
    assert client.send("stop", stop_hook_active=True) == ""
    assert client.log()[-1]["rule"] == "P2"


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_subagent_is_metered_by_its_own_file_and_told_to_return(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    client.agent = "a1b2c3"
    client.fill_agent(0.3)
    assert client.send("agent tool") == ""
    client.fill_agent(0.95)
    told = client.send("agent tool")
    assert RETURN in told
    assert SAVED.search(told)
    assert "zone changed: green -> critical" in told
    assert not BRIEF.search(told)
    verdict = client.log()[-1]
    assert (verdict["operation"], verdict["raw_operation"]) == ("finish_and_return", "handoff_fresh")
    assert (verdict["role"], verdict["agent_id"], verdict["session_id"]) == ("subagent", "a1b2c3", client.session)
    assert client.meter("a1b2c3")["utilization"] == 0.95
    assert client.meter()["utilization"] == 0.1
    assert client.send("agent tool") == ""
    assert client.send("agent stop") == ""
    assert client.made("handoff-*") == []
    client.agent = None
    # The parent is told nothing of it, and keeps its own state.
    assert client.send("tool") == ""
    assert client.send("prompt") == "Context: zone=green util=0.10 policy=continue(P7)."


def test_a_subagents_spending_is_its_threads_and_only_the_orchestrator_wraps_up(copied: pathlib.Path) -> None:
    (copied / "eidolons.yaml").write_text("context: {budget_tokens: 15}\n")
    client = begun("claude-code", copied)
    client.agent = "a1"
    client.fill_agent(0.1)
    assert client.send("agent tool") == ""
    assert client.log()[-1]["rule"] == "P7"
    client.agent = None
    assert BUDGET in client.send("prompt")


def test_a_subagent_of_copilot_is_one_and_its_window_is_unknown(copied: pathlib.Path) -> None:
    """Its records stand among those of its parent, and the hook names no file of its own."""
    client = begun("copilot", copied, 0.95)
    client.agent = "child"
    payload = client.payload("agent tool", sessionId="child", parentAgentId=client.session)
    assert client.deliver(payload) == ""
    verdict = client.log()[-1]
    assert (verdict["role"], verdict["session_id"], verdict["agent_id"]) == ("subagent", client.session, "child")
    assert client.meter("child")["zone"] == "unknown"
    assert client.meter()["zone"] == "critical"


def test_what_was_finished_too_late_is_told_by_the_next_event(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.fill(0.95)
    client.env["ECM_PROMPT_PATH_MS"] = "2000"
    with client.detained():
        assert client.send("prompt") == "Context: zone=critical util=0.95 policy=handoff_fresh(P2)."
    client.await_late()
    late = client.send("tool")
    assert BRIEF.search(late)
    assert FRESH in late
    assert client.send("tool") == ""
    assert (len(client.made("handoff-*.md")), len(client.log("operation"))) == (1, 1)


STATUSLINES = [
    ("statusline.start", "unknown"),
    ("statusline.after-turn", "green"),
    ("statusline.after-compact", "unknown"),
]


@pytest.mark.parametrize(("name", "zone"), STATUSLINES)
def test_a_statusline_is_one_line_that_fits(name: str, zone: str, copied: pathlib.Path) -> None:
    data = json.dumps(clients.recorded("claude-code", name)).encode()
    for env, width, colour in (
        ({}, 80, zone == "green"),
        ({"NO_COLOR": "1"}, 80, False),
        ({"COLUMNS": "20"}, 20, zone == "green"),
        ({"COLUMNS": "5", "NO_COLOR": "1"}, 5, False),
        ({"COLUMNS": "nonsense"}, 80, zone == "green"),
        ({"COLUMNS": "0"}, 80, zone == "green"),
        ({"COLUMNS": "\u00b2"}, 80, zone == "green"),
        ({"COLUMNS": "9" * 30}, 10**9, zone == "green"),
    ):
        done = clients.run("claude-code", data, copied, **env)
        assert (done.returncode, done.stderr) == (0, b""), env
        line = done.stdout.decode()
        assert line.endswith("\n")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line[:-1])
        assert (len(plain) <= width, "\x1b" in line) == (True, colour), env
        assert "\n" not in plain
        if width == 80:
            assert zone in plain
            assert "of 900k tokens" in plain


OFF = [None, "members: []\n", "context: {enabled: false}\n", "# context\nmembers: []\n"]


@pytest.mark.parametrize("text", OFF)
def test_off_is_as_if_it_were_not_there(text: str | None, copied: pathlib.Path) -> None:
    shutil.rmtree(copied / clients.STATE)
    (copied / "eidolons.yaml").unlink()
    if text is not None:
        (copied / "eidolons.yaml").write_text(text)
    before = sorted(copied.rglob("*"))
    for host in ("claude-code", "copilot"):
        client = Client(host, copied)
        client.fill(0.95)
        for moment in ("start", "prompt", "tool", "before", "stop"):
            if text in OFF[2:3] and moment not in ("start", "prompt"):
                continue  # the table is read at each
            assert client.send(moment) == ""
    done = clients.run("claude-code", json.dumps(clients.recorded("claude-code", "statusline.start")).encode(), copied)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sorted(copied.rglob("*")) == before


def test_switched_off_later_it_leaves_what_was_written(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied, 0.8)
    (copied / "eidolons.yaml").write_text("context: {enabled: false}\n")
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file() and "programs" not in path.name}
    for moment in clients.RECORDED["claude-code"]:
        assert client.send(moment) == ""
    after = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file() and "programs" not in path.name}
    assert after == before
