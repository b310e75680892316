"""Where pins are looked for: in a text as it is, and in what a transcript has in the window."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ecm_rules.kernel import window_text
from tests.conftest import FIXTURES


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


USER = {"type": "user", "message": {"role": "user", "content": "the pin"}}
BOUNDARY = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}


@pytest.mark.parametrize(
    "data", [b"", b"text\r\n", "é\u2028".encode(), b"{not json}", b"[1, 2]", b'{"a": 1}text', b"\n{"]
)
def test_a_text_is_itself(data: bytes) -> None:
    read = window_text.read(data)
    assert (read.text, read.transcript) == (data.decode(), False)
    assert read.bytes(read.text) == data


def test_a_byte_order_mark_is_put_back() -> None:
    read = window_text.read(b"\xef\xbb\xbftext")
    assert read.text == "text"
    assert read.bytes("more") == b"\xef\xbb\xbfmore"


@pytest.mark.parametrize(
    ("data", "reason"), [(b"a\xff", "found byte 0xff"), (b"\xef\xbb\xbfa\xfe", "0xfe"), (b"a\0b", "found a NUL")]
)
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(window_text.NoText, match=reason):
        window_text.read(data)


def test_a_record_says_what_its_strings_say() -> None:
    read = window_text.read(lines(USER, {"type": "attachment", "content": ['<!--BLOCK_ID:a-->\n"é"']}))
    assert read.transcript
    assert "the pin" in read.text
    assert '<!--BLOCK_ID:a-->\n"é"' in read.text


@pytest.mark.parametrize(
    "boundary", [BOUNDARY, {"type": "compacted", "payload": {}}, {"type": "compaction", "id": "1"}]
)
def test_what_stands_before_the_last_boundary_is_gone(boundary: dict[str, Any]) -> None:
    assert "the pin" not in window_text.read(lines(USER, boundary, {"type": "user", "message": "later"})).text
    assert "the pin" in window_text.read(lines(boundary, USER)).text


@pytest.mark.parametrize(
    "record",
    [
        {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "content": [{"type": "text", "text": "the pin"}]}]},
        },
        {"type": "user", "message": {"content": []}, "toolUseResult": {"stdout": "the pin"}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"content": "the pin"}}]}},
        {"role": "tool", "content": "the pin"},
        {"type": "response_item", "payload": {"type": "function_call_output", "output": "the pin"}},
        {"type": "message", "message": {"role": "toolResult", "content": "the pin"}},
        {"isSidechain": True, **USER},
    ],
)
def test_what_a_tool_or_a_subagent_says_is_not_pinned(record: dict[str, Any]) -> None:
    assert "the pin" not in window_text.read(lines({"type": "user", "message": "x"}, record)).text


def test_bad_lines_are_passed_over() -> None:
    data = b"\n" + lines(USER) + b"\0\0\0\n{\xff\n[1]\n" + lines(USER)[:-5]
    assert window_text.read(data).text.count("the pin") == 1


def test_a_session_in_one_document_is_a_transcript() -> None:
    assert window_text.read(json.dumps({"messages": [USER]}, indent=2).encode()).transcript
    assert window_text.read(json.dumps([USER], indent=2).encode()).transcript


@pytest.mark.parametrize("path", sorted((FIXTURES / "transcripts").glob("*.json*")), ids=lambda path: path.name)
def test_recorded_sessions_are_transcripts(path: Any) -> None:
    read = window_text.read(path.read_bytes())
    assert read.transcript
    assert len(read.text) < path.stat().st_size


def test_hostile_nesting_is_no_transcript() -> None:
    assert not window_text.read(b'{"a":' * 100_000).transcript
