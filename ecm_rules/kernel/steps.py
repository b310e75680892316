"""Carrying out what a verdict demands, once, on entering the state that demands it. ECM §"Operations"; RULINGS ECM 8.

Part of the runtime ring. The steps themselves are `kernel.work`'s.
"""

from ecm_rules.engine.program import kind
from ecm_rules.kernel import audit, entering, files, ledger, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from ecm_rules.kernel.work import Handlers, Playbook, Record, Work

EVENT = "operation"
NOT_ENABLED = "the project has not opted in"


def run(
    verdict: "Mapping[str, Any]",
    playbook: "Playbook",
    handlers: "Handlers",
    job: "Work",
    *,
    host: "Collection[str] | None" = None,
    ceiling: "float | None" = None,
) -> "dict[str, Any]":
    """Carry out the operation of a verdict where its state has just been entered, and log what came of it. Never
    raises.

    verdict: as `engine.program.decide` gives it; of anything else nothing is carried out, and that is logged as
    failed. playbook: `kernel.playbook.of`. host: the steps that the host can
    carry out, None where it can all; the others degrade. ceiling: tokens, for the ledger.

    Returns {"operation", "rule", "ran", "outcome", "why", "steps", "actions", "made", "complaints"}: `outcome` is None
    where nothing was to be carried out, and `why` says why; `steps` are {"step", "surface", "outcome", "why"};
    `actions` are what the host is to do, in order: {"step", "kind", "text", "after", "made"}, kind `host`, `notice`
    (say `text`) or `kernel` (call `work.follow` with this step once the host has done the step `after`).
    """
    fault = fault_of(verdict, playbook)
    if fault is not None:
        return refuse(verdict, playbook, job, f"no verdict: {fault}")
    told = _told(verdict["operation"], verdict["rule"], job)
    entry = None
    try:
        if not playbook["enabled"]:
            told["why"] = NOT_ENABLED
            return told
        entry = entering.begin(job.project, job.paths, job.session, job.agent)
        entry.decide(playbook, verdict)
        if entry.entered:
            told["steps"], told["actions"] = work.perform(verdict["steps"], playbook, handlers, job, host)
            told.update(ran=True, outcome=work.outcome(told["steps"]), made=job.made, why=None)
        elif entry.lasts:
            told["why"] = "the state was entered before"
            repeated = [name for name in verdict["steps"] if playbook["steps"].get(name, {}).get("repeats")]
            told["actions"] = _handed(repeated, playbook, host, entry.made)
        entry.close(told["outcome"], _lossy(told["actions"], playbook), job.made)
    except entering.Busy:
        told["why"] = "another process is carrying out an operation of this session"
    except Exception as error:
        _unkept(told, verdict, playbook, host, error)
    finally:
        _close(entry)
    if told["outcome"] is not None:
        _log(told, verdict["signals"].get(playbook["zone"]), job, ceiling)
    return told


def notices(told: "Mapping[str, Any]") -> "list[str]":
    """What of the actions that `run` returned is to be said."""
    return [action["text"] for action in told["actions"] if action["kind"] == work.NOTICE and action["text"]]


def refuse(verdict: "Any", playbook: "Playbook", job: "Work", why: str) -> "dict[str, Any]":
    """What `run` returns where nothing can be carried out, logged as failed. verdict: anything. Never raises."""
    named = verdict if verdict.__class__ is dict else {}
    operation, rule = (named[key] if named.get(key).__class__ is str else None for key in ("operation", "rule"))
    told = _told(operation, rule, job)
    if playbook["enabled"]:
        told.update(outcome=work.FAILED, why=why)
        _log(told, None, job, None)
    else:
        told["why"] = NOT_ENABLED
    return told


