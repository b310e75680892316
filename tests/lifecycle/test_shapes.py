"""What of a message is read and rewritten, in the shape of each provider."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.lifecycle import NEUTRAL, SHAPES
from ecm_rules.lifecycle.session import tombstone
from tests.lifecycle.histories import (
    ANSWERS,
    DISTURBED,
    LONG,
    ODD,
    PROVIDERS,
    SHAPED,
    answered,
    recorded,
    said,
    session,
)

RECORDED = recorded()
STONE = tombstone(len(LONG))


def size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def stone_of(value: Any) -> str:
    """What stands for a content that is counted as JSON."""
    return tombstone(size(value))


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": LONG}
LISTED = [text("see"), IMAGE, text(LONG)]
THINKING = {"type": "thinking", "thinking": LONG, "signature": "c2ln"}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"text": LONG}}
SEARCH = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [text(LONG)]}
SAID = {"type": "output_text", "text": LONG, "annotations": [{"type": "url_citation"}]}
REFUSAL = {"type": "refusal", "refusal": "no"}
ASKED = {"type": "input_text", "text": LONG}
SCREEN = {"type": "input_image", "file_id": "f1"}
THOUGHT = {"text": LONG, "thought": True}
CALLED = {"functionCall": {"name": "f", "args": {"text": LONG}}, "thoughtSignature": "c2ln"}
ANSWERED = {"functionResponse": {"id": "g1", "name": "f", "response": {"output": LONG}}, "thoughtSignature": "c2ln"}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


def responded(response: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": "g1", "name": "f", "response": response, **more}}


# (shape, message, what an answer later stands in its place)
REPLACED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "anthropic: a user's string": (
        "anthropic",
        {"role": "user", "content": LONG, "cache": 1},
        {"role": "user", "content": STONE, "cache": 1},
    ),
    "anthropic: a user's parts": (
        "anthropic",
        {"role": "user", "content": [IMAGE, text(LONG), text("more")]},
        {"role": "user", "content": [text(stone_of([IMAGE, text(LONG), text("more")]))]},
    ),
    "anthropic: a result": (
        "anthropic",
        {"role": "user", "content": [{**RESULT, "is_error": True, "cache_control": {"type": "ephemeral"}}, text("go")]},
        {
            "role": "user",
            "content": [
                {**RESULT, "content": STONE, "is_error": True, "cache_control": {"type": "ephemeral"}},
                text("go"),
            ],
        },
    ),
    "anthropic: a result of parts": (
        "anthropic",
        {"role": "user", "content": [{**RESULT, "content": LISTED}, RESULT]},
        {
            "role": "user",
            "content": [{**RESULT, "content": [text(stone_of(LISTED))]}, {**RESULT, "content": STONE}],
        },
    ),
    "anthropic: what a user says behind results": (
        "anthropic",
        {"role": "user", "content": [{**RESULT, "content": "ok"}, text(LONG), IMAGE]},
        {"role": "user", "content": [{**RESULT, "content": "ok"}, text(stone_of([text(LONG), IMAGE]))]},
    ),
    "anthropic: both": (
        "anthropic",
        {"role": "user", "content": [RESULT, text("a"), {**RESULT, "content": "ok"}, text(LONG)]},
        {
            "role": "user",
            "content": [
                {**RESULT, "content": STONE},
                text(stone_of([text("a"), text(LONG)])),
                {**RESULT, "content": "ok"},
            ],
        },
    ),
    "anthropic: an answer": (
        "anthropic",
        {"role": "assistant", "content": [THINKING, text("so"), SEARCH, text(LONG), USE]},
        {
            "role": "assistant",
            "content": [
                THINKING,
                text(stone_of([THINKING, text("so"), SEARCH, text(LONG), USE])),
                SEARCH,
                USE,
            ],
        },
    ),
    "anthropic: an answer's string": (
        "anthropic",
        {"role": "assistant", "content": LONG},
        {"role": "assistant", "content": STONE},
    ),
    "anthropic: a system message keeps what changes tools": (
        "anthropic",
        {"role": "system", "content": [text(LONG), {"type": "tool_addition", "name": "f"}]},
        {
            "role": "system",
            "content": [
                text(stone_of([text(LONG), {"type": "tool_addition", "name": "f"}])),
                {"type": "tool_addition", "name": "f"},
            ],
        },
    ),
    "chat: a tool's string": (
        "openai-chat",
        {"role": "tool", "tool_call_id": "c1", "content": LONG},
        {"role": "tool", "tool_call_id": "c1", "content": STONE},
    ),
    "chat: a tool's parts": (
        "openai-chat",
        {"role": "tool", "tool_call_id": "c1", "content": [text("a"), text(LONG)]},
        {"role": "tool", "tool_call_id": "c1", "content": [text(stone_of([text("a"), text(LONG)]))]},
    ),
    "chat: a function's": (
        "openai-chat",
        {"role": "function", "name": "f", "content": LONG},
        {"role": "function", "name": "f", "content": STONE},
    ),
    "chat: an answer": (
        "openai-chat",
        {"role": "assistant", "content": [text(LONG), REFUSAL, text("b")], "tool_calls": [{"id": "c1"}]},
        {
            "role": "assistant",
            "content": [text(stone_of([text(LONG), REFUSAL, text("b")])), REFUSAL],
            "tool_calls": [{"id": "c1"}],
        },
    ),
    "responses: an easy message": (
        "openai-responses",
        {"role": "user", "content": LONG},
        {"role": "user", "content": STONE},
    ),
    "responses: a user's parts": (
        "openai-responses",
        {"type": "message", "role": "user", "content": [ASKED, SCREEN]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": stone_of([ASKED, SCREEN])}]},
    ),
    "responses: an answer": (
        "openai-responses",
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [SAID, REFUSAL, SAID]},
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": stone_of([SAID, REFUSAL, SAID]), "annotations": []},
                REFUSAL,
            ],
        },
    ),
    "responses: an output": (
        "openai-responses",
        {"type": "function_call_output", "call_id": "c1", "output": LONG, "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": STONE, "status": "completed"},
    ),
    "responses: an output of parts": (
        "openai-responses",
        {"type": "custom_tool_call_output", "call_id": "c1", "output": [ASKED, SCREEN]},
        {
            "type": "custom_tool_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": stone_of([ASKED, SCREEN])}],
        },
    ),
    "gemini: a user's parts": (
        "gemini",
        {"parts": [{"text": "a"}, INLINE, {"text": LONG}]},
        {"parts": [{"text": stone_of([{"text": "a"}, INLINE, {"text": LONG}])}]},
    ),
    "gemini: a response": (
        "gemini",
        {"role": "user", "parts": [ANSWERED, {"text": "go"}]},
        {
            "role": "user",
            "parts": [{**responded({"output": STONE}), "thoughtSignature": "c2ln"}, {"text": "go"}],
        },
    ),
    "gemini: a response of several values, its media go": (
        "gemini",
        {
            "role": "function",
            "parts": [responded({"code": 0, "out": LONG, "err": "e"}, parts=[INLINE], scheduling="X")],
        },
        {
            "role": "function",
            "parts": [responded({"out": stone_of({"code": 0, "out": LONG, "err": "e"})}, scheduling="X")],
        },
    ),
    "gemini: a response of several texts": (
        "gemini",
        {"role": "user", "parts": [responded({"error": "", "output": LONG})]},
        {"role": "user", "parts": [responded({"output": stone_of({"error": "", "output": LONG})})]},
    ),
    "gemini: in the SDK's spelling": (
        "gemini",
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"result": LONG}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"result": STONE}}}]},
    ),
    "gemini: a signed answer": (
        "gemini",
        {"role": "model", "parts": [{"text": LONG, "thoughtSignature": "x"}]},
        {
            "role": "model",
            "parts": [{"text": stone_of([{"text": LONG, "thoughtSignature": "x"}]), "thoughtSignature": "x"}],
        },
    ),
    "gemini: an answer": (
        "gemini",
        {
            "role": "model",
            "parts": [THOUGHT, {"text": LONG}, CALLED, {"text": "b", "thoughtSignature": "x"}, {"text": "c"}],
        },
        {
            "role": "model",
            "parts": [
                THOUGHT,
                {
                    "text": stone_of(
                        [THOUGHT, {"text": LONG}, CALLED, {"text": "b", "thoughtSignature": "x"}, {"text": "c"}]
                    )
                },
                CALLED,
                {"text": "", "thoughtSignature": "x"},
            ],
        },
    ),
}


@pytest.mark.parametrize(("shape", "message", "wanted"), REPLACED.values(), ids=REPLACED)
def test_what_stands_for_a_consumed_content(shape: str, message: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert session(shape).view(answered(shape, message)).core[0] == wanted


@pytest.mark.parametrize(("shape", "message", "wanted"), REPLACED.values(), ids=REPLACED)
def test_what_no_answer_has_seen_is_sent_as_it_is(shape: str, message: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert session(shape).view([ANSWERS[shape], message]).core[1] is message
    assert wanted != message


KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic: thinking": ("anthropic", {"role": "assistant", "content": [THINKING, text("a"), USE, SEARCH]}),
    "anthropic: a result in an answer": ("anthropic", {"role": "assistant", "content": [RESULT]}),
    "anthropic: a nested text": (
        "anthropic",
        {"role": "user", "content": [{**RESULT, "content": [{"type": "search_result", "content": [text(LONG)]}]}]},
    ),
    "anthropic: a document": (
        "anthropic",
        {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": LONG}}]},
    ),
    "anthropic: a role of another provider": ("anthropic", {"role": "tool", "tool_call_id": "c1", "content": LONG}),
    "chat: arguments": (
        "openai-chat",
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"arguments": LONG}}]},
    ),
    "chat: a refusal": ("openai-chat", {"role": "assistant", "content": [{"type": "refusal", "refusal": LONG}]}),
    "responses: reasoning": (
        "openai-responses",
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}], "content": [ASKED]},
    ),
    "responses: a hosted call": ("openai-responses", {"type": "mcp_call", "id": "m1", "output": LONG}),
    "responses: a screenshot": (
        "openai-responses",
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "text": LONG}},
    ),
    "responses: a compaction": ("openai-responses", {"type": "compaction", "encrypted_content": LONG}),
    "gemini: thoughts": ("gemini", {"role": "model", "parts": [THOUGHT, CALLED]}),
    "gemini: a nested value": ("gemini", {"role": "user", "parts": [responded({"output": {"text": LONG}})]}),
    "gemini: code": ("gemini", {"role": "user", "parts": [{"codeExecutionResult": {"output": LONG}}]}),
}


@pytest.mark.parametrize(("shape", "message"), KEPT.values(), ids=KEPT)
def test_what_is_no_text_of_a_message_declares_nothing(shape: str, message: dict[str, Any]) -> None:
    lifetimes = session(shape)
    view = lifetimes.view(answered(shape, message))
    assert view.core[0] is message
    assert lifetimes.audit == []
    assert view.problems == []


def test_the_latest_response_begins_at_its_first_item() -> None:
    shape = "openai-responses"
    output = {"type": "function_call_output", "call_id": "c1", "output": LONG}
    answer = {"role": "assistant", "content": [SAID]}
    call = {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"}
    history = [output, {"type": "reasoning", "summary": []}, answer, {"type": "web_search_call"}, call]
    view = session(shape).view(history)
    assert [change["index"] for change in view.changes] == [0]
    # Behind its result the model speaks anew.
    view = session(shape).view([*history, {**output, "call_id": "c2"}, {"type": "reasoning", "summary": []}])
    assert [change["index"] for change in view.changes] == [0, 2, 5]


def test_a_compaction_in_the_midst_of_a_response_is_no_end_of_it() -> None:
    answer = {"role": "assistant", "content": [SAID]}
    view = session("openai-responses").view([answer, {"type": "compaction", "encrypted_content": "x"}, answer])
    assert view.changes == []


class Block(SimpleNamespace):
    """As an object of an SDK."""


OBJECTS: dict[str, tuple[str, Any]] = {
    "anthropic": ("anthropic", {"role": "assistant", "content": [Block(type="text", text=LONG)]}),
    "anthropic: beside a dict": ("anthropic", {"role": "user", "content": [Block(type="image"), text(LONG)]}),
    "anthropic: a message": ("anthropic", Block(role="user", content=LONG)),
    "openai-chat": ("openai-chat", Block(role="user", content=LONG)),
    "openai-responses": ("openai-responses", Block(type="message", role="user", content=[ASKED])),
    "gemini": ("gemini", Block(role="user", parts=[{"text": LONG}])),
    "gemini: a part": ("gemini", {"role": "user", "parts": [Block(text=LONG)]}),
}


@pytest.mark.parametrize(("shape", "message"), OBJECTS.values(), ids=OBJECTS)
def test_an_object_of_an_sdk_is_never_rewritten(shape: str, message: Any) -> None:
    assert session(shape).view(answered(shape, message)).core[0] is message


@pytest.mark.parametrize(
    ("shape", "key", "result", "own"),
    [
        ("anthropic", "content", Block(type="tool_result", tool_use_id="t1", content="x"), text(LONG)),
        ("gemini", "parts", Block(function_response=Block(name="f", response={})), {"text": LONG}),
    ],
)
def test_a_result_that_is_an_object_stays_where_the_rest_is_replaced(
    shape: str, key: str, result: Any, own: Any
) -> None:
    rewritten = session(shape).view(answered(shape, {"role": "user", key: [result, own]})).core[0]
    assert rewritten[key][0] is result
    assert [part["text"] for part in rewritten[key][1:]] == [stone_of([own])]


class Text(str):
    """A string of somebody's own kind."""


