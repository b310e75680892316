"""What of a message is read and rewritten, in the shapes of clients that have their requests changed by a hook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ecm_rules.lifecycle import SHAPES
from ecm_rules.lifecycle.session import tombstone
from tests.conftest import FIXTURES
from tests.lifecycle.histories import ANSWERS, BLOCKS, IMAGE, LONG, answered, recorded, said, session

RECORDED = recorded()
STONE = tombstone(len(LONG))


def stone_of(value: Any) -> str:
    """What stands for a content that is counted as JSON."""
    return tombstone(len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()))


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def coded(role: str, *parts: Any, **info: Any) -> dict[str, Any]:
    return {"info": {"id": "msg_1", "role": role, **info}, "parts": list(parts)}


def tool_part(**state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": "f", "callID": "c1", "id": "prt_2", "state": {"input": {"text": LONG}, **state}}


BEGUN = {"type": "step-start", "snapshot": "f4bd"}
REASONING = {"type": "reasoning", "text": LONG, "metadata": {"anthropic": {"signature": "c2ln"}}}
ENDED = {"type": "step-finish", "reason": "tool-calls", "tokens": {"total": 1240}}
ATTACHED = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}
MARKED = text(LONG, id="prt_1")
TIME = {"start": 1, "end": 2}
CALLING = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"text": LONG}}

# (shape, message, what an answer later stands in its place)
REPLACED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "opencode: what a tool put out": (
        "opencode",
        coded("assistant", BEGUN, REASONING, text("so"), tool_part(status="completed", output=LONG, time=TIME), ENDED),
        coded("assistant", BEGUN, REASONING, text("so"), tool_part(status="completed", output=STONE, time=TIME), ENDED),
    ),
    "opencode: with what is attached": (
        "opencode",
        coded("assistant", tool_part(status="completed", output=LONG, attachments=[ATTACHED], title="t")),
        coded("assistant", tool_part(status="completed", output=STONE, title="t")),
    ),
    "opencode: a tool that failed": (
        "opencode",
        coded("assistant", tool_part(status="error", error=LONG), tool_part(status="completed", output="ok")),
        coded("assistant", tool_part(status="error", error=STONE), tool_part(status="completed", output="ok")),
    ),
    "opencode: a tool that was interrupted": (
        "opencode",
        coded("assistant", tool_part(status="error", error="cut", metadata={"interrupted": True, "output": LONG})),
        coded("assistant", tool_part(status="error", error="cut", metadata={"interrupted": True, "output": STONE})),
    ),
    "opencode: a user's parts": (
        "opencode",
        coded("user", ATTACHED, text("see", id="prt_0"), MARKED, {"type": "agent", "name": "plan"}),
        coded(
            "user",
            text(stone_of([ATTACHED, text("see", id="prt_0"), MARKED]), id="prt_0"),
            {"type": "agent", "name": "plan"},
        ),
    ),
    "opencode: a user's text beside what is not sent": (
        "opencode",
        coded("user", text(LONG, ignored=True), MARKED, {"type": "compaction", "auto": True}),
        coded(
            "user", text(LONG, ignored=True), text(stone_of([MARKED]), id="prt_1"), {"type": "compaction", "auto": True}
        ),
    ),
    "opencode: an answer keeps all its parts": (
        "opencode",
        coded("assistant", BEGUN, text("so"), REASONING, MARKED, tool_part(status="completed", output="ok"), ENDED),
        coded(
            "assistant",
            BEGUN,
            text(stone_of([text("so"), MARKED])),
            REASONING,
            text("", id="prt_1"),
            tool_part(status="completed", output="ok"),
            ENDED,
        ),
    ),
    "opencode: an answer and what its tool put out": (
        "opencode",
        coded("assistant", MARKED, tool_part(status="completed", output=LONG)),
        coded("assistant", text(stone_of([MARKED]), id="prt_1"), tool_part(status="completed", output=STONE)),
    ),
    "pi: a tool's parts": (
        "pi",
        {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": [text("a"), IMAGE, text(LONG)]},
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "bash",
            "content": [text(stone_of([text("a"), IMAGE, text(LONG)]))],
        },
    ),
    "pi: a user's string": (
        "pi",
        {"role": "user", "content": LONG, "timestamp": 1},
        {"role": "user", "content": STONE, "timestamp": 1},
    ),
    "pi: what an extension tells": (
        "pi",
        {"role": "custom", "customType": "note", "content": LONG, "details": {"a": LONG}},
        {"role": "custom", "customType": "note", "content": STONE, "details": {"a": LONG}},
    ),
    "pi: what a command of the user's put out": (
        "pi",
        {"role": "bashExecution", "command": "ls", "output": LONG, "exitCode": 0},
        {"role": "bashExecution", "command": "ls", "output": STONE, "exitCode": 0},
    ),
    "pi: an answer keeps all its parts": (
        "pi",
        {"role": "assistant", "content": [text("so", textSignature="a"), text(LONG, textSignature="b"), CALLING]},
        {
            "role": "assistant",
            "content": [
                text(
                    stone_of([text("so", textSignature="a"), text(LONG, textSignature="b"), CALLING]),
                    textSignature="a",
                ),
                text("", textSignature="b"),
                CALLING,
            ],
        },
    ),
    "texts: a user's": ("gemini-text", {"role": "user", "content": LONG}, {"role": "user", "content": STONE}),
    "texts: a model's": ("gemini-text", {"role": "model", "content": LONG}, {"role": "model", "content": STONE}),
}


@pytest.mark.parametrize(("shape", "message", "instead"), REPLACED.values(), ids=REPLACED)
def test_a_tombstone_stands_for_what_was_consumed(shape: str, message: Any, instead: Any) -> None:
    history = answered(shape, message)
    view = session(shape).view(history)
    assert view.core[0] == instead
    assert list(view.core[0]) == list(message)
    assert all(sent is told for sent, told in zip(view.core[1:], history[1:], strict=True))
    assert view.problems == []


# (shape, message) that declares nothing
KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "opencode: thinking": ("opencode", coded("assistant", REASONING)),
    "opencode: what a tool was given": ("opencode", coded("assistant", tool_part(status="running"))),
    "opencode: what only the client sees": (
        "opencode",
        coded("assistant", tool_part(status="completed", output="a", title=LONG, metadata={"output": LONG})),
    ),
    "opencode: what is not sent": ("opencode", coded("user", text(LONG, ignored=True))),
    "opencode: a file": ("opencode", coded("user", {**ATTACHED, "source": {"text": {"value": LONG}}})),
    "opencode: no text": ("opencode", coded("assistant", tool_part(status="completed", output=[text(LONG)]))),
    "pi: thinking": ("pi", {"role": "assistant", "content": [{"type": "thinking", "thinking": LONG}, CALLING]}),
    "pi: a summary": ("pi", {"role": "compactionSummary", "summary": LONG, "tokensBefore": 190413}),
    "pi: a summary of a branch": ("pi", {"role": "branchSummary", "summary": LONG, "fromId": "a"}),
    "pi: details": ("pi", {"role": "toolResult", "toolCallId": "c1", "content": [], "details": {"text": LONG}}),
    "texts: parts": ("gemini-text", {"role": "user", "content": [text(LONG)]}),
}


@pytest.mark.parametrize(("shape", "message"), KEPT.values(), ids=KEPT)
def test_what_is_no_text_of_a_message_declares_nothing(shape: str, message: Any) -> None:
    lifetimes = session(shape)
    view = lifetimes.view(answered(shape, message))
    assert view.core[0] is message
    assert (lifetimes.audit, view.problems) == ([], [])


LINKS: dict[str, tuple[str, dict[str, Any], list[str], list[str]]] = {
    "opencode": (
        "opencode",
        coded("assistant", tool_part(status="completed", output="a"), {**tool_part(status="running"), "callID": "c2"}),
        ["c1", "c2"],
        ["c1", "c2"],
    ),
    "opencode: a user": ("opencode", coded("user", tool_part(status="completed")), [], []),
    "pi": ("pi", {"role": "assistant", "content": [text("a"), CALLING]}, ["c1"], []),
    "pi: a result": ("pi", {"role": "toolResult", "toolCallId": "c1", "content": []}, [], ["c1"]),
    "pi: a command": ("pi", {"role": "bashExecution", "command": "ls", "output": ""}, [], []),
    "texts": ("gemini-text", {"role": "model", "content": "a"}, [], []),
}


@pytest.mark.parametrize(("shape", "message", "calls", "results"), LINKS.values(), ids=LINKS)
def test_the_calls_and_the_results_in_a_message(shape: str, message: Any, calls: list[str], results: list[str]) -> None:
    assert (SHAPES[shape].calls(message), SHAPES[shape].results(message)) == (calls, results)


def test_a_call_of_opencode_and_its_result_are_one() -> None:
    """What the second answer sees of the first: the call as it was, and no output."""
    history = RECORDED["opencode/experimental.chat.messages.transform.json"]["messages"]
    told = json.loads(json.dumps(history))
    told[1]["parts"][1]["state"]["output"] = LONG
    assert session("opencode").view(told).changes == []
    view = session("opencode").view([*told, ANSWERS["opencode"]])
    assert view.changes == [{"index": 1, "slot": 1, "original_bytes": len(LONG)}]
    history[1]["parts"][1]["state"]["output"] = STONE
    assert view.core[:2] == history


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("opencode", coded("assistant")),
        ("opencode", coded("assistant", BEGUN)),
        ("opencode", coded("assistant", BEGUN, text("so"), error={"name": "APIError"})),
        ("opencode", coded("assistant", BEGUN, REASONING, error={"name": "MessageAbortedError"})),
        ("pi", {"role": "assistant", "content": [text("so")], "stopReason": "error"}),
        ("pi", {"role": "assistant", "content": [text("so")], "stopReason": "aborted"}),
    ],
)
def test_an_answer_that_the_client_does_not_send_again_has_seen_nothing(shape: str, message: Any) -> None:
    history = [said(shape, LONG), message, said(shape, "again")]
    assert session(shape).view(history).changes == []
    assert len(session(shape).view([*history, ANSWERS[shape]]).changes) == 1


def test_an_answer_that_was_broken_off_in_the_midst_has_seen_what_it_answers() -> None:
    history = [said("opencode", LONG), coded("assistant", BEGUN, text("so"), error={"name": "MessageAbortedError"})]
    assert len(session("opencode").view(history).changes) == 1


def test_an_answer_that_only_calls_is_not_seen_in_texts() -> None:
    """Between the two texts of the user stand a call and its result, which the client does not show."""
    history = [said("gemini-text", LONG), said("gemini-text", "go on")]
    assert session("gemini-text").view(history).changes == []
    assert len(session("gemini-text").view([*history, ANSWERS["gemini-text"]]).changes) == 1


def test_texts_keep_their_places() -> None:
    history = [ANSWERS["gemini-text"], said("gemini-text", LONG), ANSWERS["gemini-text"], said("gemini-text", "on")]
    first = session("gemini-text", "first").view(history)
    assert [told["content"] for told in first.messages] == ["done", BLOCKS + STONE, "done", "on"]
    assert (first.injected, [told["content"] for told in first.core][1]) == (1, STONE)
    last = session("gemini-text", "last").view(history[:3])
    assert [told["content"] for told in last.messages] == ["done", STONE, "done", BLOCKS]
    assert session("gemini-text", "first").view(history[:1]).injected == 1


@pytest.mark.parametrize(
    ("shape", "messages", "told"),
    [
        ("opencode", [coded("user", text("a"), sessionID="ses_1"), 5, coded("user", sessionID=5)], "ses_1"),
        ("opencode", [], None),
        ("pi", [said("pi", "a")], None),
    ],
)
def test_the_session_that_messages_tell(shape: str, messages: list[Any], told: str | None) -> None:
    assert SHAPES[shape].session(messages) == told


def test_the_recorded_rewriting_of_texts_is_what_places_tell() -> None:
    """The client took two entries: the first replaced the text of the first content, the second came behind a result."""
    contents = json.loads((FIXTURES / "histories/gemini-cli.rewritten.json").read_text())["messages"]
    texts = [content["parts"][0].get("text") for content in contents]
    assert [text is not None for text in texts] == [True, False, False, True]
    assert contents[-1]["role"] == "user"
