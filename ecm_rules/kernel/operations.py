"""Operations for whoever embeds them: a verdict in, what was done and what the host is to do out. ECM §"Operations"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ecm_rules.engine.policy import Policy, load_policy
from ecm_rules.engine.verdict import Verdict
from ecm_rules.kernel import playbook, steps
from ecm_rules.kernel.handlers import HANDLERS
from ecm_rules.kernel.stores import Store
from ecm_rules.kernel.work import NotDone, Work, reason

if TYPE_CHECKING:
    from ecm_rules.kernel.work import Handler

_EXPECTED: dict[str, tuple[type, str]] = {
    "session": (str, "a string"),
    "agent": (str, "a string"),
    "facts": (Mapping, "a mapping"),
    "handlers": (Mapping, "a mapping"),
    "host": (Collection, "a collection of steps"),
}


def run(
    verdict: Verdict | Mapping[str, Any],
    project: str = ".",
    *,
    policy: Policy | None = None,
    session: str | None = None,
    agent: str | None = None,
    facts: Mapping[str, Any] | None = None,
    store: Store | None = None,
    handlers: Mapping[str, Handler] | None = None,
    host: Collection[str] | None = None,
) -> dict[str, Any]:
    """Carry out the operation of a verdict of the project's policy, where its state has just been entered.

    policy: the one that decided; else the project's is loaded, which alone may raise (EcmError). facts: what is to be
    kept, as `work.Work` takes them. handlers: more of them, by step, or others than ours. host: the steps that the host
    can carry out; None: all. Returns what `steps.run` returns, and never raises otherwise: what is no verdict, or an
    argument of another type, is a failure that says why, and is logged.
    """
    policy = policy or load_policy(project=project)
    table = policy.table
    job, book = Work(project, table.audit, table.limits, store=store), playbook.of(table)
    data: Any = verdict.to_dict() if isinstance(verdict, Verdict) else verdict
    try:
        data = dict(data) if isinstance(data, Mapping) else data
        _check({"session": session, "agent": agent, "facts": facts, "handlers": handlers, "host": host})
        job.session, job.agent, job.facts = session, agent, dict(facts or {})
        known = {**HANDLERS, **(handlers or {})}
        return steps.run(data, book, known, job, host=host, ceiling=table.budget_tokens)
    except Exception as error:
        return steps.refuse(data, book, job, reason(error))


def _check(given: Mapping[str, object]) -> None:
    """Raises NotDone for an argument of another type than it is to be."""
    for name, value in given.items():
        kind, words = _EXPECTED[name]
        if value is not None and (not isinstance(value, kind) or (name == "host" and isinstance(value, str))):
            raise NotDone(f"{name}: found a value of the type {type(value).__name__}, expected {words}")
