"""The budget ledger as a file: what is appended, what is read again, and a sum that is kept."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from ecm_rules.kernel import accounts, files, ledger
from ecm_rules.kernel.accounts import Accounts
from tests.kernel.state import MANY, NOW, everything, spent


def path_of(project: pathlib.Path) -> pathlib.Path:
    return project / ledger.FILE


def write(project: pathlib.Path, *lines: bytes) -> pathlib.Path:
    path = path_of(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    return path


def test_what_is_appended_is_what_is_read(tmp_path: pathlib.Path) -> None:
    project = str(tmp_path)
    assert ledger.spent(project, {}, "s1") is None
    ledger.report(project, {}, "s1", None, 100, NOW)
    ledger.report(project, {}, "s1", "a1", 20, NOW)
    ledger.succeed(project, {}, "s2", "s1", NOW)
    ledger.report(project, {}, "s2", None, None, NOW)
    assert ledger.spent(project, {}, "s2") == 120
    lines = [json.loads(each) for each in path_of(tmp_path).read_text().splitlines()]
    assert [(x["session_id"], x["agent_id"], x["event"]) for x in lines] == [
        ("s1", None, "open"), ("s1", None, "spent"), ("s1", "a1", "open"), ("s1", "a1", "spent"), ("s2", None, "succeed")
    ]  # fmt: skip
    assert path_of(tmp_path).stat().st_mode & 0o777 == 0o600


def test_what_is_no_news_is_not_appended(tmp_path: pathlib.Path) -> None:
    for tokens in (100, 100, 90, None, -1, float("nan"), 1e300):
        ledger.report(str(tmp_path), {}, "s1", None, tokens, NOW)
    assert path_of(tmp_path).read_bytes().count(b"\n") == 2


def test_an_operation_is_the_line_of_the_nexus_with_what_the_thread_has_spent(tmp_path: pathlib.Path) -> None:
    ledger.report(str(tmp_path), {}, "s1", "a1", 20, NOW)
    for session in ("s1", None):
        ledger.operation(
            str(tmp_path), {}, session, "externalize", ceiling=500, gated_in=True, committed=False, now=NOW
        )
    lines = [json.loads(each) for each in path_of(tmp_path).read_text().splitlines()[-2:]]
    assert list(lines[0])[:7] == [
        "ts", "session_id", "operation", "spent_tokens_est", "ceiling_tokens", "crystalium_gated_in", "commit_ok"
    ]  # fmt: skip
    assert list(lines[0].values())[:7] == [NOW, "s1", "externalize", 20, 500, True, False]
    assert list(lines[1].values())[:7] == [NOW, None, "externalize", None, 500, True, False]
    assert ledger.load(str(tmp_path), {}).unread == 0


@pytest.mark.parametrize("session", ["../../x", "a\0b", "CON", "s" * 300, "é", "\ud800", '"', "\n", "a1"])
def test_a_hostile_name_is_a_name(session: str, tmp_path: pathlib.Path) -> None:
    project = str(tmp_path)
    write(tmp_path, *[spent("s", 1, "a1")] * 500)
    for tokens in (3, 4):
        ledger.report(project, {}, session, session, tokens, NOW)
        ledger.report(project, {}, session, None, tokens, NOW)
    ledger.succeed(project, {}, "next", session, NOW)
    assert [ledger.spent(project, {}, s) for s in (session, "next", "s")] == [8, 8, 1]
    assert sorted(os.listdir(path_of(tmp_path).parent)) == ["budget-ledger.jsonl", "budget-ledger.state"]


def state_of(project: pathlib.Path) -> pathlib.Path:
    return path_of(project).with_suffix(".state")


def watched(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are added up from now on."""
    fed: list[bytes] = []
    feed = Accounts.feed

    def watch(found: Accounts, line: bytes) -> None:
        fed.append(line)
        feed(found, line)

    monkeypatch.setattr(Accounts, "feed", watch)
    return fed


def test_a_short_ledger_keeps_no_sum(tmp_path: pathlib.Path) -> None:
    write(tmp_path, *MANY[:30])
    ledger.load(str(tmp_path), {})
    assert not state_of(tmp_path).exists()


