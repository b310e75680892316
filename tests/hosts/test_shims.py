"""The shims in a real node, before a command that answers what a test wants: what is forwarded, and what is applied.

The command is a small Python program here; `make e2e-hosts` runs the shims in their clients.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from ecm_rules.hosts import shims
from tests.conftest import FIXTURES

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node")

COMMAND = """\
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
text = sys.stdin.read()
with open(os.path.join(here, "seen.jsonl"), "a") as stream:
    stream.write(json.dumps([os.getcwd(), sys.argv[1:], json.loads(text)]) + "\\n")
payload = json.loads(text)
event = payload.get("ev") or payload["event"]
event = event["type"] if isinstance(event, dict) else event
with open(os.path.join(here, "answers.json")) as stream:
    answer = json.load(stream).get(event)
if answer == "HANG":
    time.sleep(60)
elif answer == "FAIL":
    print(json.dumps({"text": "a failure's"}))
    sys.exit(3)
elif isinstance(answer, str):
    print(answer)
    print("a complaint", file=sys.stderr)
elif answer is not None:
    print(json.dumps(answer))
"""
SDK = (
    "export const joinSession = async () => ({ sessionId: 's1', on: (listener) => (globalThis.listener = listener) })\n"
)
Json = dict[str, Any]


class Bench(NamedTuple):
    """A project and a command beside it."""

    project: pathlib.Path
    beside: pathlib.Path

    def drive(self, host: str, calls: list[Json], command: list[str] | None = None) -> list[Any]:
        """What comes of calls: for OpenCode the output, for pi what the handler returned and what was sent."""
        return [one["result"] for one in self.timed(host, calls, command)]

    def timed(self, host: str, calls: list[Json], command: list[str] | None = None) -> list[Json]:
        shim = self.beside / f"{host}.mjs"
        given = command or [sys.executable, str(self.beside / "command.py"), host]
        shim.write_text(shims.text(host, given))
        driver = pathlib.Path(__file__).with_name("drive.mjs")
        assert NODE is not None
        done = subprocess.run(
            [NODE, driver, host, shim, self.project],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.stderr, done.returncode) == ("", 0)
        found: list[Json] = json.loads(done.stdout)
        return found

    @property
    def seen(self) -> list[Json]:
        """The payloads that the command got."""
        return [payload for _, _, payload in self.runs]

    @property
    def runs(self) -> list[Any]:
        seen = self.beside / "seen.jsonl"
        return [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []

    def answer(self, answers: Json) -> None:
        (self.beside / "answers.json").write_text(json.dumps(answers))


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    made = Bench(tmp_path / "project", tmp_path / "beside")
    for folder in made:
        folder.mkdir()
    (made.project / "eidolons.yaml").write_text("context: {}\n")
    (made.beside / "command.py").write_text(COMMAND)
    sdk = made.beside / "node_modules/@github/copilot-sdk"
    sdk.mkdir(parents=True)
    (sdk / "package.json").write_text('{"type": "module", "exports": {"./extension": "./extension.js"}}')
    (sdk / "extension.js").write_text(SDK)
    made.answer({})
    return made


def recorded(host: str, name: str) -> Json:
    found: Json = json.loads((FIXTURES / "hosts" / host / f"{name}.json").read_text())
    return found


def completed() -> Json:
    """The last change of an assistant's message."""
    found = recorded("opencode", "event.message.updated.assistant")
    found["input"]["properties"]["info"]["time"]["completed"] = 1796052107721
    return found


PROMPT = recorded("opencode", "chat.message")
TOOL = recorded("opencode", "tool.execute.after")
REQUEST = recorded("opencode", "experimental.chat.messages.transform")
SESSION = PROMPT["input"]["sessionID"]