@pytest.mark.parametrize("shape", [shape for shape in PROVIDERS if SHAPES[shape].key == "content"])
def test_a_string_of_a_subclass_is_counted_as_text(shape: str) -> None:
    view = session(shape).view(answered(shape, {"role": "user", "content": Text(LONG)}))
    assert [change["original_bytes"] for change in view.changes] == [len(LONG)]
    again = session(shape).view(
        answered(shape, {"role": "user", "content": Text(LONG)}, {"role": "user", "content": LONG})
    )
    assert [change["original_bytes"] for change in again.changes] == [len(LONG), len(LONG)]


ANSWERING: dict[str, Any] = {
    "anthropic": Block(role="assistant", content=[Block(type="text", text="done")]),
    "openai-chat": Block(role="assistant", content="done"),
    "openai-responses": Block(type="reasoning", summary=[]),
    "gemini": Block(role="model", parts=[Block(text="done")]),
}


@pytest.mark.parametrize(("shape", "answer"), ANSWERING.items())
def test_an_object_of_an_sdk_counts_as_an_answer(shape: str, answer: Any) -> None:
    assert [change["index"] for change in session(shape).view([said(shape, LONG), answer]).changes] == [0]


LINKS: dict[str, tuple[str, Any, list[str], list[str]]] = {
    "anthropic": (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                Block(type="tool_use", id="t1"),
                {"type": "server_tool_use", "id": "s1"},
                SEARCH,
                {"type": "mcp_tool_use", "id": "m1"},
                Block(type="mcp_tool_result", tool_use_id="m1"),
            ],
        },
        ["t1", "s1", "m1"],
        ["s1", "m1"],
    ),
    "anthropic: results": ("anthropic", {"role": "user", "content": [RESULT, text("a"), {**RESULT}]}, [], ["t1", "t1"]),
    "anthropic: a result in an answer": ("anthropic", {"role": "assistant", "content": [RESULT]}, [], []),
    "openai-chat": ("openai-chat", Block(role="assistant", content=None, tool_calls=[Block(id="c1")]), ["c1"], []),
    "openai-chat: of old": (
        "openai-chat",
        {"role": "assistant", "content": None, "function_call": {"name": "f"}},
        ["f"],
        [],
    ),
    "openai-chat: a result": ("openai-chat", {"role": "tool", "tool_call_id": "c1", "content": ""}, [], ["c1"]),
    "openai-chat: a user's": ("openai-chat", {"role": "user", "tool_call_id": "c1", "content": ""}, [], []),
    "openai-responses": ("openai-responses", Block(type="shell_call", call_id="c1"), ["c1"], []),
    "openai-responses: a result": (
        "openai-responses",
        {"type": "apply_patch_call_output", "call_id": "c1"},
        [],
        ["c1"],
    ),
    "openai-responses: hosted": ("openai-responses", {"type": "image_generation_call", "id": "c1"}, [], []),
    "gemini": (
        "gemini",
        {"role": "model", "parts": [CALLED, Block(function_call=Block(id="g1", name="f"))]},
        ["f", "g1"],
        [],
    ),
    "gemini: a result": ("gemini", {"parts": [ANSWERED, CALLED]}, [], ["g1"]),
}


