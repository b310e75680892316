"""A verdict as the verbs print it and the policy log keeps it. Part of the runtime ring."""

import json
import os

from ecm_rules.engine.zones import utilization
from ecm_rules.kernel import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Where they stand for a policy that does not say.
METER = ".eidolons/.context/meter.json"
LOG = ".eidolons/.context/policy-log.jsonl"


def meter_of(paths: "Mapping[str, str]", subagent: "str | None") -> str:
    """Where the meter stands, relative to the project: the session's, or the own one of a subagent by its id."""
    path = paths.get("meter", METER)
    if subagent is None:
        return path
    stem, extension = os.path.splitext(path)
    return f"{stem}-{files.session_name(subagent)}{extension}"


def answer(program: "dict[str, Any]", verdict: "dict[str, Any]", meter: "Any") -> "dict[str, Any]":
    """The JSON of `eidolons context policy` for a verdict of `engine.program.decide` on a meter, and what we add to it:
    the utilization, so that a line can be judged by other thresholds.
    """
    signals = verdict["signals"]
    told = {key: verdict[key] for key in ("rule", "operation", "raw_operation")}
    told.update((f["path"][0], signals[f["name"]]) for f in program["fields"] if len(f.get("path", ())) == 1)
    told.update((s["name"], bool(signals[s["name"]])) for s in program["signals"] if s["type"] == "boolean")
    told["subagent"] = verdict["role"] == "subagent"
    told["utilization"] = utilization(meter, program)
    told.update((key, verdict[key]) for key in ("steps", "signals", "missing", "degraded", "digest"))
    return told


def no_table(subagent: bool) -> "dict[str, Any]":
    """The answer where no table can be read, as the nexus gives it: nothing escalates."""
    return {
        "rule": "P7",
        "operation": "continue",
        "raw_operation": "continue",
        "zone": "unknown",
        "compaction_count": 0,
        "tool_result_share_est": 0,
        "budget_ceiling_set": False,
        "budget_spent_gte_ceiling": False,
        "subagent": subagent,
        "utilization": None,
        "steps": [],
        "signals": {},
        "missing": [],
        "degraded": [{"path": "table", "reason": "the table did not load"}],
        "digest": None,
    }


def record(project: str, paths: "Mapping[str, str]", told: "dict[str, Any]", session: "str | None", now: str) -> None:
    """Append a line to the policy log: the answer, with who asked and when. Raises OSError."""
    log = paths.get("policy_log", LOG)
    entry = {**told, "session_id": session, "evaluated_at": now}
    files.append(files.state_path(project, log), json.dumps(entry, separators=(",", ":")).encode("ascii"))
