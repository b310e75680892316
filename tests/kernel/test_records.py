"""Identifiers from the transcripts of six clients: as they were recorded, torn, mistyped, and with subagents."""

from __future__ import annotations

import copy
import json
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.kernel import collect
from ecm_rules.kernel.collect import Collected, Identifier
from ecm_rules.kernel.records import READERS, reading
from ecm_rules.kernel.records.calls import meaning
from ecm_rules.kernel.records.model import ToDo
from ecm_rules.kernel.transcripts import MAX_LINE
from ecm_rules.tables.hosts import load_collecting
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "transcripts"
SAID = load_collecting()
Event = dict[str, Any]

NOWHERE = ("`ls /nowhere` failed: ls: cannot access '/nowhere': No such file or directory", "tool")
SILENT = ('`python3 -c "raise SystemExit(3)"` failed', "assistant")
TO_DOS = [("second thing", "assistant"), ("third thing", "assistant")]
PRINTED = ("lib/printed.py:7", "tool")
# What each client has of the same work: a place read and edited, a file written, commands that fail and print, to-dos.
TOOLS: dict[str, dict[str, list[tuple[str, str]]]] = {
    "codex_tools.jsonl": {
        "anchor": [("app.py:2", "user"), ("app.py", "assistant"), ("new.py", "assistant"), PRINTED, ("missing.py", "assistant")],
        "failed_approach": [SILENT, NOWHERE, ("`cat missing.py` failed: cat: missing.py: No such file or directory", "tool")],
        "to_do": TO_DOS,
    },
    "codex_code_mode.jsonl": {
        "anchor": [("app.py:2", "user"), ("app.py", "assistant"), ("/home/dev/project/new.py", "assistant"), ("/home/dev/project/app.py", "assistant")],
        "failed_approach": [("`ls /nowhere; exit 4` failed: ls: cannot access '/nowhere': No such file or directory", "tool")],
    },
    "gemini_tools.jsonl": {
        "anchor": [
            ("app.py:2", "user"), ("child.py:2", "user"), ("app.py:1", "assistant"), ("app.py", "assistant"), ("new.py", "assistant"), PRINTED,
            ("missing.py", "assistant"),
        ],
        "failed_approach": [(f"{SILENT[0]}: Exit Code: 3", "tool"), NOWHERE],
        "to_do": TO_DOS,
    },
    "opencode_tools.json": {
        "anchor": [
            ("app.py:2", "user"), ("child.py:2", "user"), ("app.py:1", "assistant"), ("app.py", "assistant"), ("new.py", "assistant"), PRINTED,
            ("missing.py", "assistant"),
        ],
        "failed_approach": [SILENT, NOWHERE],
        "to_do": TO_DOS,
    },
    "copilot_tools.jsonl": {
        "anchor": [
            ("app.py:2", "user"), ("child.py:2", "user"), ("/home/dev/project/app.py:1", "assistant"), ("/home/dev/project/app.py", "assistant"),
            ("/home/dev/project/new.py", "assistant"), PRINTED, ("/home/dev/project/missing.py", "assistant"),
        ],
        "failed_approach": [SILENT, NOWHERE],
    },
    "pi_tools.jsonl": {
        "anchor": [
            ("app.py:2", "user"), ("app.py:1", "assistant"), ("app.py", "assistant"), ("new.py", "assistant"), PRINTED, ("missing.py", "assistant"),
        ],
        "failed_approach": [SILENT, NOWHERE],
    },
}  # fmt: skip
SUBAGENTS = ["codex_subagent.jsonl", "gemini_subagent.jsonl", "opencode_subagent.json"]
CHILD = [
    ("anchor", "child.py:2", "assistant"),
    ("failed_approach", "`ls /nowhere-child` failed: ls: cannot access '/nowhere-child': No such file or directory", "tool"),
]  # fmt: skip
RECORDED = sorted(path.name for path in FOLDER.glob("*.json*") if path.name != "EXPECTED.json")


def told(found: Collected, kind: str) -> list[tuple[str, str]]:
    return [(each.text, each.origin) for each in found.identifiers if each.kind == kind]


def of(name: str, **options: Any) -> Collected:
    return collect.collect_file(str(FOLDER / name), **options)


