"""Operations for whoever embeds them: a verdict in, what was done and what the host is to do out. ECM §"Operations"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ecm_rules.engine.policy import Policy, load_policy
from ecm_rules.engine.verdict import Verdict
from ecm_rules.kernel import playbook, steps
from ecm_rules.kernel.handlers import HANDLERS
from ecm_rules.kernel.stores import Store
from ecm_rules.kernel.work import Work

if TYPE_CHECKING:
    from ecm_rules.kernel.work import Handler


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
    can carry out; None: all. Returns what `steps.run` returns, and never raises otherwise.
    """
    policy = policy or load_policy(project=project)
    table = policy.table
    job = Work(project, table.audit, table.limits, session=session, agent=agent, facts=facts, store=store)
    data = verdict.to_dict() if isinstance(verdict, Verdict) else verdict
    known = {**HANDLERS, **(handlers or {})}
    return steps.run(data, playbook.of(table), known, job, host=host, ceiling=table.budget_tokens)