@pytest.mark.parametrize(("shape", "message", "calls", "results"), LINKS.values(), ids=LINKS)
def test_the_calls_and_the_results_in_a_message(shape: str, message: Any, calls: list[str], results: list[str]) -> None:
    assert (SHAPES[shape].calls(message), SHAPES[shape].results(message)) == (calls, results)


@pytest.mark.parametrize("name", RECORDED)
def test_every_message_of_a_recorded_history_is_recognised(name: str) -> None:
    shape, messages = SHAPES[RECORDED[name]["shape"]], RECORDED[name]["messages"]
    assert None not in [shape.role(message) for message in messages]
    assert shape.latest_answer(messages) < len(messages)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_history_without_declarations_is_sent_as_it_is(name: str) -> None:
    messages = RECORDED[name]["messages"]
    view = session(RECORDED[name]["shape"]).view(messages)
    assert all(sent is message for sent, message in zip(view.messages, messages, strict=True))
    assert view.problems == []


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("anthropic", {"info": {"role": "user"}, "parts": [text("a")]}),
        ("anthropic", said("gemini", "a")),
        ("openai-chat", said("gemini", "a")),
        ("openai-responses", said("gemini", "a")),
        ("gemini", said("openai-responses", "a")),
        ("gemini", {"role": "assistant", "parts": [{"text": "a"}]}),
        ("gemini", {"type": "function_call_output", "call_id": "c1", "output": "a"}),
        ("anthropic", {"type": "function_call_output", "call_id": "c1", "output": "a"}),
        ("openai-chat", {"type": "reasoning", "summary": []}),
        ("opencode", said("anthropic", "a")),
        ("opencode", said("gemini", "a")),
        ("pi", said("opencode", "a")),
        ("pi", {"role": "tool", "tool_call_id": "c1", "content": "a"}),
        ("gemini-text", said("anthropic", "a")),
        ("gemini-text", {"role": "assistant", "content": "a"}),
    ],
)
def test_a_history_of_another_shape_is_not_recognised(shape: str, message: Any) -> None:
    assert [problem["code"] for problem in session(shape).view([message]).problems] == ["unrecognised-history"]


