"""The lifetimes that are kept between requests: corrupt, out of reach, in a crowd, and cut off in the midst."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from ecm_rules.hosts import views
from ecm_rules.kernel import files
from ecm_rules.lifecycle.session import tombstone
from tests.hosts.test_views import DISCARD, TRUST, actions, ask, events, sent, state
from tests.kernel.state import STATE
from tests.lifecycle.histories import ANSWERS, BLOCKS, LONG, said

SOURCES = [(BLOCKS, "plan.md")]
HISTORY = [said("pi", LONG), ANSWERS["pi"], said("pi", DISCARD)]
KEPT = "lifetimes-s1.json"
STONE = tombstone(len(json.dumps(HISTORY[0]["content"], separators=(",", ":"))))
REWRITTEN = [
    {"role": "user", "content": [{"type": "text", "text": BLOCKS}], "timestamp": 0},
    {**HISTORY[0], "content": [{"type": "text", "text": STONE}]},
    *HISTORY[1:],
]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"null", b"[]", b"5", b'{"loaded": []}', b'{"format": 2, "loaded": []}', b"\xff\xfe", b"[" * 100_000,
        b'{"format": 1, "loaded": 5}',
    ],
)  # fmt: skip
def test_a_state_that_is_none_begins_anew_and_says_so_once(data: bytes, tmp_path: pathlib.Path) -> None:
    assert sent(tmp_path, "pi", HISTORY, sources=SOURCES) == REWRITTEN
    (tmp_path / STATE / KEPT).write_bytes(data)
    told, complaints = ask(tmp_path, "pi", HISTORY, sources=SOURCES)
    assert (told, complaints) == (REWRITTEN, [f"lifetimes were no longer readable and begin anew: {KEPT}"])
    assert sent(tmp_path, "pi", HISTORY, sources=SOURCES) == REWRITTEN


@pytest.mark.parametrize(
    "key", ["blocks", "audit", "consumed", "processed", "diagnostics", "request_sequence", "loaded"]
)
@pytest.mark.parametrize("value", [None, "text", [5], [{"id": 5}], -1, {}])
def test_a_state_of_which_a_part_is_wrong_begins_anew(key: str, value: Any, tmp_path: pathlib.Path) -> None:
    sent(tmp_path, "pi", HISTORY, sources=SOURCES)
    (tmp_path / STATE / KEPT).write_text(json.dumps({**state(tmp_path), key: value}))
    told, complaints = ask(tmp_path, "pi", HISTORY, sources=SOURCES)
    assert (told, len(complaints)) == (REWRITTEN, 1)


def obstruct(project: pathlib.Path, what: str) -> None:
    """Put something where the state, or its folder, belongs."""
    folder = project / STATE
    folder.parent.mkdir()
    if what == "a file for the folder":
        folder.write_text("")
    elif what == "a link for the folder":
        folder.symlink_to(project)
    else:
        folder.mkdir()
        path = folder / KEPT
        if what == "a folder":
            path.mkdir()
        elif what == "a link":
            path.symlink_to(project / "elsewhere.json")
        elif what == "a pipe":
            os.mkfifo(path)
        elif what == "a folder for the lock":
            (folder / "lifetimes-s1.lock").mkdir()


@pytest.mark.parametrize("what", ["a folder", "a link", "a pipe", "a link for the folder"])
def test_where_it_is_not_known_what_was_discarded_no_block_is_put_in(what: str, tmp_path: pathlib.Path) -> None:
    obstruct(tmp_path, what)
    before = sorted(os.listdir(tmp_path))
    for _ in range(2):
        told, complaints = ask(tmp_path, "pi", HISTORY, sources=SOURCES)
        assert told == REWRITTEN[1:]
        assert len(complaints) == 1
        assert complaints[0].startswith("lifetimes cannot be read, no block is put in: ")
    assert sorted(os.listdir(tmp_path)) == before
    assert not (tmp_path / "policy-log.jsonl").exists()


@pytest.mark.parametrize("what", ["a file for the folder", "a folder for the lock"])
def test_what_cannot_be_kept_is_done_again_with_the_next_request(what: str, tmp_path: pathlib.Path) -> None:
    obstruct(tmp_path, what)
    for _ in range(2):
        told, complaints = ask(tmp_path, "pi", HISTORY, sources=SOURCES)
        assert told == REWRITTEN
        assert len(complaints) == 1
        assert complaints[0].startswith("lifetimes are not kept: ")


def test_a_state_that_grows_too_large_is_not_kept(tmp_path: pathlib.Path) -> None:
    long = BLOCKS.replace("A\n", "A" * (9 << 20) + "\n")
    for _ in range(2):
        told, complaints = ask(tmp_path, "pi", HISTORY, sources=[(long, "plan.md")])
        assert told[0]["content"][0]["text"] == long
        assert complaints == [f"lifetimes are not kept: more than {views.MAX_BYTES} bytes"]
    assert events(tmp_path) == []


def test_events_that_cannot_be_logged_wait(tmp_path: pathlib.Path) -> None:
    log = tmp_path / STATE / "policy-log.jsonl"
    log.mkdir(parents=True)
    told, complaints = ask(tmp_path, "pi", HISTORY, sources=SOURCES)
    assert told == REWRITTEN
    assert len(complaints) == 1
    assert complaints[0].startswith("lifetimes are not logged: ")
    log.rmdir()
    assert sent(tmp_path, "pi", HISTORY, sources=SOURCES) == REWRITTEN
    assert actions(tmp_path) == ["block_activated", "discard_denied", "ephemeral_consumed"]
    assert state(tmp_path)["audit"] == []


class Cut(BaseException):
    """The deadline passes."""


@pytest.mark.parametrize("step", range(6))
def test_a_request_that_is_cut_off_loses_no_event_and_none_is_there_twice(
    step: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off before or after each write: the state, three events, the state again."""
    steps = 0

    def cut(write: Any) -> Any:
        def writes(*given: Any, **more: Any) -> None:
            nonlocal steps
            steps += 1
            if step == 5 and steps == 5:
                write(*given, **more)
            if steps > step:
                raise Cut
            write(*given, **more)

        return writes

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", cut(files.replace))
        patch.setattr(files, "append", cut(files.append))
        if step < 5:
            with pytest.raises(Cut):
                views.view(str(tmp_path), {}, TRUST, "pi", "s1", None, HISTORY, SOURCES)
        else:
            views.view(str(tmp_path), {}, TRUST, "pi", "s1", None, HISTORY, SOURCES)
    assert sent(tmp_path, "pi", HISTORY, sources=SOURCES) == REWRITTEN
    assert sent(tmp_path, "pi", HISTORY, sources=SOURCES) == REWRITTEN
    assert actions(tmp_path) == ["block_activated", "discard_denied", "ephemeral_consumed"]


