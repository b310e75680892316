"""Operations step by step: what is done, degraded, handed out or failed, and that nothing else is ever claimed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules import Policy, kernel, load_policy
from ecm_rules.kernel import ledger, playbook, steps, work
from ecm_rules.kernel.handlers import HANDLERS
from ecm_rules.kernel.stores import Directory, Result
from tests.kernel.state import NOW, STATE, lines

METERS: dict[str, dict[str, Any]] = {
    "continue": {"zone": "green"},
    "externalize": {"zone": "amber"},
    "prune_tool_results": {"zone": "amber", "tool_result_share_est": 0.5},
    "compact": {"zone": "red"},
    "handoff_fresh": {"zone": "critical"},
    "wrap_up": {"zone": "green", "budget": {"ceiling_tokens": 5, "spent_tokens_est": 5}},
}


def carry_out(project: pathlib.Path, operation: str, role: str = "orchestrator", **more: Any) -> dict[str, Any]:
    policy = load_policy(project=str(project))
    verdict = policy.decide(METERS[operation], role)
    return kernel.run(verdict, str(project), policy=policy, session="s1", **more)


def by_step(told: dict[str, Any]) -> dict[str, str]:
    return {record["step"]: record["outcome"] for record in told["steps"]}


def memory(project: pathlib.Path) -> Directory:
    return Directory(str(project / "memory"))


class Broken:
    """A memory that refuses everything."""

    slow = False

    def __getattr__(self, name: str) -> Any:
        def refuse(*given: Any) -> Result:
            return Result(False, reason="TIER_VIOLATION")

        return refuse


@pytest.mark.parametrize(("operation", "outcome"), [
    ("externalize", "done"), ("prune_tool_results", "host"), ("compact", "host"), ("handoff_fresh", "done"), ("wrap_up", "host"),
])  # fmt: skip
def test_with_a_memory_every_step_is_done_or_handed_out(operation: str, outcome: str, project: pathlib.Path) -> None:
    told = carry_out(project, operation, store=memory(project))
    assert (told["operation"], told["outcome"], told["complaints"]) == (operation, outcome, [])
    assert set(by_step(told).values()) <= {"done", "host"}
    assert [record["step"] for record in told["steps"]] == list(load_policy().decide(METERS[operation]).steps)
    assert [a["step"] for a in told["actions"]] == [s for s, o in by_step(told).items() if o == "host"]


def test_without_one_the_file_floor_takes_its_place(project: pathlib.Path) -> None:
    told = carry_out(project, "externalize", facts={"anchors": ["a.py:1"], "contains_tool_origin": True})
    assert told["outcome"] == "degraded"
    assert {r["why"] for r in told["steps"]} == {"file_floor: crystalium absent", "no envelope"}
    floor = json.loads((project / told["made"]["file_floor_path"]).read_bytes())
    assert (floor["anchors"], floor["contains_tool_origin"], floor["session_id"]) == (["a.py:1"], True, "s1")
    assert list(floor)[-1] == "file_floor_reason"
    assert told["complaints"] == ["there is no memory: what is to be kept goes to files"]
    assert carry_out(project, "compact")["complaints"] == []  # said once


def test_what_is_carried_out_is_logged_and_in_the_ledger(project: pathlib.Path) -> None:
    told = carry_out(project, "compact", store=memory(project))
    (event,) = lines(project, "policy-log.jsonl")
    assert (event["event"], event["session_id"], event["rule"], event["zone"]) == ("operation", "s1", "P3", "red")
    assert (event["outcome"], event["steps"]) == ("host", told["steps"])
    (spent,) = lines(project, "budget-ledger.jsonl")
    assert [spent[k] for k in ("operation", "crystalium_gated_in", "commit_ok")] == ["compact", True, True]
    again = carry_out(project, "compact", store=memory(project))
    assert (again["ran"], again["outcome"], again["steps"], again["actions"]) == (False, None, [], [])
    assert len(lines(project, "policy-log.jsonl")) == len(lines(project, "budget-ledger.jsonl")) == 1


def test_nothing_is_done_in_a_green_zone_or_without_opting_in(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert carry_out(project, "continue")["why"] == "nothing to do"
    assert [name for name in os.listdir(project / STATE) if name.endswith("l")] == []
    for text in ("", "context: {enabled: false}\n"):
        (project / "eidolons.yaml").write_text(text)
        told = carry_out(project, "compact")
        assert (told["ran"], told["why"], told["actions"]) == (False, "the project has not opted in", [])


def test_a_lossy_step_is_refused_where_nothing_was_written_down(project: pathlib.Path) -> None:
    def full(job: work.Work) -> None:
        raise OSError(28, "No space left on device")

    for operation in ("prune_tool_results", "compact"):
        told = carry_out(project, operation, handlers={"file_floor": full})
        assert told["made"]["commit_ok"] is False
        assert told["outcome"] == "failed"
        assert set(by_step(told).values()) == {"failed", "done"}  # no envelope had to be kept
        assert [s for s, o in by_step(told).items() if o == "done"] == ["ingest_envelope_if_present"]
        assert told["actions"] == []
        assert told["steps"][3]["why"] == "refused: what it would lose is written down nowhere"
        assert "No space left on device" in told["steps"][1]["why"]


def test_either_the_memory_or_the_floor_suffices(project: pathlib.Path) -> None:
    told = carry_out(project, "compact", store=Broken())
    assert by_step(told)["commit_identifier_manifest"] == "degraded"
    assert [a["step"] for a in told["actions"]] == ["host_compact", "pin_reinject", "pin_verify_repair"]
    assert (told["made"]["gated_in"], told["made"]["commit_ok"]) == (True, False)


def test_what_follows_a_compaction_waits_for_it(project: pathlib.Path) -> None:
    told = carry_out(project, "compact", store=memory(project))
    kinds = {a["step"]: (a["kind"], a["after"]) for a in told["actions"]}
    assert kinds == {
        "host_compact": ("host", None),
        "pin_reinject": ("host", "host_compact"),
        "pin_verify_repair": ("kernel", "host_compact"),
    }
    policy = load_policy(project=str(project))
    job = work.Work(str(project), policy.table.audit, policy.table.limits, session="s1")
    record = work.follow("pin_verify_repair", playbook.of(policy.table), HANDLERS, job)
    assert (record["outcome"], record["why"]) == ("failed", "nobody said what the window holds")
    job.facts["injected"] = "nothing"
    record = work.follow("pin_verify_repair", playbook.of(policy.table), HANDLERS, job)
    assert (record["outcome"], record["why"].split(":")[0]) == ("host", "to be injected again")
    job.facts["injected"] += "\n" + job.made["pin_repair"]
    record = work.follow("pin_verify_repair", playbook.of(policy.table), HANDLERS, job)
    assert (record["outcome"], job.made["pin_repair"]) == ("done", "")


def test_a_host_that_cannot_is_told_by_a_notice(project: pathlib.Path) -> None:
    told = carry_out(project, "compact", store=memory(project), host=["pin_reinject"])
    assert by_step(told) == {
        "plan_checkpoint": "done", "commit_identifier_manifest": "done", "ingest_envelope_if_present": "done",
        "host_compact": "degraded", "pin_reinject": "host", "pin_verify_repair": "host",
    }  # fmt: skip
    assert told["outcome"] == "host"
    assert (told["actions"][0]["kind"], told["actions"][0]["text"]) == (
        "notice", "The window is nearly full; compact it now. What a compaction would lose is written down."
    )  # fmt: skip


def test_past_the_ceiling_the_first_prompt_gets_the_brief_and_later_ones_the_notice(project: pathlib.Path) -> None:
    first = carry_out(project, "wrap_up")
    later = [carry_out(project, "wrap_up") for _ in range(3)]
    assert (first["ran"], [a["step"] for a in first["actions"]]) == (True, ["emit_wrap_up_notice"])
    assert {told["ran"] for told in later} == {False}
    assert [told["actions"] for told in later] == [first["actions"]] * 3
    assert first["actions"][0]["made"]["brief_path"] == first["made"]["brief_path"]
    assert len(list((project / STATE).glob("handoff-*.md"))) == 1


def test_a_subagent_returns_what_there_is(project: pathlib.Path) -> None:
    told = carry_out(project, "handoff_fresh", "subagent", agent="a1")
    assert (told["operation"], [a["step"] for a in told["actions"]]) == ("finish_and_return", ["emit_return_notice"])
    assert not list((project / STATE).glob("handoff*"))


def test_a_step_without_a_handler_failed(project: pathlib.Path, policy: Policy) -> None:
    job = work.Work(str(project), {}, {}, now=NOW)
    records, actions = work.perform(["plan_checkpoint", "ecl_envelope", "nonsense"], playbook.of(policy.table), {}, job)
    assert [(r["outcome"], r["why"]) for r in records] == [
        ("failed", "no handler"), ("failed", "no handler"), ("failed", "unknown step")
    ]  # fmt: skip
    assert (actions, work.outcome(records)) == ([], "failed")


def test_a_memory_that_is_slow_is_served_behind_the_floor(project: pathlib.Path) -> None:
    order: list[str] = []

    @attrs.frozen
    class Slow:
        slow: bool = True

        def __getattr__(self, name: str) -> Any:
            def asked(*given: Any) -> Result:
                order.append(f"{name} {len(list((project / STATE).glob('externalized-*')))}")
                return Result(True, "id")

            return asked

    told = carry_out(project, "externalize", store=Slow())
    assert order == ["plan_checkpoint 1", "commit 1"]
    assert (told["outcome"], told["made"]["commit_ok"]) == ("done", True)
    assert (
        json.loads((project / told["made"]["file_floor_path"]).read_bytes())["file_floor_reason"] == "crystalium slow"
    )


def test_before_a_compaction_of_the_hosts_own(policy: Policy) -> None:
    book = playbook.of(policy.table)
    first = ["plan_checkpoint", "commit_identifier_manifest", "ingest_envelope_if_present"]
    assert [work.bracket(book, count) for count in (0, 1, 2, 3)] == [
        first, first, *[[*first, "compose_handoff_brief", "ecl_envelope"]] * 2
    ]  # fmt: skip


def test_a_subagent_is_told_to_return_even_where_nothing_can_be_remembered(project: pathlib.Path) -> None:
    (project / ".eidolons").write_text("a file")
    for host, kind in ((None, "host"), (["host_compact"], "notice")):
        for _ in range(2):  # nobody knows that it was told
            told = carry_out(project, "handoff_fresh", "subagent", agent="a1", host=host)
            assert (told["operation"], told["ran"], told["outcome"]) == ("finish_and_return", False, "failed")
            (action,) = told["actions"]
            assert (action["step"], action["kind"]) == ("emit_return_notice", kind)
            assert action["text"].startswith("The window of this subagent is nearly full.")


def test_where_nothing_can_be_remembered_nothing_is_done_but_told(project: pathlib.Path) -> None:
    (project / ".eidolons").write_text("a file")
    silent = ("externalize", "prune_tool_results", "compact", "handoff_fresh")
    for operation, said in (*((name, []) for name in silent), ("wrap_up", ["emit_wrap_up_notice"])):
        told = carry_out(project, operation, store=memory(project))
        assert (told["ran"], told["outcome"], [a["step"] for a in told["actions"]]) == (False, "failed", said)
        assert told["why"] == "what was entered cannot be kept: Not a directory"
    assert not (project / "memory").exists()


VERDICT: dict[str, Any] = {"operation": "compact", "rule": "P3", "steps": ["host_compact"], "signals": {"zone": "red"}}
NONSENSE: dict[str, tuple[Any, str]] = {
    "None": (None, "found null, expected an object"),
    "a number": (5, "found a number, expected an object"),
    "a text": ("compact", "found a string, expected an object"),
    "a list": ([VERDICT], "found an array, expected an object"),
    "an object": (object(), "found no JSON, expected an object"),
    "nothing": ({}, "operation: found null, expected one of continue, "),
    "an unknown operation": ({**VERDICT, "operation": "explode"}, "operation: found `explode`, expected one of "),
    "an operation in a list": ({**VERDICT, "operation": ["compact"]}, "operation: found an array, "),
    "a rule that is a number": ({**VERDICT, "rule": 3}, "rule: found a number, expected a string or null"),
    "no steps": ({k: v for k, v in VERDICT.items() if k != "steps"}, "steps: expected a list of strings"),
    "steps of numbers": ({**VERDICT, "steps": [1]}, "steps: expected a list of strings"),
    "signals that are a list": ({**VERDICT, "signals": []}, "signals: expected an object of typed values"),
    "a count that is a text": (
        {**VERDICT, "signals": {"compaction_count": "2"}}, "signals: expected an object of typed values",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "why"), NONSENSE.values(), ids=NONSENSE.keys())
def test_what_is_no_verdict_is_a_failure_that_is_logged(verdict: Any, why: str, project: pathlib.Path) -> None:
    told = kernel.run(verdict, str(project), session="s1")
    assert (told["ran"], told["outcome"], told["steps"], told["actions"]) == (False, "failed", [], [])
    assert str(told["why"]).startswith(f"no verdict: {why}")
    (event,) = lines(project, "policy-log.jsonl")
    assert [event[key] for key in ("event", "session_id", "outcome", "why")] == [
        "operation",
        "s1",
        "failed",
        told["why"],
    ]
    assert os.listdir(project / STATE) == ["policy-log.jsonl"]


def test_of_a_project_that_did_not_opt_in_nonsense_is_not_even_logged(tmp_path: pathlib.Path) -> None:
    anything: Any = None
    told = kernel.run(anything, str(tmp_path))
    assert (told["outcome"], told["why"]) == (None, "the project has not opted in")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "given", [{"session": 5}, {"agent": ["a"]}, {"facts": 5}, {"handlers": [1]}, {"host": 5}, {"host": "host_compact"}]
)
def test_an_argument_of_another_type_is_one_too(given: dict[str, Any], project: pathlib.Path) -> None:
    told = kernel.run(VERDICT, str(project), **given)
    assert (told["operation"], told["outcome"], told["actions"]) == ("compact", "failed", [])
    assert str(told["why"]).startswith(f"{next(iter(given))}: found a value of the type ")
    assert lines(project, "policy-log.jsonl")[0]["why"] == told["why"]


class Fails(Exception):
    pass


class Hostile(dict[str, Any]):
    """A mapping that is none."""

    def keys(self) -> Any:
        raise Fails("no keys")

    __iter__ = keys


def test_a_mapping_that_fails_is_a_failure(project: pathlib.Path) -> None:
    assert kernel.run(VERDICT, str(project), facts=Hostile(a=1))["outcome"] == "failed"
    assert kernel.run(Hostile(VERDICT), str(project))["outcome"] == "failed"


OUTCOMES = st.sampled_from(["done", "pending", "raises", "not done", "os", "exit"])


@given(operation=st.sampled_from(sorted(set(METERS) - {"continue"})), data=st.data())
def test_an_operation_is_never_done_when_a_step_was_not(operation: str, data: st.DataObject, policy: Policy) -> None:
    book = playbook.of(policy.table)
    names = book["operations"][operation]
    fates = {name: data.draw(OUTCOMES) for name in [*names, "file_floor"]}
    saved = data.draw(st.booleans())

    def handler(name: str) -> Any:
        def handle(job: work.Work) -> dict[str, Any] | None:
            job.saved = job.saved or (saved and fates[name] == "done")
            if fates[name] == "raises":
                raise Fails("odd\nreason")
            if fates[name] == "not done":
                raise work.NotDone("refused")
            if fates[name] == "os":
                raise OSError(5, "Input/output error")
            if fates[name] == "exit":
                raise RecursionError
            return {"pending": True} if fates[name] == "pending" else None

        return handle

    left_out = data.draw(st.sets(st.sampled_from(names)))
    handlers = {name: handler(name) for name in fates if name not in left_out}
    job = work.Work("/nowhere", {}, {}, now=NOW)
    records, actions = work.perform(names, book, handlers, job)
    assert [r["step"] for r in records] == names
    assert {r["outcome"] for r in records} <= {"done", "degraded", "host", "failed"}
    assert (work.outcome(records) == "done") == all(r["outcome"] == "done" for r in records)
    for record in records:
        assert (
            record["outcome"] == "done"
            or record["why"]
            or record["surface"] == "host"
            or fates[record["step"]] == "pending"
        )
        assert "\n" not in (record["why"] or "")
        if record["outcome"] == "done":
            assert fates[record["step"]] == "done"
    if not job.saved:
        assert not any(book["steps"][action["step"]]["lossy"] for action in actions)
    json.dumps([records, actions])


def test_what_nobody_expects_raises_nothing(project: pathlib.Path, policy: Policy) -> None:
    def broken(job: work.Work) -> Any:
        return 7

    told = carry_out(project, "externalize", handlers={"plan_checkpoint": broken, "file_floor": broken})
    assert told["outcome"] == "failed"
    (project / STATE / "policy-log.jsonl").unlink()
    (project / STATE / "policy-log.jsonl").mkdir()
    (project / ledger.FILE).unlink()
    (project / ledger.FILE).mkdir()
    told = carry_out(project, "handoff_fresh")
    assert told["outcome"] == "degraded"
    assert [c.split(":")[0] for c in told["complaints"][-2:]] == ["not logged", "budget ledger"]


AT_ONCE = """
from ecm_rules import kernel, load_policy
policy = load_policy()
told = kernel.run(policy.decide({"zone": "critical"}), policy=policy, session="s1")
print(told["ran"], told["outcome"])
"""


def test_of_many_processes_at_once_one_carries_it_out(project: pathlib.Path) -> None:
    command = [sys.executable, "-c", AT_ONCE]
    running = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = sorted(process.communicate()[0] for process in running)
    assert said == ["False None\n"] * 7 + ["True degraded\n"]
    assert len(list((project / STATE).glob("handoff-*.md"))) == 1
    assert [line["event"] for line in lines(project, "policy-log.jsonl")] == ["operation"]


def test_the_facade_is_lazy() -> None:
    assert kernel.run.__module__ == "ecm_rules.kernel.operations"
    with pytest.raises(AttributeError):
        _ = kernel.nonsense  # type: ignore[attr-defined]
    assert steps.EVENT == "operation"