def read(format: str, *events: Any) -> Collected:
    return collect.collect(READERS[format]([json.dumps(event).encode() + b"\n" for event in events]))


@pytest.mark.parametrize("name", TOOLS)
def test_the_same_work_is_found_in_the_session_of_each_client(name: str) -> None:
    found = of(name)
    for kind in ("anchor", "failed_approach", "to_do"):
        assert told(found, kind) == TOOLS[name].get(kind, []), kind
    assert [symbol for symbol in ("one", "two", "Fresh") if (symbol, "assistant") not in told(found, "symbol")] == []
    ((request, origin),) = told(found, "request")
    assert (request.lstrip('"').startswith("Make app.py:2 return two"), origin) == (True, "user")
    assert found.contains_tool_origin


@pytest.mark.parametrize("name", TOOLS)
def test_an_emergency_keeps_less(name: str) -> None:
    found, whole = of(name, minimal=True), of(name)
    assert found.identifiers == tuple(each for each in whole.identifiers if each.kind in ("anchor", "to_do", "request"))


@pytest.mark.parametrize("name", SUBAGENTS)
def test_the_file_of_a_subagent_says_what_the_subagent_did(name: str) -> None:
    for agent in (None, "whatever its client calls it"):
        found = of(name, agent=agent)
        *rest, request = [(each.kind, each.text, each.origin) for each in found.identifiers]
        assert rest == CHILD
        # It was asked by an agent: nothing that it was told is the user's.
        assert (request[0], request[1].startswith("Look at child.py:2"), request[2]) == ("request", True, "assistant")


def test_what_a_subagent_took_over_from_its_session_is_the_users() -> None:
    found = of("codex_forked_subagent.jsonl")
    assert [(text.startswith("Delegate"), origin) for text, origin in told(found, "request")] == [(True, "user")]
    events = [
        event
        for event in events_of("codex_forked_subagent.jsonl")
        if event["type"] in ("session_meta", "response_item")
    ]
    for event in events:
        event.get("metadata", {}).pop("inherited_user_message", None)
    assert {origin for _, origin in told(read("codex-rollout", *events), "request")} == {"assistant"}


def test_a_subagent_in_the_file_of_its_session_is_asked_for_by_its_id() -> None:
    events = [json.loads(line) for line in (FOLDER / "copilot_tools.jsonl").read_bytes().split(b"\n") if line]
    (agent,) = {event["agentId"] for event in events if "agentId" in event}
    found = of("copilot_tools.jsonl", agent=agent)
    assert [(each.kind, each.text, each.origin) for each in found.identifiers[:-1]] == CHILD
    nobody = of("copilot_tools.jsonl", agent="nobody")
    assert (nobody.identifiers, nobody.unread) == ((), "found nothing of the subagent nobody")


def test_a_sidechain_is_collected_where_it_is_all_of_the_file(tmp_path: pathlib.Path) -> None:
    found = of("07_claude_subagent_sidechain.jsonl")
    assert len(told(found, "anchor")) > 5
    assert {origin for _, origin in told(found, "request")} == {"assistant"}
    assert of("07_claude_subagent_sidechain.jsonl", agent="a494c5c") == found
    data = (FOLDER / "07_claude_subagent_sidechain.jsonl").read_bytes()
    path = tmp_path / "session.jsonl"
    # One message of the main chain, whatever it says, and the file is a session's.
    for line in (
        b'{"type":"user","message":{"content":"go"}}',
        b'{"type":"user","isMeta":true,"message":{"content":"x"}}',
    ):
        path.write_bytes(data + line + b"\n")
        assert [each.kind for each in collect.collect_file(str(path)).identifiers] == ["request"] * (
            b"isMeta" not in line
        )
        assert collect.collect_file(str(path), agent="a494c5c") == found