def test_opencode_forwards_what_was_recorded(bench: Bench) -> None:
    names = ["event.session.created", "chat.message", "experimental.chat.messages.transform", "tool.execute.after"]
    names += ["experimental.session.compacting", "event.session.compacted", "event.session.idle"]
    calls = [*(recorded("opencode", name) for name in names), completed()]
    before = json.loads(json.dumps(calls))
    results = bench.drive("opencode", calls)
    assert results == [call.get("output") for call in before]  # nothing was said, nothing has changed
    expected = [{key: call[key] for key in ("event", "input", "output") if key in call} for call in before]
    expected[2]["input"] = {"sessionID": SESSION}  # the client says it in the messages alone
    assert bench.seen == expected
    assert {(cwd, *arguments) for cwd, arguments, _ in bench.runs} == {(str(bench.project), "opencode")}


def test_opencode_tells_the_model_once_and_no_keys(bench: Bench) -> None:
    params = recorded("opencode", "chat.params")
    params["input"]["provider"] = {"key": "secret"}
    params["input"]["model"]["headers"] = {"authorization": "secret"}
    calls = [recorded("opencode", "chat.params.title-agent"), recorded("opencode", "chat.params.compaction-agent")]
    bench.drive("opencode", [*calls, params, params])
    (seen,) = bench.seen
    model = {"id": "fake-model", "providerID": "fake", "limit": {"context": 200000, "output": 8000}}
    assert seen == {"event": "chat.params", "input": {"sessionID": SESSION, "agent": "build", "model": model}}


def test_opencode_tells_the_model_again_where_the_command_failed(bench: Bench) -> None:
    bench.answer({"chat.params": "FAIL"})
    bench.drive("opencode", [recorded("opencode", "chat.params")] * 2)
    assert len(bench.seen) == 2


def test_opencode_forwards_a_message_when_its_usage_is_known(bench: Bench) -> None:
    done, running, user = completed(), recorded("opencode", "event.message.updated.assistant"), completed()
    user["input"]["properties"]["info"]["role"] = "user"
    part = recorded("opencode", "event.message.part.updated.step-finish")
    bench.drive("opencode", [running, user, part, done, done])
    assert [payload["input"] for payload in bench.seen] == [done["input"]]


def test_opencode_names_the_parent_of_a_subagents_payloads(bench: Bench) -> None:
    created = recorded("opencode", "event.session.created.subagent")
    info = created["input"]["properties"]["info"]
    child, parent = info["id"], info["parentID"]
    prompt = json.loads(json.dumps(PROMPT).replace(SESSION, child))
    idle = json.loads(json.dumps(recorded("opencode", "event.session.idle")).replace(SESSION, child))
    grandchild = json.loads(json.dumps(created).replace(child, "ses_grandchild").replace(parent, child))
    bench.drive("opencode", [created, prompt, idle, PROMPT, grandchild])
    assert [payload["input"].get("parentID") for payload in bench.seen] == [parent, parent, parent, None, parent]


def test_opencode_adds_a_synthetic_part_to_a_prompt(bench: Bench) -> None:
    bench.answer({"chat.message": {"text": "Context: zone=green."}})
    (output,) = bench.drive("opencode", [PROMPT])
    assert output["parts"][:-1] == PROMPT["output"]["parts"]
    added = output["parts"][-1]
    about = {"type": "text", "text": "Context: zone=green.", "synthetic": True}
    assert added == {"id": added["id"], "sessionID": SESSION, "messageID": output["message"]["id"], **about}
    assert added["id"].startswith("prt_")
    assert len(added["id"]) == len(output["parts"][0]["id"])
    assert added["id"] > output["parts"][0]["id"]


def test_opencode_appends_to_a_tools_output(bench: Bench) -> None:
    bench.answer({"tool.execute.after": {"text": "Context zone changed."}})
    mcp = {**TOOL, "output": {"content": [{"type": "text", "text": "hello"}]}}
    plain, structured = bench.drive("opencode", [TOOL, mcp])
    assert plain["output"] == TOOL["output"]["output"] + "\n\nContext zone changed."
    assert structured["content"][1:] == [{"type": "text", "text": "Context zone changed."}]


def test_opencode_replaces_the_messages_of_a_request(bench: Bench) -> None:
    messages = [{"info": {"role": "user"}, "parts": [{"type": "text", "text": "other"}]}]
    bench.answer({"experimental.chat.messages.transform": {"messages": messages}})
    (output,) = bench.drive("opencode", [REQUEST])
    assert output == {"messages": messages}


