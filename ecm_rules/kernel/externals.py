"""Steps that write down what a lossy step would lose: to the memory, else to a file. RULINGS ECM 9.

ECM §"Externalize-before-compact — the crystalium contract".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import attrs

from ecm_rules.artifacts import envelope as envelopes
from ecm_rules.artifacts import manifest as manifests
from ecm_rules.artifacts.manifest import Manifest
from ecm_rules.kernel import audit, files
from ecm_rules.kernel.envelopes import load_pair
from ecm_rules.kernel.stores import ABSENT, Result, Store
from ecm_rules.kernel.work import NotDone, Work

SLOW = "crystalium slow"
_MOST = 1000
_WARNED = "no-memory.warned"
_FIELDS = [field.name for field in attrs.fields(Manifest) if field.name not in ("created_at", "session_id")]


def plan_checkpoint(work: Work) -> dict[str, Any]:
    """Keep the state of the plan: what is open, and what comes next."""
    store, facts = store_of(work), work.facts
    told = manifests.document(_manifest(work))
    state = {
        "scope": {"project": project_of(work)},
        "task_state": facts.get("task_state", ""),
        "next_steps": list(facts.get("next_steps", ())),
        **{key: told[key] for key in ("open_vars", "decisions", "contains_tool_origin")},
    }
    # Once per plan and step, so that a step is named by what it holds.
    named = manifests.compose(attrs.evolve(_manifest(work), created_at=""))
    step = f"checkpoint-{hashlib.sha256(named).hexdigest()[:16]}"
    _settled(store.plan_checkpoint(work.session or project_of(work), step, state))
    return {}


def commit(work: Work) -> dict[str, Any]:
    """Keep the identifier manifest."""
    work.made["commit_ok"] = False
    result = _settled(store_of(work).commit(manifests.document(_manifest(work))))
    work.saved = True
    return {"commit_ok": True, "commit_id": result.id}


def ingest_envelope(work: Work) -> dict[str, Any]:
    """Keep the envelope that was named, where one was."""
    path = work.facts.get("envelope")
    if not path:
        return {"why": "no envelope"}
    try:
        envelope, payload = load_pair(path)
    except (OSError, ValueError) as error:
        raise NotDone(f"envelope: {getattr(error, 'strerror', None) or error}") from None
    return ingest(work, envelope, payload)


def ingest(work: Work, envelope: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """Keep an artifact. Raises NotDone."""
    store = store_of(work)
    work.made.update(ingest_attempted=True, ingest_ok=False)
    return {"ingest_ok": True, "ingest_id": _settled(store.ingest(envelope, payload)).id}


def session_end(work: Work) -> None:
    """Say that the session is over."""
    _settled(store_of(work).session_end(work.session or "", work.step))


def file_floor(work: Work) -> dict[str, Any]:
    """Write the manifest and the reason to a file, once; for the brief of a handoff, its own file is that."""
    if work.why == ABSENT:
        _warn_once(work)
    if work.step == "crystalium_ingest_session_handoff":
        if not work.made.get("brief_path"):
            raise NotDone("there is no brief")
        return {}
    return _floor(work, work.why)


def store_of(work: Work) -> Store:
    """The memory. Raises NotDone where there is none; where it is slow, the file floor is written before."""
    store: Store | None = work.store
    work.made["gated_in"] = store is not None
    if store is None:
        raise NotDone(ABSENT)
    if store.slow:
        try:
            work.made.update(_floor(work, SLOW))
        except OSError as error:
            work.complaints.append(f"no file floor: {error.strerror or error}")
    return store


def project_of(work: Work) -> str:
    """The project that a memory files things under."""
    return str(work.facts.get("scope_project") or os.path.basename(os.path.abspath(work.project)))


def create(work: Work, name: str, data: bytes, beside: str = "") -> tuple[str, str]:
    """Write a new file beside the meter: (what makes its name unique, its path relative to the project).

    name: with `{}` for the second, and where that is taken, for which one in it. beside: the name, made in the same
    way, of a file that must not be there either. Raises OSError.
    """
    folder = _folder(work)
    second = work.now.replace("-", "").replace(":", "")
    stamps: dict[str, str] = {}

    def free() -> Iterator[str]:
        for nth in range(_MOST):
            stamp = envelopes.stamp(second, nth)
            path = files.state_path(work.project, f"{folder}/{name.format(stamp)}")
            stamps[path] = stamp
            if not beside or not os.path.lexists(os.path.join(os.path.dirname(path), beside.format(stamp))):
                yield path

    stamp = stamps[files.create(free(), data)]
    return stamp, f"{folder}/{name.format(stamp)}"


def _floor(work: Work, reason: str) -> dict[str, Any]:
    kept: str | None = work.made.get("file_floor_path")
    if kept is None:
        _, kept = create(work, "externalized-{}.json", manifests.compose(_manifest(work), reason))
    work.saved = True
    return {"file_floor_path": kept}


def _warn_once(work: Work) -> None:
    """Complain that there is no memory, once in a project. RULINGS ECM 15."""
    try:
        files.create([files.state_path(work.project, f"{_folder(work)}/{_WARNED}")], b"")
    except OSError:
        return
    work.complaints.append("there is no memory: what is to be kept goes to files")


def _folder(work: Work) -> str:
    return os.path.dirname(work.paths.get("meter", audit.METER))


def _manifest(work: Work) -> Manifest:
    given = {key: work.facts[key] for key in _FIELDS if key in work.facts}
    if work.facts.get("collected"):
        # A brief has places of their own for these.
        request, steps = work.facts.get("task_state"), work.facts.get("next_steps", ())
        told = [f"task: {request}"] if request else []
        given["open_vars"] = [*given.get("open_vars", ()), *told, *(f"to do: {step}" for step in steps)]
    return Manifest(work.now, session_id=work.session or "", **given)


def _settled(result: Result) -> Result:
    if not result.ok:
        raise NotDone(result.reason or "refused")
    return result