def test_a_tail_of_sidechains_alone_makes_no_subagent_of_a_session(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "session.jsonl"
    first = b'{"type":"user","message":{"content":"see early.py:1"}}\n'
    side = json.dumps({"type": "assistant", "isSidechain": True, "message": {"content": "side.py:1 " + "x" * 10**6}})
    path.write_bytes(first + (side.encode() + b"\n") * 6)
    assert collect.collect_file(str(path), minimal=True) == Collected()
    path.write_bytes((side.encode() + b"\n") * 6)
    assert collect.collect_file(str(path), minimal=True).texts("anchor") == ["side.py:1"]


@pytest.mark.parametrize("name", ["codex_subagent.jsonl", "gemini_subagent.jsonl"])
def test_whose_file_it_is_stands_at_its_beginning(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (FOLDER / name).read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(collect, "TAIL", sum(map(len, lines[1:])) + 1)
    assert {each.origin for each in of(name, minimal=True).identifiers} == {"assistant"}


SUMMARISED = {
    "codex_autocompact.jsonl": "go [[usage 30000]]", "gemini_autocompress.jsonl": "third [[tool", "opencode_autocompact.json": '"go [[usage',
    "copilot_autocompact.jsonl": "go [[usage 96000]]", "pi_compaction.jsonl": "go [[usage 190000]]",
}  # fmt: skip


@pytest.mark.parametrize("name", SUMMARISED)
def test_what_stands_before_a_compaction_counts_and_its_summary_does_not(name: str) -> None:
    found = of(name)
    assert [text.startswith(SUMMARISED[name]) for text in found.texts("request")] == [True]
    text = (FOLDER / name).read_text()
    summary = "No prior history." if name.startswith("pi_") else "FAKE-SUMMARY:"
    assert summary in text
    data = text.replace(summary, "summary.py:1")
    records = list(READERS[recognised(name)](data.encode().splitlines(keepends=True)))
    assert not any("summary.py:1" in record.text for record in records)
    assert {record.kind for record in records} >= {"request", "call", "result", "text"}


def recognised(name: str) -> str:
    found = reading.recognise(reading.Events((FOLDER / name).read_bytes().splitlines(keepends=True)))
    assert found is not None
    return found[0]


@pytest.mark.parametrize("name", RECORDED)
def test_each_recorded_file_is_known(name: str) -> None:
    assert of(name).unread is None
    assert recognised(name).split("-")[0] in (name.split("_")[0], name.split("_")[1])


def test_long_sessions_of_old_versions() -> None:
    found = of("09_pi_large_session.jsonl")
    assert sum(":" in text for text in found.texts("anchor")) > 5
    assert len(found.texts("failed_approach")) == 6
    found = of("06_gemini_session.json")
    assert "utip/puduk.ba" in found.texts("anchor")
    assert len(found.texts("request")) == 1


# Torn, padded, mistyped.


@pytest.mark.parametrize("name", TOOLS)
def test_a_line_that_was_torn_is_the_only_one_that_is_lost(name: str, tmp_path: pathlib.Path) -> None:
    data = (FOLDER / name).read_bytes()
    path = tmp_path / name
    for cut in range(0, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:cut])
        found = collect.collect_file(str(path))
        path.write_bytes(data[: data.rfind(b"\n", 0, cut) + 1])
        whole = collect.collect_file(str(path))
        assert found.identifiers == (() if name.endswith(".json") else whole.identifiers)
    noise = [
        b"\0" * 4096,
        b"\xff\xfe{",
        b"{" * 100_000,
        b'{"type":',
        b"[]",
        b"7",
        b"",
        b"\xef\xbb\xbf",
        b'"\\ud800"',
        b"1" * 5000,
    ]
    if name.endswith(".jsonl"):
        lines = data.split(b"\n")
        path.write_bytes(
            b"\n".join(noise) + b"\n" + b"\n".join(b"\0\0" + line + b"\0" for line in lines) + b"\n".join(noise)
        )
        assert collect.collect_file(str(path)) == of(name)
        path.write_bytes(data.replace(b"}\n{", b"}{"))
        assert collect.collect_file(str(path)) == of(name)


def test_lines_end_with_lf_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "session.jsonl"
    event = {"type": "user", "message": {"content": "see\u2028a.py:1\x85b.py:2\u2029"}}
    path.write_text(json.dumps(event, ensure_ascii=False) + "\r\n", newline="")
    assert collect.collect_file(str(path)).texts("anchor") == ["a.py:1", "b.py:2"]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "session.jsonl"
    small = [b'{"type":"user","message":{"content":"see %b.py:1"}}\n' % name for name in (b"a", b"c")]
    huge = b'{"type":"user","message":{"content":"see b.py:1 %b"}}\n' % (b"x" * 2 * MAX_LINE)
    path.write_bytes(huge.join(small))
    assert collect.collect_file(str(path)).texts("anchor") == ["a.py:1", "c.py:1"]
    path.write_bytes(small[0] + huge[:-1])
    assert collect.collect_file(str(path)).texts("anchor") == ["a.py:1"]
    for long in (
        small[1].rstrip().ljust(MAX_LINE) + b"\n",
        b" " * MAX_LINE + small[1],
    ):  # whichever part says something
        path.write_bytes(small[0] + long)
        assert collect.collect_file(str(path)).texts("anchor") == ["a.py:1"]


def test_a_document_that_is_too_long_or_not_complete_is_none(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.json"
    data = (FOLDER / "opencode_tools.json").read_bytes()
    path.write_bytes(data[:-3])
    assert collect.collect_file(str(path)).unread == "found no record of a session"
    monkeypatch.setattr(reading, "MAX_DOCUMENT", len(data) - 1)
    assert of("opencode_tools.json").unread == "found no record of a session"
    monkeypatch.setattr(reading, "MAX_DOCUMENT", len(data))
    assert of("opencode_tools.json").unread is None
    path.write_bytes(b"")
    assert collect.collect_file(str(path)) == Collected()


def test_a_document_is_read_whole_in_an_emergency_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "TAIL", 1000)
    assert told(of("opencode_tools.json", minimal=True), "to_do") == TO_DOS


WRONG = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}), st.just([[7, {}]]),
    st.just({"type": ["text"], "text": 7, "path": {}, "id": []}), st.just("\ud800"), st.just("a.py:1\0"), st.just({"\udfff": "a\nb"}),
)  # fmt: skip


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(inner, (*path, key))


