"""Steps of a handoff: the brief, the envelope that seals it, and the memory. ECM §"Handoff brief"."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import attrs

from ecm_rules import __version__
from ecm_rules.artifacts import brief as briefs
from ecm_rules.artifacts import envelope as envelopes
from ecm_rules.artifacts import jq
from ecm_rules.artifacts.brief import Brief
from ecm_rules.kernel import audit, externals, files, succession
from ecm_rules.kernel.envelopes import load_pair
from ecm_rules.kernel.work import NotDone, Work
from ecm_rules.tables import places

PROFILES = ("kernel", "ecl")
_FIELDS = [field.name for field in attrs.fields(Brief)]


def compose_brief(work: Work) -> dict[str, Any]:
    """Write the brief, whole, under a name of its own. One that has more tokens than is aimed at is logged."""
    data = briefs.compose(brief_of(work))
    tokens = briefs.tokens(data, int(work.limits.get("bytes_per_token", briefs.BYTES_PER_TOKEN)))
    target = int(work.limits.get("handoff_brief_target_tokens", briefs.TARGET_TOKENS))
    work.made.update(tokens_est=tokens, oversize=tokens > target)
    # An envelope that stands alone keeps its name.
    stamp, relative = externals.create(work, envelopes.brief_name("{}"), data, envelopes.envelope_name("{}"))
    event = briefs.oversize(relative, tokens, work.now, target)
    if event is not None:
        try:
            audit.event(work.project, work.paths, event)
        except OSError as error:
            work.complaints.append(f"not logged: {error.strerror or error}")
    return {"brief_path": relative, "stamp": stamp, "sha256": envelopes.digest(data)}


def compose_envelope(work: Work) -> dict[str, Any]:
    """Seal the brief in an envelope, in the profile that `facts` names, and say where a successor finds the two."""
    relative, brief = work.made.get("brief_path"), brief_of(work)
    if relative is None:
        raise NotDone("there is no brief")
    stamp, payload = work.made["stamp"], briefs.compose(brief)
    thread = envelopes.thread(work.facts.get("thread_id") or "", work.session or "", stamp)
    profile = work.facts.get("profile") or PROFILES[0]
    given: dict[str, Any] = {"stamp": stamp, "now": work.now, "thread_id": thread}
    if profile == PROFILES[0]:
        envelope = envelopes.kernel(brief, payload, **given)
    else:
        message = envelopes.uuid7(time.time_ns() // 1_000_000, os.urandom(10))
        envelope = envelopes.ecl(brief, payload, message_id=message, version=__version__, **given)
    path = f"{os.path.dirname(relative)}/{envelopes.envelope_name(stamp)}"
    files.create([files.state_path(work.project, path)], jq.dumps(envelope))
    told = {"envelope_path": path, "thread_id": thread, "profile": profile}
    if profile != PROFILES[0]:
        told |= _trace(work, envelope)
    succession.announce(work, brief, {**work.made, **told})
    return told


def ingest(work: Work) -> dict[str, Any]:
    """Have the memory keep the brief, as it stands in its file."""
    path = work.made.get("envelope_path")
    if path is None:
        raise NotDone("there is no envelope")
    externals.store_of(work)
    return externals.ingest(work, *load_pair(os.path.join(work.project, path)))


def brief_of(work: Work) -> Brief:
    """The brief of the facts."""
    return Brief(**{key: work.facts[key] for key in _FIELDS if key in work.facts})


def _trace(work: Work, envelope: dict[str, Any]) -> dict[str, Any]:
    """Append the event of sending to the thread's trace. ECL 2.0 §5."""
    relative = f"{places.TRACE}{envelope['thread_id']}.jsonl"
    event = json.dumps(envelopes.trace_event(envelope, "emit", work.now), separators=(",", ":")).encode("ascii")
    try:
        files.append(files.state_path(work.project, relative, below=places.TRACE), event)
    except OSError as error:
        work.complaints.append(f"not traced: {error.strerror or error}")
        return {}
    return {"trace_path": relative}
