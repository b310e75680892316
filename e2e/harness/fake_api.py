#!/usr/bin/env python3
"""A loopback model API that answers as the prompt tells it to, so that real coding agents run offline.

Speaks Anthropic Messages, OpenAI Responses, OpenAI chat completions and Gemini generateContent, streamed and plain.
The newest user message that holds directives decides the answers to it:

  [[tool NAME {"json": "arguments"}]]   call this tool; several run in turn, one a response
  [[usage N]]                           report N input tokens, from this place in the prompt on
  [[out N]]                             report N output tokens, likewise

When all tools of a prompt have run, the answer is FAKE-FINAL. A client's own request for a summary gets FAKE-SUMMARY;
directives in front of a summary are spent. Every request is written to LOG/NNNN-PROTOCOL.json before it is answered.

Prints its base URL when it listens, and ends with the process that started it.
"""

import argparse
import gzip
import json
import os
import re
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, NamedTuple

FINAL = "FAKE-FINAL: done."
SUMMARY = "<analysis>fake analysis</analysis>\n<summary>\nFAKE-SUMMARY: what was asked and done so far.\n</summary>"

# How each client words its request for a summary. Whole phrases of theirs, because the text that hooks inject
# talks about compaction too and must not be taken for one.
SUMMARY_PROMPTS = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",  # Claude Code
    "You are performing a CONTEXT CHECKPOINT COMPACTION.",  # Codex
    "The history is being compacted so moving forward",  # Copilot
)
SUMMARY_SYSTEM_PROMPTS = (
    "distilling chat history into a structured XML <state_snapshot>",  # Gemini
    "You are a context summarization agent.",  # OpenCode
    "You are a context summarization assistant.",  # pi
)
CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key")

Json = dict[str, Any]


class Answer(NamedTuple):
    text: str
    usage: int
    out: int
    tool: str | None = None
    args: Any = None

    def __str__(self) -> str:
        what = (
            f"{self.tool} {json.dumps(self.args)}"
            if self.tool
            else "FAKE-SUMMARY"
            if self.text == SUMMARY
            else "FAKE-FINAL"
        )
        return f"{what}, usage {self.usage}"


class Conversation(NamedTuple):
    """What decides the answer, the same for every protocol."""

    system: str
    messages: list[tuple[str, str]]  # (user | assistant | result, text), oldest first
    offers_tools: bool


def scripted(prompt: str, usage: int, out: int) -> list[Answer]:
    """The answers that a prompt's directives ask for, one a request; empty if it has none."""
    answers, found, at = [], False, 0
    while m := re.search(r"\[\[(?:(usage|out)\s+(\d+)|tool\s+([\w.:/-]+)\s*)", prompt[at:]):
        at += m.end()
        if m[3]:
            try:
                args, at = json.JSONDecoder().raw_decode(prompt, at)
            except ValueError:
                continue
            answers.append(Answer("", usage, out, m[3], args))
        elif m[1] == "usage":
            usage = int(m[2])
        else:
            out = int(m[2])
        found = True
    return [*answers, Answer(FINAL, usage, out)] if found else []


def decide(c: Conversation, usage: int, out: int) -> Answer:
    kind, last = c.messages[-1] if c.messages else ("", "")
    if (kind == "user" and any(p in last for p in SUMMARY_PROMPTS)) or any(
        p in c.system for p in SUMMARY_SYSTEM_PROMPTS
    ):
        return Answer(SUMMARY, usage, out)
    results = 0
    for kind, text in reversed(c.messages):
        if "FAKE-SUMMARY" in text:
            break
        if kind == "result":
            results += 1
        elif kind == "user" and "[[" in text:
            script = scripted(text, usage, out)
            if "[[tool" in text and not any(
                a.tool for a in script
            ):  # `opencode run` escapes the quotes of its argument
                script = scripted(text.replace('\\"', '"'), usage, out)
            if script:
                return script[min(results, len(script) - 1)] if c.offers_tools else script[-1]
    return Answer(FINAL, usage, out)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] for p in content or [] if isinstance(p, dict) and isinstance(p.get("text"), str))