def events_of(name: str) -> list[Event]:
    data = (FOLDER / name).read_bytes()
    return [json.loads(line) for line in ([data] if name.endswith(".json") else data.split(b"\n")) if line]


PLACES = {
    name: [(n, path) for n, event in enumerate(events_of(name)) for path in leaves(event)]
    for name in [*TOOLS, *SUBAGENTS]
}


@pytest.mark.parametrize("name", [*TOOLS, *SUBAGENTS])
@settings(max_examples=60)
@given(data=st.data())
def test_a_value_of_the_wrong_kind_never_raises(name: str, data: st.DataObject) -> None:
    events = events_of(name)
    for _ in range(data.draw(st.integers(1, 4))):
        n, path = data.draw(st.sampled_from(PLACES[name]))
        holder: Any = events[n]
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(data.draw(WRONG))
        except (TypeError, KeyError, IndexError):
            continue
    lines = [json.dumps(event).encode() + b"\n" for event in events]
    found = collect.collect(READERS[recognised(name)](lines))
    assert found == collect.collect(READERS[recognised(name)](iter(lines)))
    for each in found.identifiers:
        assert each.text.isprintable()
        assert len(each.text) <= collect.LONGEST_REQUEST + 43  # and its time
        assert each.origin in ("user", "assistant", "tool")


KEYS = sorted(
    {key for name in PLACES for _, path in PLACES[name] for key in path if isinstance(key, str) and len(key) < 30}
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8),
    st.sampled_from(["user", "assistant", "gemini", "message", "toolResult", "tool", "text", "event_msg", "response_item", "item_completed"]),
    st.sampled_from([name for said in SAID.values() for name in said["tools"]]),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)), max_leaves=15
)  # fmt: skip


@pytest.mark.parametrize("format", READERS)
@settings(max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=40), ANYTHING.map(lambda value: json.dumps(value).encode())), max_size=6))
def test_no_line_raises(format: str, lines: list[bytes]) -> None:
    for each in collect.collect(READERS[format](lines)).identifiers:
        assert each.text.isprintable()


# How each client nests what happened.


def codex(**payload: Any) -> Event:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


def codex_user(*texts: str, **more: Any) -> Event:
    return codex(type="message", role="user", content=[{"type": "input_text", "text": text} for text in texts], **more)


