"""A session that takes over from the one before: which brief waits, and who has taken it. ECM §"Handoff brief"."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.artifacts import digest as digests
from ecm_rules.artifacts import verify
from ecm_rules.artifacts.brief import BYTES_PER_TOKEN, Brief
from ecm_rules.kernel import audit, envelopes, files, ledger
from ecm_rules.kernel.work import Work
from ecm_rules.tables import places

FILE = "handoff.json"


@attrs.frozen
class Waiting:
    """A brief that waits for a successor. Paths are relative to the project; `digest` is text of a bounded size."""

    digest: str
    brief_path: str
    envelope_path: str
    thread_id: str
    session_id: str | None
    contains_tool_origin: bool


def announce(work: Work, brief: Brief, made: Mapping[str, Any]) -> None:
    """Say where the latest brief stands, with its digest. What hinders it is a complaint of the work's."""
    digest = digests.compose(
        brief,
        thread_id=made["thread_id"],
        path=made["brief_path"],
        limit_tokens=int(work.limits.get("handoff_digest_max_tokens", digests.MAX_TOKENS)),
        bytes_per_token=int(work.limits.get("bytes_per_token", BYTES_PER_TOKEN)),
    )
    work.made["digest"] = digest
    told = {key: made[key] for key in ("brief_path", "envelope_path", "thread_id")}
    told |= {"digest": digest, "session_id": work.session, "contains_tool_origin": brief.contains_tool_origin}
    try:
        path = files.state_path(work.project, _file(work.paths))
        files.replace(path, json.dumps(told).encode("ascii"), durable=True)
    except OSError as error:
        work.complaints.append(f"no successor is told: {error.strerror or error}")


def waiting(project: str, paths: Mapping[str, str]) -> Waiting | None:
    """The latest brief, where its envelope proves it and no session has taken it; None without one. Never raises."""
    try:
        with places.open_regular(files.state_path(project, _file(paths), make=False), follow=False) as stream:
            found = Waiting(**json.loads(stream.read(files.MAX_BYTES)))
        inside = all(places.is_state(path) for path in (found.brief_path, found.envelope_path))
        taken = os.path.lexists(os.path.join(project, _taken(found)))
        sound = inside and not taken and isinstance(found.digest, str)
        report = envelopes.verify_file(os.path.join(project, found.envelope_path)) if sound else None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return found if report is not None and report.verdict == verify.PASS else None


def take_over(project: str, paths: Mapping[str, str], session: str, now: str) -> Waiting | None:
    """The brief that a new session continues from, which no other gets then; its thread goes on in the ledger. None
    where none waits, or it is the session's own. Raises OSError where it cannot be kept that it was taken.
    """
    found = waiting(project, paths)
    if found is None or found.session_id == session:
        return None
    try:
        files.create([files.state_path(project, _taken(found))], files.short(session).encode("utf-8", "replace"))
    except FileExistsError:
        return None
    if found.session_id:
        ledger.succeed(project, paths, session, found.session_id, now)
    return found


def _file(paths: Mapping[str, str]) -> str:
    return f"{os.path.dirname(paths.get('meter', audit.METER))}/{FILE}"


def _taken(found: Waiting) -> str:
    return f"{found.brief_path}.taken"
