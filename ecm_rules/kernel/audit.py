"""A verdict as the verbs print it and the policy log keeps it. Part of the runtime ring."""

import json
import os

from ecm_rules.engine import program as engine
from ecm_rules.engine.zones import utilization
from ecm_rules.kernel import files
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Where they stand for a policy that does not say.
METER = ".eidolons/.context/meter.json"
LOG = ".eidolons/.context/policy-log.jsonl"
# How far back a log is searched for a session's last line.
MAX_BACK = 256 << 20
_CHUNK = 64 << 10
_DIGITS = 20


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
    return _told(program, verdict, utilization(meter, program))


def _told(program: "dict[str, Any]", verdict: "dict[str, Any]", share: "float | None") -> "dict[str, Any]":
    signals = verdict["signals"]
    told = {key: verdict[key] for key in ("rule", "operation", "raw_operation")}
    told.update((f["path"][0], signals[f["name"]]) for f in program["fields"] if len(f.get("path", ())) == 1)
    told.update((s["name"], bool(signals[s["name"]])) for s in program["signals"] if s["type"] == "boolean")
    told["subagent"] = verdict["role"] == "subagent"
    told["role"] = verdict["role"]
    told["utilization"] = share
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
        "role": engine.role_of(subagent),
        "utilization": None,
        "steps": [],
        "signals": {},
        "missing": [],
        "degraded": [{"path": "table", "reason": "the table did not load"}],
        "digest": None,
    }


def record(
    project: str,
    paths: "Mapping[str, str]",
    told: "dict[str, Any]",
    session: "str | None",
    now: str,
    agent: "str | None" = None,
) -> None:
    """Append a line to the policy log: the answer, with who asked and when, and its number among those of its session.
    Raises OSError.

    Numbers begin with 1 and rise by 1, whatever the clock does and however many ask at once. Where the lock cannot be
    had in time (`files.append`) a line may have the number of one before it; no line is lost, and their order holds. A
    session that comes back behind `MAX_BACK` bytes of others begins again.
    """
    log = files.state_path(project, paths.get("policy_log", LOG))
    session = files.short(session) if session else session
    mark = f'"session_id":{json.dumps(session)},"sequence":'.encode("ascii")
    before, searched = _searched(log, mark)

    def line(handle: int, size: int) -> bytes:
        number = max(before, _last(handle, searched, size, mark)) + 1
        return _line(told, session, number, files.short(agent) if agent else None, now)

    files.append(log, line)


def event(project: str, paths: "Mapping[str, str]", told: "dict[str, Any]") -> None:
    """Append a line to the policy log that is no verdict: `event`, its name, and what belongs to it. Raises OSError."""
    files.append(files.state_path(project, paths.get("policy_log", LOG)), event_line(told))


def event_line(told: "dict[str, Any]") -> bytes:
    """The line that `event` appends, without LF."""
    return json.dumps(told, separators=(",", ":")).encode("ascii")


def replay(program: "dict[str, Any] | None", line: bytes) -> bytes:
    """The line of a policy log, decided anew by the program of its digest (None for a line that has none) from what the
    line itself tells. The same bytes, without LF, or the verdict was another. ECM §"The decision table". An event, in
    which nothing was decided, is itself.

    Raises ValueError for what is no line of `record` or `event`, or a verdict of another program.
    """
    try:
        entry = json.loads(line.decode("utf-8"))
        if engine.is_event(entry):
            return line.rstrip()
        if entry["digest"] != (program and program["digest"]):
            raise ValueError("a verdict of another table")
        if program is None:
            told = no_table(entry["subagent"])
        else:
            again = engine.decide_again(program, *(entry[k] for k in ("signals", "missing", "degraded", "role")))
            told = _told(program, again, entry["utilization"])
        return _line(told, *(entry[key] for key in ("session_id", "sequence", "agent_id", "evaluated_at")))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no verdict that could be replayed: {error!r}") from None


def _line(told: "dict[str, Any]", session: "str | None", number: int, agent: "str | None", now: str) -> bytes:
    # `record` searches for the session with the number behind it: they stay together.
    who = {"session_id": session, "sequence": number, "agent_id": agent, "evaluated_at": now}
    return json.dumps({**told, **who}, separators=(",", ":")).encode("ascii")


def _searched(log: str, mark: bytes) -> "tuple[int, int]":
    """(the last number of a session, the size of the log that was searched for it): before the lock, for it may take
    its time.
    """
    try:
        with places.open_regular(log, follow=False) as stream:
            size = stream.seek(0, 2)
            return _last(stream.fileno(), max(0, size - MAX_BACK), size, mark), size
    except FileNotFoundError:
        return 0, 0


def _last(handle: int, start: int, end: int, mark: bytes) -> int:
    """The last number behind `mark` between two offsets, 0 where there is none. A number that was cut off is none."""
    upper, chunk = end, _CHUNK
    while upper > start:
        lower = max(start, upper - chunk)
        data = os.pread(handle, min(end, upper + len(mark) + _DIGITS) - lower, lower)
        at = data.rfind(mark)
        while at >= 0:
            begin = at + len(mark)
            digits, comma, _ = data[begin : begin + _DIGITS].partition(b",")
            if comma and digits.isdigit():
                return int(digits)
            at = data.rfind(mark, 0, at)
        upper, chunk = lower, min(chunk * 2, _CHUNK << 6)
    return 0