CALLED = {"type": "function_call", "call_id": "c"}
OUTPUTS: dict[str, tuple[Any, list[str]]] = {
    "a code in front of the output": ("Wall time: 1 second\nProcess exited with code 1\nOutput:\nE: bad", ["`make` failed: E: bad"]),
    "a code in the output alone": ("Process exited with code 0\nOutput:\nExit code: 1", []),
    "none yet": ("Process running with session ID 7\nOutput:\nwaiting", []),
    "the older form": (json.dumps({"output": "E: bad\n", "metadata": {"exit_code": 2}}), ["`make` failed: E: bad"]),
    "the older form, well": (json.dumps({"output": "ok\n", "metadata": {"exit_code": 0}}), []),
    "blocks": ([{"type": "input_text", "text": "Exit code: 1\nOutput:\nE: bad"}], ["`make` failed: E: bad"]),
    "refused": ("exec command rejected by user", []),
    "what looks like JSON": ("{not", []),
}  # fmt: skip


@pytest.mark.parametrize(("output", "failed"), OUTPUTS.values(), ids=OUTPUTS.keys())
@pytest.mark.parametrize("call", [
    CALLED | {"name": "exec_command", "arguments": '{"cmd": "make"}'},
    CALLED | {"name": "shell", "arguments": '{"command": ["bash", "-lc", "make"]}'},
    CALLED | {"name": "shell_command", "arguments": {"command": "make"}},
    {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["make"]}},
])  # fmt: skip
def test_what_came_of_a_command_in_codex(call: Event, output: Any, failed: list[str]) -> None:
    found = read("codex-rollout", codex(**call), codex(type="function_call_output", call_id="c", output=output))
    assert found.texts("failed_approach") == failed


def test_what_codex_puts_among_the_messages_of_the_user() -> None:
    kinds = {"content_item_kinds": ["environments.environment_context", "user.text"]}
    events = [
        codex_user("fix a.py:1"),
        codex_user("<environment_context>\n b.py:2"),
        codex_user("# AGENTS.md instructions for /x\n c.py:3"),
        codex_user("anything d.py:4", "now e.py:5", internal_chat_message_metadata_passthrough=kinds),
        codex(type="agent_message", author="a", content=[{"type": "input_text", "text": "f.py:6"}]),
        codex(type="message", role="developer", content=[{"type": "input_text", "text": "g.py:7"}]),
    ]
    found = read("codex-rollout", *events)
    assert told(found, "anchor") == [("a.py:1", "user"), ("e.py:5", "user"), ("f.py:6", "tool")]
    assert found.texts("request") == ["now e.py:5 (2026-01-01T00:00:00Z)"]


def test_a_fork_of_codex_is_whose_its_own_first_record_says() -> None:
    metas: list[Event] = [{"id": "a", "source": {"subagent": {}}}, {"id": "b", "source": "cli"}]
    own, parents = ({"type": "session_meta", "payload": payload} for payload in metas)
    assert told(read("codex-rollout", own, parents, codex_user("a.py:1")), "anchor") == [("a.py:1", "assistant")]
    assert told(read("codex-rollout", parents, own, codex_user("a.py:1")), "anchor") == [("a.py:1", "user")]


def test_a_patch_of_codex_that_a_shell_was_given() -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n def kept():\n-def old():\n+def new():\n*** End Patch\nEOF"
    found = read(
        "codex-rollout", codex(**CALLED, name="shell", arguments=json.dumps({"command": ["bash", "-lc", patch]}))
    )
    assert (found.texts("anchor"), found.texts("symbol")) == (["a.py"], ["old", "new"])


def test_events_of_older_codex() -> None:
    done = {
        "type": "exec_command_end", "call_id": "c", "command": ["bash", "-lc", "cat a.py"], "exit_code": 1, "aggregated_output": "E: bad",
        "parsed_cmd": [{"type": "read", "path": "a.py"}, {"type": "search", "path": "src"}],
    }  # fmt: skip
    patched = {
        "type": "patch_apply_end",
        "call_id": "d",
        "changes": {"b.py": {"type": "add", "content": "class B:\n    @@x = 1"}},
    }
    found = read("codex-rollout", *({"type": "event_msg", "payload": payload} for payload in (done, patched)))
    assert (found.texts("anchor"), found.texts("symbol")) == (["a.py", "b.py"], ["B"])
    assert found.texts("failed_approach") == ["`cat a.py` failed: E: bad"]
    declined = {
        "type": "item_completed",
        "item": {"type": "CommandExecution", "id": "c", "command": ["x"], "status": "declined", "exit_code": 1},
    }
    assert read("codex-rollout", {"type": "event_msg", "payload": declined}) == Collected()


