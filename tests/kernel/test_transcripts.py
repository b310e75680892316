"""Recorded transcripts, each against what a meter must find in it."""

from __future__ import annotations

import json
import os
import pathlib
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import Policy
from ecm_rules.kernel import ladder, transcripts
from ecm_rules.kernel.tally import Tally
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "transcripts"
EXPECTED = json.loads((FOLDER / "EXPECTED.json").read_text())["files"]
CLAUDE = {name: truth for name, truth in EXPECTED.items() if truth["host"] == "claude-code"}
KNOWN = load_hosts()


def read(path: pathlib.Path) -> Tally:
    return transcripts.read(str(path), KNOWN)


def reading(tally: Tally, policy: Policy) -> tuple[int | None, str, str]:
    return ladder.reading(tally, tally.chain(), policy.program, KNOWN["formats"])


@pytest.mark.parametrize("name", CLAUDE)
def test_a_recorded_session_is_measured_exactly(name: str) -> None:
    truth, tally = CLAUDE[name], read(FOLDER / name)
    usage = truth["last_usage"]
    assert tally.main.used == (usage["context_tokens"] if usage else None)
    assert tally.main.compactions == truth["compaction_count"]
    assert tally.records == truth["records"]
    assert tally.bad_lines == truth["bad_lines"]
    assert tally.size == truth["bytes"]
    content = truth["content_after_last_boundary"]
    assert tally.main.sizes == {
        kind: content[f"{kind}_bytes"] for kind in ("text", "thinking", "tool_call", "tool_result")
    }
    share = tally.main.share()
    assert (None if share is None else round(share, 6)) == content["tool_result_share"]


@pytest.mark.parametrize("name", [n for n, t in CLAUDE.items() if t["last_usage_ignoring_sidechain_flag"]])
def test_a_subagents_own_transcript_is_its_own_chain(name: str) -> None:
    truth, tally = CLAUDE[name], read(FOLDER / name)
    assert tally.subagent()
    assert tally.chain().used == truth["last_usage_ignoring_sidechain_flag"]["context_tokens"]
    content = truth["content_ignoring_sidechain_flag"]
    assert sum(tally.chain().sizes.values()) == content["all_content_bytes"]


def record(kind: str = "assistant", **message: object) -> bytes:
    more = {key: message.pop(key) for key in ("isSidechain", "isApiErrorMessage", "sessionId") if key in message}
    return json.dumps({"type": kind, "message": message, **more}).encode()


def usage(**counts: int) -> dict[str, int]:
    return {
        "input_tokens": 10,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "output_tokens": 5,
        **counts,
    }


def fed(*lines: bytes) -> Tally:
    tally = Tally(KNOWN["formats"])
    for line in lines:
        tally.feed(line)
    return tally


BOUNDARY = (
    b'{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":9,"postTokens":%d}}'
)


def test_a_message_counts_once_however_many_records_it_has() -> None:
    tally = fed(*[record(id="m1", usage=usage(output_tokens=n)) for n in (1, 2, 3)], record(id="m2", usage=usage()))
    assert tally.main.used == 100
    assert tally.spent() == (10 + 20 + 3) + (10 + 20 + 5)
    assert tally.spent(cache_read_weight=0.5) == tally.spent() + 70


def test_usage_before_a_boundary_is_void(policy: Policy) -> None:
    tally = fed(record(id="m1", usage=usage()), BOUNDARY % 0)
    assert tally.main.used is None
    assert tally.main.compactions == 1
    assert reading(tally, policy)[1:] == (
        "transcript_heuristic",
        "content bytes",
    )
    tally = fed(record(id="m1", usage=usage()), BOUNDARY % 33_000)
    assert reading(tally, policy) == (33_000, "host", "compaction boundary")


@pytest.mark.parametrize(
    "line",
    [
        record(id="m2", model="<synthetic>", usage=usage(input_tokens=0, cache_read_input_tokens=0)),
        record(id="m2", isApiErrorMessage=True, usage=usage()),
        record(id="m2", isSidechain=True, usage=usage(input_tokens=900)),
        record(id="m2", usage={"input_tokens": 0, "output_tokens": 0}),
        record(id="m2", usage=None),
        record(
            id="m2", usage={"input_tokens": True, "cache_read_input_tokens": "9", "cache_creation_input_tokens": -4}
        ),
        b'{"type":"assistant","message":',
        b'{"type":"assistant","message":"text"}',
        b'{"type":"assistant"}',
        b"[1, 2]",
        b"\0" * 300,
        b'{"type":"assistant","message":{"id":' + b"9" * 5000 + b"}}",
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_says_nothing_about_the_window_changes_nothing(line: bytes) -> None:
    assert fed(record(id="m1", usage=usage()), line).main.used == 100


def test_images_cost_what_they_cost_and_not_their_base64(policy: Policy) -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 3_000_000}}
    tally = fed(record("user", content=[image]))
    used, source, basis = reading(tally, policy)
    assert (used, source, basis) == (
        policy.program["limits"]["image_tokens"] + 40_000,
        "transcript_heuristic",
        "content bytes",
    )


def test_lines_end_at_lf_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    text = "a\u2028b\x85c\x0bd\x0ce"
    path.write_bytes(json.dumps({"type": "user", "message": {"content": text}}, ensure_ascii=False).encode() + b"\r\n")
    tally = read(path)
    assert (tally.records, tally.bad_lines) == (1, 0)
    assert tally.main.sizes["text"] == len(text.encode())