@pytest.mark.parametrize(
    "answer",
    ["no JSON", "[1, 2", "17", "null", '"text"', "[]", "FAIL", {}, {"text": ""}, {"messages": []}, {"messages": [1]}],
)
def test_opencode_takes_nothing_else(answer: Any, bench: Bench) -> None:
    events = ["chat.message", "tool.execute.after", "experimental.chat.messages.transform"]
    bench.answer(dict.fromkeys(events, answer))
    assert bench.drive("opencode", [PROMPT, TOOL, REQUEST]) == [call["output"] for call in (PROMPT, TOOL, REQUEST)]
    assert len(bench.seen) == 3


def test_opencode_has_no_use_for_strange_payloads(bench: Bench) -> None:
    calls: list[Json] = [
        {"event": "chat.message", "input": None, "output": {}},
        {"event": "tool.execute.after", "input": {"sessionID": "s"}, "output": None},
        {"event": "experimental.chat.messages.transform", "input": {}, "output": {}},
        {"event": "chat.params", "input": {"sessionID": "s"}, "output": {}},
        {"event": "event.session.created", "input": {"type": "session.created"}},
    ]
    assert len(bench.drive("opencode", calls)) == len(calls)


PI_PROMPT = recorded("pi", "before_agent_start")
PI_TOOL = recorded("pi", "tool_result")
PI_REQUEST = recorded("pi", "context")


def test_pi_forwards_what_was_recorded(bench: Bench) -> None:
    names = ["session_start", "before_agent_start", "context", "tool_result", "session_before_compact.threshold"]
    names += ["session_compact.threshold", "agent_settled", "session_shutdown"]
    calls = [recorded("pi", name) for name in names]
    assert bench.drive("pi", calls) == [{"sent": []}] * len(calls)
    left_out = {"branchEntries", "systemPrompt", "systemPromptOptions", "signal"}
    for call, seen in zip(calls, bench.seen, strict=True):
        expected = {key: value for key, value in call["event"].items() if key not in left_out}
        if "preparation" in expected:
            long = ("messagesToSummarize", "turnPrefixMessages")
            expected["preparation"] = {k: v for k, v in expected["preparation"].items() if k not in long}
        assert seen == {"event": expected, "ctx": {**call["ctx"], "cwd": str(bench.project)}}


def test_pi_keeps_what_a_start_is_answered_for_the_prompt(bench: Bench) -> None:
    bench.answer({"session_start": {"text": "pins"}, "before_agent_start": {"text": "meter"}})
    _, first, second = bench.drive("pi", [recorded("pi", "session_start"), PI_PROMPT, PI_PROMPT])
    assert first["result"]["message"] == {"customType": "ecm-rules", "content": "pins\n\nmeter", "display": False}
    assert second["result"]["message"]["content"] == "meter"


def test_pi_applies_answers(bench: Bench) -> None:
    messages = [{"role": "user", "content": "other"}]
    bench.answer({"tool_result": {"text": "t"}, "context": {"messages": messages}, "session_compact": {"text": "pins"}})
    tool, request, compact = bench.drive("pi", [PI_TOOL, PI_REQUEST, recorded("pi", "session_compact.threshold")])
    assert tool["result"] == {"content": [*PI_TOOL["event"]["content"], {"type": "text", "text": "t"}]}
    assert request["result"] == {"messages": messages}
    message = {"customType": "ecm-rules", "content": "pins", "display": False}
    assert compact == {"sent": [[message, {"deliverAs": "steer"}]]}


@pytest.mark.parametrize("answer", ["no JSON", "null", "FAIL", {}, {"text": ""}, {"messages": []}, {"messages": [1]}])
def test_pi_takes_nothing_else(answer: Any, bench: Bench) -> None:
    events = ["before_agent_start", "tool_result", "context", "session_compact"]
    bench.answer(dict.fromkeys(events, answer))
    calls = [PI_PROMPT, PI_TOOL, PI_REQUEST, recorded("pi", "session_compact.threshold")]
    assert bench.drive("pi", calls) == [{"sent": []}] * 4
    assert len(bench.seen) == 4


