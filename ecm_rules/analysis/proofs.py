"""All that can be proven about a table, as findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ecm_rules.analysis import promises, promotions, redundancy, severity, shadows
from ecm_rules.analysis.boxes import Budget, Inconclusive
from ecm_rules.analysis.case import LOOKS, Case
from ecm_rules.engine.policy import Policy
from ecm_rules.tables.findings import ERROR, NOTE, Finding, in_order

_PROOFS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    shadows.gaps,
    shadows.dead_rows,
    promises.repeated_limits,
    promises.broken_invariants,
    promises.successors_of_subagents,
    promises.unreached_operations,
    promotions.widened,
    severity.milder_when_worse,
    redundancy.redundant_tests,
)
_REMARKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (redundancy.redundant_rows, redundancy.order_sensitive_rows)


def check(policy: Policy, looks: int = LOOKS) -> list[Finding]:
    """Every finding about a table that loads, in file order, its notes from loading among them.

    looks: how often the proofs may hold a row against a box; past it the answer is the finding ECM610, never an
    empty list.
    """
    table = policy.table
    findings = [*table.notes, *promises.unsafe_operations(table.vocabulary)]
    try:
        case = Case.of(policy, Budget(looks))
        for proof in _PROOFS:
            findings += proof(case)
    except Inconclusive as reason:
        findings.append(_unfinished(policy, reason, ERROR))
        return in_order(findings, first=table.source.file)
    # Remarks compare rows pair by pair; a large table is not refused for having many.
    case.budget.left = looks
    try:
        for remark in _REMARKS:
            findings += remark(case)
    except Inconclusive as reason:
        findings.append(_unfinished(policy, reason, NOTE))
    return in_order(findings, first=table.source.file)


def _unfinished(policy: Policy, reason: Inconclusive, severity: str) -> Finding:
    table = policy.table
    what = "an analysis" if severity == ERROR else "notes about this table"
    message = f"found {what} too large to finish: {reason.reason}"
    help = "split the table, or let a signal read fewer fields" if severity == ERROR else ""
    return table.source.finding("ECM610", table.span, message, help, severity)
