"""What the lines of a ledger add up to: threads, what counts once, and lines that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.kernel import accounts
from ecm_rules.kernel.accounts import Accounts
from tests.kernel.state import MANY, NOW, after, everything, line, spent


def summed(*lines: bytes) -> Accounts:
    found = Accounts()
    for each in lines:
        found.feed(each)
    return found


def threads(found: Accounts, *sessions: str) -> list[list[str]]:
    return [list(found.thread(session) or ()) for session in sessions]


def test_a_thread_is_a_session_its_subagents_and_its_successors() -> None:
    found = summed(
        line("open", "s1"), spent("s1", 100), spent("s1", 30, "a1"), spent("s1", 20, "a2"),
        after("s2", "s1"), spent("s2", 5), spent("s2", 1, "a1"), spent("other", 1000),
    )  # fmt: skip
    assert threads(found, "s1", "s2", "other", "nobody") == [["s1", "s2"], ["s1", "s2"], ["other"], []]
    assert [accounts.total(found, s) for s in ("s1", "s2", "other", "nobody")] == [156, 156, 1000, None]
    assert [accounts.own(found, "s1", a) for a in (None, "a1", "a2", "a3")] == [100, 30, 20, None]
    assert found.unread == 0


def test_a_fresh_session_that_succeeds_nobody_opens_a_thread() -> None:
    found = summed(spent("s1", 100), line("open", "s2"))
    assert (accounts.total(found, "s1"), accounts.total(found, "s2")) == (100, None)


def test_a_session_counts_once_however_often_it_reports() -> None:
    assert accounts.total(summed(*[spent("s", n) for n in range(0, 1000, 10)]), "s") == 990


def test_a_report_that_is_lower_than_one_before_takes_nothing_back_and_adds_nothing() -> None:
    found = summed(spent("s", 105), spent("s", 100), spent("s", 9, "a"), spent("s", 3, "a"))
    assert accounts.total(found, "s") == 114


@given(st.permutations([
    spent("s1", 100), spent("s1", 90), spent("s1", 30, "a1"), after("s2", "s1"), spent("s2", 5), after("s3", "s2"),
    spent("s3", 7), line("open", "s2"), spent("s2", 2), after("s2", "s1"), line("open", "s1"),
]))  # fmt: skip
def test_no_sum_depends_on_the_order_of_the_lines(lines: list[bytes]) -> None:
    found = summed(*lines)
    assert accounts.total(found, "s1") == accounts.total(found, "s3") == 142
    assert next(iter(found.thread("s3") or ())) == "s1"
    assert found.unread == 0


def test_a_session_has_one_predecessor_and_no_circle() -> None:
    found = summed(after("s2", "s1"), after("s3", "s2"), after("s1", "s3"), after("s2", "s9"), after("s4", "s4"))
    assert threads(found, "s1", "s9", "s4") == [["s1", "s2", "s3"], [], ["s4"]]
    assert found.unread == 3


UNREADABLE = {
    "torn": b'{"ts": "x", "session_id": "s", "event": "sp',
    "joined": spent("s", 1) + spent("s", 2),
    "joined behind a torn one": b'{"ts": "x", "sess' + spent("s", 2),
    "NULs": b"\0" * 300,
    "padded with NULs": b"\0" * 300 + spent("s", 2),
    "cut within a character": '{"é'.encode()[:-1],
    "no UTF-8": b'{"session_id": "caf\xe9"}',
    "UTF-16": '{"session_id": "s", "event": "open"}'.encode("utf-16"),
    "deep": b"[" * 100_000,
    "no object": b"[1]",
    "nothing of ours": b"{}",
    "an operation without a name": line("operation", "s"),
    "an event of another version": line("settled", "s"),
    "a session that is no string": spent(3, 1),
    "no session": spent(None, 1),
    "a subagent that is no string": spent("s", 1, 3),
    "tokens that are no number": spent("s", "100"),
    "tokens that are true": spent("s", True),
    "negative tokens": spent("s", -1),
    "tokens that are NaN": spent("s", float("nan")),
    "infinite tokens": spent("s", float("inf")),
    "a predecessor that is no string": after("s", 1),
    "no predecessor": after("s", None),
}


@pytest.mark.parametrize("bad", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_event_is_counted_and_never_guessed(bad: bytes) -> None:
    found = summed(spent("s", 7), bad, b"", b"  \r", spent("s", 8))
    assert (found.unread, accounts.total(found, "s"), threads(found, "s")) == (1, 8, [["s"]])


def test_a_line_of_the_nexus_opens_a_thread_and_adds_nothing() -> None:
    # What it calls spent is the fill of the window.
    theirs = {
        "ts": NOW, "session_id": "s1", "operation": "externalize", "spent_tokens_est": 84000, "ceiling_tokens": None,
        "crystalium_gated_in": False, "commit_ok": False,
    }  # fmt: skip
    found = summed(json.dumps(theirs).encode(), json.dumps({**theirs, "session_id": None}).encode())
    assert (found.unread, accounts.total(found, "s1"), threads(found, "s1")) == (0, None, [["s1"]])


@given(st.lists(st.sampled_from(MANY[:60]) | st.binary(max_size=40), max_size=60), st.integers(0, 2000))
def test_any_bytes_are_a_ledger(lines: list[bytes], cut: int) -> None:
    data = b"\n".join(lines)
    found = summed(*data[: max(0, len(data) - cut)].split(b"\n"))
    assert 0 <= found.unread <= len(data.split(b"\n"))
    again = Accounts(found.dump(), found.unread, found.latest)
    assert everything(again) == everything(found)
    assert sorted(again.dump().splitlines()) == sorted(found.dump().splitlines())
