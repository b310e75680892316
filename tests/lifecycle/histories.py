"""Histories in the shape of each provider: as it wants them, and as it does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ecm_rules.lifecycle import SHAPES, Session, Source
from tests.conftest import FIXTURES

Message = Any
History = list[Message]

LONG = "<!--ephemeral-->\nlong output"
BLOCKS = "<!--BLOCK_ID:a-->\nA\n<!--/BLOCK_ID:a-->\n"
PROVIDERS = list(SHAPES)

_REQUESTS: list[tuple[str, str, list[str]]] = [
    ("opencode", "opencode/experimental.chat.messages.transform.json", ["output"]),
    ("opencode", "opencode/experimental.chat.messages.transform.after-compaction.json", ["output"]),
    ("opencode", "opencode/experimental.chat.messages.transform.compaction.json", ["output"]),
    ("pi", "pi/context.json", ["event"]),
    ("pi", "pi/context.after-tool.json", ["event"]),
    ("pi", "pi/context.after-compaction.json", ["event"]),
    ("pi", "pi/context_with_system.json", ["event"]),
    ("gemini-text", "gemini-cli/BeforeModel.json", ["llm_request"]),
    ("gemini-text", "gemini-cli/BeforeToolSelection.json", ["llm_request"]),
]


def recorded() -> dict[str, dict[str, Any]]:
    """{"shape", "messages"} of what the clients sent, and of what they gave their hooks to change."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted((FIXTURES / "histories").glob("*.json"))}
    for shape, name, place in _REQUESTS:
        told = json.loads((FIXTURES / "hosts" / name).read_text())
        for key in place:
            told = told[key]
        found[name] = {"shape": shape, "messages": told["messages"]}
    return found


TEXTS = st.sampled_from(["plain", LONG, "<!-- note -->", "<!--DISCARD_BLOCK:a-->", "zwölf"])


class Trusting:
    """Blocks from context sources; no discards."""

    def allows(self, declaration: str, source: Source) -> bool:
        return declaration == "block" and source.origin == "context_source"


def session(shape: str, inject: str = "") -> Session:
    """A session whose messages have a shape; with a block in it where `inject` says its place."""
    lifetimes = Session(Trusting(), shape=SHAPES[shape], inject=inject or "last", clock=lambda: "now")
    if inject:
        lifetimes.load_source(BLOCKS, "s.md")
    return lifetimes


ANSWERS: dict[str, Message] = {
    "neutral": {"role": "assistant", "content": "done"},
    "anthropic": {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    "openai-chat": {"role": "assistant", "content": "done"},
    "openai-responses": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    },
    "gemini": {"role": "model", "parts": [{"text": "done"}]},
    "opencode": {"info": {"id": "msg_z", "role": "assistant"}, "parts": [{"type": "text", "text": "done"}]},
    "pi": {"role": "assistant", "content": [{"type": "text", "text": "done"}], "stopReason": "stop", "timestamp": 9},
    "gemini-text": {"role": "model", "content": "done"},
}


