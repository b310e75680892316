"""The main job: a recorded session in, its meter and the policy's verdict out."""

from __future__ import annotations

from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import Policy, RowTrace
from ecm_rules.engine.verdict import Verdict
from ecm_rules.kernel import ladder, transcripts
from ecm_rules.kernel.payloads import GIVEN, Told
from ecm_rules.tables.hosts import load_hosts


class NoSession(Exception):
    """The file holds nothing that a client writes of a session."""


@attrs.frozen
class Session:
    """What a transcript says and what the policy decides about it. `meter` is the snapshot that was decided on."""

    format: str
    model: str | None
    records: int
    bad_lines: int
    meter: dict[str, Any]
    verdict: Verdict
    trace: tuple[RowTrace, ...]


def measure(policy: Policy, path: str, *, window: int | None = None, budget: int | None = None) -> Session:
    """Read a transcript and decide. Raises OSError where it cannot be read, NoSession where it is of no known format.

    window: tokens that the window holds; else the project's, the client's word, the model's by the table of models.
    budget: the ceiling in tokens; else the project's. A transcript of a subagent's own is decided in that role.
    """
    known = load_hosts()
    tally = transcripts.read(path, known)
    if tally.format is None and (tally.size or tally.unread):
        raise NoSession(f"found {tally.unread or 'no record of a session'}")
    chain, told = tally.chain(), Told()
    told.session = chain.session
    told.window, told.window_basis = window, GIVEN if window else None
    snapshot = ladder.measure(
        {**known, "program": policy.program, "window_tokens": policy.table.window_tokens},
        told,
        tally,
        ceiling=budget or policy.table.budget_tokens,
    )
    role = program.role_of(tally.subagent())
    verdict, trace = policy.decide(snapshot, role), policy.trace(snapshot, role)
    return Session(tally.format or "unknown", chain.model, tally.records, tally.bad_lines, snapshot, verdict, trace)
