"""The steps of an operation, each through its handler. ECM §"Operations"; RULINGS ECM 9.

Part of the runtime ring. A *handler* is a function of a `Work`: it does a step of surface `kernel` or `memory` and
returns what it made, by name, or None; it raises where the step was not done. Two names are not kept: `why`, a word on
what was done, and `pending`, that it is for the host to finish. Steps of surface `host` are returned as *actions* for
whoever called. The outcome of a step is

- `done`;
- `degraded`, with what took its place and why;
- `host`: handed out, and nobody knows yet;
- `failed`, with why.

An operation is `done` where every step is. Else it is `failed` where one is, else `host`, else `degraded`.
"""

from ecm_rules.kernel import meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    Playbook = Mapping[str, Any]
    Handler = Callable[["Work"], "Mapping[str, Any] | None"]
    Handlers = Mapping[str, Handler]
    Record = dict[str, Any]

DONE = "done"
DEGRADED = "degraded"
HOST = "host"
FAILED = "failed"
NOTICE = "notice"
_EXTERNALIZE = "externalize"
_HANDOFF = "handoff_fresh"


class NotDone(Exception):
    """A step was not done; the text says why."""


class Work:
    """What handlers are given, and what each leaves for those behind it.

    project: its folder. paths: the policy's `audit`. limits: its limits. session, agent: who; agent is None but for a
    subagent. now: ISO 8601, UTC, to the second. facts: what is to be kept, by the names of `artifacts.brief.Brief` and
    `artifacts.manifest.Manifest`. store: the memory, as `kernel.stores` has it, or None. `made`: what the steps made,
    by name. `saved`: whether what a lossy step would lose is written down: a handler that did it says so. `step`,
    `why`: the step that is carried out, and for what takes its place, why it was not.
    """

    __slots__ = (
        "agent", "complaints", "facts", "limits", "made", "now", "paths",
        "project", "saved", "session", "step", "store", "why",
    )  # fmt: skip

    def __init__(
        self,
        project: str,
        paths: "Mapping[str, str]",
        limits: "Mapping[str, float]",
        *,
        session: "str | None" = None,
        agent: "str | None" = None,
        now: "str | None" = None,
        facts: "Mapping[str, Any] | None" = None,
        store: "Any" = None,
    ) -> None:
        self.project = project
        self.paths = paths
        self.limits = limits
        self.session = session
        self.agent = agent
        self.now = now or meter.now()
        self.facts = dict(facts or {})
        self.store = store
        self.made: "dict[str, Any]" = {}
        self.saved = False
        self.step = ""
        self.why = ""
        self.complaints: "list[str]" = []


def perform(
    names: "Collection[str]",
    playbook: "Playbook",
    handlers: "Handlers",
    work: Work,
    host: "Collection[str] | None" = None,
) -> "tuple[list[Record], list[Record]]":
    """(the outcome of each of these steps, the actions for the host), whatever was entered before. Never raises.

    A lossy step is refused unless what it loses was written down before it. What must follow a step of the host waits
    for it.
    """
    records: "list[Record]" = []
    actions: "list[Record]" = []
    waits: "dict[str, str]" = {}
    for name in names:
        step = playbook["steps"].get(name)
        if step is None:
            records.append(_record(name, None, FAILED, "unknown step"))
            continue
        before = waits.get(name)
        refused = before is not None and _outcome_of(before, records) == FAILED
        if refused:
            records.append(_record(name, step, FAILED, f"{before} was refused"))
        elif step["lossy"] and not work.saved:
            records.append(_record(name, step, FAILED, "refused: what it would lose is written down nowhere"))
        elif step["surface"] == HOST or before is not None:
            record, action = handed(name, step, host, before, work.made)
            records.append(record)
            actions += [action] if action else []
        else:
            records.append(follow(name, playbook, handlers, work))
            if records[-1]["outcome"] == DEGRADED and step["degrades_to"] == NOTICE:
                actions.append(_action(name, NOTICE, step, None, work.made))
        waits.update({later: name for later in step["followed_by"] if step["surface"] == HOST})
    return records, actions


