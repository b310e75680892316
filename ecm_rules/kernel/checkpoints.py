"""The verbs `externalize` and `handoff`: asked for by name, so that nothing has to be entered. ECM §"Kernel verbs"."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.kernel import audit, meter, playbook, steps, sweep, work
from ecm_rules.kernel.handlers import HANDLERS
from ecm_rules.kernel.stores import Store
from ecm_rules.kernel.work import Work
from ecm_rules.tables import load
from ecm_rules.tables.findings import EcmError
from ecm_rules.tables.models import Table

_EXTERNALIZE = "externalize"
_HANDOFF = ("compose_handoff_brief", "ecl_envelope", "crystalium_ingest_session_handoff")
# In the nexus' order, and what stands for what was not made.
_EXTERNALIZED = {
    "gated_in": False,
    "commit_ok": False,
    "file_floor_path": None,
    "ingest_attempted": False,
    "ingest_ok": False,
}
_HANDED = {
    "brief_path": None,
    "envelope_path": None,
    "sha256": None,
    "thread_id": None,
    "tokens_est": None,
    "oversize": False,
    "gated_in": False,
    "ingest_attempted": False,
    "ingest_ok": False,
}


@attrs.frozen
class Answer:
    """What a verb says: its JSON, and what to complain of on stderr. `saved`: all that it is for is written down."""

    told: dict[str, Any]
    complaints: tuple[str, ...]
    saved: bool


def externalize(
    project: str, facts: Mapping[str, Any], *, session: str | None = None, store: Store | None = None
) -> Answer:
    """Write down what a lossy operation would lose: to the memory, else to a file. Fails open, never raises.

    facts: as `work.Work` takes them, and `envelope`, the path of one to be ingested.
    """
    table, complaints = _table(project)
    job, book = _work(project, table, facts, session, store), _playbook(table)
    records, _ = work.perform(book["operations"][_EXTERNALIZE], book, HANDLERS, job)
    steps.record(job, _EXTERNALIZE, _ceiling(project, table))
    if not job.saved:
        complaints.append(f"nothing was saved: {_reason(records)}")
    elif job.facts.get("envelope") and not job.made.get("ingest_ok") and job.store is not None:
        complaints.append(f"the envelope was not ingested: {_reason(records[-1:])}")
    sweep.sweep(project, job.paths, job.limits)
    told = {key: job.made.get(key, missing) for key, missing in _EXTERNALIZED.items()}
    return Answer(told | {"steps": records}, (*complaints, *job.complaints), job.saved)


def handoff(
    project: str, facts: Mapping[str, Any], *, session: str | None = None, store: Store | None = None
) -> Answer:
    """Leave a brief and its envelope for a successor, and have the memory keep it. Fails open, never raises.

    facts: as `work.Work` takes them, and `profile`, one of `handoffs.PROFILES`.
    """
    table, complaints = _table(project)
    job, book = _work(project, table, facts, session, store), _playbook(table)
    records, _ = work.perform(_HANDOFF, book, HANDLERS, job)
    saved = job.made.get("envelope_path") is not None
    if job.made.get("brief_path") is None:
        complaints.append(f"no brief was saved: {_reason(records)}")
    elif not saved:
        complaints.append(f"no envelope was saved: {_reason(records[1:])}")
    elif job.store is not None and not job.made.get("ingest_ok"):
        complaints.append(f"the brief was not ingested: {_reason(records[2:])}")
    sweep.sweep(project, job.paths, job.limits)
    told = {key: job.made.get(key, missing) for key, missing in _HANDED.items()}
    told["contains_tool_origin"] = job.facts.get("contains_tool_origin", False)
    more = {key: job.made.get(key) for key in ("profile", "digest", "trace_path")}
    return Answer(told | more | {"steps": records}, (*complaints, *job.complaints), saved)


def _table(project: str) -> tuple[Table | None, list[str]]:
    """The project's table, the shipped one where that does not load, or None; and why."""
    complaints: list[str] = []
    for folder in (project, None):
        try:
            return load.load_policy(None, folder), complaints
        except EcmError as error:
            complaints.append(str(error))
        except Exception as error:  # fails open, whatever it is
            complaints.append(f"no table: {error.__class__.__name__}: {error}")
    return None, complaints


def _work(
    project: str, table: Table | None, facts: Mapping[str, Any], session: str | None, store: Store | None
) -> Work:
    paths, limits = (table.audit, table.limits) if table is not None else ({}, {})
    return Work(project, paths, limits, session=session or None, facts=facts, store=store)


def _playbook(table: Table | None) -> playbook.Playbook:
    if table is not None:
        return playbook.of(table)
    bare = {"surface": "memory", "lossy": False, "degrades_to": "file_floor", "followed_by": [], "notice": ""}
    names = ["plan_checkpoint", "commit_identifier_manifest", "ingest_envelope_if_present"]
    return {"steps": dict.fromkeys((*names, *_HANDOFF), bare), "operations": {_EXTERNALIZE: names}}


def _ceiling(project: str, table: Table | None) -> float | None:
    """The ceiling in tokens: the project's, else the meter's."""
    if table is None or table.budget_tokens is not None:
        return None if table is None else table.budget_tokens
    try:
        seen = meter.load(os.path.join(project, audit.meter_of(table.audit, None)))
        budget = seen.get("budget") if isinstance(seen, dict) else None
        ceiling = budget.get("ceiling_tokens") if isinstance(budget, dict) else None
    except Exception:  # fails open, whatever it is
        return None
    return ceiling if ceiling.__class__ in (int, float) and 0 < ceiling < float("inf") else None


def _reason(records: list[dict[str, Any]]) -> str:
    """Why the first of these steps was not done."""
    found = [record for record in records if record["outcome"] not in (work.DONE, work.HOST)]
    return str(next((r["why"] for r in found if r["outcome"] == work.FAILED), found[0]["why"] if found else "unknown"))