def gemini(id: str, *parts: Any, type: str = "user", **more: Any) -> Event:
    return {"id": id, "timestamp": "2026-01-01T00:00:00Z", "type": type, "content": list(parts), **more}


OPENED = {"sessionId": "s", "projectHash": "p", "kind": "main"}


def test_a_history_that_gemini_resumes_counts_and_one_that_it_compressed_does_not() -> None:
    history = [gemini("1", {"text": "see a.py:1"}), gemini("2", {"text": "on b.py:2"}, type="gemini")]
    assert read("gemini-cli", OPENED, {"$set": {"messages": history}}).texts("anchor") == ["a.py:1", "b.py:2"]
    summary = gemini("9", {"text": "all about summary.py:1"})
    compressed = [OPENED, *history, {"$set": {"messages": [summary, gemini("8", {"text": "on b.py:2"})]}}]
    again = [OPENED, {"$set": {"messages": [summary, gemini("7", {"text": "and c.py:3"})]}}]
    found = read("gemini-cli", *compressed)
    assert (found.texts("anchor"), found.texts("request")) == (
        ["a.py:1", "b.py:2"],
        ["see a.py:1 (2026-01-01T00:00:00Z)"],
    )
    assert read("gemini-cli", *compressed, *again).texts("anchor") == ["a.py:1", "b.py:2", "c.py:3"]


def test_a_history_in_a_tail_of_gemini_is_not_one_that_was_resumed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        OPENED,
        gemini("1", {"text": "see a.py:1"}),
        {"$set": {"messages": [gemini("2", {"text": "all about summary.py:1"})]}},
    ]
    lines = [json.dumps(event).encode() + b"\n" for event in [*events, gemini("3", {"text": "and b.py:2"})]]
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(lines))
    monkeypatch.setattr(collect, "TAIL", len(lines[2]) + len(lines[3]) + 1)
    assert collect.collect_file(str(path), minimal=True).texts("anchor") == ["b.py:2"]


def test_what_a_command_of_gemini_printed_is_no_exit_code() -> None:
    for output, failed in (
        ("Exit Code: 7\n" + "x\n" * 200, []),
        ("x\n" * 200 + "Exit Code: 7\nProcess Group PGID: 1", ["`make` failed: x"]),
    ):
        response = {"functionResponse": {"id": "c", "response": {"output": f"<untrusted_context>\nOutput: {output}"}}}
        call = {
            "id": "c",
            "name": "run_shell_command",
            "args": {"command": "make"},
            "status": "success",
            "result": [response],
        }
        assert (
            read("gemini-cli", OPENED, gemini("1", type="gemini", toolCalls=[call])).texts("failed_approach") == failed
        )


def test_what_gemini_puts_among_the_messages_of_the_user() -> None:
    parts = [
        "fix a.py:1 <hook_context>b.py:2</hook_context>",
        "\n--- Content from referenced files ---",
        "c.py:3",
        "d.py:4",
    ]
    events = [
        gemini("1", {"text": "<session_context>\ne.py:5"}),
        gemini("2", *({"text": part} for part in parts)),
        gemini("3", type="info"),
    ]
    found = read("gemini-cli", OPENED, *events, gemini("4", {"text": "<state_snapshot>f.py:6"}))
    assert (found.texts("anchor"), found.texts("request")) == (["a.py:1"], ["fix a.py:1 (2026-01-01T00:00:00Z)"])


def test_a_call_that_was_cancelled_in_gemini_is_no_failure() -> None:
    def call(status: str) -> Event:
        response = {"functionResponse": {"id": "c", "response": {"error": "E: bad"}}}
        given = {
            "id": "c",
            "name": "run_shell_command",
            "args": {"command": "make"},
            "status": status,
            "result": [response],
        }
        return gemini("1", type="gemini", toolCalls=[given])

    assert read("gemini-cli", OPENED, call("cancelled")).texts("failed_approach") == []
    assert read("gemini-cli", OPENED, call("error")).texts("failed_approach") == ["`make` failed: E: bad"]


