"""Compactions: what they lose is written down before, and pins are put back, verified and repaired after. Once each."""

from __future__ import annotations

import itertools
import json
import pathlib
from typing import Any

import pytest

from tests.hosts import clients
from tests.hosts.clients import Client
from tests.hosts.test_moments_session import PINS

WRITTEN = ["claude-code", "codex", "copilot", "gemini-cli"]
"""They write its boundary to a file that the hook reads."""


def begun(host: str, project: pathlib.Path, share: float = 0.6) -> Client:
    """A session that has its pins, and a window so full."""
    client = Client(host, project)
    client.fill(share)
    told = client.send("start") + client.send("prompt")
    assert clients.pins_in(told) == PINS
    return client


def pins_of(told: list[str]) -> list[list[str]]:
    return [clients.pins_in(each) for each in told]


@pytest.mark.parametrize("host", clients.HOSTS)
def test_before_a_compaction_its_losses_are_written_down_and_nothing_is_said(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied, 0.3)
    client.write(type="user", sessionId=client.session, message={"role": "user", "content": "look at src/parser.py:42"})
    assert client.made("externalized-*") == []
    assert client.send("before") == ""
    (name,) = client.made("externalized-*")
    manifest = json.loads((copied / clients.STATE / name).read_text())
    assert manifest["file_floor_reason"]
    if host == "claude-code":
        assert "src/parser.py:42" in manifest["anchors"]
    assert client.made("handoff-*") == []
    (event,) = client.log("compaction_bracket")
    assert (event["outcome"], event["made"]["file_floor_path"]) == ("degraded", f"{clients.STATE}/{name}")
    assert client.ledger() == ["externalize"]


ORDERS: list[list[str]] = [
    ["before", "boundary", "compacted", "after"],
    ["before", "boundary", "after", "compacted"],
    ["before", "compacted", "after", "boundary"],
    ["before", "after", "compacted", "boundary"],
    ["boundary", "compacted", "after"],
    ["after", "compacted", "boundary"],
    ["compacted", "boundary"],
    ["before", "boundary"],
    ["boundary"],
]


