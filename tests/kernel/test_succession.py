"""A session that takes over: a brief that its envelope proves, for one successor, in the same thread."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib

import pytest

from ecm_rules.kernel import checkpoints, files, ledger, succession
from tests.kernel.state import NOW, STATE, lines


def leave(project: pathlib.Path, session: str | None = "s1", **facts: object) -> dict[str, str]:
    told = checkpoints.handoff(
        str(project), {"task_state": "Fix it", "next_steps": ["test"], **facts}, session=session
    ).told
    return {key: told[key] for key in ("brief_path", "envelope_path", "thread_id", "digest")}


@pytest.mark.parametrize("profile", ["kernel", "ecl"])
def test_a_new_session_gets_the_digest_and_goes_on_in_the_thread(profile: str, tmp_path: pathlib.Path) -> None:
    ledger.report(str(tmp_path), {}, "s1", None, 100, NOW)
    told = leave(tmp_path, profile=profile)
    found = succession.take_over(str(tmp_path), {}, "s2", NOW)
    assert found is not None
    assert (found.digest, found.brief_path, found.session_id) == (told["digest"], told["brief_path"], "s1")
    assert len(found.digest.encode()) <= 800
    ledger.report(str(tmp_path), {}, "s2", None, 11, NOW)
    assert ledger.spent(str(tmp_path), {}, "s2") == 111


def test_one_session_gets_it_once(tmp_path: pathlib.Path) -> None:
    leave(tmp_path)
    assert succession.take_over(str(tmp_path), {}, "s1", NOW) is None  # it is its own
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda n: succession.take_over(str(tmp_path), {}, f"t{n}", NOW), range(32)))
    assert sum(found is not None for found in got) == 1
    assert [line["event"] for line in lines(tmp_path, "budget-ledger.jsonl")] == ["succeed"]
    leave(tmp_path)
    assert succession.waiting(str(tmp_path), {}) is not None


def test_a_brief_that_was_changed_is_nobodys(tmp_path: pathlib.Path) -> None:
    told = leave(tmp_path)
    (tmp_path / told["brief_path"]).write_text("another")
    assert succession.waiting(str(tmp_path), {}) is None
    assert succession.take_over(str(tmp_path), {}, "s2", NOW) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"digest": 1}', b"\xff"])
def test_a_note_that_is_corrupt_is_none(data: bytes, tmp_path: pathlib.Path) -> None:
    leave(tmp_path)
    (tmp_path / STATE / succession.FILE).write_bytes(data)
    assert succession.waiting(str(tmp_path), {}) is None


@pytest.mark.parametrize("key", ["brief_path", "envelope_path"])
def test_a_note_that_leads_out_is_none(key: str, tmp_path: pathlib.Path) -> None:
    leave(tmp_path)
    path = tmp_path / STATE / succession.FILE
    told = json.loads(path.read_bytes())
    for value in ("../../x", "/etc/passwd", 7, None, f"{STATE}/../../x"):
        files.replace(str(path), json.dumps({**told, key: value}).encode())
        assert succession.waiting(str(tmp_path), {}) is None


def test_where_there_is_none(tmp_path: pathlib.Path) -> None:
    assert succession.waiting(str(tmp_path), {}) is None
    assert list(tmp_path.iterdir()) == []
    leave(tmp_path, session=None)
    assert succession.take_over(str(tmp_path), {}, "s2", NOW) is not None
    assert not (tmp_path / ledger.FILE).exists()