def new_id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    # -- transport ---------------------------------------------------------------------------------------------------

    def log_message(self, *args: Any) -> None:
        pass

    def body(self) -> Any:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw or b"{}")
        except ValueError:
            return {"unreadable": raw.decode("latin1")[:2000]}

    def send_json(self, document: Any, status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, events: list[Json], named: bool = False, done: bool = False) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for e in events:
            name = f"event: {e['type']}\n" if named else ""
            self.wfile.write(f"{name}data: {json.dumps(e)}\n\n".encode())
        if done:
            self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()

    def answer(self, protocol: str, body: Json, conversation: Conversation) -> Answer:
        a = decide(conversation, self.server.usage, self.server.out)
        self.keep(protocol, body, a)
        return a

    def keep(self, protocol: str, body: Any, answer: Answer | str = "") -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in CREDENTIALS}
        self.server.keep(
            protocol, {"time": time.time(), "path": self.path, "answer": str(answer), "headers": headers, "body": body}
        )

    # -- routes ------------------------------------------------------------------------------------------------------

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.keep("get", None)
        if "models" in self.path:
            model = {
                "id": "fake-model",
                "object": "model",
                "type": "model",
                "display_name": "fake",
                "created": 1,
                "created_at": "2025-01-01T00:00:00Z",
            }
            self.send_json({"object": "list", "data": [model], "models": [], "has_more": False})
        else:
            self.send_json({"error": "not found"}, 404)

    def do_POST(self) -> None:
        path, body = self.path.split("?")[0], self.body()
        try:
            if path.endswith(("/messages/count_tokens", ":countTokens")):
                self.keep("count", body)
                self.send_json({"input_tokens": self.server.usage, "totalTokens": self.server.usage})
            elif path.endswith("/messages"):
                self.anthropic(body)
            elif path.endswith("/responses"):
                self.openai_responses(body)
            elif path.endswith("/chat/completions"):
                self.openai_chat(body)
            elif path.endswith("enerateContent"):
                self.gemini(body, "stream" in path)
            else:
                self.keep("other", body)
                self.send_json({}, 200 if "otel" in path or "event" in path else 404)
        except (BrokenPipeError, ConnectionResetError):
            pass

    # -- Anthropic Messages ------------------------------------------------------------------------------------------

    def anthropic(self, b: Json) -> None:
        messages = []
        for m in b.get("messages", []):
            parts = m["content"] if isinstance(m["content"], list) else []
            messages += [("result", "") for p in parts if p.get("type") == "tool_result"]
            if m["role"] in ("user", "assistant"):  # hook context can come as a system message behind the user's
                messages.append((m["role"], text_of(m["content"])))
        a = self.answer("anthropic", b, Conversation(text_of(b.get("system")), messages, bool(b.get("tools"))))
        usage = {
            "input_tokens": min(a.usage, 10),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": max(a.usage - 10, 0),
            "output_tokens": 1,
        }
        if a.tool:
            block: Json = {"type": "tool_use", "id": new_id("toolu_"), "name": a.tool, "input": a.args}
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(a.args)}
        else:
            block = {"type": "text", "text": a.text}
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": a.text}
        stop = {"stop_reason": "tool_use" if a.tool else "end_turn", "stop_sequence": None}
        message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": b.get("model")}
        used = {**usage, "output_tokens": a.out}
        if not b.get("stream"):
            return self.send_json({**message, "content": [block], **stop, "usage": used})
        self.send_events(
            [
                {
                    "type": "message_start",
                    "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage},
                },
                {"type": "content_block_start", "index": 0, "content_block": empty},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": used},
                {"type": "message_stop"},
            ],
            named=True,
        )
        return None

    # -- OpenAI Responses --------------------------------------------------------------------------------------------

    def openai_responses(self, b: Json) -> None:
        messages, tools = [], b.get("tools") or []
        items = b.get("input") or []
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            kind = item.get("type", "message")
            if kind.endswith("_output"):
                messages.append(("result", ""))
            elif kind == "message" and item.get("role") in ("user", "assistant"):
                messages.append((item["role"], text_of(item.get("content"))))
        a = self.answer("responses", b, Conversation(b.get("instructions") or "", messages, bool(tools)))
        call = {"call_id": new_id("call_"), "name": a.tool, "status": "completed"}
        if not a.tool:
            item = {
                "type": "message",
                "id": new_id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": a.text, "annotations": []}],
            }
        elif any(t.get("type") == "custom" and t.get("name") == a.tool for t in tools):
            item = {
                "type": "custom_tool_call",
                "id": new_id("ctc_"),
                **call,
                "input": a.args if isinstance(a.args, str) else json.dumps(a.args),
            }
        else:
            item = {"type": "function_call", "id": new_id("fc_"), **call, "arguments": json.dumps(a.args)}
            for t in tools:
                if t.get("type") == "namespace" and any(x.get("name") == a.tool for x in t.get("tools", [])):
                    item["namespace"] = t["name"]
        base = {"id": new_id("resp_"), "object": "response", "created_at": int(time.time()), "model": b.get("model")}
        done = {
            **base,
            "status": "completed",
            "output": [item],
            "error": None,
            "incomplete_details": None,
            "usage": {
                "input_tokens": a.usage,
                "input_tokens_details": {"cached_tokens": max(a.usage - 100, 0)},
                "output_tokens": a.out,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": a.usage + a.out,
            },
        }
        if not b.get("stream"):
            return self.send_json(done)
        events: list[Json] = [
            {"type": "response.created", "response": {**base, "status": "in_progress", "output": [], "usage": None}},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**item, "status": "in_progress", **({} if a.tool else {"content": []})},
            },
        ]
        if not a.tool:
            at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            events += [
                {
                    "type": "response.content_part.added",
                    **at,
                    "part": {"type": "output_text", "text": "", "annotations": []},
                },
                {"type": "response.output_text.delta", **at, "delta": a.text},
                {"type": "response.output_text.done", **at, "text": a.text},
                {"type": "response.content_part.done", **at, "part": item["content"][0]},
            ]
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        self.send_events([{**e, "sequence_number": n} for n, e in enumerate(events)], named=True)
        return None

    # -- OpenAI chat completions -------------------------------------------------------------------------------------

    def openai_chat(self, b: Json) -> None:
        messages, system = [], ""
        for m in b.get("messages", []):
            text = text_of(m.get("content"))
            if m["role"] == "tool":
                messages.append(("result", ""))
            elif m["role"] in ("user", "assistant"):
                messages.append((m["role"], text))
            else:
                system += text
        a = self.answer("chat", b, Conversation(system, messages, bool(b.get("tools"))))
        usage = {
            "prompt_tokens": a.usage,
            "completion_tokens": a.out,
            "total_tokens": a.usage + a.out,
            "prompt_tokens_details": {"cached_tokens": max(a.usage - 100, 0)},
        }
        message: Json = {"role": "assistant", "content": None if a.tool else a.text}
        if a.tool:
            message["tool_calls"] = [
                {
                    "index": 0,
                    "id": new_id("call_"),
                    "type": "function",
                    "function": {"name": a.tool, "arguments": json.dumps(a.args)},
                }
            ]
        finish = "tool_calls" if a.tool else "stop"
        head = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": b.get("model")}
        if not b.get("stream"):
            return self.send_json(
                {
                    **head,
                    "object": "chat.completion",
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                    "usage": usage,
                }
            )
        chunk = {**head, "object": "chat.completion.chunk"}
        events = [
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        ]
        if (b.get("stream_options") or {}).get("include_usage"):
            events.append({**chunk, "choices": [], "usage": usage})
        else:
            events[-1]["usage"] = usage
        self.send_events(events, done=True)
        return None

    # -- Gemini generateContent --------------------------------------------------------------------------------------

    def gemini(self, b: Json, stream: bool) -> None:
        messages = []
        for m in b.get("contents", []):
            parts = m.get("parts", [])
            messages += [("result", "") for p in parts if "functionResponse" in p]
            messages.append(("assistant" if m.get("role") == "model" else "user", text_of(parts)))
        system = text_of((b.get("systemInstruction") or {}).get("parts"))
        a = self.answer("gemini", b, Conversation(system, messages, bool(b.get("tools"))))
        config = b.get("generationConfig") or {}
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        if schema or config.get("responseMimeType") == "application/json":
            part: Json = {"text": json.dumps(smallest(schema or {"type": "object"}))}
        elif a.tool:
            part = {"functionCall": {"name": a.tool, "args": a.args, "id": new_id("call_")}}
        else:
            part = {"text": a.text}
        response = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": a.usage,
                "candidatesTokenCount": a.out,
                "totalTokenCount": a.usage + a.out,
                "cachedContentTokenCount": 0,
            },
            "modelVersion": "fake-gemini",
            "responseId": new_id(""),
        }
        self.send_events([response]) if stream else self.send_json(response)


