"""Clients as they were recorded: their events to `ecm-hook`, a real process, and their sessions as they write them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from ecm_rules.hosts import memo
from ecm_rules.kernel import locks
from ecm_rules.tables.hosts import load_hosts
from tests.commands import BIN
from tests.conftest import FIXTURES
from tests.hosts import accepted

STATE = ".eidolons/.context"
NOW = "2026-07-07T00:00:00.000Z"

# By moment, the recorded payload. Where a client has no such event, nothing.
RECORDED: dict[str, dict[str, str]] = {
    "claude-code": {
        "start": "SessionStart.startup",
        "resume": "SessionStart.resume",
        "before": "PreCompact.auto",
        "compacted": "SessionStart.compact",
        "after": "PostCompact.auto",
        "prompt": "UserPromptSubmit",
        "tool": "PostToolUse",
        "stop": "Stop",
        "agent tool": "PostToolUse.in-subagent",
        "agent stop": "SubagentStop",
    },
    "codex": {
        "start": "SessionStart.startup",
        "resume": "SessionStart.resume",
        "before": "PreCompact.auto",
        "after": "PostCompact.auto",
        "compacted": "SessionStart.compact",
        "prompt": "UserPromptSubmit",
        "tool": "PostToolUse",
        "stop": "Stop",
        "agent tool": "PostToolUse.in-subagent",
        "agent stop": "SubagentStop",
    },
    "copilot": {
        "start": "sessionStart.new",
        "resume": "sessionStart.resume",
        "before": "preCompact.auto",
        "prompt": "userPromptSubmitted",
        "tool": "postToolUse",
        "stop": "agentStop",
        "agent tool": "postToolUse.in-subagent",
        "agent stop": "subagentStop",
    },
    "gemini-cli": {
        "start": "SessionStart.startup",
        "resume": "SessionStart.resume",
        "before": "PreCompress.manual",
        "prompt": "BeforeAgent",
        "tool": "AfterTool",
        "stop": "AfterAgent",
    },
    "opencode": {
        "start": "event.session.created",
        "before": "experimental.session.compacting",
        "after": "event.session.compacted",
        "prompt": "chat.message",
        "tool": "tool.execute.after",
        "stop": "event.session.idle",
    },
    "pi": {
        "start": "session_start",
        "before": "session_before_compact.threshold",
        "compacted": "session_compact.threshold",
        "prompt": "before_agent_start",
        "tool": "tool_result",
        "stop": "agent_settled",
    },
}
HOSTS = list(RECORDED)
WINDOW = {"gemini-cli": 1_048_576, "copilot": 100_000}
_TEXT = {
    "claude-code": ["hookSpecificOutput", "additionalContext"],
    "codex": ["hookSpecificOutput", "additionalContext"],
    "gemini-cli": ["hookSpecificOutput", "additionalContext"],
    "copilot": ["additionalContext"],
    "opencode": ["text"],
    "pi": ["text"],
}
_KEYS = load_hosts()["hosts"]
OPENING = re.compile(r"^<!--BLOCK_ID:(.+)-->$", re.MULTILINE)


def recorded(host: str, name: str) -> dict[str, Any]:
    """A recorded payload."""
    found: dict[str, Any] = json.loads((FIXTURES / "hosts" / host / f"{name}.json").read_text())
    return found


def opted_in(folder: pathlib.Path, **context: object) -> pathlib.Path:
    """A copy of the project of the fixtures, without the state that it comes with."""
    shutil.copytree(FIXTURES / "project", folder, dirs_exist_ok=True)
    shutil.rmtree(folder / STATE, ignore_errors=True)
    if context:
        (folder / "eidolons.yaml").write_text(json.dumps({"context": context}))
    return folder


def run(host: str, payload: bytes, project: pathlib.Path | str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """`ecm-hook HOST` in a project, as it is."""
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"HOME": str(project), **env}
    return subprocess.run(
        [str(BIN / "ecm-hook"), host], cwd=project, input=payload, capture_output=True, env=environment, timeout=60
    )


class Client:
    """A client in a project: its session `session`, which it writes to a file of its own where it has one."""

    def __init__(self, host: str, project: pathlib.Path, session: str = "0adbbeaf-0001") -> None:
        self.host = host
        self.project = project
        self.session = session
        self.home = project.parent / f"{project.name}-home"
        self.agent: str | None = None
        self.usage: dict[str, Any] | None = None
        self.env: dict[str, str] = {"COPILOT_HOME": str(self.home)}
        self.complaints: list[str] | None = None
        """What its hooks said on stderr; None: that is a fault."""
        self._records = 0
        if host == "copilot":
            self.transcript = self.home / f"session-state/{session}/events.jsonl"
        elif host == "codex":
            self.transcript = self.home / f"sessions/rollout-2026-07-07-{session}.jsonl"
        else:
            self.transcript = self.home / f"{session}.jsonl"
        self.transcript.parent.mkdir(parents=True, exist_ok=True)

    # What it sends.

    def payload(self, moment: str, **changes: object) -> dict[str, Any]:
        """The recorded payload of a moment, with this session in it. changes: of its keys; None takes one out."""
        given = recorded(self.host, RECORDED[self.host].get(moment, moment))
        keys = _KEYS[self.host]["payload"]
        _put(given, keys["session"], self.session)
        _put(given, keys["transcript"], str(self.transcript))
        if self.agent is not None:
            _put(given, keys["agent"], self.agent)
        if self.host == "codex" and self.agent is not None and "agent_transcript_path" not in given:
            given["transcript_path"] = str(self.agent_transcript)
        if "agent_transcript_path" in given:
            given["agent_transcript_path"] = str(self.agent_transcript)
        if self.host == "pi" and self.usage is not None:
            given["ctx"]["usage"] = self.usage
        given.update(changes)
        return {key: value for key, value in given.items() if value is not None or key not in changes}

    def send(self, moment: str, **changes: object) -> str:
        """What the client's model is told at a moment; every answer is one that the client takes."""
        return self.deliver(self.payload(moment, **changes))

    def deliver(self, payload: dict[str, Any]) -> str:
        done = run(self.host, json.dumps(payload).encode(), self.project, **self.env)
        assert done.returncode == 0
        if self.complaints is None:
            assert done.stderr == b""
        else:
            self.complaints += done.stderr.decode().splitlines()
        accepted.check(self.host, payload, done.stdout)
        return text_of(self.host, done.stdout)

    def start(self, payload: dict[str, Any], **env: str) -> subprocess.Popen[bytes]:
        """The hook as a process of its own, its payload written."""
        process = subprocess.Popen(
            [str(BIN / "ecm-hook"), self.host],
            cwd=self.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(self.project), **self.env, **env},
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.close()
        process.stdin = None
        return process

    # What it writes.

    @property
    def window(self) -> int:
        return WINDOW.get(self.host, 200_000)

    @property
    def agent_transcript(self) -> pathlib.Path:
        """Where the session of its subagent stands."""
        if self.host == "codex":
            return self.home / f"sessions/rollout-2026-07-07-{self.agent}.jsonl"
        return self.home / f"{self.session}/subagents/agent-{self.agent}.jsonl"

    def fill(self, share: float, new: int = 10) -> None:
        """A response of the model with the window so full, of which so many tokens are new."""
        self._records += 1
        used, number = round(share * self.window), self._records
        if self.host == "claude-code":
            usage = {"input_tokens": new, "cache_read_input_tokens": used - new, "output_tokens": 0}
            message = {"id": f"m{number}", "role": "assistant", "model": "claude-opus-4-5", "usage": usage}
            self.write(type="assistant", sessionId=self.session, timestamp=NOW, message={**message, "content": []})
        elif self.host == "codex":
            usage = {"input_tokens": used, "cached_input_tokens": used - new, "output_tokens": 0}
            if number == 1:
                self._rollout(self.transcript, self.session)
            told: dict[str, Any] = {
                "thread_id": self.session,
                "session_id": self.session,
                "response_id": f"r{number}",
                "usage": usage,
            }
            self.write(timestamp=NOW, type="token_usage_record", payload=told)
        elif self.host == "copilot":
            usage = {"inputTokens": used, "cacheReadTokens": used - new, "outputTokens": 0, "maxPromptTokens": 100_000}
            self._event("session.usage_record", {"usage": {**usage, "apiCallId": f"c{number}"}})
        elif self.host == "gemini-cli":
            if number == 1:
                self.write(sessionId=self.session, projectHash="p", kind="main")
            tokens = {"input": used, "cached": used - new, "output": 0, "total": used}
            told = {"type": "gemini", "content": "", "model": "gemini-2.5-pro", "tokens": tokens}
            self.write(id=f"m{number}", timestamp=NOW, **told)
        elif self.host == "pi":
            percent = 100 * used / self.window
            self.usage = {"tokens": used, "contextWindow": self.window, "percent": percent}
        else:
            if number == 1:
                sized = self.payload("chat.params")
                sized["input"]["model"]["limit"]["context"] = self.window
                assert self.deliver(sized) == ""
            told = self.payload("event.message.updated.assistant")
            told["input"]["properties"]["info"]["tokens"]["total"] = used
            assert self.deliver(told) == ""

    def fill_agent(self, share: float) -> None:
        """The same of its subagent, in its own file."""
        path, used = self.agent_transcript, round(share * self.window)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.host == "codex":
            self._rollout(path, self.agent or "", source={"subagent": {"parent_thread_id": self.session}})
            asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
            _append(path, {"timestamp": NOW, "type": "response_item", "payload": asked})
            usage = {"input_tokens": used, "cached_input_tokens": used - 10, "output_tokens": 0}
            told: dict[str, Any] = {"thread_id": self.agent, "response_id": "ra", "usage": usage}
            _append(path, {"timestamp": NOW, "type": "token_usage_record", "payload": told})
        else:
            usage = {"input_tokens": 10, "cache_read_input_tokens": used - 10, "output_tokens": 0}
            message: dict[str, Any] = {
                "id": "ma",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [],
                "usage": usage,
            }
            _append(path, {"type": "assistant", "isSidechain": True, "sessionId": self.session, "message": message})

    def say(self, text: str) -> None:
        """What the user's side of the window is given, the texts of hooks among it."""
        self._records += 1
        if self.host == "claude-code":
            told: dict[str, Any] = {"type": "attachment", "attachment": {"type": "hook_context", "content": [text]}}
            self.write(**told, sessionId=self.session, timestamp=NOW)
        elif self.host == "codex":
            content = [{"type": "input_text", "text": text}]
            self.write(
                timestamp=NOW,
                type="response_item",
                payload={"type": "message", "role": "developer", "content": content},
            )
        elif self.host == "copilot":
            self._event("user.message", {"content": text})
        elif self.host == "gemini-cli":
            escaped = text.replace("<", "&lt;").replace(">", "&gt;")
            content = [{"text": f"<hook_context>{escaped}</hook_context>"}]
            self.write(id=f"m{self._records}", timestamp=NOW, type="user", content=content)
        elif self.host == "pi":
            message = {"role": "custom", "customType": "ecm-rules", "content": text}
            self.write(type="custom_message", id=f"e{self._records}", timestamp=NOW, message=message)

    def boundary(self) -> None:
        """The boundary of a compaction, where it is written to a file."""
        self._records += 1
        if self.host == "claude-code":
            told = {"trigger": "auto", "preTokens": 169_041, "postTokens": 2_625}
            self.write(type="system", subtype="compact_boundary", sessionId=self.session, compactMetadata=told)
        elif self.host == "codex":
            self.write(timestamp=NOW, type="compacted", payload={"message": "s", "replacement_history": []})
        elif self.host == "copilot":
            self._event("session.compaction_complete", {"success": True, "outcome": "applied", "summaryContent": "s"})
        elif self.host == "gemini-cli":
            summary = {"id": f"s{self._records}", "timestamp": NOW, "type": "user", "content": [{"text": "summary"}]}
            self.write(**{"$set": {"messages": [summary]}})
        elif self.host == "pi":
            self.usage = {"tokens": None, "contextWindow": self.window, "percent": None}
            self.write(type="compaction", id=f"c{self._records}", timestamp=NOW, summary="s", firstKeptEntryId="e1")

    def write(self, **record: object) -> None:
        _append(self.transcript, record)

    def _event(self, kind: str, data: dict[str, Any]) -> None:
        if not self.transcript.exists():
            _append(self.transcript, {"type": "session.start", "data": {"sessionId": self.session}, "parentId": None})
        self.write(type=kind, data=data, id=f"e{self._records}", timestamp=NOW, parentId=f"e{self._records - 1}")

    def _rollout(self, path: pathlib.Path, thread: str, **more: object) -> None:
        _append(path, {"type": "session_meta", "payload": {"id": thread, "session_id": self.session, **more}})
        _append(path, {"type": "event_msg", "payload": {"type": "task_started", "model_context_window": self.window}})

    # What stands in the project.

    def meter(self, agent: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.project / STATE / f"meter{f'-{agent}' if agent else ''}.json").read_text()
        )
        return found

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """The verdicts of the policy log, or its events of a name; no line of it is torn."""
        return [line for line in lines(self.project, "policy-log.jsonl") if line.get("event") == event]

    def ledger(self) -> list[str]:
        """The operations in the budget ledger."""
        return [
            line["operation"] for line in lines(self.project, "budget-ledger.jsonl") if line["event"] == "operation"
        ]

    @contextlib.contextmanager
    def detained(self) -> Iterator[None]:
        """As long as this lasts, what an operation has to say cannot be left for anybody: it is late."""
        lock = locks.take(str(self.project / STATE / f"{memo.REST}-{self.session}.jsonl.lock"), 60)
        try:
            yield
        finally:
            locks.release(lock)

    def await_late(self) -> None:
        """Wait until something that was late is there."""
        until = time.monotonic() + 60
        while not self.made(f"{memo.REST}-{self.session}.jsonl"):
            assert time.monotonic() < until
            time.sleep(0.02)

    def made(self, pattern: str) -> list[str]:
        return sorted(path.name for path in (self.project / STATE).glob(pattern))


def lines(project: pathlib.Path, name: str) -> list[dict[str, Any]]:
    path = project / STATE / name
    whole, _, rest = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
    assert rest == b""
    return [json.loads(line) for line in whole.split(b"\n") if whole]


def text_of(host: str, stdout: bytes) -> str:
    """The text in an answer, empty without one."""
    if not stdout:
        return ""
    if not stdout.startswith(b"{"):
        return stdout.decode()
    found: Any = json.loads(stdout)
    for key in _TEXT[host]:
        found = found[key]
    return str(found)


def pins_in(text: str) -> list[str]:
    """The ids of the blocks in a text."""
    return OPENING.findall(text)


def tokens(text: str) -> float:
    return len(text.encode()) / 4


def _append(path: pathlib.Path, record: dict[str, Any]) -> None:
    with path.open("a") as stream:
        stream.write(json.dumps(record) + "\n")


def _put(payload: dict[str, Any], paths: list[list[str]], value: str) -> None:
    """Put a value at each of the paths that is there."""
    for *above, last in paths:
        inner: Any = payload
        for key in above:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and last in inner:
            inner[last] = value