def test_with_a_sum_that_is_kept_the_answer_is_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, path = str(tmp_path), write(tmp_path, *MANY, b"torn")
    whole = ledger.load(project, {})
    assert state_of(tmp_path).stat().st_mode & 0o777 == 0o600
    fed = watched(monkeypatch)
    assert accounts.total(ledger.load(project, {}), "s299") == 300
    assert b"".join(fed) == b""
    assert everything(ledger.load(project, {})) == everything(whole)
    ledger.succeed(project, {}, "s305", "s7", NOW)
    ledger.report(project, {}, "s305", None, 1000, NOW)
    for step in (ledger.MAX_STEP, None):
        found = everything(ledger.load(project, {}, step=step))
        assert (found["s7"], found["s305"], found["s8"], found["unread"]) == (1008, 1008, 9, 1)
    path.write_bytes(path.read_bytes() + b"".join(each + b"\n" for each in MANY))
    assert everything(ledger.load(project, {})) == everything(ledger.load(project, {}, step=None))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"\0" * 1000, b"[" * 100_000, b"kept"])
def test_a_kept_sum_that_is_corrupt_is_taken_again(content: bytes, tmp_path: pathlib.Path) -> None:
    write(tmp_path, *MANY)
    right = everything(ledger.load(str(tmp_path), {}))
    state_of(tmp_path).write_bytes(content)
    assert everything(ledger.load(str(tmp_path), {})) == right
    assert everything(ledger.load(str(tmp_path), {})) == right
    kept = state_of(tmp_path).read_bytes()
    assert kept != content
    for at in range(0, len(kept), 997):
        state_of(tmp_path).write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
        assert accounts.total(ledger.load(str(tmp_path), {}), "s7") == 8


def test_a_sum_of_a_ledger_that_was_replaced_or_cut_is_not_used(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, *MANY)
    ledger.load(str(tmp_path), {})
    with open(path, "r+b") as stream:  # the same inode
        stream.truncate(len(MANY[0]) + 1)
    assert ledger.spent(str(tmp_path), {}, "s7") is None
    ledger.report(str(tmp_path), {}, "s7", None, 3, NOW)
    assert ledger.spent(str(tmp_path), {}, "s7") == 3
    write(tmp_path, *[spent(f"t{n}", n) for n in range(1000)])
    assert [ledger.spent(str(tmp_path), {}, s) for s in ("s7", "t7")] == [None, 7]
    path.unlink()
    assert ledger.spent(str(tmp_path), {}, "t7") is None


def test_a_last_line_without_its_end_counts_where_it_is_whole(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, spent("s", 1))
    path.write_bytes(path.read_bytes() + spent("s", 5))
    found = ledger.load(str(tmp_path), {})
    assert (accounts.total(found, "s"), found.unread) == (5, 0)
    path.write_bytes(path.read_bytes()[:-3])
    found = ledger.load(str(tmp_path), {})
    assert (accounts.total(found, "s"), found.unread) == (1, 0)
    ledger.report(str(tmp_path), {}, "s", None, 6, NOW)
    found = ledger.load(str(tmp_path), {})
    assert (accounts.total(found, "s"), found.unread) == (6, 1)


@pytest.mark.parametrize("step", [200, 1000, 50_000])
def test_a_ledger_that_nobody_has_added_up_is_caught_up_with(
    step: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "KEEP_EVERY", 1)
    write(tmp_path, *MANY, b"x" * 5000, spent("s7", 100))
    loads = 1
    while not (found := ledger.load(str(tmp_path), {}, step=step)).complete:
        loads += 1
    assert loads > 1
    assert accounts.total(found, "s7") == 101
    assert found.unread >= 1


def test_of_a_hundred_thousand_lines_a_prompt_reads_the_last(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *[spent(f"s{n // 33}", n, None if n % 3 else f"a{n % 9}") for n in range(100_000)])
    while not ledger.load(str(tmp_path), {}).complete:
        pass
    fed = watched(monkeypatch)
    found = ledger.load(str(tmp_path), {})
    assert accounts.total(found, "s3030") == 99_998 + 99_999 + 99_996 + 99_993
    assert accounts.total(found, "nobody") is None
    assert sum(map(len, fed)) < ledger.KEEP_EVERY


@pytest.mark.parametrize("relative", [".eidolons", ".eidolons/.context", ledger.FILE])
def test_a_link_is_not_followed_to_read(relative: str, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, spent("s", 1))
    project = tmp_path / "project"
    link = project / relative
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / relative)
    with pytest.raises(OSError):  # noqa: PT011  the system's own refusal is among them
        ledger.load(str(project), {})


def test_reading_makes_no_folder(tmp_path: pathlib.Path) -> None:
    assert ledger.spent(str(tmp_path), {}, "s") is None
    assert os.listdir(tmp_path) == []
    assert files.state_path(str(tmp_path), ledger.FILE, make=False) == str(path_of(tmp_path))
