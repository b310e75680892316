"""One reader a format: what each client writes, and what of it is in the window."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from ecm_rules import Policy
from ecm_rules.kernel import ladder, transcripts
from ecm_rules.kernel.tally import Tally
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "transcripts"
EXPECTED = json.loads((FOLDER / "EXPECTED.json").read_text())["files"]
KNOWN = load_hosts()
KINDS = ("text", "thinking", "tool_call", "tool_result")
Record = dict[str, Any]


def read(name: str) -> Tally:
    return transcripts.read(str(FOLDER / name), KNOWN)


def written(path: pathlib.Path, *records: Record) -> Tally:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return transcripts.read(str(path), KNOWN)


def recorded(name: str) -> list[Record]:
    return [json.loads(line) for line in (FOLDER / name).read_text().split("\n") if line]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_session_is_measured_exactly(name: str) -> None:
    truth, tally = EXPECTED[name], read(name)
    assert tally.format is not None
    assert tally.format.startswith(truth["host"])
    usage, content = truth["last_usage"], truth["content_after_last_boundary"]
    assert tally.main.used == (usage["context_tokens"] if usage else None)
    assert tally.main.compactions == truth["compaction_count"]
    assert tally.records == truth["records"]
    assert tally.bad_lines == truth["bad_lines"]
    assert tally.main.sizes == {kind: content[f"{kind}_bytes"] for kind in KINDS}
    share = tally.main.share()
    assert (None if share is None else round(share, 6)) == content["tool_result_share"]


@pytest.mark.parametrize(
    ("name", "used", "window", "compactions", "post_tokens", "spent"),
    [
        ("claude_autocompact.jsonl", 1200, None, 1, 2625, 5 * 10 + 4 * 40 - 10),
        ("codex_autocompact.jsonl", 1200, 190_000, 1, 6122, 3 * 100 + 40 + 60 + 40),
        ("copilot_autocompact.jsonl", 1200, 100_000, 1, 10577, 4 * 100 + 3 * 40 + 60),
        ("gemini_autocompress.jsonl", 600_000, None, 2, None, 2 * 1200 + 4 * 600_000 + 6 * 40),
        ("gemini_tool_turn.jsonl", 1200, None, 0, None, 2 * 1240),
        ("opencode_autocompact.json", 1240, None, 1, None, 140 + 160 + 140),
        ("pi_compaction.jsonl", 1200, None, 1, None, 4 * 140),
    ],
)
def test_what_a_client_recorded(
    name: str, used: int, window: int | None, compactions: int, post_tokens: int | None, spent: int
) -> None:
    tally = read(name)
    chain = tally.main
    assert (chain.used, chain.window, chain.compactions, chain.post_tokens) == (used, window, compactions, post_tokens)
    assert (tally.spent(), tally.bad_lines, tally.side.messages) == (spent, 0, 0)
    assert chain.session is not None
    assert chain.model is not None


def cut_behind(name: str, holds: Any) -> list[Record]:
    """The records of a recorded session up to its last boundary."""
    records = recorded(name)
    last = max(number for number, record in enumerate(records) if holds(record))
    return records[: last + 1]


@pytest.mark.parametrize(
    ("name", "holds", "reading"),
    [
        ("claude_autocompact.jsonl", lambda r: r.get("subtype") == "compact_boundary", (2625, "compaction boundary")),
        ("codex_autocompact.jsonl", lambda r: r["type"] == "compacted", (1648 // 4 + 10_000, "content bytes")),
        (
            "copilot_autocompact.jsonl",
            lambda r: r["type"] == "session.compaction_complete",
            (10577, "compaction boundary"),
        ),
        ("gemini_autocompress.jsonl", lambda r: "messages" in r.get("$set", {}), (12_000 + 125, "content bytes")),
        ("pi_compaction.jsonl", lambda r: r["type"] == "compaction", (73 // 4 + 1600, "content bytes")),
    ],
)
def test_right_behind_a_boundary_the_usage_before_it_is_void(
    name: str, holds: Any, reading: tuple[int, str], policy: Policy, tmp_path: pathlib.Path
) -> None:
    tally = written(tmp_path / "t.jsonl", *cut_behind(name, holds))
    assert tally.main.used is None
    told = ladder.reading(tally, tally.main, policy.program, KNOWN["formats"])
    assert (told[0], told[2]) == reading


def test_each_format_is_told_by_one_of_its_own_records(tmp_path: pathlib.Path) -> None:
    for path in sorted(FOLDER.glob("*.jsonl")):
        format = read(path.name).format
        for record in recorded(path.name) if path.name[:2] != "11" else []:
            alone = written(tmp_path / "t.jsonl", record).format
            assert alone in (format, None), (path.name, record)


# Codex


def meta(id: str, **more: object) -> Record:
    return {"type": "session_meta", "payload": {"id": id, **more}}


def event(kind: str, **more: object) -> Record:
    return {"timestamp": "2026-01-01T10:00:00.000Z", "type": "event_msg", "payload": {"type": kind, **more}}


def token_count(used: int, total: int, window: int = 100_000) -> Record:
    last = {"input_tokens": used, "cached_input_tokens": 0, "output_tokens": 1, "total_tokens": used + 1}
    info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}, "model_context_window": window}
    return event("token_count", info=info)


def usage_record(thread: str, used: int, response: str) -> Record:
    usage = {"input_tokens": used, "output_tokens": 1}
    return {"type": "token_usage_record", "payload": {"thread_id": thread, "response_id": response, "usage": usage}}


def test_a_running_total_is_a_bill_and_a_count_that_is_told_twice_is_one(tmp_path: pathlib.Path) -> None:
    counts = [token_count(10_000, 10_001), token_count(10_000, 10_001), token_count(12_000, 22_002)]
    tally = written(tmp_path / "t.jsonl", meta("a"), event("task_started"), *counts)
    assert (tally.main.used, tally.main.window, tally.spent()) == (12_000, 100_000, 22_002)


def test_of_a_request_that_is_told_in_two_ways_one_counts(tmp_path: pathlib.Path) -> None:
    records = [meta("a"), usage_record("a", 500, "r1"), token_count(500, 501), usage_record("a", 700, "r2")]
    tally = written(tmp_path / "t.jsonl", *records)
    assert (tally.main.used, tally.spent()) == (700, 1202)


def test_what_a_fork_replays_of_its_parent_is_the_parents(tmp_path: pathlib.Path) -> None:
    replay = [meta("fork", forked_from_id="a"), meta("a"), event("task_started"), usage_record("a", 90_000, "r1")]
    replay.append(token_count(90_000, 90_001))
    tally = written(tmp_path / "t.jsonl", *replay, event("task_started"))
    assert (tally.main.session, tally.main.used, tally.spent(), tally.main.turns) == ("fork", None, 0, 1)
    tally = written(tmp_path / "t.jsonl", *replay, event("task_started"), usage_record("fork", 5000, "r2"))
    assert (tally.main.used, tally.spent()) == (5000, 5001)


def test_a_rollout_of_a_subagent_is_its_own(tmp_path: pathlib.Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "root"}}}
    records = [meta("child", session_id="root", source=source), usage_record("child", 900, "r1")]
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]}
    tally = written(tmp_path / "t.jsonl", *records, {"type": "response_item", "payload": message})
    assert tally.subagent()
    assert (tally.chain().used, tally.chain().session, tally.main.used) == (900, "root", None)


def test_an_image_in_a_rollout_is_no_text(tmp_path: pathlib.Path) -> None:
    content = [{"type": "input_image", "image_url": "data:image/png;base64," + "A" * 100_000}]
    message = {"type": "message", "role": "user", "content": content}
    tally = written(tmp_path / "t.jsonl", meta("a"), {"type": "response_item", "payload": message})
    assert (tally.main.images, sum(tally.main.sizes.values())) == (1, 0)


# Gemini CLI

HEADER = {"sessionId": "s", "projectHash": "p", "kind": "main"}


def said(id: str, kind: str = "gemini", **more: object) -> Record:
    return {"id": id, "timestamp": "2026-01-01T10:00:00Z", "type": kind, "content": "", **more}


def test_a_message_that_is_written_again_counts_once(tmp_path: pathlib.Path) -> None:
    tokens = {"input": 100, "cached": 40, "total": 110}
    call = {"id": "c", "args": {"a": 1}, "result": [{"functionResponse": {"id": "c", "response": {"output": "xyz"}}}]}
    records = [
        HEADER,
        said("m", content="hello", tokens=tokens),
        said("m", content="hello", tokens=tokens, toolCalls=[call]),
        said("u", "user", content=call["result"]),
        said("m", content="hello!", tokens=tokens, toolCalls=[call]),
    ]
    tally = written(tmp_path / "t.jsonl", *records)
    assert tally.main.sizes == {"text": 6, "thinking": 0, "tool_call": 7, "tool_result": 3}
    assert (tally.spent(), tally.main.messages, tally.main.turns) == (70, 2, 0)


def test_a_resumed_history_is_no_compression_and_a_replaced_one_is(tmp_path: pathlib.Path) -> None:
    history = {"$set": {"messages": [said("u", "user", content="summary")]}}
    opened: list[Record] = [HEADER, history, said("m", tokens={"input": 900, "total": 900})]
    assert written(tmp_path / "t.jsonl", *opened).main.compactions == 0
    assert written(tmp_path / "t.jsonl", *opened, HEADER, history, history).main.compactions == 0
    tally = written(tmp_path / "t.jsonl", *opened, history)
    assert (tally.main.compactions, tally.main.used, tally.main.sizes["text"]) == (1, None, 7)


def test_a_log_of_a_subagent_is_its_own(tmp_path: pathlib.Path) -> None:
    tally = written(tmp_path / "t.jsonl", {**HEADER, "kind": "subagent"}, said("m", tokens={"input": 5, "total": 5}))
    assert tally.subagent()
    assert tally.chain().used == 5


@pytest.mark.parametrize("name", ["06_gemini_session.json", "opencode_autocompact.json"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_reads_the_same_however_it_is_laid_out(
    name: str, indent: int | None, tmp_path: pathlib.Path
) -> None:
    whole = read(name)
    path = tmp_path / "t.json"
    for end in ("", "\n"):
        path.write_text(json.dumps(json.loads((FOLDER / name).read_text()), indent=indent) + end)
        tally = transcripts.read(str(path), KNOWN)
        assert {**tally.state(), "size": 0} == {**whole.state(), "size": 0}


def test_a_document_that_is_not_complete_is_unknown_and_not_its_bytes(policy: Policy, tmp_path: pathlib.Path) -> None:
    data = (FOLDER / "06_gemini_session.json").read_bytes().rstrip()
    path = tmp_path / "t.json"
    for cut in range(1, 201):
        path.write_bytes(data[:-cut])
        tally = transcripts.read(str(path), KNOWN)
        assert ladder.reading(tally, tally.main, policy.program, KNOWN["formats"]) == (
            None,
            "unknown",
            "a document that is not complete",
        )


# OpenCode


def test_the_usage_of_a_summary_is_that_of_what_it_replaces(tmp_path: pathlib.Path) -> None:
    document = json.loads((FOLDER / "opencode_autocompact.json").read_text())
    document["messages"] = document["messages"][:4]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document, indent=2))
    tally = transcripts.read(str(path), KNOWN)
    assert (tally.main.used, tally.main.compactions) == (None, 1)
    assert tally.main.sizes["text"] == len(document["messages"][3]["parts"][1]["text"])
    document["messages"][3]["info"]["error"] = {"name": "ProviderError"}
    path.write_text(json.dumps(document, indent=2))
    assert transcripts.read(str(path), KNOWN).main.compactions == 0


def test_a_child_session_is_a_subagents(tmp_path: pathlib.Path) -> None:
    document = json.loads((FOLDER / "opencode_autocompact.json").read_text())
    document["info"]["parentID"] = "ses_parent"
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    tally = transcripts.read(str(path), KNOWN)
    assert tally.subagent()
    assert tally.chain().used == 1240


# GitHub Copilot CLI


def test_the_records_of_subagents_never_count_for_the_parent(tmp_path: pathlib.Path) -> None:
    records = recorded("copilot_autocompact.jsonl")
    child = [{**record, "agentId": "a1"} for record in records if record["type"] == "session.usage_record"]
    child[-1]["data"] = {"usage": {"inputTokens": 77_000, "outputTokens": 1, "apiCallId": "x"}}
    tally = written(tmp_path / "t.jsonl", *records, *child)
    assert (tally.main.used, tally.side.used) == (1200, 77_000)


def test_a_compaction_that_was_not_applied_is_none(tmp_path: pathlib.Path) -> None:
    records = recorded("copilot_autocompact.jsonl")
    for record in records:
        if record["type"] == "session.compaction_complete":
            record["data"]["success"] = False
    assert written(tmp_path / "t.jsonl", *records).main.compactions == 0


# pi


def entry(id: str, parent: str | None, role: str = "user", text: str = "", used: int = 0) -> Record:
    message: Record = {"role": role, "content": [{"type": "text", "text": text}]}
    if used:
        message |= {"usage": {"input": used, "output": 1}, "model": "m"}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T10:00:00Z", "message": message}


PI = {"type": "session", "version": 3, "id": "s", "cwd": "/x"}
TREE = [
    PI,
    entry("a", None, text="first"),
    entry("b", "a", "assistant", "answer", 100),
    entry("c", "b", text="a long way"),
    entry("d", "c", "assistant", "longer", 200),
    {"type": "compaction", "id": "e", "parentId": "d", "summary": "sum", "firstKeptEntryId": "c"},
]
BACK = [entry("f", "b", text="another way"), entry("g", "f", "assistant", "short", 120)]


def test_what_stands_on_another_branch_is_not_in_the_window(tmp_path: pathlib.Path) -> None:
    tally = written(tmp_path / "t.jsonl", *TREE)
    assert (tally.main.used, tally.main.compactions) == (None, 1)
    tally = written(tmp_path / "t.jsonl", *TREE, *BACK)
    assert (tally.main.used, tally.main.compactions, tally.main.turns) == (120, 0, 2)
    assert tally.main.sizes["text"] == len("first" + "answer" + "another way" + "short")
    assert tally.spent() == 101 + 201 + 121  # it was consumed all the same
    tally = written(tmp_path / "t.jsonl", *TREE, *BACK[:1])
    assert (tally.main.used, tally.main.compactions) == (100, 0)
    again = [entry("h", "e", text="back")]
    tally = written(tmp_path / "t.jsonl", *TREE, *BACK, *again)
    assert (tally.main.used, tally.main.compactions, tally.main.sizes["text"]) == (None, 1, 4)


def test_a_branch_in_the_last_line_without_its_end_counts_too(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in [*TREE, *BACK[:1]]))
    tally = transcripts.read(str(path), KNOWN)
    assert (tally.main.used, tally.main.sizes["text"]) == (100, len("first" + "answer" + "another way"))
    path.write_text("\n".join(json.dumps(record) for record in [*TREE, *BACK]))
    assert transcripts.read(str(path), KNOWN).main.used == 120
