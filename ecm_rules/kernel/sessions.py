"""The main job: a recorded session in, its meter and the policy's verdict out."""

from __future__ import annotations

from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import Policy, RowSeen
from ecm_rules.engine.verdict import Verdict
from ecm_rules.kernel import meter, transcripts
from ecm_rules.tables.hosts import load_hosts

HOST = "claude-code"


@attrs.frozen
class Session:
    """What a transcript says and what the policy decides about it. `meter` is the snapshot that was decided on."""

    model: str | None
    records: int
    bad_lines: int
    meter: dict[str, Any]
    verdict: Verdict
    trace: tuple[RowSeen, ...]


def measure(policy: Policy, path: str, *, window: int | None = None, budget: int | None = None) -> Session:
    """Read a Claude Code transcript and decide. Raises OSError where the file cannot be read.

    window: tokens that the window holds; else the model's, by the table of models. budget: the ceiling in tokens; else
    the project's. A transcript of a subagent's own is decided in that role.
    """
    known = load_hosts()
    host = known["hosts"][HOST]
    tally = transcripts.read(path, host["usage"])
    chain = tally.chain()
    used, source, basis = transcripts.reading(tally, policy.program, host["overhead_tokens"])
    share = chain.share()
    snapshot = meter.compose(
        policy.program,
        chain.session,
        used,
        window or transcripts.window(known["models"], chain.model),
        source,
        basis,
        share=None if share is None else round(share, 6),
        compactions=chain.compactions,
        ceiling=budget or policy.table.budget_tokens,
        spent=tally.spent(policy.program["limits"].get("cache_read_weight", 0)),
    )
    role = program.ROLES[1] if tally.subagent() else program.ROLES[0]
    return Session(
        chain.model,
        tally.records,
        tally.bad_lines,
        snapshot,
        policy.decide(snapshot, role),
        policy.trace(snapshot, role),
    )