def answered(shape: str, *messages: Message) -> History:
    """The messages, and an answer that has seen them."""
    return [*messages, said(shape, "go on"), ANSWERS[shape]]


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def _anthropic(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    said: list[Any] = [{"type": "thinking", "thinking": LONG, "signature": "c2ln"}, _text(draw(TEXTS))]
    if draw(st.booleans()):
        server = "srv" + "".join(ids)
        said += [
            {"type": "server_tool_use", "id": server, "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": server, "content": []},
            _text(draw(TEXTS)),
        ]
    said += [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]
    results: list[Any] = [
        {
            "type": "tool_result",
            "tool_use_id": id,
            "content": draw(TEXTS | TEXTS.map(lambda text: [_text(text), IMAGE])),
            "is_error": False,
        }
        for id in draw(st.permutations(ids))
    ]
    own = draw(st.lists(TEXTS.map(_text) | st.just(IMAGE), max_size=2))
    return [{"role": "assistant", "content": said}], [{"role": "user", "content": [*results, *own]}]


def _chat(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    if draw(st.integers(0, 5)) == 0:
        old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
        return [old], [{"role": "function", "name": "f", "content": draw(TEXTS)}]
    called = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    call = {"role": "assistant", "content": draw(TEXTS | st.none()), "tool_calls": called}
    contents = TEXTS | TEXTS.map(lambda text: [_text(text)])
    results = [{"role": "tool", "tool_call_id": id, "content": draw(contents)} for id in draw(st.permutations(ids))]
    return [call], results


def _responses(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    said: History = [{"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": LONG}]}]
    text = {"type": "output_text", "text": draw(TEXTS), "annotations": []}
    said.append({"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [text]})
    kind = draw(st.sampled_from(["function_call", "custom_tool_call", "local_shell_call"]))
    said += [{"type": kind, "call_id": id, "name": "f", "arguments": "{}"} for id in ids]
    if draw(st.booleans()):
        said.append({"type": "web_search_call", "id": "ws", "status": "completed"})
    outputs = TEXTS | TEXTS.map(
        lambda text: [{"type": "input_text", "text": text}, {"type": "input_image", "file_id": "f"}]
    )
    results = [{"type": f"{kind}_output", "call_id": id, "output": draw(outputs)} for id in draw(st.permutations(ids))]
    return said, results


def _gemini(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    named = draw(st.booleans())
    said: list[Any] = [{"text": LONG, "thought": True}, {"text": draw(TEXTS), "thoughtSignature": "c2ln"}]
    said += [
        {"functionCall": {"name": "f", "args": {}, **({"id": id} if named else {})}, "thoughtSignature": "c2ln"}
        for id in ids
    ]
    responses = TEXTS.map(lambda text: {"output": text}) | TEXTS.map(lambda text: {"code": 0, "out": text, "err": ""})
    results: list[Any] = [
        {"functionResponse": {"name": "f", "response": draw(responses), **({"id": id} if named else {})}}
        for id in (draw(st.permutations(ids)) if named else ids)
    ]
    own = draw(st.lists(TEXTS.map(lambda text: {"text": text}), max_size=2))
    return [{"role": "model", "parts": said}], [{"role": "user", "parts": [*results, *own]}]


def _opencode(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    named = "msg_" + "".join(ids)
    said: list[Any] = [{"type": "step-start"}, {"type": "reasoning", "text": LONG, "metadata": {"signature": "c2ln"}}]
    said += [{**_text(draw(TEXTS)), "id": f"prt_{n}"} for n in range(draw(st.integers(0, 2)))]
    for id in ids:
        text = draw(TEXTS)
        state = draw(
            st.sampled_from(
                [
                    {"status": "completed", "input": {}, "output": text, "metadata": {"output": text}},
                    {"status": "completed", "input": {}, "output": text, "attachments": [{"url": "data:,"}]},
                    {"status": "error", "input": {}, "error": text},
                    {"status": "error", "error": "", "metadata": {"interrupted": True, "output": text}},
                    {"status": "running", "input": {}},
                ]
            )
        )
        said.append({"type": "tool", "tool": "f", "callID": id, "state": state})
    said.append({"type": "step-finish", "reason": "tool-calls", "cost": 0})
    return [{"info": {"id": named, "role": "assistant"}, "parts": said}], []


def _pi(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    said: list[Any] = [{"type": "thinking", "thinking": LONG, "thinkingSignature": "c2ln"}]
    said += [{**_text(draw(TEXTS)), "textSignature": "c2ln"} for _ in range(draw(st.integers(0, 2)))]
    said += [{"type": "toolCall", "id": id, "name": "f", "arguments": {}} for id in ids]
    contents = TEXTS.map(lambda text: [_text(text)]) | TEXTS.map(lambda text: [IMAGE, _text(text)])
    results: History = [
        {"role": "toolResult", "toolCallId": id, "toolName": "f", "content": draw(contents), "isError": False}
        for id in draw(st.permutations(ids))
    ]
    ran = {"role": "bashExecution", "command": "ls", "output": draw(TEXTS), "timestamp": 5}
    told = {"role": "custom", "customType": "note", "content": draw(TEXTS), "display": False}
    more = draw(st.lists(st.sampled_from([ran, told]), max_size=2))
    return [{"role": "assistant", "content": said, "stopReason": "toolUse", "timestamp": 3}], [*results, *more]


def _gemini_text(draw: st.DrawFn, ids: list[str]) -> tuple[History, History]:
    def told(role: str) -> History:
        return [{"role": role, "content": draw(TEXTS)}] * draw(st.integers(0, 1))

    return told("model"), told("user")


_TURNS: dict[str, Callable[[st.DrawFn, list[str]], tuple[History, History]]] = {
    "neutral": _chat,
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "opencode": _opencode,
    "pi": _pi,
    "gemini-text": _gemini_text,
}


def said(shape: str, text: str) -> Message:
    """What a user says."""
    if shape == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if shape == "opencode":
        return {"info": {"id": "msg_" + text[-3:], "role": "user"}, "parts": [{**_text(text), "id": "prt_a"}]}
    if shape == "gemini-text":
        return {"role": "user", "content": text}
    kind = "input_text" if shape == "openai-responses" else "text"
    return {"role": "user", "content": [{"type": kind, "text": text}]}


def instructed(shape: str, text: str) -> History:
    """A system message, where the shape has such messages."""
    return [] if shape in ("gemini", "opencode") else [{"role": "system", "content": text}]


@st.composite
def histories(draw: st.DrawFn, shape: str) -> History:
    """As the provider wants it, but for how it may end: in open calls, with some of their results, in a prefill."""
    history = instructed(shape, "rules") * (draw(st.booleans()) and shape != "anthropic")
    for turn in range(draw(st.integers(0, 4))):
        ids = [f"c{turn}{n}" for n in range(draw(st.integers(1, 3)))]
        calls, results = _TURNS[shape](draw, ids)
        match draw(st.sampled_from(["tools", "tools", "user", "answer"])):
            case "tools":
                history += [*calls, *results]
            case "user":
                history += [said(shape, draw(TEXTS)), *instructed(shape, draw(TEXTS)) * draw(st.integers(0, 1))]
            case "answer":
                history.append(ANSWERS[shape])
    calls, results = _TURNS[shape](draw, ["z0", "z1"])
    match draw(st.sampled_from(["", "open", "partly", "prefill", "user"])):
        case "open":
            history += calls
        case "partly":
            history += [*calls, *results[: draw(st.integers(0, 1))]]
        case "prefill":
            history += [said(shape, draw(TEXTS)), ANSWERS[shape]]
        case "user":
            history.append(said(shape, draw(TEXTS)))
    return copy.deepcopy(history)


ODD: list[Any] = [
    None,
    5,
    "text",
    [],
    {},
    {"role": 3, "content": LONG},
    {"role": ["user"], "content": LONG},
    {"role": "user"},
    {"role": "nobody", "content": LONG, "parts": [{"text": LONG}]},
    {"role": "user", "content": {"a": LONG}, "parts": {"text": LONG}},
    {"role": "user", "content": [None, 5, "loose", {"type": ["text"], "text": LONG}], "parts": [None, {"text": 5}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ["x"], "content": LONG}]},
    {"role": "user", "parts": [{"functionResponse": {"id": {}, "name": [], "response": {"a": LONG}}}]},
    {"role": "user", "parts": [{"functionResponse": LONG}, {"functionResponse": {"response": [LONG]}}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": {}}, {"type": "x_tool_result"}], "tool_calls": 5},
    {"role": "assistant", "content": None, "tool_calls": [None, {"id": []}], "function_call": LONG},
    {"role": "model", "parts": [{"functionCall": None}, {"functionCall": {"name": {}}}, {"toolCall": {"id": 5}}]},
    {"role": "tool", "tool_call_id": ["x"], "content": LONG},
    {"type": "function_call_output", "call_id": {}, "output": LONG},
    {"type": "function_call_output", "call_id": "lost", "output": {"type": "computer_screenshot"}},
    {"type": ["message"], "role": "user", "content": LONG},
    {"type": "function_call", "call_id": 7},
    {"type": "item_reference"},
    {"role": "user", "content": [{"type": "text", "text": LONG, "more": {1, 2}}], "parts": [{"text": LONG, "n": {1}}]},
    {"info": LONG, "parts": [{"type": "text", "text": LONG}]},
    {"info": {"role": ["user"]}, "parts": [{"type": "text", "text": LONG}]},
    {"info": {"role": "user"}, "parts": LONG},
    {"info": {"role": "user", "id": {}}, "parts": [5, None, LONG, {"type": "file"}, {"type": [], "text": LONG}]},
    {"info": {"role": "user", "id": 5}, "parts": [{"type": "text", "text": LONG, "n": {1}}]},
    {"info": {"role": "assistant", "error": LONG}, "parts": [{"type": "tool", "state": LONG}, {"type": "tool"}]},
    {"info": {"role": "assistant", "error": {"name": []}}, "parts": [{"type": {}}, {"type": "tool", "state": {}}]},
    {"info": {"role": "assistant"}, "parts": [{"type": "tool", "callID": [], "state": {"status": [], "output": LONG}}]},
    {"info": {"role": "assistant"}, "parts": [{"type": "tool", "state": {"status": "completed", "output": [LONG]}}]},
    {"info": {"role": "assistant"}, "parts": [{"type": "tool", "state": {"status": "error", "metadata": [LONG]}}]},
    {"role": "toolResult", "toolCallId": {}, "content": [LONG, {"type": "text", "text": [LONG]}]},
    {"role": "toolResult", "toolCallId": "lost", "content": {"type": "text", "text": LONG}},
    {"role": "assistant", "content": [{"type": "toolCall", "id": []}, 5], "stopReason": ["stop"], "timestamp": {}},
    {"role": "bashExecution", "output": [LONG], "command": None},
    {"role": "bashExecution", "output": {"text": LONG}},
    {"role": "compactionSummary", "summary": LONG, "content": {}},
    {"role": "custom", "customType": [], "content": LONG, "timestamp": []},
    {"role": "branchSummary", "summary": None},
]


@st.composite
def disturbed(draw: st.DrawFn, shape: str) -> History:
    """A history of which some messages are missing, doubled, exchanged, or none at all."""
    history = draw(histories(shape))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(history)))
        match draw(st.sampled_from(["drop", "double", "exchange", "odd"])):
            case "drop":
                del history[at : at + 1]
            case "double":
                history[at:at] = copy.deepcopy(history[at : at + 1])
            case "exchange":
                history[at : at + 2] = reversed(history[at : at + 2])
            case _:
                history.insert(at, copy.deepcopy(draw(st.sampled_from(ODD))))
    return history


SHAPED = st.sampled_from(PROVIDERS).flatmap(lambda shape: st.tuples(st.just(shape), histories(shape)))
DISTURBED = st.sampled_from(PROVIDERS).flatmap(lambda shape: st.tuples(st.just(shape), disturbed(shape)))