def follow(name: str, playbook: "Playbook", handlers: "Handlers", work: Work) -> "Record":
    """Carry out one step of surface `kernel` or `memory`; {"step", "surface", "outcome", "why"}. Never raises."""
    step = playbook["steps"].get(name)
    if step is None:
        return _record(name, None, FAILED, "unknown step")
    handler = handlers.get(name)
    if handler is None:
        return _record(name, step, FAILED, "no handler")
    work.step, work.why = name, ""
    try:
        made = dict(handler(work) or {})
        told, pending = made.pop("why", None), made.pop("pending", False)
        work.made.update(made)
        return _record(name, step, HOST if pending else DONE, told)
    except Exception as error:
        why = reason(error)
    instead = step["degrades_to"]
    if not instead:
        return _record(name, step, FAILED, why)
    if instead in (NOTICE, "skip"):
        return _record(name, step, DEGRADED, f"{instead}: {why}")
    floor = handlers.get(instead)
    if floor is None:
        return _record(name, step, FAILED, f"{why}; {instead}: no handler")
    work.why = why
    try:
        work.made.update(floor(work) or {})
    except Exception as error:
        return _record(name, step, FAILED, f"{why}; {instead}: {reason(error)}")
    return _record(name, step, DEGRADED, f"{instead}: {why}")


def outcome(records: "list[Record]") -> str:
    """What came of an operation by what came of its steps."""
    found = {record["outcome"] for record in records}
    return next((worst for worst in (FAILED, HOST, DEGRADED) if worst in found), DONE)


def bracket(playbook: "Playbook", count: int) -> "list[str]":
    """The steps before a compaction that the host starts by itself, which is never blocked: what it loses is written
    down, and past the depth cap a brief, too. RULINGS ECM 12. count: boundaries so far.
    """
    first: "list[str]" = list(playbook["operations"].get(_EXTERNALIZE, ()))
    if count < playbook["limits"].get("compaction_depth_cap", 0):
        return first
    brief = [
        name
        for name in playbook["operations"].get("handoff_fresh", ())
        if playbook["steps"][name]["surface"] == "kernel"
    ]
    return first + [name for name in brief if name not in first]


def handed(
    name: str,
    step: "Mapping[str, Any]",
    host: "Collection[str] | None",
    before: "str | None",
    made: "Mapping[str, Any]",
) -> "tuple[Record, Record | None]":
    """(the record of a step that somebody else is to do; the action, None where nobody can)."""
    if step["surface"] != HOST:
        return _record(name, step, HOST, f"after {before}"), _action(name, step["surface"], step, before, made)
    if host is None or name in host:
        return _record(name, step, HOST, f"after {before}" if before else None), _action(name, HOST, step, before, made)
    instead = step["degrades_to"]
    why = "the host cannot"
    if instead == NOTICE:
        return _record(name, step, DEGRADED, f"{NOTICE}: {why}"), _action(name, NOTICE, step, before, made)
    return _record(name, step, FAILED, why), None


def _action(
    name: str, kind: str, step: "Mapping[str, Any]", before: "str | None", made: "Mapping[str, Any]"
) -> "Record":
    return {"step": name, "kind": kind, "text": step["notice"], "after": before, "made": dict(made)}


def _outcome_of(name: str, records: "list[Record]") -> "str | None":
    return next((record["outcome"] for record in reversed(records) if record["step"] == name), None)


def _record(name: str, step: "Mapping[str, Any] | None", outcome: str, why: "str | None") -> "Record":
    return {"step": name, "surface": step and step["surface"], "outcome": outcome, "why": why}


def reason(error: Exception) -> str:
    told = getattr(error, "strerror", None) or str(error)
    if isinstance(error, (NotDone, OSError)) and told:
        return " ".join(told.split())
    return " ".join(f"{error.__class__.__name__}: {told}".split())
