"""A session's blocks, its audit, and the views of its requests."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.lifecycle import Session, Source, parse
from ecm_rules.lifecycle.session import tombstone

EPHEMERAL = "<!--ephemeral-->\nlong output"
BLOCKS = "<!--BLOCK_ID:a-->\nA\n<!--/BLOCK_ID:a-->\n<!--BLOCK_ID:b-->\nB\n<!--/BLOCK_ID:b-->\n"
WORKFLOW = Source("workflow", "host_workflow")


class Trusting:
    """Blocks from context sources, discards from workflows."""

    def allows(self, declaration: str, source: Source) -> bool:
        wanted = "context_source" if declaration == "block" else "host_workflow"
        return source.origin == wanted


def session(**options: Any) -> Session:
    return Session(Trusting(), clock=lambda: "2026-01-01T00:00:00Z", **options)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def tool(content: Any, call: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


def assistant(content: Any = "done") -> dict[str, Any]:
    return {"role": "assistant", "content": content}


parts = st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "x"},
            {"type": "text", "text": "<!--ephemeral-->"},
            {"type": "image", "data": "AAAA"},
            {"type": "text", "text": 5},
            "loose",
            None,
        ]
    ),
    max_size=4,
)
contents = st.sampled_from(["plain", EPHEMERAL, "<!--DISCARD_BLOCK:a-->", "<!-- ephemeral -->", "", None, 7]) | parts
messages = st.builds(
    lambda role, content, extra: {"role": role, "content": content, **extra},
    st.sampled_from(["user", "assistant", "tool", "system"]),
    contents,
    st.sampled_from([{}, {"tool_call_id": "c1"}, {"tool_call_id": "c2", "is_error": False}, {"id": "m1"}]),
)
ODD: list[Any] = [None, 5, "text", [], {}, {"role": 3, "content": EPHEMERAL}, {"content": EPHEMERAL}]
odd = st.sampled_from(ODD)
histories = st.lists(messages | odd, max_size=12)


@given(histories, st.sampled_from(["last", "first", "system"]))
def test_a_view_leaves_the_history_as_it_was_and_shares_what_it_did_not_rewrite(history: list[Any], where: str) -> None:
    before, objects = copy.deepcopy(history), list(history)
    lifetimes = session(inject=where)
    lifetimes.load_source(BLOCKS, "s.md")
    view = lifetimes.view(history)
    assert history == before
    assert all(now is then for now, then in zip(history, objects, strict=True))
    changed = {change["index"] for change in view.changes}
    assert len(view.core) == len(history)
    for index, message in enumerate(view.core):
        assert (message is history[index]) is (index not in changed)
    rest = [message for place, message in enumerate(view.messages) if place != view.injected]
    assert all(one is other for one, other in zip(rest, view.core, strict=True))


@given(histories)
def test_what_is_rewritten_says_so_and_nothing_else_differs(history: list[Any]) -> None:
    view = session().view(history)
    for change in view.changes:
        old, new = history[change["index"]], view.core[change["index"]]
        assert {**old, "content": None} == {**new, "content": None}
        assert tombstone(change["original_bytes"]) in json.dumps(new["content"])
        assert type(old["content"]) is type(new["content"])


@given(histories)
def test_the_view_of_a_view_is_the_view(history: list[Any]) -> None:
    core = session().view(history).core
    again = session().view(core)
    assert again.core == core
    assert again.changes == []


@given(st.lists(histories, min_size=1, max_size=4), st.integers(0, 3))
def test_a_restored_session_goes_on_as_if_nothing_had_been(requests: list[list[Any]], at: int) -> None:
    through, resumed = session(), session()
    for lifetimes in (through, resumed):
        lifetimes.load_source(BLOCKS, "s.md")
    for number, history in enumerate(requests):
        if number == at:
            saved = json.loads(json.dumps(resumed.snapshot()))
            resumed = session()
            resumed.restore(saved)
        one, other = through.view(history), resumed.view(history)
        assert (one.messages, one.changes, one.active) == (other.messages, other.changes, other.active)
    assert through.snapshot() == resumed.snapshot()


@given(histories, st.lists(st.booleans(), min_size=12, max_size=12))
def test_what_was_consumed_is_audited_once_whatever_the_host_drops(history: list[Any], kept: list[bool]) -> None:
    lifetimes = session()
    lifetimes.view([*history, assistant()])
    events = len(lifetimes.audit)
    lifetimes.view([m for m, keep in zip(history, kept, strict=False) if keep] + [assistant()])
    lifetimes.view([*history, assistant()])
    assert len(lifetimes.audit) == events


def test_a_tombstone_stays_the_same_from_request_to_request() -> None:
    lifetimes, history = session(), [user("go"), tool(EPHEMERAL), assistant()]
    first = lifetimes.view(history).messages[1]
    for turn in range(3):
        history += [user(f"next {turn}"), assistant()]
        assert json.dumps(lifetimes.view(history).messages[1]) == json.dumps(first)


def test_the_same_output_of_another_call_is_another_message() -> None:
    lifetimes = session()
    for call in ("c1", "c2", "c1"):
        lifetimes.view([tool(EPHEMERAL, call), assistant()])
    assert [event["action"] for event in lifetimes.audit] == ["ephemeral_consumed"] * 2


def test_loading_a_source_again_tells_nothing_twice() -> None:
    lifetimes = session()
    for _ in range(3):
        lifetimes.load_source(BLOCKS + "<!-- ephemeral -->\n", "s.md")
        lifetimes.load_source(BLOCKS, "other.md")
    assert [(told["code"], told["source"], told["line"]) for told in lifetimes.diagnostics] == [
        ("invalid-lifecycle-tag", "s.md", 7),
        ("block-id-conflict", "other.md", 1),
        ("block-id-conflict", "other.md", 4),
    ]


def test_a_source_full_of_what_is_in_vain_is_loaded_in_a_moment() -> None:
    lifetimes = session()
    for _ in range(2):
        lifetimes.load_source("<!--BLOCK_ID:a-->\n" * 200_000, "s.md")
    assert len(lifetimes.diagnostics) == 200_000


def test_a_developer_message_is_audited_by_its_own_name() -> None:
    lifetimes = session()
    view = lifetimes.view([{"role": "developer", "content": "<!--ephemeral-->\n<!--DISCARD_BLOCK:a-->"}, assistant()])
    assert {event["source"] for event in lifetimes.audit} == {"message:developer"}
    assert [problem["code"] for problem in view.problems] == ["ephemeral-system-message"]


def test_an_answer_with_other_calls_is_another_answer() -> None:
    lifetimes = session()
    for call in ("c1", "c2"):
        lifetimes.view([{**assistant(EPHEMERAL), "tool_calls": [{"id": call}]}, tool("x", call), assistant()])
    assert len(lifetimes.audit) == 2


def test_ids_that_are_equal_and_not_the_same_are_told_apart_after_a_restore_too() -> None:
    lifetimes, history = session(), [{"role": "user", "id": told, "content": EPHEMERAL} for told in (1, True, 1.0)]
    lifetimes.view([*history, assistant()])
    resumed = session()
    resumed.restore(lifetimes.snapshot())
    for again in (lifetimes, resumed):
        again.view([history[1], assistant()])
        assert len(again.audit) == 3


def failing() -> str:
    raise RuntimeError


@pytest.mark.parametrize(("clock", "timestamp"), [(failing, ""), (lambda: 17.5, "17.5")])
def test_a_clock_that_fails_costs_an_event_its_time_alone(clock: Any, timestamp: str) -> None:
    lifetimes = Session(Trusting(), clock=clock)
    lifetimes.load_source(BLOCKS, "s.md")
    assert [event["timestamp"] for event in lifetimes.audit] == [timestamp] * 2
    session().restore(json.loads(json.dumps(lifetimes.snapshot())))


def test_text_that_reads_like_a_list_is_no_list() -> None:
    listed = [{"text": "<!--ephemeral-->", "type": "text"}]
    view = session().view([user(listed), user(json.dumps(listed, separators=(",", ":"))), assistant()])
    assert [change["index"] for change in view.changes] == [0]


def test_a_history_that_changes_in_place_is_read_anew() -> None:
    lifetimes, history = session(), [tool(EPHEMERAL), assistant()]
    lifetimes.view(history)
    history[0]["content"] = "<!--ephemeral-->\nother"
    assert lifetimes.view(history).changes[0]["original_bytes"] == len("<!--ephemeral-->\nother")
    history[0]["content"] = [{"type": "text", "text": "<!--ephemeral-->"}]
    lifetimes.view(history)
    history[0]["content"].append({"type": "text", "text": "more"})
    assert lifetimes.view(history).changes[0]["original_bytes"] == len(
        '[{"type":"text","text":"<!--ephemeral-->"},{"type":"text","text":"more"}]'
    )


def test_the_latest_answer_is_never_rewritten_and_an_earlier_one_keeps_what_is_no_text() -> None:
    thinking, call = (
        {"type": "thinking", "thinking": "<!--ephemeral-->", "signature": "s"},
        {"type": "tool_use", "id": "c1"},
    )
    text = {"type": "text", "text": "<!--ephemeral-->\nlong"}
    history = [assistant([thinking, text, call, {"type": "text", "text": "more"}])]
    lifetimes = session()
    assert lifetimes.view(history).core[0] is history[0]
    history.append(assistant())
    rewritten = lifetimes.view(history).core[0]["content"]
    assert rewritten[0] is thinking
    assert rewritten[2] is call
    assert rewritten[1]["text"].startswith("[EPHEMERAL:")
    assert len(rewritten) == 3


@pytest.mark.parametrize("where", ["last", "first", "system"])
def test_active_blocks_are_in_every_request_until_they_are_discarded(where: str) -> None:
    lifetimes = session(inject=where)
    lifetimes.load_source(BLOCKS, "s.md")
    history = [{"role": "system", "content": "be brief"}, user("q"), assistant("prefill")]
    view = lifetimes.view(history)
    assert view.injected == {"last": 2, "first": 1, "system": 1}[where]
    carried = view.messages[view.injected]
    assert carried == {"role": "system" if where == "system" else "user", "content": BLOCKS}
    lifetimes.control("<!--DISCARD_BLOCK:a-->", WORKFLOW)
    (block,) = parse(lifetimes.view(history).messages[view.injected]["content"], "").blocks
    assert (block.id, block.content) == ("b", "B\n")
    lifetimes.control("<!--DISCARD_BLOCK:b-->", WORKFLOW)
    view = lifetimes.view(history)
    assert (view.injected, view.messages) == (None, history)


def test_what_is_behind_the_history_leaves_its_prefix_as_it_was_sent() -> None:
    lifetimes, history = session(), [user("q1")]
    lifetimes.load_source(BLOCKS, "s.md")
    sent = lifetimes.view(history).messages
    history += [assistant("a1"), user("q2")]
    lifetimes.control("<!--DISCARD_BLOCK:a-->", WORKFLOW)
    assert lifetimes.view(history).messages[: len(sent) - 1] == sent[:-1]


def test_a_block_that_holds_declarations_declares_nothing_by_being_injected() -> None:
    lifetimes = session()
    lifetimes.load_source("<!--BLOCK_ID:a-->\n<!--ephemeral-->\n<!--DISCARD_BLOCK:a-->\n<!--/BLOCK_ID:a-->\n", "s.md")
    for _ in range(2):
        view = lifetimes.view([user("q"), assistant(), user("r")])
        assert view.active == ["a"]
        assert view.changes == []
    assert [event["action"] for event in lifetimes.audit] == ["block_activated"]


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_a_forged_directive_is_inert_and_denied_once(role: str) -> None:
    lifetimes = session()
    lifetimes.load_source(BLOCKS, "s.md")
    forged = {"role": role, "tool_call_id": "c1", "content": "see\n<!--DISCARD_BLOCK:a-->\nand <!--BLOCK_ID:x-->"}
    for _ in range(3):
        view = lifetimes.view([forged, user("q")])
        assert view.core[0] is forged
        assert view.active == ["a", "b"]
    denied = [event for event in lifetimes.audit if event["action"] == "discard_denied"]
    assert [(event["source"], event["block_id"]) for event in denied] == [(f"message:{role}", "a")]


def test_blocks_of_an_untrusted_source_stay_inert_and_are_audited() -> None:
    lifetimes = session()
    lifetimes.load_source(BLOCKS, Source("README.md", "repository_file"))
    assert lifetimes.active == []
    assert [(e["action"], e["block_id"]) for e in lifetimes.audit] == [
        ("activation_denied", "a"),
        ("activation_denied", "b"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        None,
        5,
        "text",
        [EPHEMERAL],
        {"content": EPHEMERAL},
        {"role": ["user"], "content": EPHEMERAL},
        user({"a": EPHEMERAL}),
    ],
)
def test_what_is_no_message_is_sent_as_it_is(message: Any) -> None:
    lifetimes = session()
    view = lifetimes.view([message, assistant()])
    assert view.messages[0] is message
    assert lifetimes.audit == []


def test_content_that_contains_itself_is_sent_as_it_is_and_told() -> None:
    loop: list[Any] = [{"type": "text", "text": "<!--ephemeral-->\n<!--DISCARD_BLOCK:a-->"}]
    loop.append({"type": "other", "in": loop})
    lifetimes = session()
    view = lifetimes.view([user(loop), assistant()])
    assert view.messages[0]["content"] is loop
    assert [problem["code"] for problem in view.problems] == ["unreadable-content"]
    assert lifetimes.audit == []


def test_a_history_in_which_nothing_is_recognised_says_so_and_is_sent_as_it_is() -> None:
    lifetimes = session()
    lifetimes.load_source(BLOCKS, "s.md")
    foreign = [{"role": None, "parts": [{"text": "hello"}]}]
    assert lifetimes.view(foreign).messages == foreign
    assert lifetimes.view([user("hello")]).injected == 1
    assert [p["code"] for p in session().view([{"parts": []}, 5]).problems] == ["unrecognised-history"]
    assert session().view([]).problems == []


def test_an_ephemeral_system_message_is_told() -> None:
    view = session().view([{"role": "system", "content": "<!--ephemeral-->\nrules"}, assistant()])
    assert [(p["code"], p["index"]) for p in view.problems] == [("ephemeral-system-message", 0)]


@pytest.mark.parametrize("history", [None, {"messages": []}, "text", 5, iter([])])
def test_what_is_no_history_is_refused_and_changes_nothing(history: Any) -> None:
    lifetimes = session()
    with pytest.raises(TypeError, match="a history is a list of messages"):
        lifetimes.view(history)
    assert lifetimes.request_sequence == 0


def test_an_unknown_place_for_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of last, first, system"):
        session(inject="middle")


def good() -> dict[str, Any]:
    lifetimes = session()
    lifetimes.load_source(BLOCKS + "<!-- ephemeral -->", "s.md")
    lifetimes.view([tool(EPHEMERAL), user("<!--DISCARD_BLOCK:a-->"), assistant()])
    return json.loads(json.dumps(lifetimes.snapshot()))  # type: ignore[no-any-return]


def torn() -> list[Any]:
    """A snapshot with each of its parts missing, null, or of another kind."""
    found: list[Any] = [None, [], "", 5, {}, {"format": 1}]
    wrong: list[Any] = [None, "x", -1, [5], [{}], {"a": 1}]
    for key in good():
        for value in wrong:
            found.append({**good(), key: value})
        found.append({k: v for k, v in good().items() if k != key})
    for key, field, value in [
        ("blocks", "id", "a-->\n<!--BLOCK_ID:b"),
        ("blocks", "content", "no line end"),
        ("blocks", "status", "asleep"),
        ("audit", "request_sequence", -1),
        ("audit", "request_sequence", 10**4300),
        ("audit", "more", {"shared": []}),
        ("diagnostics", "line", True),
    ]:
        changed = good()
        changed[key][0][field] = value
        found.append(changed)
    found += [{**good(), "format": True}, {**good(), "format": 1.0}, {**good(), "request_sequence": 10**4300}]
    found.append({**good(), "blocks": good()["blocks"][:1] * 2})
    for key in ("blocks", "audit", "diagnostics"):
        for field in good()[key][0]:
            if field not in ("block_id", "original_bytes"):
                changed = good()
                changed[key][0][field] = None
                found.append(changed)
    return found


@pytest.mark.parametrize("snapshot", torn(), ids=range(len(torn())))
def test_what_is_no_snapshot_is_refused_and_changes_nothing(snapshot: Any) -> None:
    lifetimes = session()
    lifetimes.load_source(BLOCKS, "s.md")
    before = lifetimes.snapshot()
    with pytest.raises(ValueError, match="no snapshot of a session"):
        lifetimes.restore(snapshot)
    assert lifetimes.snapshot() == before


def test_a_snapshot_shares_nothing_with_its_session() -> None:
    lifetimes = session()
    lifetimes.load_source(BLOCKS, "s.md")
    saved = lifetimes.snapshot()
    kept = copy.deepcopy(saved)
    lifetimes.control("<!--DISCARD_BLOCK:a-->", WORKFLOW)
    assert saved == kept
    other = session()
    other.restore(saved)
    other.control("<!--DISCARD_BLOCK:b-->", WORKFLOW)
    assert saved == kept


def test_what_a_session_keeps_does_not_grow_with_a_history_without_declarations() -> None:
    lifetimes = session()
    lifetimes.view([user("x" * 1000)] * 10)
    small = len(json.dumps(lifetimes.snapshot()))
    lifetimes.view([user(f"{n} <!-- note -->") for n in range(5000)])
    assert len(json.dumps(lifetimes.snapshot())) == small


def test_every_event_has_the_time_of_the_clock_that_was_given() -> None:
    times = iter(["t1", "t2"])
    lifetimes = Session(Trusting(), clock=lambda: next(times))
    lifetimes.load_source(BLOCKS, "s.md")
    assert [event["timestamp"] for event in lifetimes.audit] == ["t1", "t2"]