def test_what_opencode_puts_among_the_messages_of_the_user() -> None:
    texts: list[Event] = [
        {"text": "fix a.py:1"},
        {"text": "b.py:2", "synthetic": True},
        {"text": "c.py:3", "ignored": True},
    ]
    message = {
        "info": {"role": "user", "time": {"created": 1767225600000}},
        "parts": [{"type": "text", **text} for text in texts],
    }
    found = read("opencode-export", {"info": {"id": "s"}, "messages": [message]})
    assert (found.texts("anchor"), found.texts("request")) == (["a.py:1"], ["fix a.py:1 (2026-01-01T00:00:00Z)"])


def opencode_bash(**state: Any) -> Collected:
    part = {"type": "tool", "tool": "bash", "callID": "c", "state": {"input": {"command": "make"}, **state}}
    return read(
        "opencode-export", {"info": {"id": "s"}, "messages": [{"info": {"role": "assistant"}, "parts": [part]}]}
    )


def test_what_came_of_a_command_in_opencode() -> None:
    assert opencode_bash(status="completed", output="E: bad", metadata={"exit": 1}).texts("failed_approach") == [
        "`make` failed: E: bad"
    ]
    assert opencode_bash(status="error", error="E: bad").texts("failed_approach") == ["`make` failed: E: bad"]
    for state in (
        {"status": "completed", "output": "ok", "metadata": {"exit": 0}}, {"status": "running", "metadata": {"exit": 1}},
        {"status": "error", "error": "The user rejected permission to use this specific tool call."},
    ):  # fmt: skip
        assert opencode_bash(**state).texts("failed_approach") == []


def test_edits_of_opencode() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: b.py\n+class B: ...\n*** Update File: c.py\n*** Move to: d.py\n*** End Patch"
    )
    calls: list[Event] = [
        {
            "tool": "multiedit",
            "state": {"input": {"filePath": "a.py", "edits": [{"oldString": "def old()", "newString": "def new()"}]}},
        },
        {"tool": "apply_patch", "state": {"input": {"patchText": patch}}},
    ]
    message = {"info": {"role": "assistant"}, "parts": [{"type": "tool", **call} for call in calls]}
    found = read("opencode-export", {"info": {"id": "s"}, "messages": [message]})
    assert (found.texts("anchor"), found.texts("symbol")) == (["a.py", "b.py", "c.py", "d.py"], ["old", "new", "B"])


def copilot(kind: str, agent: str | None = None, **data: Any) -> Event:
    return {"type": kind, "data": data, "parentId": None, "timestamp": "T", **({"agentId": agent} if agent else {})}


def test_what_copilot_puts_among_the_messages_of_the_user() -> None:
    sources: list[Event] = [{}, {"source": "skill-pdf"}, {"isAutopilotContinuation": True}, {"source": "agent-7"}]
    events = [copilot("user.message", content=f"see {n}.py:1", **source) for n, source in enumerate(sources)]
    found = read("copilot-events", *events)
    assert told(found, "anchor") == [("0.py:1", "user"), ("1.py:1", "tool"), ("2.py:1", "tool"), ("3.py:1", "tool")]
    assert found.texts("request") == ["see 0.py:1 (T)"]


def test_the_tools_of_older_copilot() -> None:
    view = {"command": "view", "path": "a.py", "view_range": [7, 9]}
    edit = {"command": "str_replace", "path": "b.py", "old_str": "def old(): ...", "new_str": "def new(): ..."}
    events = [
        copilot("tool.execution_start", toolCallId=str(n), toolName="str_replace_editor", arguments=given)
        for n, given in enumerate((view, edit))
    ]
    events += [
        copilot("tool.execution_complete", toolCallId=str(n), success=False, error={"message": "no"}) for n in range(2)
    ]
    to_dos = "# Plan\n- [x] done\n- [ ] to do\n  * [ ] and this\n- no box"
    call = {"toolCallId": "9", "name": "update_todo", "arguments": {"todos": to_dos}}
    found = read("copilot-events", *events, copilot("assistant.message", content="", toolRequests=[call]))
    assert (found.texts("anchor"), found.texts("symbol")) == (["a.py:7", "b.py"], ["old", "new"])
    assert (found.texts("failed_approach"), found.texts("to_do")) == ([], ["to do", "and this"])


