"""`ecm-hook HOST`: a payload on stdin; the meter is refreshed, the verdict is logged. Part of the runtime ring.

It runs on every prompt, so it imports nothing but the ring while its cached programs are current. It prints nothing,
never blocks the host, and exits 0 whatever happens; what went wrong is one line on stderr.
"""

import json
import os
import sys

from ecm_rules.engine import program as engine
from ecm_rules.hosts import cache
from ecm_rules.kernel import audit, files, ledger, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PAYLOAD = 16 << 20
MAX_TRANSCRIPT = 4 << 20
MAX_SESSION = 200


def main() -> int:
    try:
        complaint = run(sys.argv[1:], os.getcwd())
    except OSError as error:
        complaint = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    except BaseException as error:
        complaint = str(error) or error.__class__.__name__
    if complaint:
        try:
            sys.stderr.write("ecm-hook: " + " ".join(complaint.split())[:500] + "\n")
        except Exception:  # noqa: S110  stderr is gone, and the host has its answer all the same
            pass
    return 0


def run(arguments: "list[str]", project: str) -> "str | None":
    """Handle the payload on stdin. Returns a complaint, or None."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        return "usage: ecm-hook HOST < payload"
    return handle(arguments[0], sys.stdin.buffer.read(MAX_PAYLOAD + 1) if sys.stdin else b"", project)


def handle(name: str, payload: bytes, project: str) -> "str | None":
    """Refresh the meter and log the verdict for a payload of the host `name`. Returns a complaint, or None.

    Raises OSError where state cannot be read or written, EcmError where a table does not load.
    """
    programs = cache.programs(project)
    if programs is None:
        return None
    host = programs["hosts"].get(name)
    if host is None:
        return f"unknown host {name!r}, known: {', '.join(programs['hosts'])}"
    given = meter.parse(payload, MAX_PAYLOAD)
    if isinstance(given, engine.Unreadable):
        return f"payload: {given.reason}"
    program, paths = programs["program"], host["payload"]
    session, agent = _text(given, paths["session"]), _text(given, paths["agent"])
    if session and len(session) > MAX_SESSION:
        session = files.session_name(session)
    own = audit.meter_of(programs["audit"], agent)
    before = meter.load(os.path.join(project, own))
    if not isinstance(before, dict) or before.get("session_id") != session:
        before = {}  # another session's count and spending are not this one's
    accounts, complaint = ledger.consult(project, programs["audit"])
    before = ledger.unsettled(accounts, before, session, agent)
    measured = measure(programs, host, given, session, agent, before)
    measured, unwritten = ledger.settle(project, programs["audit"], accounts, measured, agent)
    told = audit.answer(program, engine.decide(program, measured, engine.role_of(agent is not None)), measured)
    try:
        files.replace(files.state_path(project, own), json.dumps(measured).encode("ascii"))
    finally:  # it was decided, whether or not the meter could be kept
        audit.record(project, programs["audit"], told, session, measured["updated_at"], agent)
    return complaint or unwritten


def measure(
    programs: "dict[str, Any]",
    host: "dict[str, Any]",
    given: "dict[str, Any]",
    session: "str | None",
    agent: "str | None",
    before: "dict[str, Any]",
) -> "dict[str, Any]":
    """The meter after a payload: the client's own reading, else its transcript's, else the one before.

    `before` is the session's meter so far, as it was found; what is kept of it is checked first.
    """
    program, paths, ceiling = programs["program"], host["payload"], programs["budget_tokens"]
    values, missing, _ = engine.read(program, before)
    kept = {name: None if name in missing else value for name, value in values.items()}
    window, percentage = _number(given, paths["window"]), _number(given, paths["used_percentage"])
    window_basis = "client" if window else None
    if window is None and before.get("window_basis") == "client":
        window, window_basis = _number(before, ["window_tokens"]), "client"
    used, utilization, source, basis = None, None, "unknown", "no reading"
    path = _text(given, paths["agent_transcript" if agent else "transcript"])
    silent = _find(given, paths["used_percentage"][:-1]) is None  # the payload is not about the window
    if percentage:
        utilization, source, basis = percentage / 100, "host", "client's reading"
        used = int(window * utilization) if window else None
    elif path and os.path.isfile(path):
        from ecm_rules.kernel import transcripts

        tally = transcripts.read(path, host["usage"], MAX_TRANSCRIPT)
        chain = tally.side if agent and tally.side.messages else tally.main
        if window is None:
            window, window_basis = transcripts.window(programs["models"], chain.model), "model"
        if not tally.partial or chain.used is not None:
            measured = transcripts.measure(tally, chain, program, host, window, window_basis, ceiling)
            if tally.partial:  # what stands before the part that was read happened all the same
                measured["compaction_count"] = max(measured["compaction_count"], kept["compaction_count"] or 0)
                budget = measured["budget"]
                budget["spent_tokens_est"] = max(budget["spent_tokens_est"], kept["spent"] or 0)
            return {**measured, "session_id": session}
        silent = True
    # Null before the first response and zero after a compaction are about the window: the client itself does not know.
    if utilization is None and silent:
        utilization = _number(before, ["utilization"])
        used = int(_number(before, ["used_tokens_est"]) or 0) or None
        source, basis = ("host", "earlier reading") if utilization is not None else (source, basis)
    return meter.compose(
        program,
        session,
        used,
        window,
        source,
        basis,
        utilization=utilization,
        window_basis=window_basis,
        share=kept["tool_result_share"],
        compactions=kept["compaction_count"] or 0,
        ceiling=ceiling,
        spent=kept["spent"],
    )


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