def test_copilot_tells_of_usage_and_compactions(bench: Bench) -> None:
    lines = (FIXTURES / "hosts/copilot/extension-events.jsonl").read_text().splitlines()
    calls = [call for call in map(json.loads, lines) if call["ev"].startswith("event.")]
    bench.drive("copilot", calls)
    wanted = {"session.usage_info", "session.compaction_start", "session.compaction_complete"}
    expected = [{"ev": c["ev"], "d": {**c["d"], "sessionId": "s1"}} for c in calls if c["d"]["type"] in wanted]
    assert len(expected) == 5
    assert bench.seen == expected


def test_copilot_without_its_own_client_is_quiet(bench: Bench) -> None:
    shutil.rmtree(bench.beside / "node_modules")
    assert bench.drive("copilot", [{"ev": "event.session.usage_info", "d": {"type": "session.usage_info"}}]) == [None]
    assert bench.seen == []


CALLS: dict[str, list[Json]] = {"opencode": [PROMPT, TOOL, REQUEST], "pi": [PI_PROMPT, PI_TOOL, PI_REQUEST]}
UNCHANGED = {
    "opencode": [call["output"] for call in CALLS["opencode"]],
    "pi": [{"sent": []}] * 3,
}


@pytest.mark.parametrize("host", CALLS)
def test_no_command_changes_nothing(host: str, bench: Bench) -> None:
    assert bench.drive(host, CALLS[host], ["/nowhere/ecm-hook"]) == UNCHANGED[host]


@pytest.mark.parametrize("host", CALLS)
def test_a_command_that_does_not_listen_changes_nothing(host: str, bench: Bench) -> None:
    call = json.loads(json.dumps(CALLS[host][1]).replace("hello", "h" * 1_000_000))
    (result,) = bench.drive(host, [call], ["/bin/true"])
    assert result == (call["output"] if host == "opencode" else {"sent": []})


@pytest.mark.parametrize("host", CALLS)
def test_a_command_that_hangs_is_ended(host: str, bench: Bench) -> None:
    bench.answer({"tool.execute.after": "HANG", "tool_result": "HANG"})
    (told,) = bench.timed(host, CALLS[host][1:2])
    assert told["result"] == UNCHANGED[host][1]
    assert 1_900 < told["milliseconds"] < 6_000


@pytest.mark.parametrize("host", CALLS)
def test_without_a_configuration_there_is_no_process(host: str, bench: Bench) -> None:
    bench.answer({"chat.message": {"text": "t"}, "before_agent_start": {"text": "t"}})
    (bench.project / "eidolons.yaml").unlink()
    assert bench.drive(host, CALLS[host]) == UNCHANGED[host]
    assert bench.seen == []


@pytest.mark.parametrize("host", CALLS)
def test_a_folder_of_the_project_is_the_project(host: str, bench: Bench) -> None:
    inside = bench.project / "a/b"
    inside.mkdir(parents=True)
    Bench(inside, bench.beside).drive(host, CALLS[host][:1])
    (bench.project / "a/.git").mkdir()  # another repository begins here
    Bench(inside, bench.beside).drive(host, CALLS[host][:1])
    assert [cwd for cwd, _, _ in bench.runs] == [str(bench.project)]


def test_the_common_part_is_common() -> None:
    """They are installed one by one, and so each has it."""

    def common(name: str) -> str:
        text = shims.source(name)
        return text[text.index("import {") : text.index("\n}\n", text.index("function ask(")) + 3]

    assert common("opencode") == common("pi") == common("copilot")


@pytest.mark.parametrize("host", shims.FILES)
def test_what_is_installed_differs_by_the_command_alone(host: str) -> None:
    argv = ["/opt/a b/\u00e4\"'\\bin/ecm-hook", host]
    made, kept = shims.text(host, argv).splitlines(), shims.source(host).splitlines()
    assert [line for line in made if line not in kept] == [f"const COMMAND = {json.dumps(argv)}"]
    assert made[0].startswith("// ecm-rules for ")
    assert sum(line.startswith("const COMMAND = ") for line in kept) == 1
