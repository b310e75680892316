"""What once went wrong, by the smallest input that showed it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

from ecm_rules.hosts import cache, memo
from ecm_rules.kernel import locks
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


def test_the_word_alone_is_no_key_that_is_worth_a_parser() -> None:
    for text in (
        b"# context\nmembers: []\n",
        b"members: [context]\n",
        b"note: 'more context, please'\n",
        b"context",
        b"",
    ):
        assert not cache._looks_like_a_key(text, b"context"), text
    for text in (
        b"context: {}",
        b'\xef\xbb\xbf"context" : {}',
        b"{members: [], 'context': {}}",
        b"# context\r\ncontext:\r\n  enabled: true",
        b"? context\n: {}",
        b"context   \t:\n",
    ):
        assert cache._looks_like_a_key(text, b"context"), text


def test_what_cannot_be_kept_is_built_once(copied: pathlib.Path) -> None:
    """A project that is switched off pays for its tables at each event, for nothing may be written: once, not twice."""
    shutil.rmtree(copied / clients.STATE)
    (copied / "eidolons.yaml").write_text("context: {enabled: false}\n")
    code = (
        "import os, sys\n"
        "from ecm_rules.hosts import apart, cache\n"
        "def build(project):\n"
        "    os.write(2, b'built ')\n"
        "    return {'enabled': False, 'padding': 'x' * 300_000}\n"
        "cache.build = build\n"
        "assert cache.programs(sys.argv[1], __import__('time').monotonic() + 30) is None\n"
    )
    # The child lets go of stderr, so that it builds where nobody sees it: twice would be seen.
    done = subprocess.run([sys.executable, "-c", code, str(copied)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not (copied / clients.STATE).exists()


def test_no_text_is_lost_between_who_leaves_and_who_takes_it(tmp_path: pathlib.Path) -> None:
    many = 1500
    code = (
        "import sys\n"
        "from ecm_rules.hosts import memo\n"
        f"for n in range({many}):\n"
        "    memo.leave(sys.argv[1], {}, 's1', None, memo.REST, str(n))\n"
    )
    leaving = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    found: list[str] = []
    while leaving.poll() is None:
        try:
            found += memo.collect(str(tmp_path), {}, "s1", None, memo.REST)
        except locks.Busy:
            pass
    found += memo.collect(str(tmp_path), {}, "s1", None, memo.REST)
    assert leaving.returncode == 0
    assert found == [str(n) for n in range(many)]


def test_what_one_outbox_gave_is_told_though_the_other_cannot_be_read(copied: pathlib.Path) -> None:
    client = Client("claude-code", copied)
    client.send("start")
    memo.leave(str(copied), {}, client.session, None, memo.PINS, "the pins")
    (copied / clients.STATE / f"{memo.REST}-{client.session}.jsonl").mkdir()
    client.complaints = []
    assert client.send("prompt").endswith("\nthe pins")
    assert client.complaints == ["ecm-hook: not remembered: no regular file"]


def test_a_deadline_that_passes_while_it_is_said_what_went_wrong(copied: pathlib.Path) -> None:
    code = (
        "import time\n"
        "from ecm_rules.hosts import hook\n"
        "class Slow(Exception):\n"
        "    def __str__(self):\n"
        "        time.sleep(5)\n"
        "        return 'slow'\n"
        "def run(arguments, begun):\n"
        "    raise Slow\n"
        "hook.run = run\n"
        "hook.command()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "ECM_PROMPT_PATH_MS": "100"}
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "ecm-hook: late: the deadline has passed\n")


def test_pins_that_nobody_could_be_told_yet_are_told_once_and_not_taken_for_lost(copied: pathlib.Path) -> None:
    """Where two compactions have no event between them that could tell, and where the first that can is a tool's."""
    client = Client("codex", copied)
    client.fill(0.3)
    client.send("start")
    for _ in range(2):
        client.send("before")
        client.boundary()
        assert client.send("after") == ""
    told = client.send("tool")
    assert len(clients.pins_in(told)) == 8
    client.say(told)
    assert client.log("pins_verified") == []
    assert client.send("prompt") == "Context: zone=unknown util=unknown policy=continue(P7)."
    assert [event["repaired"] for event in client.log("pins_verified")] == [False]
