"""The verb `policy`: meter in, verdict out, one line in the log. ECM §"The decision table"."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import load_policy
from ecm_rules.kernel import audit, ledger, meter
from ecm_rules.tables.findings import EcmError


@attrs.frozen
class Answer:
    """What the verb says: its JSON, and lines for stderr."""

    told: dict[str, Any]
    complaints: tuple[str, ...] = ()


def evaluate(
    project: str,
    *,
    snapshot: bytes | None = None,
    path: str | None = None,
    session: str | None = None,
    subagent: bool = False,
    policy: str | None = None,
) -> Answer:
    """Evaluate the context policy over a meter: its bytes, a path, or the project's own. Fails open, never raises.

    A table that does not load answers P7 `continue`, with the findings among the complaints.
    """
    role = program.role_of(subagent)
    paths: Mapping[str, str] = {}
    try:
        table = load_policy(policy, project=project)
        paths = table.table.audit
        own = os.path.join(project, audit.meter_of(paths, session if subagent else None))
        seen = meter.load(path or own) if snapshot is None else meter.parse(snapshot)
        if snapshot is None and path is None and not subagent:
            seen = ledger.current(ledger.consult(project, paths)[0], seen)
        if session is None and isinstance(seen, dict) and isinstance(seen.get("session_id"), str):
            session = seen["session_id"]
        told = audit.answer(table.program, table.decide(seen, role).to_dict(), seen)
        complaints = [f"meter degraded: {d['path']}: {d['reason']}" for d in told["degraded"]]
    except EcmError as error:
        told = audit.no_table(subagent)
        complaints = [str(error)]
    except Exception as error:  # fails open, whatever it is
        told = audit.no_table(subagent)
        complaints = [f"evaluation failed: {error.__class__.__name__}: {error}"]
    try:
        audit.record(project, paths, told, session, meter.now())
    except (OSError, ValueError) as error:
        complaints.append(f"not logged: {getattr(error, 'strerror', None) or error}")
    return Answer(told, tuple(complaints))
