"""What once went wrong, by the smallest input that showed it."""

from __future__ import annotations

import json
import pathlib

from tests.hosts import clients
from tests.hosts.clients import Client
from tests.hosts.test_moments_session import HANDOFF, first, handoff


def test_an_opencode_subagent_takes_no_brief_from_the_session_that_it_is_for(copied: pathlib.Path) -> None:
    handoff(copied)
    child = Client("opencode", copied, "ses_child")
    created = child.payload("event.session.created.subagent")
    assert created["input"]["properties"]["sessionID"] == "ses_child"
    assert child.deliver(created) == ""
    assert HANDOFF not in child.send("prompt")
    assert HANDOFF in first(Client("opencode", copied, "ses_next"))


def test_pins_are_put_back_after_a_second_compaction_though_another_session_had_the_meter(copied: pathlib.Path) -> None:
    client = Client("opencode", copied)
    told = []
    for _ in range(2):
        client.send("before")
        client.send("after")
        told.append(client.send("prompt"))
        Client("opencode", copied, "other").send("stop")
    assert [len(clients.pins_in(each)) for each in told] == [8, 8]


def test_a_number_of_columns_that_is_no_decimal(copied: pathlib.Path) -> None:
    payload = json.dumps(clients.recorded("claude-code", "statusline.start")).encode()
    for columns in ("\u00b2", "\u0663", "9" * 5000):
        done = clients.run("claude-code", payload, copied, COLUMNS=columns)
        assert (done.stderr, done.stdout.count(b"\n")) == (b"", 1), columns