@pytest.mark.parametrize(
    ("host", "order"),
    [("claude-code", order) for order in ORDERS] + [("codex", order) for order in (ORDERS[1], ORDERS[5])],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_after_a_compaction_the_pins_are_told_again_once_whatever_comes_first(
    host: str, order: list[str], copied: pathlib.Path
) -> None:
    client = begun(host, copied)
    told, later = [], ""
    for at, step in enumerate(order):
        if step == "boundary":
            client.boundary()
            client.say(later)
            continue
        told.append(client.send(step))
        if "boundary" in order[at:]:
            later += told[-1]
        else:
            client.say(told[-1])
    for moment in ("tool", "prompt"):
        told.append(client.send(moment))
        client.say(told[-1])
    assert [pin for each in told for pin in clients.pins_in(each)] == PINS
    if "compacted" in order:
        place = len([step for step in order[: order.index("compacted")] if step != "boundary"])
        assert clients.pins_in(told[place]) == PINS
    assert client.log("pins_verified")[-1]["repaired"] is False
    assert len(client.log("pins_verified")) == 1


@pytest.mark.parametrize("host", clients.HOSTS)
def test_every_client_has_its_pins_again_after_each_of_two_compactions(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    for number in (1, 2):
        told = [client.send("before")]
        client.boundary()
        for moment in ("after", "compacted", "tool", "prompt"):
            if moment == "tool":
                client.fill(0.3)
            if moment in clients.RECORDED[host]:
                told.append(client.send(moment))
                client.say(told[-1])
        assert [pin for each in told for pin in clients.pins_in(each)] == PINS, number
    if host in WRITTEN or host == "opencode":
        assert client.meter()["compaction_count"] == 2


@pytest.mark.parametrize("host", WRITTEN)
def test_pins_that_did_not_arrive_are_put_back_once(host: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    client.send("before")
    client.boundary()
    if "compacted" in clients.RECORDED[host]:
        assert clients.pins_in(client.send("compacted")) == PINS
    else:
        assert clients.pins_in(client.send("tool")) == PINS
    # Of all that was told, the client kept two.
    kept = f"\n<!--BLOCK_ID:{PINS[0]}-->\nx\n<!--/BLOCK_ID:{PINS[0]}-->\n<!--BLOCK_ID:{PINS[2]}-->\n"
    client.say(kept)
    told = client.send("tool")
    lost = [pin for pin in PINS if pin != PINS[0]]
    assert clients.pins_in(told) == lost
    assert "Pins that the compaction lost, again:" in told
    (event,) = client.log("pins_verified")
    assert (event["repaired"], event["compaction_count"]) == (True, 1)
    assert event["pins"] == {PINS[0]: "present", PINS[2]: "damaged"} | dict.fromkeys(
        [pin for pin in lost if pin != PINS[2]], "missing"
    )
    assert pins_of([client.send("tool"), client.send("prompt")]) == [[], []]
    assert len(client.log("pins_verified")) == 1


@pytest.mark.parametrize("moment", ["prompt", "tool"])
def test_the_next_event_verifies_whichever_it_is(moment: str, copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.send("before")
    client.boundary()
    client.say(client.send("compacted"))
    assert client.log("pins_verified") == []
    client.send(moment)
    (event,) = client.log("pins_verified")
    assert event["pins"] == dict.fromkeys(PINS, "present")


def test_what_a_tool_printed_is_no_pin_that_arrived(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.boundary()
    told = client.send("compacted")
    result = [{"type": "tool_result", "tool_use_id": "t", "content": told}]
    client.write(type="user", sessionId=client.session, message={"role": "user", "content": result})
    assert clients.pins_in(client.send("tool")) == PINS


def test_a_compaction_that_did_not_come_puts_nothing_back(copied: pathlib.Path) -> None:
    """PreCompact fires again where a compaction was blocked, and where there was nothing to summarise."""
    client = begun("claude-code", copied)
    told = [client.send("before"), client.send("tool"), client.send("before"), client.send("prompt")]
    assert pins_of(told) == [[], [], [], []]
    client.send("before")
    assert clients.pins_in(client.send("compacted")) == PINS


def test_two_compactions_in_a_row_without_a_word_between(copied: pathlib.Path) -> None:
    for host in ("claude-code", "pi"):
        client = Client(host, copied, host)
        client.send("start")
        told = [client.send(moment) for moment in ("before", "compacted", "before", "compacted")]
        assert pins_of(told) == [[], PINS, [], PINS]


def test_a_session_that_is_resumed_after_a_compaction_keeps_its_count(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied)
    client.boundary()
    client.say(client.send("compacted"))
    client.send("prompt")
    assert client.send("resume") == ""
    assert client.meter()["compaction_count"] == 1
    client.boundary()
    assert clients.pins_in(client.send("compacted")) == PINS


@pytest.mark.parametrize("host", ["claude-code", "opencode"])
def test_another_session_in_between_changes_nothing(host: str, copied: pathlib.Path) -> None:
    client, other = begun(host, copied), Client(host, copied, "other")
    other.send("start")
    for _ in range(2):
        told = [client.send("before")]
        client.boundary()
        for moment in ("compacted", "after", "tool", "prompt"):
            if moment in clients.RECORDED[host]:
                told.append(client.send(moment))
                client.say(told[-1])
        assert [pin for each in told for pin in clients.pins_in(each)] == PINS
        other.send("prompt")


def test_past_the_cap_a_compaction_that_the_client_starts_is_bracketed_and_said(copied: pathlib.Path) -> None:
    client = begun("claude-code", copied, 0.3)
    for number in (1, 2, 3):
        assert client.send("before") == ""
        assert len(client.made("externalized-*")) == number
        assert (len(client.made("handoff-*.md")), len(client.made("handoff-*.envelope.json"))) == (number // 3,) * 2
        client.boundary()
        assert clients.pins_in(client.send("compacted")) == PINS
    (event,) = client.log("cap_exceeded")
    assert (event["compaction_count"], event["cap"]) == (3, 2)
    steps = [[step["step"] for step in event["steps"]] for event in client.log("compaction_bracket")]
    assert ["compose_handoff_brief" in each for each in steps] == [False, False, True]
    # What was left for a successor is told to one.
    assert "session_handoff" in Client("claude-code", copied, "next").send("start")


IGNORED: list[tuple[str, str]] = [
    ("claude-code", "SubagentStop.compaction-summarizer"),
    ("gemini-cli", "PreCompress.auto"),
    ("codex", "UserPromptSubmit.in-subagent"),
    ("copilot", "userPromptSubmitted.in-subagent"),
]


@pytest.mark.parametrize(("host", "name"), IGNORED)
def test_what_is_not_what_it_seems_leaves_everything_as_it_is(host: str, name: str, copied: pathlib.Path) -> None:
    client = begun(host, copied)
    before = {path.name: path.read_bytes() for path in (copied / clients.STATE).iterdir()}
    assert client.deliver(client.payload(name)) == ""
    assert {path.name: path.read_bytes() for path in (copied / clients.STATE).iterdir()} == before


@pytest.mark.parametrize(
    "name", ["chat.params.title-agent", "chat.params.compaction-agent", "event.message.updated.summary"]
)
def test_the_helpers_of_opencode_are_no_reading_of_the_window(name: str, copied: pathlib.Path) -> None:
    client = begun("opencode", copied)
    before = client.meter()
    payload = client.payload(name)
    sizes: Any = payload["input"].get("model")
    if sizes:
        sizes["limit"]["context"] = 1000
    else:
        payload["input"]["properties"]["info"]["tokens"]["total"] = 190_000
    assert client.deliver(payload) == ""
    same = ("zone", "utilization", "used_tokens_est", "window_tokens")
    assert [client.meter()[key] for key in same] == [before[key] for key in same]
    assert client.send("tool") == ""


def test_orders_are_different() -> None:
    assert all(a != b for a, b in itertools.combinations(ORDERS, 2))
