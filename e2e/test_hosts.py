"""What of our answers reaches the model of each client, in the place and at the time that is promised."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import pytest

from e2e.harness.clients import CLIENTS
from e2e.harness.runner import Request, after_summary, strings
from e2e.project import PIN, STATE, Project

METER = "Context: zone="
OURS = re.compile(r"Context: zone=|Context zone changed|Context policy|BLOCK_ID|Prior session handoff|ecm-rules")
TOMBSTONE = "[EPHEMERAL:Output omitted after consumption;original_bytes="

each_host = pytest.mark.parametrize("host", CLIENTS)


def _conversation(requests: list[Request]) -> list[Request]:
    """Without those for a title, which OpenCode asks for beside it: they offer no tools."""
    return [request for request in requests if request.body.get("tools")]


@each_host
def test_a_prompt_is_told_pins_and_meter_and_a_quiet_tool_nothing(project: Project) -> None:
    project.install()
    shell = CLIENTS[project.session.host].shell
    requests = _conversation(project.session.ask(f"FIRST-2207 {shell('echo hello-there')}"))
    first, second = requests
    assert first.text.count(METER) == 1
    assert first.text.count(PIN) == 1
    known = set(strings(first.body))
    added = "\n".join(text for text in strings(second.body) if text not in known)
    assert "hello-there" in added
    assert not OURS.search(added), added
    (further,) = _conversation(project.session.ask("and then", further=True))
    assert "FIRST-2207" in further.text
    assert further.text.count(METER) == 2
    assert further.text.count(PIN) == 1


class Filling(NamedTuple):
    """What fills a client's window to just past the boundary, and how it is brought to have one of 200,000 tokens."""

    tokens: int
    commands: tuple[str, ...] = ("echo one", "echo two")
    before: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


# Copilot and OpenCode compact where they like; of the others the boundary is a setting, which is installed. Gemini CLI
# compresses a history of at least two prompts. Copilot works in the background; pi wants something to summarise.
FILLINGS = {
    "claude-code": Filling(155_000, env=(("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000"),)),
    "codex": Filling(155_000),
    "gemini-cli": Filling(800_000, before=("something first",)),
    "opencode": Filling(195_000),
    "copilot": Filling(90_000, ("echo one", "echo two", "echo three")),
    "pi": Filling(190_000, ("seq 1 300", "seq 1 300")),
}


def fill(project: Project) -> list[Request]:
    """Fill the window, and ask for something more afterwards; all requests."""
    session, filling = project.session, FILLINGS[project.session.host]
    requests: list[Request] = []
    for n, prompt in enumerate(filling.before):
        requests += session.ask(prompt, further=n > 0)
    tools = " ".join(CLIENTS[session.host].shell(command) for command in filling.commands)
    requests += session.ask(f"go [[usage {filling.tokens}]] {tools}", further=bool(filling.before), **dict(filling.env))
    requests += session.ask("and on", further=True, **dict(filling.env))
    return requests


@each_host
def test_pins_are_in_the_window_after_a_compaction(project: Project) -> None:
    project.install()
    rest = _conversation(after_summary(fill(project)))
    assert PIN in rest[-1].text
    assert "<!--BLOCK_ID:port-->" in rest[-1].text or "&lt;!--BLOCK_ID:port--&gt;" in rest[-1].text


@each_host
def test_a_successor_is_handed_the_digest_once(project: Project) -> None:
    project.install()
    project.session.ask("go")
    left = project.session_id()
    project.run("handoff", "--session-id", left, "--task-state", "TASK-7731 is half done", "--next-step", "STEP-1207")
    successor = _conversation(project.session.ask("go on"))[0]
    assert project.session_id() != left
    assert "TASK-7731" in successor.text
    assert "STEP-1207" in successor.text
    assert "TASK-7731" not in "".join(request.text for request in project.session.ask("something else"))


@pytest.mark.parametrize("host", ["opencode", "pi"])
def test_a_consumed_output_becomes_a_tombstone(project: Project) -> None:
    project.install()
    (project.folder / "long.md").write_text("OUTPUT-5512\n<!--ephemeral-->\n")
    shell = CLIENTS[project.session.host].shell
    prompt = f"go {shell('cat long.md')} {shell('echo two')} {shell('echo three')}"
    _, fresh, later, last = _conversation(project.session.ask(prompt))
    assert "OUTPUT-5512" in fresh.text
    assert TOMBSTONE not in fresh.text
    for request in (later, last):
        assert TOMBSTONE in request.text
        assert "OUTPUT-5512" not in request.text


@pytest.mark.parametrize("host", ["copilot"])
def test_copilot_with_claude_codes_hooks_too_is_told_once(project: Project) -> None:
    project.install("claude-code", "copilot")
    shell = CLIENTS["copilot"].shell
    first, second = project.session.ask(f"go {shell('echo hello')}")
    for request in (first, second):
        assert request.text.count(METER) == 1
        assert request.text.count(PIN) == 1


# What clients themselves leave in a project.
LEFT_BY_CLIENTS = {".opencode/.gitignore"}


@each_host
def test_removing_leaves_no_trace(project: Project) -> None:
    before = project.files()
    project.install()
    assert project.files() != before
    project.session.ask("go")
    project.remove()
    after = project.files()
    assert {name: after[name] for name in after if name not in LEFT_BY_CLIENTS} == before
    assert not OURS.search("".join(request.text for request in project.session.ask("go")))


@pytest.mark.parametrize("host", ["opencode"])
def test_a_subagents_window_is_booked_apart(project: Project) -> None:
    project.install()
    shell = CLIENTS["opencode"].shell("echo from-the-child")
    task = {"description": "probe", "subagent_type": "general", "prompt": f"sub work [[usage 150000]] {shell}"}
    requests = project.session.ask(f"go [[usage 1500]] [[tool task {json.dumps(task)}]]")
    assert any("from-the-child" in request.text and "FAKE-FINAL" in request.answer for request in requests)
    meters = [json.loads(path.read_text()) for path in (project.folder / STATE).glob("meter*.json")]
    own = json.loads((project.folder / STATE / "meter.json").read_text())
    assert len(meters) == 2
    assert own["zone"] == "green"
    assert {meter["zone"] for meter in meters} == {"green", "red"}