def fault_of(verdict: "Any", playbook: "Playbook") -> "str | None":
    """What a value lacks for a verdict, None where it is one."""
    if verdict.__class__ is not dict:
        return f"found {kind(verdict)}, expected an object"
    operation, rule = verdict.get("operation"), verdict.get("rule")
    steps, signals = verdict.get("steps"), verdict.get("signals")
    boundary = signals.get(playbook["boundary"]) if signals.__class__ is dict else None
    if operation.__class__ is not str or operation not in playbook["operations"]:
        told = f"`{operation[:100]}`" if operation.__class__ is str else kind(operation)
        return f"operation: found {told}, expected one of {', '.join(playbook['operations'])}"
    if rule is not None and rule.__class__ is not str:
        return f"rule: found {kind(rule)}, expected a string or null"
    if steps.__class__ not in (list, tuple) or any(step.__class__ is not str for step in steps):
        return "steps: expected a list of strings"
    if signals.__class__ is not dict or (boundary is not None and boundary.__class__ is not int):
        return "signals: expected an object of typed values"
    return None


def _told(operation: "str | None", rule: "str | None", job: "Work") -> "dict[str, Any]":
    return {
        "operation": operation,
        "rule": rule,
        "ran": False,
        "outcome": None,
        "why": "nothing to do",
        "steps": [],
        "actions": [],
        "made": {},
        "complaints": job.complaints,
    }


def _unkept(
    told: "dict[str, Any]",
    verdict: "Mapping[str, Any]",
    playbook: "Playbook",
    host: "Collection[str] | None",
    error: Exception,
) -> None:
    """What can be said where nobody can remember it: that nothing was done, and the notices, which do nothing. Each is
    said anew every time.
    """
    why = work.reason(error)
    told["complaints"].append(f"state: {why}")
    if not told["ran"] and verdict["steps"]:
        told.update(outcome=work.FAILED, why=f"what was entered cannot be kept: {why}")
        known = [(name, step) for name in verdict["steps"] if (step := playbook["steps"].get(name))]
        waiting = {later for _, step in known for later in step["followed_by"]}
        notices = [name for name, s in known if s["surface"] == work.HOST and not s["lossy"] and name not in waiting]
        told["actions"] = _handed(notices, playbook, host, {})


def _handed(
    names: "list[str]", playbook: "Playbook", host: "Collection[str] | None", made: "Mapping[str, Any]"
) -> "list[Record]":
    told = (work.handed(name, playbook["steps"][name], host, None, made)[1] for name in names)
    return [action for action in told if action]


def _lossy(actions: "list[Record]", playbook: "Playbook") -> bool:
    """Whether the host is told to do what must not be done twice."""
    return any(action["kind"] == work.HOST and playbook["steps"][action["step"]]["lossy"] for action in actions)


def _close(entry: "entering.Entry | None") -> None:
    try:
        if entry is not None:
            entry.close()
    except OSError:
        pass


def _log(told: "dict[str, Any]", zone: "Any", job: "Work", ceiling: "float | None") -> None:
    """A line in the policy log, and where something was written down, one in the ledger."""
    try:
        event = {
            "event": EVENT,
            "evaluated_at": job.now,
            "session_id": files.short(job.session) if job.session else None,
            "agent_id": files.short(job.agent) if job.agent else None,
            "rule": told["rule"],
            "operation": told["operation"],
            "zone": zone,
            "outcome": told["outcome"],
            "why": told["why"],
            "steps": told["steps"],
            "made": told["made"],
        }
        audit.event(job.project, job.paths, event)
    except Exception as error:
        job.complaints.append(f"not logged: {work.reason(error)}")
    if told["ran"]:
        record(job, told["operation"], ceiling)


def record(job: "Work", operation: str, ceiling: "float | None") -> None:
    """Append the line of an operation to the budget ledger; what hinders it is a complaint of the work's."""
    try:
        ledger.operation(
            job.project,
            job.paths,
            job.session,
            operation,
            ceiling=ceiling,
            gated_in=job.made.get("gated_in") is True,
            committed=job.made.get("commit_ok") is True,
            now=job.now,
            agent=job.agent,
        )
    except Exception as error:
        job.complaints.append(f"budget ledger: {work.reason(error)}")
