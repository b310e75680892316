"""`ecm-hook HOST`: a payload on stdin; the meter is refreshed, the verdict is logged. Part of the runtime ring.

It runs on every prompt, so it imports nothing but the ring while its cached programs are current. It prints nothing,
never blocks the host, and exits 0 whatever happens; what went wrong is one line on stderr.
"""

import json
import os
import sys

from ecm_rules.engine import program as engine
from ecm_rules.hosts import cache
from ecm_rules.kernel import audit, files, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PAYLOAD = 16 << 20
MAX_TRANSCRIPT = 4 << 20


def main() -> int:
    try:
        complaint = run(sys.argv[1:], sys.stdin.buffer.read(MAX_PAYLOAD + 1), os.getcwd())
    except BaseException as error:
        complaint = f"{error.__class__.__name__}: {error}"
    if complaint:
        try:
            sys.stderr.write("ecm-hook: " + " ".join(str(complaint).split())[:500] + "\n")
        except Exception:  # noqa: S110  stderr is gone, and the host has its answer all the same
            pass
    return 0


def run(arguments: "list[str]", payload: bytes, project: str) -> "str | None":
    """Handle one payload. Returns a complaint, or None."""
    if len(arguments) != 1:
        return "usage: ecm-hook HOST < payload"
    programs = cache.programs(project)
    if programs is None:
        return None
    host = programs["hosts"].get(arguments[0])
    if host is None:
        return f"unknown host {arguments[0]!r}, known: {', '.join(programs['hosts'])}"
    given = meter.parse(payload, MAX_PAYLOAD)
    if isinstance(given, engine.Unreadable):
        return f"payload: {given.reason}"
    program, paths = programs["program"], host["payload"]
    session, agent = _text(given, paths["session"]), _text(given, paths["agent"])
    role = engine.ROLES[1] if agent else engine.ROLES[0]
    own = audit.meter_of(programs["audit"], agent)
    before = meter.load(os.path.join(project, own))
    measured = measure(programs, host, given, session, before if isinstance(before, dict) else {})
    told = audit.answer(program, engine.decide(program, measured, role))
    files.replace(files.place(project, own), json.dumps(measured).encode("ascii"))
    audit.record(project, programs["audit"], told, session, measured["updated_at"])
    return None


def measure(
    programs: "dict[str, Any]",
    host: "dict[str, Any]",
    given: "dict[str, Any]",
    session: "str | None",
    before: "dict[str, Any]",
) -> "dict[str, Any]":
    """The meter after a payload: the client's own reading, else its transcript's, else the one before."""
    program, paths = programs["program"], host["payload"]
    window, percentage = _number(given, paths["window"]), _number(given, paths["used_percentage"])
    budget = before.get("budget")
    kept = {
        "share": before.get("tool_result_share_est"),
        "compactions": before.get("compaction_count", 0),
        "ceiling": programs["budget_tokens"],
        "spent": budget.get("spent_tokens_est") if budget.__class__ is dict else None,
    }
    # Null before the first response and zero after a compaction: then the client does not know either.
    if percentage and window:
        return meter.compose(
            program, session, int(window * percentage / 100), window, "host", "client's reading", **kept
        )
    path = _text(given, paths["transcript"])
    if not path or not os.path.isfile(path) or os.path.getsize(path) > MAX_TRANSCRIPT:
        return meter.compose(program, session, None, window, "unknown", "no reading", **kept)
    from ecm_rules.kernel import transcripts

    tally = transcripts.read(path, host["usage"])
    chain = tally.chain()
    used, source, basis = transcripts.reading(tally, program, host["overhead_tokens"])
    window = window or before.get("window_tokens") or transcripts.window(programs["models"], chain.model)
    kept.update(
        share=chain.share(),
        compactions=chain.compactions,
        spent=tally.spent(program["limits"].get("cache_read_weight", 0)),
    )
    return meter.compose(program, session, used, window, source, basis, **kept)


def _find(given: "Any", path: "list[str]") -> "Any":
    for key in path:
        if given.__class__ is not dict:
            return None
        given = given.get(key)
    return given


def _text(given: "dict[str, Any]", path: "list[str]") -> "str | None":
    value = _find(given, path)
    return value if value.__class__ is str and value else None


def _number(given: "dict[str, Any]", path: "list[str]") -> "float | None":
    value = _find(given, path)
    return value if value.__class__ in (int, float) and 0 < value < 1e15 else None


if __name__ == "__main__":
    sys.exit(main())
