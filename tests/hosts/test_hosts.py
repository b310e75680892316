"""Every payload that was recorded of every client, through the real hook: what it prints is what that client takes."""

from __future__ import annotations

import json
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import FIXTURES
from tests.hosts import accepted, clients

PAYLOADS = {
    host: sorted(path.relative_to(FIXTURES / "hosts" / host) for path in (FIXTURES / "hosts" / host).rglob("*.json"))
    for host in clients.HOSTS
}


@pytest.mark.parametrize("host", clients.HOSTS)
def test_every_recorded_payload(host: str, warm: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def one(name: pathlib.Path) -> list[str]:
        data = (FIXTURES / "hosts" / host / name).read_bytes()
        project = shutil.copytree(warm, tmp_path / name.stem.replace("/", "-") / str(len(name.parts)))
        done = clients.run(host, data, project)
        payload = json.loads(data)
        found = accepted.faults(host, payload, done.stdout)
        if accepted.entry(host, payload).get("always") and not done.stdout:
            found.append("found nothing, expected an answer")
        if done.returncode or done.stderr:
            found.append(f"exit {done.returncode}: {done.stderr.decode()}")
        return [f"{host}/{name}: {fault}" for fault in found]

    with ThreadPoolExecutor(2) as pool:
        assert [fault for found in pool.map(one, PAYLOADS[host]) for fault in found] == []
    assert len(PAYLOADS[host]) >= 15


def test_the_recordings_meet_every_entry_that_must_be_answered() -> None:
    for host, entries in accepted.HOSTS.items():
        met = {
            accepted.entry(host, json.loads((FIXTURES / "hosts" / host / name).read_bytes()))["event"]
            for name in PAYLOADS[host]
        }
        assert met >= {entry["event"] for entry in entries if entry.get("always")}, host
        assert set(accepted.HOSTS) == set(clients.HOSTS)


def answer(event: str, text: str) -> bytes:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}).encode()


REFUSED: list[tuple[str, str, bytes]] = [
    ("claude-code", "SessionStart.startup", answer("SessionStart", "x" * 10_001)),
    ("claude-code", "SessionStart.startup", answer("PostToolUse", "x")),
    ("claude-code", "SessionStart.startup", answer("SessionStart", "x") * 2),
    ("claude-code", "SessionStart.startup", b"plain"),
    ("claude-code", "PreCompact.auto", answer("PreCompact", "x")),
    ("claude-code", "PreCompact.manual", b" "),
    ("claude-code", "PostCompact.auto", answer("PostCompact", "x")),
    ("claude-code", "Stop", answer("Stop", "x")),
    ("claude-code", "SubagentStop.compaction-summarizer", b"{}"),
    ("claude-code", "UserPromptSubmit", b'{"decision": "block"}'),
    ("claude-code", "statusline.start", b"two\nlines\n"),
    ("claude-code", "statusline.start", b"x" * 81 + b"\n"),
    ("codex", "SessionStart.startup", answer("SessionStart", "\u00e9" * 5_001)),
    ("codex", "SessionStart.startup", b'{"additionalContext": "x"}'),
    ("codex", "PreCompact.auto", b'{"continue": false}'),
    ("codex", "UserPromptSubmit.in-subagent", answer("UserPromptSubmit", "x")),
    ("copilot", "sessionStart.new", answer("sessionStart", "x")),
    ("copilot", "preCompact.auto", b'{"additionalContext": "x"}'),
    ("gemini-cli", "PreCompress.auto", answer("PreCompress", "x")),
    ("gemini-cli", "AfterTool", b'{"decision": "deny"}'),
    ("opencode", "experimental.session.compacting", b'{"text": "x"}'),
    ("pi", "tool_result", b'{"messages": []}'),
]


@pytest.mark.parametrize(
    ("host", "name", "stdout"), REFUSED, ids=[f"{h}-{n}-{i}" for i, (h, n, _) in enumerate(REFUSED)]
)
def test_what_a_client_does_not_take_is_a_fault(host: str, name: str, stdout: bytes) -> None:
    assert accepted.faults(host, clients.recorded(host, name), stdout) != []


def test_what_a_client_takes_is_none() -> None:
    at_most = answer("SessionStart", "x" * 10_000)
    assert accepted.faults("claude-code", clients.recorded("claude-code", "SessionStart.startup"), at_most) == []
    coloured = b"\x1b[32mx\x1b[0m" + b"x" * 79 + b"\n"
    assert accepted.faults("claude-code", clients.recorded("claude-code", "statusline.start"), coloured) == []


def test_copilots_payloads_at_the_hook_of_claude_code(warm: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """It runs the hooks of `.claude/settings.json` as well, and has its own: not a byte, and not a file."""
    project = shutil.copytree(warm, tmp_path / "project")
    before = {path.name: path.read_bytes() for path in (project / clients.STATE).iterdir()}
    for path in sorted((FIXTURES / "hosts/copilot").rglob("*.json")):
        done = clients.run("claude-code", path.read_bytes(), project)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), path
    assert {path.name: path.read_bytes() for path in (project / clients.STATE).iterdir()} == before