@given(SHAPED, st.sampled_from(["last", "first", "system"]))
def test_a_view_leaves_the_history_as_it_was(shaped: tuple[str, list[Any]], where: str) -> None:
    shape, history = shaped
    before, objects = copy.deepcopy(history), list(history)
    view = session(shape, where).view(history)
    assert history == before
    assert all(now is then for now, then in zip(history, objects, strict=True))
    changed = {change["index"] for change in view.changes}
    for index, message in enumerate(view.core):
        assert (message is history[index]) is (index not in changed)
    told = view.injected is not None and len(view.messages) == len(view.core)
    assert not told or shape == "gemini-text"
    core = [message for place, message in enumerate(view.core) if not told or place != view.injected]
    rest = [message for place, message in enumerate(view.messages) if place != view.injected]
    assert all(one is other for one, other in zip(rest, core, strict=True))


@given(SHAPED)
def test_exactly_the_units_with_a_line_in_front_of_the_latest_answer_change(shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    of = SHAPES[shape]
    latest = of.latest_answer(history)
    marked = {
        (index, unit.slot): unit.content
        for index, message in enumerate(history)
        for unit in of.units(message)
        if index < latest and "<!--ephemeral-->" in (of.text(unit.content) or "").split("\n")
    }
    view = session(shape).view(history)
    assert {(change["index"], change["slot"]) for change in view.changes} == set(marked)
    for change in view.changes:
        content = marked[change["index"], change["slot"]]
        assert change["original_bytes"] == (len(content.encode()) if isinstance(content, str) else size(content))
    for index, message in enumerate(history):
        again = {unit.slot: unit.content for unit in of.units(view.core[index])}
        for unit in of.units(message):
            if unit.slot is not None and (index, unit.slot) not in marked:
                assert again[unit.slot] == unit.content


@given(SHAPED)
def test_the_view_of_a_view_is_the_view(shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    core = session(shape).view(history).core
    again = session(shape).view(core)
    assert again.core == core
    assert again.changes == []


def other(shape: str, part: Any) -> Any:
    """What of a part of an answer must stay; None where it is text. What a tool put out is none of the answer's."""
    if SHAPES[shape].is_text(part):
        return None
    if part.get("type") != "tool":
        return part
    state = {key: value for key, value in part["state"].items() if key not in ("output", "error", "attachments")}
    if state.get("metadata", {}).get("interrupted"):
        del state["metadata"]
    return {**part, "state": state}


@given(SHAPED)
def test_what_is_no_text_stays_byte_for_byte(shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    for old, new in zip(history, session(shape).view(history).core, strict=True):
        assert list(old) == list(new)
        own = SHAPES[shape].key
        assert [(key, old[key]) for key in old if key not in (own, "output")] == [
            (key, new[key]) for key in new if key not in (own, "output")
        ]
        if SHAPES[shape].role(old) == "assistant" and isinstance(old.get(own), list):
            told = [[other(shape, part) for part in message[own]] for message in (old, new)]
            assert [part for part in told[0] if part is not None] == [part for part in told[1] if part is not None]


@given(DISTURBED, st.sampled_from(["last", "first", "system"]))
def test_no_history_makes_a_view_fail(shaped: tuple[str, list[Any]], where: str) -> None:
    shape, history = shaped
    before = copy.deepcopy(history)
    view = session(shape, where).view(history)
    assert history == before
    assert len(view.core) == len(history)


class Unwilling:
    """An object that answers no question about itself."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Contrary(dict[str, Any]):
    """A dict that is none."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("get")


LOOP: list[Any] = [text(LONG), {"text": LONG}, ASKED]
LOOP.append({"type": "other", "in": LOOP})
DEEP: Any = LONG
for _ in range(10_000):
    DEEP = [DEEP]
HOSTILE: list[Any] = [
    *ODD,
    Unwilling(),
    object,
    {"role": Unwilling(), "content": Unwilling(), "parts": Unwilling()},
    {"role": "user", "content": [Unwilling(), {"type": Unwilling()}], "parts": [Unwilling()]},
    {"role": "assistant", "content": [Unwilling()], "tool_calls": [Unwilling()], "function_call": Unwilling()},
    {"role": "model", "parts": [Unwilling(), {"functionCall": Unwilling()}]},
    {"role": "user", "content": LOOP, "parts": LOOP},
    {"role": "user", "content": [text(LONG), DEEP], "parts": [{"text": LONG}, DEEP]},
    Contrary(role="user", content=LONG, parts=[{"text": LONG}]),
    {"role": "user", "content": [Contrary(text(LONG))], "parts": [Contrary(text=LONG)]},
]


@pytest.mark.parametrize("shape", PROVIDERS)
@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_read_is_sent_as_it_is(shape: str, message: Any) -> None:
    of = SHAPES[shape]
    view = session(shape, "last").view([message])
    assert view.core[0] is message
    if of.role(message) is None:
        assert (of.units(message), of.links(message)) == ([], [])
        assert [problem["code"] for problem in view.problems] == ["unrecognised-history"]
    view = session(shape).view(answered(shape, message))
    assert (view.core[0] is message) is (view.changes == [])


def test_each_shape_goes_by_its_name() -> None:
    clients = ["opencode", "pi", "gemini-text"]
    assert list(SHAPES) == ["neutral", "anthropic", "openai-chat", "openai-responses", "gemini", *clients]
    assert all(shape.name == name for name, shape in SHAPES.items())
    assert SHAPES["neutral"] is NEUTRAL


@pytest.mark.parametrize(
    ("shape", "where", "message"),
    [
        ("anthropic", "last", {"role": "user", "content": "B"}),
        ("anthropic", "system", None),
        ("openai-chat", "first", {"role": "user", "content": "B"}),
        ("openai-chat", "system", {"role": "system", "content": "B"}),
        (
            "openai-responses",
            "last",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "B"}]},
        ),
        (
            "openai-responses",
            "system",
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "B"}]},
        ),
        ("gemini", "first", {"role": "user", "parts": [{"text": "B"}]}),
        ("gemini", "system", None),
        (
            "opencode",
            "first",
            {
                "info": {"id": "msg_0", "role": "user"},
                "parts": [text("B", synthetic=True, id="prt_0", messageID="msg_0")],
            },
        ),
        ("opencode", "system", None),
        ("pi", "first", {"role": "user", "content": [text("B")], "timestamp": 0}),
        ("pi", "system", None),
        ("gemini-text", "last", {"role": "user", "content": "B"}),
        ("gemini-text", "system", None),
    ],
)
def test_the_message_that_carries_blocks(shape: str, where: str, message: Any) -> None:
    assert SHAPES[shape].block_message("B", where) == message