def test_a_file_of_no_known_format_is_bytes_by_four(policy: Policy, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("plain words\n" * 100)
    assert reading(read(path), policy) == (
        300,
        "transcript_heuristic",
        "file bytes",
    )
    path.write_text("")
    assert reading(read(path), policy) == (
        None,
        "unknown",
        "no messages yet",
    )


def test_every_prefix_of_a_transcript_is_read() -> None:
    data = (FOLDER / "01_claude_small.jsonl").read_bytes()
    whole = read(FOLDER / "01_claude_small.jsonl")
    for cut in range(1, 200):
        tally = fed(*data[:-cut].split(b"\n"))
        assert tally.bad_lines <= 1
        assert tally.main.used is not None
        assert tally.records in (whole.records, whole.records - 1)


def test_the_window_is_that_of_the_longest_name_that_fits() -> None:
    models = {"claude": 1, "claude-opus": 2}
    assert ladder.model_window(models, "claude-opus-4") == 2
    assert ladder.model_window(models, "claude-x") == 1
    assert ladder.model_window(models, "gpt") is None
    assert ladder.model_window(models, None) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "text", "input", "usage", "id"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.builds(
            lambda k, m: json.dumps({"type": k, "message": m}).encode(),
            st.sampled_from(["user", "assistant", "system"]),
            JSON,
        )
    )
)
def test_no_line_makes_it_raise(policy: Policy, lines: list[bytes]) -> None:
    tally = fed(*lines)
    reading(tally, policy)
    tally.spent(1)


ANSWER = (
    b'{"type":"assistant","sessionId":"s","message":{"id":"m%d","content":[{"type":"text","text":"hi"}],'
    b'"usage":{"input_tokens":%d}}}'
)


def bad_files() -> dict[str, tuple[bytes, int]]:
    """Files that something went wrong with, and the tokens that are in the window all the same."""
    one, two = ANSWER % (1, 100), ANSWER % (2, 200)
    lines = one + b"\n" + two + b"\n"
    return {
        "NULs behind it": (lines + b"\0" * 300, 200),
        "NULs before a record": (one + b"\n" + b"\0" * 300 + two + b"\n", 200),
        "NULs between two records": (one + b"\0" * 300 + two + b"\n", 200),
        "two records on a line": (one + two + b"\n", 200),
        "a record and half of one on a line": (one + two[:50] + b"\n", 100),
        "half a record and one on a line": (lines + one[:50] + two + b"\n", 200),
        "invalid UTF-8": (lines + one.replace(b"hi", b"\xff\xfe\xc3") + b"\n", 200),
        "cut UTF-8": (lines + one.replace(b"hi", b"\xe2\x82") + b"\n", 200),
        "CRLF": (lines.replace(b"\n", b"\r\n"), 200),
        "BOM": (b"\xef\xbb\xbf" + lines, 200),
        "BOM in the middle": (one + b"\n\xef\xbb\xbf" + two + b"\n", 200),
        "a torn first line": (b"{\n" + lines, 200),
        "blank lines": (b"\n\n" + lines.replace(b"\n", b"\n \n\r\n"), 200),
        "no last LF": (lines[:-1], 200),
        "a lone surrogate": (lines.replace(b"hi", b"\\ud800"), 200),
        "binary": (lines + os.urandom(5000).replace(b"\n", b"") + b"\n", 200),
    }


BAD_FILES = bad_files()


@pytest.mark.parametrize(("data", "used"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_what_went_wrong_in_a_file_hides_nothing_else(data: bytes, used: int, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    tally = read(path)
    assert tally.main.used == used
    assert tally.bad_lines <= 1
    assert tally.size == len(data)


@pytest.mark.parametrize("name", ["01_claude_small.jsonl", "codex_autocompact.jsonl", "09_pi_large_session.jsonl"])
def test_a_last_record_that_is_torn_is_no_fault(name: str, tmp_path: pathlib.Path) -> None:
    data = (FOLDER / name).read_bytes()
    path = tmp_path / "t.jsonl"
    whole = read(FOLDER / name)
    for cut in range(1, 201):
        path.write_bytes(data[:-cut])
        tally = read(path)
        assert (tally.bad_lines, tally.main.used is None) == (0, False)
        assert tally.records in (whole.records, whole.records - 1)


def test_a_line_of_50_megabytes_is_passed_over_and_that_is_said(policy: Policy, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    user = b'{"type":"user","sessionId":"s","message":{"content":"%s"}}\n'
    path.write_bytes(user % b"hi" + user % (b"x" * (50 << 20)))
    tracemalloc.start()
    tally = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20
    assert (tally.records, tally.bad_lines) == (1, 1)
    assert reading(tally, policy) == (40_000, "transcript_heuristic", "content bytes, partial")
    with path.open("ab") as stream:
        stream.write(ANSWER % (1, 123) + b"\n")
    assert reading(read(path), policy) == (123, "host", "usage record")
    path.write_bytes((user % (b"x" * (50 << 20)))[:-10])
    assert reading(read(path), policy)[1] == "unknown"


def test_many_records_on_one_line_take_their_time_and_no_more() -> None:
    tally = fed(b"{}" * 200_000)
    assert (tally.records, tally.bad_lines) == (200_000, 0)
