"""The envelope beside a brief, in two profiles, and the event that a trace keeps of it.

`kernel` is the nexus' own, byte for byte. That one is invalid by the standard that it names, so `ecl` says the same
validly: ECL 2.0 §1 (shape), §5 (trace), §6 (integrity). ECM §"Handoff brief".
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from collections.abc import Mapping
from typing import Any

from ecm_rules.artifacts import jq
from ecm_rules.artifacts.brief import NO_TASK, Brief, head

SHA256 = "sha256"
HMAC_SHA256 = "hmac-sha256"
SUFFIX = ".envelope.json"

_KIND = "ecm/handoff-brief@0.1"
_SCHEMA_VERSION = "0.1"
_TOPIC = "session_handoff"
_SENDER = "eidolons-context-kernel"
_PERFORMATIVE = "INFORM"
_TIER = "standard"
_OBJECTIVE = "Session handoff brief for context-lifecycle succession (ECM P1): "
_OBJECTIVE_LENGTH = 240
# Threads that are no UUIDs get one that is always the same. The number is arbitrary and must never change.
_THREADS = uuid.UUID("6b1f5a0e-52a4-5c0b-9f3e-0d1c7a8e4b29")
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_VERSION = re.compile("[0-9]+[.][0-9]+[.][0-9]+")
_NO_VERSION = "n/a"


def stamp(second: str, nth: int = 0) -> str:
    """What makes a name unique: the second (`20260707T000000Z`) and, where it is not the first in it, which one."""
    return second if nth == 0 else f"{second}-{nth + 1}"


def brief_name(stamp: str) -> str:
    """File name of a brief."""
    return f"handoff-{stamp}.md"


def envelope_name(stamp: str) -> str:
    """File name of its envelope."""
    return f"handoff-{stamp}{SUFFIX}"


def thread(thread_id: str, session_id: str, stamp: str) -> str:
    """The thread that a handoff belongs to: the one that is named, else the session's, else a new one."""
    return thread_id or session_id or f"handoff-{stamp}"


def kernel(
    brief: Brief, payload: bytes, *, stamp: str, now: str, thread_id: str, version: str = _NO_VERSION
) -> dict[str, Any]:
    """The envelope that the nexus' kernel writes, keys in its order; `jq.dumps` gives its bytes.

    payload: the composed brief. stamp: of its name. now: ISO 8601, UTC. version: the sender's.
    """
    return {
        "envelope_version": "1.0",
        "message_id": f"msg-context-handoff-{stamp}",
        "thread_id": thread_id,
        "parent_id": None,
        "from": {"eidolon": _SENDER, "version": version or _NO_VERSION},
        "to": {"eidolon": "session_successor", "version": _NO_VERSION},
        "objective": _OBJECTIVE + head(brief.task_state or NO_TASK),
        "performative": _PERFORMATIVE,
        "artifact": _artifact(_KIND, brief_name(stamp), payload),
        "integrity": _integrity(payload, None),
        "trace": {"ts": now, "host": "claude-code", "model": "n/a", "tier": _TIER},
        "topic_key": _TOPIC,
        "contains_tool_origin": brief.contains_tool_origin,
    }