CROWD = """
import json, sys
from ecm_rules.hosts import views
from ecm_rules.lifecycle.trust import Trust
project, program, given = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
told = views.view(project, {}, Trust(program), "pi", "s1", None, given["messages"], given["sources"], patience=60)
print(json.dumps(told))
"""


def crowd(project: pathlib.Path, requests: list[list[Any]]) -> list[Any]:
    """What as many processes at once answer."""
    running = [
        subprocess.Popen(
            [
                sys.executable, "-c", CROWD, str(project), json.dumps(TRUST.program),
                json.dumps({"messages": messages, "sources": SOURCES}),
            ],
            stdout=subprocess.PIPE,
        )
        for messages in requests
    ]  # fmt: skip
    told = [json.loads(process.communicate()[0]) for process in running]
    assert [process.returncode for process in running] == [0] * len(requests)
    return told


def test_thirty_processes_at_once_send_the_same_and_audit_it_once(tmp_path: pathlib.Path) -> None:
    assert crowd(tmp_path, [HISTORY] * 30) == [[REWRITTEN, []]] * 30
    assert sorted(actions(tmp_path)) == ["block_activated", "discard_denied", "ephemeral_consumed"]
    assert state(tmp_path)["audit"] == []
    assert sorted(os.listdir(tmp_path / STATE)) == [KEPT, "lifetimes-s1.lock", "policy-log.jsonl"]


def test_thirty_processes_with_a_history_each_lose_no_event(tmp_path: pathlib.Path) -> None:
    requests = [[said("pi", f"{LONG} {n}"), ANSWERS["pi"]] for n in range(30)]
    told = crowd(tmp_path, requests)
    assert [complaints for _, complaints in told] == [[]] * 30
    assert sorted(actions(tmp_path)) == ["block_activated", *["ephemeral_consumed"] * 30]
    assert sorted(event["request_sequence"] for event in events(tmp_path))[1:] == list(range(1, 31))
    assert len(state(tmp_path)["consumed"]) == 30
    assert sent(tmp_path, "pi", requests[0], sources=SOURCES) == told[0][0]
