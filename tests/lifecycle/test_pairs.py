"""Calls and their results: what a provider would refuse is found, and no view makes it so."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.lifecycle import SHAPES, Session, check_pairs
from ecm_rules.lifecycle.anthropic import Anthropic
from ecm_rules.lifecycle.gemini import Gemini
from ecm_rules.lifecycle.openai import OpenAIChat, OpenAIResponses
from ecm_rules.lifecycle.pairs import broken_by, faults
from ecm_rules.lifecycle.pi import Pi
from ecm_rules.lifecycle.shapes import Shape
from tests.lifecycle.histories import (
    ANSWERS,
    BLOCKS,
    DISTURBED,
    LONG,
    SHAPED,
    Trusting,
    answered,
    recorded,
    said,
    session,
)

RECORDED = recorded()
USER = {"role": "user", "content": "go on"}
TOLD = {"role": "system", "content": "be brief"}


def uses(*ids: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, **more} for id in ids]}


def results(*ids: str | None, say: str = "") -> dict[str, Any]:
    own = [{"type": "text", "text": say}] if say else []
    parts = [{"type": "tool_result", "tool_use_id": id, "content": LONG} for id in ids]
    return {"role": "user", "content": [*parts, *own]}


def searched(*ids: str, server: str = "s1", call: bool = True, result: bool = True) -> dict[str, Any]:
    """An answer with a tool that the provider runs, and calls behind it."""
    parts: list[Any] = [{"type": "server_tool_use", "id": server, "name": "web_search"}] if call else []
    parts += [{"type": "web_search_tool_result", "tool_use_id": server, "content": []}] if result else []
    return {"role": "assistant", "content": [*parts, *uses(*ids)["content"]]}


def calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id} for id in ids]}


def tool(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": LONG}


def item(id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": id, "name": "f"}


def output(id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": f"{kind}_output", "call_id": id, "output": LONG}


def asks(*named: str) -> dict[str, Any]:
    """Function calls; `f:id` has an id, `f` has none."""
    return {"role": "model", "parts": [{"functionCall": _named(name)} for name in named]}


def responds(*named: str, say: str = "") -> dict[str, Any]:
    own = [{"text": say}] if say else []
    parts = [{"functionResponse": {**_named(name), "response": {"output": LONG}}} for name in named]
    return {"role": "user", "parts": [*parts, *own]}


def _named(name: str) -> dict[str, str]:
    name, _, id = name.partition(":")
    return {"name": name, "id": id} if id else {"name": name}


OLD_CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
OLD_RESULT = {"role": "function", "name": "f", "content": LONG}
REFERENCE = {"type": "item_reference", "id": "fc_1"}
SAID = said("gemini", "go on")

# (shape, history, line and code of each finding)
CASES: dict[str, tuple[str, list[Any], list[tuple[int, str]]]] = {
    "nothing": ("anthropic", [], []),
    "anthropic: whole": (
        "anthropic",
        [USER, uses("a", "b"), results("b", "a", say="and"), uses("c"), results("c")],
        [],
    ),
    "anthropic: open": ("anthropic", [USER, uses("a", "b")], []),
    "anthropic: one of two": ("anthropic", [uses("a", "b"), results("a")], [(1, "ECM811")]),
    "anthropic: none": ("anthropic", [uses("a"), USER, ANSWERS["anthropic"]], [(1, "ECM811")]),
    "anthropic: no call": ("anthropic", [results("a"), ANSWERS["anthropic"]], [(1, "ECM812")]),
    "anthropic: another's": ("anthropic", [uses("a"), results("x")], [(1, "ECM811"), (2, "ECM812")]),
    "anthropic: twice in one": ("anthropic", [uses("a"), results("a", "a")], [(2, "ECM813")]),
    "anthropic: twice later": ("anthropic", [uses("a"), results("a"), uses("b"), results("b", "a")], [(4, "ECM813")]),
    "anthropic: an id again": ("anthropic", [uses("a"), results("a"), uses("a"), results("a")], [(3, "ECM813")]),
    "anthropic: called twice": ("anthropic", [uses("a", "a"), results("a")], [(1, "ECM813")]),
    "anthropic: late": ("anthropic", [uses("a"), USER, results("a")], [(3, "ECM814")]),
    "anthropic: in two messages": ("anthropic", [uses("a", "b"), results("a"), results("b")], []),
    "anthropic: called in two messages": ("anthropic", [uses("a"), uses("b"), results("a", "b")], []),
    "anthropic: an answer between": (
        "anthropic",
        [uses("a"), results(say="x"), {"role": "assistant", "content": "y"}, results("a")],
        [(4, "ECM814")],
    ),
    "anthropic: behind a system message": ("anthropic", [uses("a"), TOLD, results("a")], [(3, "ECM814")]),
    "anthropic: early": ("anthropic", [results("a"), uses("a"), USER], [(1, "ECM814")]),
    "anthropic: behind a text": (
        "anthropic",
        [uses("a"), {"role": "user", "content": [{"type": "text", "text": "x"}, *results("a")["content"]]}],
        [(2, "ECM814")],
    ),
    "anthropic: without an id": ("anthropic", [uses(None), results(None)], [(1, "ECM811"), (2, "ECM812")]),
    "openai-chat: without an id": (
        "openai-chat",
        [
            {"role": "assistant", "content": None, "tool_calls": [{"type": "function"}]},
            {"role": "tool", "content": "x"},
            USER,
        ],
        [(1, "ECM811"), (2, "ECM812")],
    ),
    "openai-responses: without an id": (
        "openai-responses",
        [{"type": "function_call"}, {"type": "web_search_call"}, {"type": "function_call_output"}, USER],
        [(1, "ECM811"), (3, "ECM812")],
    ),
    "anthropic: searched": ("anthropic", [USER, searched("a"), results("a")], []),
    "anthropic: paused": ("anthropic", [USER, searched(result=False)], []),
    "anthropic: went on": ("anthropic", [searched(result=False), searched(call=False)], []),
    "anthropic: runs others": (
        "anthropic",
        [searched("a", result=False), results("a"), searched("b", call=False), results("b")],
        [],
    ),
    "anthropic: waits for others": ("anthropic", [searched("a", result=False), results("a")], []),
    "anthropic: never found": ("anthropic", [searched(result=False), USER, ANSWERS["anthropic"]], [(1, "ECM811")]),
    "anthropic: found unasked": ("anthropic", [USER, searched(call=False)], [(2, "ECM812")]),
    "anthropic: found by a user": ("anthropic", [searched(result=False), results("s1")], [(2, "ECM812")]),
    "anthropic: blocks of the SDK": (
        "anthropic",
        [{"role": "assistant", "content": [SimpleNamespace(type="tool_use", id="a")]}, results("b")],
        [(1, "ECM811"), (2, "ECM812")],
    ),
    "chat: whole": ("openai-chat", [USER, calls("a", "b"), tool("b"), tool("a"), USER, calls("a"), tool("a")], []),
    "chat: open": ("openai-chat", [calls("a", "b"), tool("a")], []),
    "chat: one of two": ("openai-chat", [calls("a", "b"), tool("a"), USER], [(1, "ECM811")]),
    "chat: the next answer": ("openai-chat", [calls("a"), calls("b"), tool("b")], [(1, "ECM811")]),
    "chat: no call": ("openai-chat", [USER, tool("a")], [(2, "ECM812")]),
    "chat: twice": ("openai-chat", [calls("a"), tool("a"), tool("a")], [(3, "ECM813")]),
    "chat: called twice": ("openai-chat", [calls("a", "a"), tool("a")], [(1, "ECM813")]),
    "chat: late": ("openai-chat", [calls("a", "b"), tool("a"), USER, tool("b")], [(4, "ECM814")]),
    "chat: early": ("openai-chat", [tool("a"), calls("a"), USER], [(1, "ECM814")]),
    "chat: behind a system message": ("openai-chat", [calls("a"), TOLD, tool("a")], [(3, "ECM814")]),
    "chat: of old": ("openai-chat", [OLD_CALL, OLD_RESULT, USER, OLD_CALL, OLD_RESULT], []),
    "chat: of old, none": ("openai-chat", [OLD_CALL, USER], [(1, "ECM811")]),
    "chat: of old, twice": ("openai-chat", [OLD_CALL, OLD_RESULT, OLD_RESULT], [(3, "ECM812")]),
    "chat: of old, another's": (
        "openai-chat",
        [OLD_CALL, {**OLD_RESULT, "name": "g"}, USER],
        [(1, "ECM811"), (2, "ECM812")],
    ),
    "responses: whole": ("openai-responses", [USER, item("a"), item("b"), output("b"), USER, output("a"), USER], []),
    "responses: its kin": (
        "openai-responses",
        [
            item("a", "custom_tool_call"),
            output("a", "custom_tool_call"),
            item("p", "program"),
            output("p", "program"),
            {"type": "web_search_call", "id": "w"},
            item("b", "apply_patch_call"),
            output("b", "apply_patch_call"),
            USER,
        ],
        [],
    ),
    "responses: open": ("openai-responses", [USER, item("a"), item("b"), output("a")], []),
    "responses: none": ("openai-responses", [item("a"), item("b"), output("a"), USER], [(2, "ECM811")]),
    "responses: no call": ("openai-responses", [USER, output("a")], [(2, "ECM812")]),
    "responses: twice": ("openai-responses", [item("a"), output("a"), USER, output("a")], [(4, "ECM813")]),
    "responses: called twice": ("openai-responses", [item("a"), item("a"), output("a"), USER], [(2, "ECM813")]),
    "responses: early": ("openai-responses", [output("a"), item("a"), USER], [(1, "ECM814")]),
    "responses: what a reference may be": (
        "openai-responses",
        [REFERENCE, output("a"), item("b"), REFERENCE, USER],
        [],
    ),
    "responses: behind a reference": (
        "openai-responses",
        [output("a"), REFERENCE, item("b"), USER],
        [(1, "ECM812"), (3, "ECM811")],
    ),
    "gemini: whole": (
        "gemini",
        [asks("f", "f", "g:1"), responds("g:1", "f", "f", say="and"), asks("f"), responds("f")],
        [],
    ),
    "gemini: by id": ("gemini", [asks("f:1", "f:2"), responds("f:2", "f:1")], []),
    "gemini: an id on one side": ("gemini", [asks("f:1", "f"), responds("f", "f:2")], []),
    "gemini: open": ("gemini", [SAID, asks("f", "f")], []),
    "gemini: one of two": ("gemini", [asks("f", "f"), responds("f")], [(1, "ECM811")]),
    "gemini: one too many": ("gemini", [asks("f"), responds("f", "f")], [(2, "ECM812")]),
    "gemini: another's": ("gemini", [asks("f:1"), responds("f:2")], [(1, "ECM811"), (2, "ECM812")]),
    "gemini: another name": ("gemini", [asks("f"), responds("g")], [(1, "ECM811"), (2, "ECM812")]),
    "gemini: twice": ("gemini", [asks("f:1"), responds("f:1", "f:1")], [(2, "ECM813")]),
    "gemini: late": ("gemini", [asks("f:1"), SAID, responds("f:1")], [(3, "ECM814")]),
    "gemini: late, by name": ("gemini", [asks("f"), SAID, responds("f")], [(3, "ECM814")]),
    "gemini: by name, behind one that nobody answered": (
        "gemini",
        [SAID, asks("f"), SAID, asks("f"), responds("f")],
        [(2, "ECM811")],
    ),
    "gemini: in two contents": ("gemini", [asks("f", "g"), responds("f"), responds("g")], [(3, "ECM814")]),
    "gemini: a tool of the provider": (
        "gemini",
        [{"role": "model", "parts": [{"toolCall": {"id": "t"}}, {"toolResponse": {"id": "t"}}]}, SAID],
        [],
    ),
    "neutral: whole": ("neutral", [calls("a", "b"), tool("a"), USER, tool("b"), USER], []),
    "neutral: open": ("neutral", [calls("a", "b"), tool("a")], []),
    "neutral: none": ("neutral", [calls("a"), USER], [(1, "ECM811")]),
    "neutral: no call": ("neutral", [tool("a")], [(1, "ECM812")]),
    "neutral: an id again": ("neutral", [calls("a"), tool("a"), calls("a"), tool("a")], []),
    "neutral: twice": ("neutral", [calls("a"), tool("a"), tool("a")], [(3, "ECM813")]),
    "another shape": ("anthropic", [SAID, asks("f")], [(0, "ECM815")]),
    "no messages": ("gemini", [5, None], [(0, "ECM815")]),
}


@pytest.mark.parametrize(("shape", "history", "found"), CASES.values(), ids=CASES)
def test_what_a_provider_refuses_is_found(shape: str, history: list[Any], found: list[tuple[int, str]]) -> None:
    findings = check_pairs(history, SHAPES[shape])
    assert [(finding.line, finding.code) for finding in findings] == found
    assert all(finding.file == "messages" and finding.help for finding in findings)


def test_a_finding_says_what_was_found_and_where_it_is_expected() -> None:
    (finding,) = check_pairs([calls("a\n"), USER, tool("a\n")], SHAPES["openai-chat"])
    assert finding.message == (
        "found the result of `a\\u{000A}` here, expected it among the tool messages directly behind its call"
    )


@pytest.mark.parametrize("history", [None, {"messages": []}, "text", iter([])])
def test_what_is_no_history_is_refused(history: Any) -> None:
    with pytest.raises(TypeError, match="a history is a list of messages"):
        check_pairs(history, SHAPES["anthropic"])


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_history_is_whole(name: str) -> None:
    assert check_pairs(RECORDED[name]["messages"], SHAPES[RECORDED[name]["shape"]]) == []


@given(SHAPED)
def test_a_history_as_the_provider_wants_it_is_whole(shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    found = check_pairs(history, SHAPES[shape])
    # Anthropic and Gemini take no part of the results for all: what ends so is found.
    partly = shape in ("anthropic", "gemini") and SHAPES[shape].latest_answer(history) != len(history) - 1
    assert {finding.code for finding in found} <= ({"ECM811"} if partly else set())


def broken(shape: str, messages: list[Any], injected: int | None = None) -> Counter[tuple[str, int, str]]:
    """What is no half of a whole pair; places are those before the injection."""
    found = faults(SHAPES[shape], messages)
    return Counter(
        (fault.code, fault.index - (injected is not None and fault.index > injected), fault.name) for fault in found
    )


@pytest.mark.parametrize("where", ["last", "first", "system"])
@given(DISTURBED)
def test_every_pair_that_was_whole_is_whole_in_the_view(where: str, shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    view = session(shape, where).view(history)
    assert broken(shape, view.core) == broken(shape, history)
    assert broken(shape, view.messages, view.injected) == broken(shape, history)


def edited(draw: st.DrawFn, value: Any) -> Any:
    """A value with something in it missing, doubled, exchanged or renamed."""
    value = copy.deepcopy(value)
    places = [value]
    for place in places:
        inner = place.values() if isinstance(place, dict) else place if isinstance(place, list) else ()
        places += [item for item in inner if isinstance(item, dict | list)]
    place = draw(st.sampled_from([place for place in places if place] or [value]))
    if isinstance(place, dict) and place:
        key = draw(st.sampled_from(list(place)))
        if draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(st.sampled_from(["other", "user", "c00", None, []]))
    elif isinstance(place, list) and place:
        at = draw(st.integers(0, len(place) - 1))
        place[at : at + 1] = draw(st.sampled_from([[], [place[at]] * 2, ["x"]]))
        if draw(st.booleans()):
            place.reverse()
    return value


@given(SHAPED, st.data())
def test_an_edit_that_is_let_through_breaks_no_pair(shaped: tuple[str, list[Any]], data: st.DataObject) -> None:
    shape, history = shaped
    after = list(history)
    indexes = data.draw(st.sets(st.integers(0, max(0, len(history) - 1)), max_size=3)) if history else set()
    for index in indexes:
        after[index] = data.draw(st.composite(edited)(history[index]))
    if not broken_by(SHAPES[shape], history, after, sorted(indexes)):
        assert broken(shape, after) <= broken(shape, history)


@given(SHAPED)
def test_a_message_without_its_pairs_is_never_let_through(shaped: tuple[str, list[Any]]) -> None:
    shape, history = shaped
    of = SHAPES[shape]
    for index, message in enumerate(history):
        after = [*history[:index], said(shape, "go on"), *history[index + 1 :]]
        lost = of.role(message) != "user" or bool(of.links(message))
        assert bool(broken_by(of, history, after, [index])) is lost


class Careless:
    """Rewrites a message without what pairs it."""

    def replaced(self, message: Any, stones: Mapping[int | None, str]) -> Any:
        rewritten = super().replaced(message, stones)  # type: ignore[misc]
        lost = {"tool_call_id", "call_id", "tool_calls"}
        return {
            key: self._without(value) if isinstance(value, list) else value
            for key, value in rewritten.items()
            if key not in lost
        }

    def _without(self, parts: list[Any]) -> list[Any]:
        return [part for part in parts if not {"tool_use_id", "functionResponse"} & set(part)]


class CarelessNeutral(Careless, Shape):
    pass


class CarelessAnthropic(Careless, Anthropic):
    pass


class CarelessChat(Careless, OpenAIChat):
    pass


class CarelessResponses(Careless, OpenAIResponses):
    pass


class CarelessGemini(Careless, Gemini):
    pass


class CarelessPi(Careless, Pi):
    def replaced(self, message: Any, stones: Mapping[int | None, str]) -> Any:
        return {key: value for key, value in super().replaced(message, stones).items() if key != "toolCallId"}


CARELESS: dict[str, tuple[Shape, list[Any]]] = {
    "neutral": (CarelessNeutral(), [calls("a"), tool("a")]),
    "anthropic": (CarelessAnthropic(), [uses("a"), results("a")]),
    "openai-chat": (CarelessChat(), [calls("a"), tool("a")]),
    "openai-responses": (CarelessResponses(), [item("a"), output("a")]),
    "gemini": (CarelessGemini(), [asks("f:a"), responds("f:a")]),
    "pi": (
        CarelessPi(),
        [
            {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "f"}]},
            {"role": "toolResult", "toolCallId": "a", "content": [{"type": "text", "text": LONG}]},
        ],
    ),
}


@pytest.mark.parametrize("name", CARELESS)
def test_a_view_that_breaks_a_pair_is_not_sent(name: str) -> None:
    shape, pair = CARELESS[name]
    history = answered(name, said(name, LONG), *pair)
    lifetimes = Session(Trusting(), shape=shape, clock=lambda: "now")
    lifetimes.load_source(BLOCKS, "s.md")
    view = lifetimes.view(history)
    assert all(sent is message for sent, message in zip(view.core, history, strict=True))
    assert (view.changes, view.injected, view.messages) == ([], None, history)
    assert [problem["code"] for problem in view.problems] == ["broken-pair"]
    lifetimes.view(history)
    assert [event["action"] for event in lifetimes.audit].count("view_rejected") == 1
    rejected = lifetimes.audit[-1]
    assert (rejected["action"], rejected["reason"]) == ("view_rejected", "message 2 lost a tool result")
    assert "ephemeral_consumed" not in [event["action"] for event in lifetimes.audit]
    # The same history in a shape that is not careless.
    assert [change["index"] for change in session(name).view(history).changes] == [0, 2]


class Forgetful(Anthropic):
    def replaced(self, message: Any, stones: Mapping[int | None, str]) -> Any:
        return {**super().replaced(message, stones), "role": "user"}


class Failing(Anthropic):
    def replaced(self, message: Any, stones: Mapping[int | None, str]) -> Any:
        raise KeyError(message, stones)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (Forgetful(), "message 1 speaks in another role"),
        (Failing(), "message 0 cannot be rewritten: KeyError"),
    ],
)
def test_a_view_that_a_shape_makes_wrongly_is_not_sent(shape: Shape, reason: str) -> None:
    history = answered("anthropic", said("anthropic", LONG), {"role": "assistant", "content": LONG})
    lifetimes = Session(Trusting(), shape=shape, clock=lambda: "now")
    view = lifetimes.view(history)
    assert all(sent is message for sent, message in zip(view.core, history, strict=True))
    assert lifetimes.audit[-1]["reason"] == reason


SAYS = ANSWERS["openai-responses"]
THINKS = {"type": "reasoning", "summary": []}
COMPACTED = {"type": "compaction", "encrypted_content": "x"}
PREFILL = {"role": "assistant", "content": "{"}
PI_CALLS = {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "f"}]}
CODED = {
    "info": {"role": "assistant"},
    "parts": [{"type": "tool", "tool": "f", "callID": "a", "state": {"status": "completed", "output": "ok"}}],
}
# (shape, history, where the blocks stand at the end of it)
PLACES: dict[str, tuple[str, list[Any], int]] = {
    "empty": ("anthropic", [], 0),
    "only system messages": ("openai-chat", [TOLD, TOLD], 2),
    "behind results": ("anthropic", [USER, uses("a"), results("a")], 3),
    "behind what a user says": ("anthropic", [USER, uses("a"), USER], 3),
    "in front of an open call": ("anthropic", [USER, uses("a")], 1),
    "in front of a prefill and its system message": ("anthropic", [USER, TOLD, PREFILL], 1),
    "behind what is only referred to": ("openai-responses", [USER, {"type": "item_reference", "id": "i"}], 2),
    "in front of a prefill": ("anthropic", [USER, PREFILL], 1),
    "in front of a paused answer": ("anthropic", [USER, searched(result=False), searched(call=False)], 1),
    "in front of an answer that waits": ("anthropic", [USER, searched("a", result=False), results("a")], 1),
    "in front of a system message, which ends a turn": ("anthropic", [USER, uses("a"), results("a"), TOLD], 3),
    "behind a system message": ("openai-chat", [USER, calls("a"), tool("a"), TOLD], 4),
    "in front of open calls": ("openai-chat", [USER, calls("a", "b"), tool("a")], 1),
    "behind all results": ("openai-chat", [USER, calls("a", "b"), tool("a"), tool("b")], 4),
    "behind a call that nobody answers": ("openai-chat", [USER, calls("a"), USER], 3),
    "in front of prefills": ("neutral", [USER, PREFILL, PREFILL], 1),
    "in front of a run": ("openai-responses", [USER, THINKS, SAYS, item("a"), item("b"), output("a")], 1),
    "behind a run": ("openai-responses", [USER, THINKS, item("a"), output("a")], 4),
    "behind a compaction": ("openai-responses", [USER, SAYS, COMPACTED], 3),
    "behind responses": ("gemini", [SAID, asks("f"), responds("f")], 3),
    "behind what tools put out": ("opencode", [said("opencode", "a"), CODED], 2),
    "behind an answer": ("opencode", [said("opencode", "a"), ANSWERS["opencode"]], 2),
    "in front of open calls of pi": ("pi", [said("pi", "a"), PI_CALLS], 1),
    "behind an answer that failed": ("pi", [said("pi", "a"), {**ANSWERS["pi"], "stopReason": "error"}], 2),
    "behind all texts": ("gemini-text", [said("gemini-text", "a"), ANSWERS["gemini-text"]], 2),
    "in front of open function calls": ("gemini", [SAID, asks("f", "f")], 1),
}


@pytest.mark.parametrize(("shape", "history", "place"), PLACES.values(), ids=PLACES)
def test_blocks_stand_behind_what_is_finished(shape: str, history: list[Any], place: int) -> None:
    view = session(shape, "last").view(history)
    assert view.injected == place
    assert view.messages[:place] + view.messages[place + 1 :] == history


@pytest.mark.parametrize("shape", ["anthropic", "gemini"])
def test_blocks_of_a_system_prompt_are_no_message(shape: str) -> None:
    history = answered(shape)
    view = session(shape, "system").view(history)
    assert (view.system, view.injected, view.messages) == (BLOCKS, None, history)


def test_many_calls_of_one_name_are_paired_in_a_moment() -> None:
    history = [said("gemini", "q"), asks(*["f"] * 50_000), responds(*["f"] * 50_000)]
    assert check_pairs(history, SHAPES["gemini"]) == []
    assert session("gemini", "last").view(history).injected == 3
