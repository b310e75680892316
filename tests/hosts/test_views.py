"""Requests that pass a client's hook: what was consumed is left out, active blocks are put in, and all of it stays so."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.hosts import cache, views
from ecm_rules.kernel import audit, locks
from ecm_rules.lifecycle import SHAPES, Session, Source, Trust, load_trust
from ecm_rules.lifecycle.session import tombstone
from tests.kernel.state import STATE, lines
from tests.lifecycle.histories import ANSWERS, BLOCKS, LONG, ODD, histories, recorded, said

RECORDED = recorded()
CLIENTS = ["opencode", "pi", "gemini-text"]
TRUST = load_trust(None)
DISCARD = "<!--DISCARD_BLOCK:a-->"
STONE = tombstone(len(LONG))


class Everybody:
    """Trusts every source."""

    def allows(self, declaration: str, source: Source) -> bool:
        return bool(declaration and source.id)


def ask(
    project: pathlib.Path,
    shape: str,
    messages: Any,
    session: str | None = "s1",
    agent: str | None = None,
    sources: Any = (),
    trust: Any = TRUST,
    **more: Any,
) -> tuple[list[Any], list[str]]:
    """The messages that are sent, rewritten or not, and the complaints. The history is not changed."""
    before = copy.deepcopy(messages)
    sent, complaints = views.view(str(project), {}, trust, shape, session, agent, messages, sources, **more)
    assert messages == before
    assert sent is None or sent != messages
    return messages if sent is None else sent, complaints


def sent(*given: Any, **more: Any) -> list[Any]:
    """The same where there is nothing to complain about."""
    messages, complaints = ask(*given, **more)
    assert complaints == []
    return messages


def events(project: pathlib.Path) -> list[dict[str, Any]]:
    return lines(project, "policy-log.jsonl") if (project / STATE / "policy-log.jsonl").exists() else []


def actions(project: pathlib.Path) -> list[str]:
    return [event["action"] for event in events(project)]


def state(project: pathlib.Path, name: str = "lifetimes-s1.json") -> Any:
    return json.loads((project / STATE / name).read_bytes())


def request(shape: str, name: str, output: str) -> list[Any]:
    """A recorded request after a tool, which put out something else."""
    messages = copy.deepcopy(RECORDED[name]["messages"])
    if shape == "opencode":
        messages[1]["parts"][1]["state"]["output"] = output
    elif shape == "pi":
        messages[2]["content"][0]["text"] = output
    else:
        messages[0]["content"] += "\n" + output
    return list(messages)


AFTER_A_TOOL = {
    "opencode": "opencode/experimental.chat.messages.transform.json",
    "pi": "pi/context.after-tool.json",
    "gemini-text": "gemini-cli/BeforeModel.json",
}


@pytest.mark.parametrize("shape", CLIENTS)
def test_what_was_consumed_is_left_out_of_the_second_request(shape: str, tmp_path: pathlib.Path) -> None:
    history = request(shape, AFTER_A_TOOL[shape], LONG)
    assert sent(tmp_path, shape, history) is history
    assert not (tmp_path / STATE).exists()
    later = [*history, ANSWERS[shape]]
    second = sent(tmp_path, shape, later)
    (index,) = [index for index, message in enumerate(second) if message is not later[index]]
    if shape == "gemini-text":
        assert second[index] == {**history[0], "content": tombstone(len(history[0]["content"].encode()))}
    elif shape == "opencode":
        assert second[: len(history)] == request(shape, AFTER_A_TOOL[shape], STONE)
    else:
        content = json.dumps(history[2]["content"], separators=(",", ":"))
        assert second[index] == {**history[2], "content": [{"type": "text", "text": tombstone(len(content))}]}
    assert [SHAPES[shape].links(message) for message in second] == [SHAPES[shape].links(told) for told in later]
    # A third process, and the same bytes.
    assert sent(tmp_path, shape, [*later, said(shape, "go on")])[: len(later)] == second
    (event,) = events(tmp_path)
    assert (event["event"], event["action"], event["session_id"]) == ("lifetime", "ephemeral_consumed", "s1")
    assert (event["agent_id"], event["trigger"]) == (None, "assistant_response_completed")
    assert event["source"] == ("message:user" if shape == "gemini-text" else "message:tool")
    assert list(event)[:5] == ["event", "evaluated_at", "session_id", "agent_id", "action"]
    assert "timestamp" not in event


@pytest.mark.parametrize("name", [name for name in RECORDED if RECORDED[name]["shape"] in CLIENTS])
def test_a_recorded_request_that_declares_nothing_is_sent_as_it_came(name: str, tmp_path: pathlib.Path) -> None:
    shape, messages = RECORDED[name]["shape"], RECORDED[name]["messages"]
    assert views.view(str(tmp_path), {}, TRUST, shape, "s1", None, messages, [("# Markdown\n", "a.md")]) == (None, [])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", CLIENTS)
def test_a_discard_that_nobody_trusts_stays_and_is_audited_once(shape: str, tmp_path: pathlib.Path) -> None:
    history = request(shape, AFTER_A_TOOL[shape], DISCARD)
    sources = [(BLOCKS, "plan.md")]
    first = sent(tmp_path, shape, history, sources=sources)
    again = sent(tmp_path, shape, [*history, ANSWERS[shape], said(shape, DISCARD)], sources=sources)
    assert again[: len(first)] == first
    assert json.dumps(again).count(DISCARD) == 2
    assert actions(tmp_path) == ["block_activated", "discard_denied", "discard_denied"]
    told = [event["source"] for event in events(tmp_path)]
    assert told == ["plan.md", "message:user" if shape == "gemini-text" else "message:tool", "message:user"]


@pytest.mark.parametrize("shape", CLIENTS)
def test_a_block_is_in_every_request_until_it_is_discarded(shape: str, tmp_path: pathlib.Path) -> None:
    """Also when its source is given again, and when the message that discarded it is gone."""
    told: dict[str, Any] = {"trust": Everybody(), "sources": [(BLOCKS, "plan.md")]}
    history = [said(shape, "go")]
    first = sent(tmp_path, shape, history, **told)
    assert BLOCKS in json.dumps(first[0]).encode().decode("unicode_escape")
    assert len(first) == (1 if shape == "gemini-text" else 2)
    again = sent(tmp_path, shape, [*history, ANSWERS[shape]], trust=Everybody())
    assert again[: len(first)] == first
    over = [*history, ANSWERS[shape], said(shape, DISCARD)]
    assert sent(tmp_path, shape, over, **told) is over
    assert sent(tmp_path, shape, history, **told) is history
    assert actions(tmp_path) == ["block_activated", "block_discarded"]
    assert state(tmp_path)["audit"] == []


def test_the_first_definition_holds_and_no_source_is_loaded_twice(tmp_path: pathlib.Path) -> None:
    history, other = [said("pi", "go")], BLOCKS.replace("A", "B")
    denied = Source("a page", "web_page")
    first = sent(tmp_path, "pi", history, sources=[(BLOCKS, "plan.md"), (other, denied)])
    for _ in range(3):
        assert sent(tmp_path, "pi", history, sources=[(other, "plan.md"), (other, denied)]) == first
    assert actions(tmp_path) == ["block_activated", "activation_denied"]
    assert [told["code"] for told in state(tmp_path)["diagnostics"]] == ["block-id-conflict"]
    # What another table allows is asked anew.
    more = BLOCKS.replace(":a", ":b")
    sent(tmp_path, "pi", history, sources=[(more, denied)])
    sent(tmp_path, "pi", history, sources=[(more, denied)], trust=Everybody())
    assert actions(tmp_path)[2:] == ["activation_denied", "block_activated"]


def test_sources_of_a_project_are_read_as_they_are(tmp_path: pathlib.Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/plan.md").write_bytes(b"\xef\xbb\xbf" + BLOCKS.replace("\n", "\r\n").encode())
    (tmp_path / "latin.md").write_bytes(b"\xe9")
    os.mkfifo(tmp_path / "pipe.md")
    names = ["docs/plan.md", "latin.md", "pipe.md", "no.md", "docs", "a\0.md"]
    found, complaints = views.read_sources(str(tmp_path), names)
    assert found == [(BLOCKS.replace("\n", "\r\n"), "docs/plan.md")]
    assert [told.split(" cannot be read: ")[0] for told in complaints] == names[1:]
    history = [said("pi", "go")]
    first = sent(tmp_path, "pi", history, sources=found)
    assert len(first) == 2
    # It is gone, and its block stays.
    assert sent(tmp_path, "pi", history, sources=[]) == first


def test_each_session_and_each_subagent_has_lifetimes_of_its_own(tmp_path: pathlib.Path) -> None:
    history = [said("pi", LONG), ANSWERS["pi"]]
    for session, agent in [("s1", None), ("s2", None), ("s1", "a1"), (None, None), ("../up", None), ("s1", "../a")]:
        sent(tmp_path, "pi", history, session, agent)
        sent(tmp_path, "pi", history, session, agent)
    assert [(event["session_id"], event["agent_id"]) for event in events(tmp_path)] == [
        ("s1", None), ("s2", None), ("s1", "a1"), (None, None), ("../up", None), ("s1", "../a"),
    ]  # fmt: skip
    kept = sorted(name for name in os.listdir(tmp_path / STATE) if name.startswith("lifetimes") and name[-4:] != "lock")
    assert len(kept) == 6
    assert {"lifetimes.json", "lifetimes-s1.json", "lifetimes-s2.json"} < set(kept)


def test_the_messages_say_whose_session_it_is_where_the_payload_does_not(tmp_path: pathlib.Path) -> None:
    history = request("opencode", AFTER_A_TOOL["opencode"], LONG)
    sent(tmp_path, "opencode", [*history, ANSWERS["opencode"]], None)
    (event,) = events(tmp_path)
    assert event["session_id"] == history[0]["info"]["sessionID"]
    assert (tmp_path / STATE / f"lifetimes-{event['session_id']}.json").exists()


@given(st.sampled_from(CLIENTS).flatmap(lambda shape: st.tuples(st.just(shape), histories(shape))), st.booleans())
def test_each_request_begins_with_the_one_before_it(shaped: tuple[str, list[Any]], loads: bool) -> None:
    """But for what was consumed since; and every call and every result is where it was."""
    shape, history = shaped[0], [said(shaped[0], "begin"), *shaped[1]]
    of, sources = SHAPES[shape], [(BLOCKS, "plan.md")] * loads
    blocks = of.block_message(BLOCKS, "first")
    with tempfile.TemporaryDirectory() as folder:
        before: list[str] = []
        for upto in range(1, len(history) + 1):
            told, _ = ask(pathlib.Path(folder), shape, history[:upto], sources=sources)
            assert told.count(blocks) == (loads and shape != "gemini-text")
            rest = [message for message in told if message != blocks]
            assert [of.links(message) for message in rest] == [of.links(message) for message in history[:upto]]
            now = [json.dumps(message) for message in told]
            for old, new in zip(before, now, strict=False):
                assert old == new or new.count("[EPHEMERAL:") > old.count("[EPHEMERAL:")
            before = now


@pytest.mark.parametrize("shape", CLIENTS)
@pytest.mark.parametrize("message", ODD, ids=range(len(ODD)))
def test_odd_messages_are_sent_as_they_came(shape: str, message: Any, tmp_path: pathlib.Path) -> None:
    given_, _ = views.view(str(tmp_path), {}, TRUST, shape, "s1", None, [message], [(BLOCKS, "plan.md")])
    assert given_ is None or message in given_ or shape == "gemini-text"
    history = [message, said(shape, LONG), ANSWERS[shape]]
    told, _ = views.view(str(tmp_path), {}, TRUST, shape, "s1", None, history)
    assert told is not None
    assert told[-1] is ANSWERS[shape]


@pytest.mark.parametrize("messages", [None, {}, "messages", 5, [None] * 1000, [[[]]], [{"role": {"role": {}}}]])
@pytest.mark.parametrize("shape", [*CLIENTS, "no such"])
def test_what_is_no_history_is_left_alone(shape: str, messages: Any, tmp_path: pathlib.Path) -> None:
    told, complaints = views.view(str(tmp_path), {}, TRUST, shape, "s1", None, messages, [(BLOCKS, "plan.md")])
    assert told is None
    assert len(complaints) == 1


def test_a_huge_history_is_read_in_a_moment(tmp_path: pathlib.Path) -> None:
    history = [said("pi", "x" * 1000), ANSWERS["pi"]] * 4000 + [said("pi", LONG), ANSWERS["pi"]]
    deep: Any = LONG
    for _ in range(10_000):
        deep = [deep]
    history += [{"role": "user", "content": [{"type": "text", "text": LONG}, deep]}, ANSWERS["pi"]]
    told, complaints = views.view(str(tmp_path), {}, TRUST, "pi", "s1", None, history)
    assert told is not None
    assert told[8002] is history[8002]
    assert [index for index, message in enumerate(told) if message is not history[index]] == [8000]
    assert complaints == ["message 8002: its content cannot be read: RecursionError"]


def test_a_trust_that_fails_and_sources_that_are_none_are_complaints(tmp_path: pathlib.Path) -> None:
    class Failing:
        def allows(self, declaration: str, source: Source) -> bool:
            raise RuntimeError(f"no answer to {declaration} of {source.id}")

    history = [said("pi", "go")]
    assert ask(tmp_path, "pi", history, sources=[(BLOCKS, "a.md")], trust=Failing()) == (
        history,
        ["lifetimes: RuntimeError: no answer to block of a.md"],
    )
    told, complaints = ask(tmp_path, "pi", history, sources=[(5, "a.md"), (BLOCKS, "b.md")])
    assert len(told) == 2
    assert complaints == ["a source is no text: a.md"]


def test_the_table_of_a_project_is_kept_with_its_programs(project: pathlib.Path) -> None:
    """And asked without YAML, its own rows too."""
    row = "{id: DOCS, when: {declaration: block, origin: repository_file, source_id: docs/a.md}, operation: allow}"
    (project / ".eidolons").mkdir()
    before = cache.programs(str(project))
    assert before is not None
    assert before["trust"] == TRUST.program
    (project / ".eidolons/ecm.yaml").write_text(f"schema_version: 1\ntrust_sources:\n  - {row}\n")
    programs = cache.programs(str(project))
    assert programs is not None
    assert json.loads(json.dumps(programs["trust"])) == load_trust(str(project)).program
    for trust, count in [(Trust(before["trust"]), 1), (Trust(programs["trust"]), 2)]:
        source = (BLOCKS, Source("docs/a.md", "repository_file"))
        assert len(sent(project, "pi", [said("pi", "go")], sources=[source], trust=trust)) == count


def test_what_is_kept_is_a_snapshot(tmp_path: pathlib.Path) -> None:
    sent(tmp_path, "pi", [said("pi", LONG), ANSWERS["pi"]], sources=[(BLOCKS, "plan.md")])
    later = Session(TRUST)
    later.restore(state(tmp_path))
    assert (later.active, later.audit, later.request_sequence) == (["a"], [], 1)
    assert (tmp_path / STATE / "lifetimes-s1.json").stat().st_mode & 0o777 == 0o600


def test_a_request_that_nothing_came_of_writes_nothing(tmp_path: pathlib.Path) -> None:
    history = [said("pi", LONG), ANSWERS["pi"]]
    sent(tmp_path, "pi", history)
    path = tmp_path / STATE / "lifetimes-s1.json"
    before = path.stat().st_mtime_ns, path.stat().st_ino
    sent(tmp_path, "pi", [*history, said("pi", "on")])
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    sent(tmp_path, "pi", [*history, said("pi", LONG), ANSWERS["pi"]])
    assert [event["request_sequence"] for event in events(tmp_path)] == [1, 2]


def test_who_cannot_have_the_lock_sends_the_same(tmp_path: pathlib.Path) -> None:
    (tmp_path / STATE).mkdir(parents=True)
    history = [said("pi", LONG), ANSWERS["pi"]]
    lock = locks.take(str(tmp_path / STATE / "lifetimes-s1.lock"), 1)
    told, complaints = ask(tmp_path, "pi", history, sources=[(BLOCKS, "plan.md")], patience=0.01)
    assert complaints == ["lifetimes are in use: what is new is kept with the next request"]
    assert events(tmp_path) == []
    locks.release(lock)
    assert sent(tmp_path, "pi", history, sources=[(BLOCKS, "plan.md")]) == told
    assert actions(tmp_path) == ["block_activated", "ephemeral_consumed"]


def test_the_log_is_where_the_policy_says(tmp_path: pathlib.Path) -> None:
    paths = {"meter": f"{STATE}/deep/meter.json", "policy_log": f"{STATE}/deep/log.jsonl"}
    views.view(str(tmp_path), paths, TRUST, "pi", "s1", None, [said("pi", LONG), ANSWERS["pi"]])
    assert sorted(os.listdir(tmp_path / STATE / "deep")) == ["lifetimes-s1.json", "lifetimes-s1.lock", "log.jsonl"]
    assert not (tmp_path / audit.LOG).exists()
