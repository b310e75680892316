"""`ecm-hook HOST`: a payload on stdin; the meter is refreshed, the verdict is logged. Part of the runtime ring.

It runs on every prompt, so it imports nothing but the ring while its cached programs are current. It prints nothing,
never blocks the host, and exits 0 whatever happens; what went wrong is one line on stderr.
"""

import json
import os
import sys

from ecm_rules.engine import program as engine
from ecm_rules.hosts import cache
from ecm_rules.kernel import audit, files, ladder, ledger, meter, payloads

MAX_PAYLOAD = 16 << 20
MAX_TRANSCRIPT = 4 << 20


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
    program, told = programs["program"], payloads.read(host, given)
    own = audit.meter_of(programs["audit"], told.agent)
    before = meter.load(os.path.join(project, own))
    if not isinstance(before, dict) or before.get("session_id") != told.session:
        before = {}  # another session's count and spending are not this one's
    accounts, unread = ledger.consult(project, programs["audit"])
    before = ledger.unsettled(accounts, before, told.session, told.agent)
    tally, complaint = ladder.tally_of(programs, told.transcript, MAX_TRANSCRIPT, (project, own))
    externalized = ledger.externalized_at(project, programs["audit"], program, told.session)
    measured = ladder.measure(
        programs, told, tally, before, ceiling=programs["budget_tokens"], externalized_at=externalized
    )
    measured, unwritten = ledger.settle(project, programs["audit"], accounts, measured, told.agent)
    unsaid = None
    if measured["compaction_count"]:
        from ecm_rules.kernel import compactions

        cap = program["limits"]["compaction_depth_cap"]
        unsaid = compactions.follow(project, programs["audit"], cap, before, measured, told.agent)
    role = engine.role_of(told.agent is not None)
    answer = audit.answer(program, engine.decide(program, measured, role), measured)
    try:
        files.replace(files.state_path(project, own), json.dumps(measured).encode("ascii"))
    finally:  # it was decided, whether or not the meter could be kept
        audit.record(project, programs["audit"], answer, told.session, measured["updated_at"], told.agent)
    return complaint or unread or unwritten or unsaid


if __name__ == "__main__":
    sys.exit(main())