def ecl(
    brief: Brief,
    payload: bytes,
    *,
    stamp: str,
    now: str,
    thread_id: str,
    message_id: str,
    parent_id: str | None = None,
    version: str = _NO_VERSION,
    host: str = "n/a",
    model: str = "n/a",
    key: bytes | None = None,
) -> dict[str, Any]:
    """The same as a valid ECL 2.0 envelope, whatever the texts hold; what ECL has no field for is under `x_ecm_`.

    message_id: a new one, `uuid7`. parent_id: the message that the thread continues, None at its start. An id that is
    no UUID is given one that depends on nothing but the id; `x_ecm_thread_id` keeps the thread's own. A version that is
    not three numbers is `n/a`. key: integrity is then hmac-sha256. Raises ValueError on an empty key.

    A brief with text from tools is of low trust: receivers ignore `x_` keys, and its origin must not be laundered.
    """
    if key is not None and not key:
        raise ValueError("found an empty key, expected a secret")
    return {
        "envelope_version": "2.0",
        "message_id": as_uuid(message_id),
        "thread_id": as_uuid(thread_id),
        "parent_id": None if parent_id is None else as_uuid(parent_id),
        "from": {"eidolon": _SENDER, "version": version if _VERSION.fullmatch(version) else _NO_VERSION},
        "to": {"eidolon": "session-successor", "version": _NO_VERSION},
        "performative": _PERFORMATIVE,
        "edge_origin": "implicit",
        "objective": _short(_OBJECTIVE + jq.clean(head(brief.task_state or NO_TASK))),
        "artifact": _artifact("ecm-handoff-brief", brief_name(stamp), payload),
        **({"constraints": {"trust_level": "low"}} if brief.contains_tool_origin else {}),
        "integrity": _integrity(payload, key),
        "trace": {"ts": now, "host": host, "model": model, "tier": _TIER},
        "x_ecm_artifact_type": _KIND,
        "x_ecm_thread_id": thread_id,
        "x_ecm_topic_key": _TOPIC,
        "x_ecm_contains_tool_origin": brief.contains_tool_origin,
    }


def trace_event(envelope: Mapping[str, Any], event: str, now: str, failure: str | None = None) -> dict[str, Any]:
    """The event of a trace, ECL 2.0 §5.2: `emit`, `receive`, `verify_pass`, or `verify_fail` with its failure's code.

    It belongs at the end of `.eidolons/.trace/<thread_id>.jsonl`. What the envelope does not tell is `?`.
    """
    told: dict[str, Any] = {
        "ts": now,
        "event": event,
        "message_id": _text(envelope, "message_id"),
        "thread_id": _text(envelope, "thread_id"),
        "from": _agent(envelope.get("from")),
        "to": _agent(envelope.get("to")),
        "performative": _text(envelope, "performative"),
        "integrity_method": _text(envelope.get("integrity"), "method"),
    }
    return told if failure is None else {**told, "verify_failure_code": failure}


def as_uuid(id: str) -> str:
    """The id where it is a UUID, else one that is always the same for it."""
    return id.lower() if _UUID.fullmatch(id) else str(uuid.uuid5(_THREADS, jq.clean(id)))


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """A UUID that sorts by time, RFC 9562 §5.7. milliseconds: since 1970, UTC. entropy: ten random bytes."""
    number = milliseconds % (1 << 48) << 80 | int.from_bytes(entropy[:10], "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62))


def digest(payload: bytes) -> str:
    """SHA-256 of an artifact in hexadecimal."""
    return hashlib.sha256(payload).hexdigest()


def _artifact(kind: str, path: str, payload: bytes) -> dict[str, Any]:
    return {
        "kind": kind,
        "schema_version": _SCHEMA_VERSION,
        "path": path,
        "sha256": digest(payload),
        "size_bytes": len(payload),
    }


def _integrity(payload: bytes, key: bytes | None) -> dict[str, str]:
    if key is None:
        return {"method": SHA256, "value": digest(payload)}
    return {"method": HMAC_SHA256, "value": hmac.new(key, payload, hashlib.sha256).hexdigest()}


def _short(objective: str) -> str:
    """Cut between words, since what a memory finds again are words."""
    if len(objective) <= _OBJECTIVE_LENGTH:
        return objective
    kept = objective[: _OBJECTIVE_LENGTH - 2]
    space = kept.rfind(" ", len(_OBJECTIVE))
    return kept[: space if space > 0 else None] + " …"


def _agent(agent: Any) -> str:
    return f"{_text(agent, 'eidolon')}@{_text(agent, 'version', _NO_VERSION)}"


def _text(mapping: Any, key: str, missing: str = "?") -> str:
    found = mapping.get(key) if isinstance(mapping, Mapping) else None
    return found if isinstance(found, str) else missing