def test_a_command_that_was_denied_in_copilot_is_no_failure() -> None:
    start = copilot("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "make"})
    for code, failed in (("denied", []), ("failure", ["`make` failed: no"])):
        done = copilot("tool.execution_complete", toolCallId="c", success=False, error={"message": "no", "code": code})
        assert read("copilot-events", start, done).texts("failed_approach") == failed


def pi(id: str, parent: str | None, text: str, role: str = "user") -> Event:
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": "T",
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    }


def test_a_branch_of_pi_that_the_user_left_does_not_count() -> None:
    events = [
        {"type": "session", "id": "s", "cwd": "/x"}, pi("1", None, "see a.py:1"), pi("2", "1", "b.py:2", "assistant"), pi("3", "2", "not c.py:3"),
        pi("4", "2", "but d.py:4"), {"type": "branch_summary", "id": "5", "parentId": "4", "summary": "about e.py:5"},
    ]  # fmt: skip
    found = read("pi-session", *events)
    assert found.texts("anchor") == ["a.py:1", "b.py:2", "d.py:4"]
    assert found.texts("request") == ["but d.py:4 (T)"]


@pytest.mark.parametrize("name", ["bashExecution", "custom", "branchSummary", "compactionSummary", "system"])
def test_what_else_pi_writes_down_is_nobodys(name: str) -> None:
    assert (
        read("pi-session", {"type": "message", "message": {"role": name, "content": "a.py:1", "command": "x"}})
        == Collected()
    )


# What a call means is data.


def test_a_tool_is_known_by_a_line_of_the_table() -> None:
    nothing: Event = {key: [] for key in SAID["pi-session"]["tools"]["read"]}
    paint = nothing | {"file": [["target", "path"]], "line": [["from"]], "parts": [["strokes"]], "parts_are": [
        {"has": ["ink"], "lacks": [], "where": [], "within": []}], "written": [["ink"]]}  # fmt: skip
    given = {"target": {"path": "a.py"}, "from": 3, "strokes": [{"ink": "def x(): ..."}, {"water": 1}, 7]}
    found = meaning({"paint": paint}, "paint", given)
    assert (found.places, found.written) == ((("a.py", 3),), ("def x(): ...",))
    assert meaning({"paint": paint}, "draw", given) == meaning({"paint": paint}, "paint", [])
    assert meaning({"*": paint}, "draw", json.dumps(given)) == found
    many = nothing | {"to_dos": [["list"]], "to_do": [["say"]], "status": [["is"]], "done": ["over"]}
    told = meaning({"plan": many}, "plan", {"list": [{"say": "a", "is": "over"}, {"say": "b"}, {"say": 7}, 7]})
    assert told.to_dos == (ToDo("a", False), ToDo("b", True))
    assert told.to_do is None


def test_no_name_of_a_tool_stands_in_the_code() -> None:
    code = (
        "".join(path.read_text() for path in pathlib.Path(reading.__file__).parent.glob("*.py"))
        + pathlib.Path(collect.__file__).read_text()
    )
    names = {name for said in SAID.values() for name in said["tools"]} - {
        "*",
        "read",
        "edit",
        "write",
        "patch",
        "create",
        "view",
        "shell",
    }
    assert sorted(name for name in names if f'"{name}"' in code) == []


def test_lines_of_places_are_numbers() -> None:
    def line(value: Any) -> list[str]:
        block = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a.py", "offset": value}}
        return read("pi-session", {"type": "message", "message": {"role": "assistant", "content": [block]}}).texts(
            "anchor"
        )

    assert [line(value) for value in (7, 0, -1, True, "7", 7.0, None, 10**30, [7], [])] == [
        ["a.py:7"], *[["a.py"]] * 7, ["a.py:7"], ["a.py"],
    ]  # fmt: skip


@pytest.mark.parametrize("agent", ["<!--x-->\n", "\x1b[31m", "\ud800", ""])
def test_the_name_of_a_subagent_is_inert(agent: str) -> None:
    unread = of("pi_tools.jsonl", agent=agent).unread
    assert unread is not None
    assert unread.isprintable()


def test_who_wrote_a_text_first_is_its_origin_across_kinds() -> None:
    found: Callable[..., Identifier] = Identifier
    events = [
        copilot("tool.execution_complete", toolCallId="c", success=True, result={"content": "a.py:1"}),
        copilot("assistant.message", content="a.py:1"),
    ]
    assert read("copilot-events", *events).identifiers == (found("anchor", "a.py:1", "tool"),)
