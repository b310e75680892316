"""The verb `policy`: meter in, verdict out, one line in the log. ECM §"The decision table"."""

from __future__ import annotations

import os
from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import load_policy
from ecm_rules.kernel import audit, files, meter
from ecm_rules.tables.findings import EcmError

METER = ".eidolons/.context/meter.json"
LOG = ".eidolons/.context/policy-log.jsonl"


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
    role = program.ROLES[1] if subagent else program.ROLES[0]
    log = LOG
    try:
        table = load_policy(policy, project=project)
        log = str(table.table.audit.get("policy_log", LOG))
        own = str(table.table.audit.get("meter", METER))
        seen = (
            meter.parse(snapshot)
            if snapshot is not None
            else meter.load(path or _own_meter(project, own, session, subagent))
        )
        told = audit.answer(table.program, table.decide(seen, role).to_dict())
        complaints = [f"meter degraded: {d['path']}: {d['reason']}" for d in told["degraded"]]
    except EcmError as error:
        told = {**audit.NO_TABLE, "subagent": subagent}
        complaints = [str(error)]
    except Exception as error:  # fails open, whatever it is
        told = {**audit.NO_TABLE, "subagent": subagent}
        complaints = [f"evaluation failed: {error.__class__.__name__}: {error}"]
    try:
        audit.record(project, log, told, session, meter.now())
    except (OSError, ValueError) as error:
        complaints.append(f"not logged: {error}")
    return Answer(told, tuple(complaints))


def _own_meter(project: str, own: str, session: str | None, subagent: bool) -> str:
    path = os.path.join(project, own)
    if not (subagent and session):
        return path
    stem, extension = os.path.splitext(path)
    return f"{stem}-{files.session_name(session)}{extension}"