def smallest(schema: Json) -> Any:
    """A small value that a JSON schema allows.

    Gemini CLI asks its model for such verdicts: which model to use, who speaks next.
    """
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {k: smallest(v) for k, v in (schema.get("properties") or {}).items()}
    return {"boolean": False, "number": 1, "integer": 1, "array": []}.get(kind, "user")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, log: str, usage: int, out: int) -> None:
        super().__init__(("127.0.0.1", port), Api)
        self.log, self.usage, self.out = log, usage, out
        os.makedirs(log, exist_ok=True)
        self.count = max((int(f[:4]) for f in os.listdir(log) if f[:4].isdigit()), default=0)
        self.lock, self.parent = Lock(), os.getppid()

    def keep(self, protocol: str, request: Json) -> None:
        with self.lock:
            self.count += 1
            number = self.count
        with open(os.path.join(self.log, f"{number:04d}-{protocol}.json"), "w", encoding="utf-8") as f:
            json.dump(request, f, indent=1, ensure_ascii=False)

    def service_actions(self) -> None:
        if os.getppid() != self.parent:
            raise SystemExit


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--log", required=True, metavar="DIR", help="where to write the requests")
    p.add_argument("--port", type=int, default=0, help="default: a free one")
    p.add_argument(
        "--usage",
        type=int,
        default=1200,
        metavar="N",
        help="input tokens to report where the prompt says nothing (%(default)s)",
    )
    p.add_argument("--out", type=int, default=40, metavar="N", help="output tokens, likewise (%(default)s)")
    a = p.parse_args()
    server = Server(a.port, a.log, a.usage, a.out)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
