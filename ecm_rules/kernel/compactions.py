"""What compactions came to: whether one freed anything, and whether one went past the cap. RULINGS ECM 12.

Part of the runtime ring. A compaction that freed nothing still counts, so that the depth cap ends the loop (row P4).
"""

import json
import os

from ecm_rules.kernel import audit, entering, files
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Meter = Mapping[str, Any]

INEFFECTIVE = "compaction_ineffective"
CAP_EXCEEDED = "cap_exceeded"
_COUNT = "compaction_count"
_TOLD = ("used_tokens_est", "utilization")
_KEPT = (_COUNT, "session_id", "estimate_source", *_TOLD)


def freed(before: "Meter", after: "Meter") -> "bool | None":
    """Whether the window holds less than before, by two meters; None where that is not known.

    Tokens are compared, else utilizations, and only readings of one source: an estimate may well be off by more than a
    compaction frees.
    """
    if before.get("estimate_source") != after.get("estimate_source"):
        return None
    for key in ("used_tokens_est", "utilization"):
        old, new = before.get(key), after.get(key)
        if old.__class__ in (int, float) and new.__class__ in (int, float):
            return bool(new < old)
    return None


def observe(
    project: str,
    paths: "Mapping[str, str]",
    cap: float,
    before: "Meter",
    after: "Meter",
    agent: "str | None" = None,
) -> "list[dict[str, Any]]":
    """The events of the boundaries between two meters of a session, or of a subagent of it, appended to the policy log:
    `compaction_ineffective` and `cap_exceeded`. Call it with each new meter and the one before. Raises OSError.

    Just after a boundary nobody may know what the window holds: then the meter before it is kept until somebody does.
    cap: `limits.compaction_depth_cap`.
    """
    session, now = after.get("session_id"), after.get("updated_at")
    count = _count(after)
    if not count or before.get("session_id") != session:
        return []
    path = files.state_path(project, _file_of(paths, session, agent))
    earlier = kept = _read(path, session)
    events: "list[dict[str, Any]]" = []
    if count > _count(before):
        if count > cap:
            events.append(_event(CAP_EXCEEDED, now, session, agent, count, cap=cap))
        if kept is None or any(before.get(key) is not None for key in _TOLD):
            kept = {key: before.get(key) for key in _KEPT}
    judged = None if kept is None else freed(kept, after)
    if kept is not None and judged is False:
        told = {f"{key}_before": kept.get(key) for key in _TOLD} | {key: after.get(key) for key in _TOLD}
        events.append(_event(INEFFECTIVE, now, session, agent, count, **told))
    for event in events:
        audit.event(project, paths, event)
    if judged is None and kept is not earlier:
        files.replace(path, json.dumps(kept).encode("ascii"))
    elif judged is not None and earlier is not None:
        os.unlink(path)
    return events


def follow(
    project: str,
    paths: "Mapping[str, str]",
    cap: float,
    before: "Meter",
    after: "Meter",
    agent: "str | None" = None,
) -> "str | None":
    """`observe`, for who measures; a complaint where an event could not be written."""
    try:
        observe(project, paths, cap, before, after, agent)
    except OSError as error:
        return f"compactions: {error.strerror or error}"
    return None


def _event(name: str, now: "Any", session: "Any", agent: "str | None", count: int, **more: "Any") -> "dict[str, Any]":
    who = files.short(session) if session.__class__ is str else None
    told = {"event": name, "evaluated_at": now, "session_id": who, "agent_id": files.short(agent) if agent else None}
    return {**told, _COUNT: count, **more}


def _count(meter: "Meter") -> int:
    count = meter.get(_COUNT)
    return count if count.__class__ is int else 0


def _file_of(paths: "Mapping[str, str]", session: "Any", agent: "str | None") -> str:
    entered = entering.file_of(paths, session if session.__class__ is str else None, agent)
    folder, _, name = entered.rpartition("/")
    return f"{folder}/compacted{name.removeprefix('entered')}"


def _read(path: str, session: "Any") -> "dict[str, Any] | None":
    """The meter that was kept, None where there is none that can be used."""
    try:
        with places.open_regular(path, follow=False) as stream:
            found = json.loads(stream.read(files.MAX_BYTES))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return None
    return found if found.__class__ is dict and found.get("session_id") == session else None
