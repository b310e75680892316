"""The main job: a recorded session in, its meter and the policy's verdict out."""

from __future__ import annotations

from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import Policy, RowTrace
from ecm_rules.engine.verdict import Verdict
from ecm_rules.kernel import transcripts
from ecm_rules.tables.hosts import load_hosts

HOST = "claude-code"


class NoSession(Exception):
    """The file holds nothing that a session of this host writes."""


@attrs.frozen
class Session:
    """What a transcript says and what the policy decides about it. `meter` is the snapshot that was decided on."""

    model: str | None
    records: int
    bad_lines: int
    meter: dict[str, Any]
    verdict: Verdict
    trace: tuple[RowTrace, ...]


def measure(policy: Policy, path: str, *, window: int | None = None, budget: int | None = None) -> Session:
    """Read a Claude Code transcript and decide. Raises OSError where it cannot be read, NoSession where it is none.

    window: tokens that the window holds; else the model's, by the table of models. budget: the ceiling in tokens; else
    the project's. A transcript of a subagent's own is decided in that role.
    """
    known = load_hosts()
    host = known["hosts"][HOST]
    tally = transcripts.read(path, host["usage"])
    chain = tally.chain()
    if tally.size and not (chain.session or chain.messages):
        raise NoSession("found no record of a Claude Code session")
    basis = "given" if window else "model"
    window = window or transcripts.window(known["models"], chain.model)
    snapshot = transcripts.measure(
        tally, chain, policy.program, host, window, basis, budget or policy.table.budget_tokens
    )
    role = program.role_of(tally.subagent())
    verdict, trace = policy.decide(snapshot, role), policy.trace(snapshot, role)
    return Session(chain.model, tally.records, tally.bad_lines, snapshot, verdict, trace)
