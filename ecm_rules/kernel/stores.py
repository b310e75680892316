"""Where what is kept is kept: the memory that steps are served by, as an interface, and as a folder of JSON files.

ECM §"Externalize-before-compact — the crystalium contract". A store answers with data and never raises.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from ecm_rules.kernel import files

Document = Mapping[str, Any]

# The reason that the nexus gives for its file floor.
ABSENT = "crystalium absent"


@attrs.frozen
class Result:
    """What a store answered. id: of what was kept, None where nothing was. reason: why not, or what is to be known."""

    ok: bool
    id: str | None = None
    reason: str = ""


class Store(Protocol):
    """A memory. Every call is idempotent, comes back in time (`limits.memory_timeout_ms`), and never raises."""

    @property
    def slow(self) -> bool:
        """Whether an answer may be long in coming: then the file floor is written first. RULINGS ECM 9."""

    def plan_checkpoint(self, plan_id: str, step: str, state: Document) -> Result:
        """Keep the state of a plan, once per plan and step."""

    def commit(self, manifest: Document) -> Result:
        """Keep an identifier manifest, as `artifacts.manifest.document` gives it, as an episode."""

    def ingest(self, envelope: Document, payload: bytes) -> Result:
        """Keep the artifact of an envelope. Refused where the payload is not the one that the envelope was made for."""

    def session_end(self, session: str, reason: str) -> Result:
        """Say that a session is over."""


@attrs.frozen
class Directory:
    """A store that is a folder: a file for each document, named by a hash of what it says.

    path: the folder, made where it is missing. Nothing is ever overwritten or taken out.
    """

    path: str
    slow: bool = False

    def plan_checkpoint(self, plan_id: str, step: str, state: Document) -> Result:
        return self._keep("plan", {"plan_id": plan_id, "step": step}, {"state": dict(state)})

    def commit(self, manifest: Document) -> Result:
        # The same at another time is the same.
        same = {key: value for key, value in manifest.items() if key != "created_at"}
        return self._keep("episodic", same, {"created_at": manifest.get("created_at")})

    def ingest(self, envelope: Document, payload: bytes) -> Result:
        artifact = envelope.get("artifact")
        claimed = artifact.get("sha256") if isinstance(artifact, Mapping) else None
        if claimed != hashlib.sha256(payload).hexdigest():
            return Result(False, reason="INGEST_PAYLOAD_HASH_MISMATCH")
        return self._keep("envelope", {"envelope": dict(envelope)}, {"payload": payload.decode("utf-8", "replace")})

    def session_end(self, session: str, reason: str) -> Result:
        return self._keep("session", {"session": session}, {"reason": reason})

    def _keep(self, kind: str, same: dict[str, Any], more: dict[str, Any]) -> Result:
        """Keep a document. It is the one that is there already where `same` is."""
        try:
            identity = json.dumps(same, sort_keys=True).encode("ascii")
            name = f"{kind}-{hashlib.sha256(identity).hexdigest()[:32]}"
            os.makedirs(self.path, 0o700, exist_ok=True)
            data = json.dumps({"kind": kind, **same, **more}, indent=2).encode("ascii")
            path = os.path.join(self.path, f"{name}.json")
            try:
                files.create([path], data)
            except FileExistsError:
                kept = json.loads(files.read(path, len(data) + files.MAX_BYTES))
                if any(kept.get(key) != value for key, value in {"kind": kind, **same}.items()):
                    return Result(False, reason=f"{name}.json holds something else")
                return Result(True, name, "kept before")
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            return Result(False, reason=getattr(error, "strerror", None) or str(error))
        return Result(True, name)
