"""The budget ledger: one line a session event, appended by all sessions of a project. ECM §"Subagent economics (D3)".

Part of the runtime ring. An event has `ts` (UTC, to the second), `session_id`, `agent_id` (null but for a subagent) and
`event`, which is one of

- `open`: a session, or a subagent of it, is there; a session that succeeds nobody opens a thread;
- `spent`: `spent_tokens`, the running total of the session itself or of the subagent;
- `succeed`: the session continues the thread of `predecessor`, from which it took over by a handoff;
- `operation`: the line of the nexus, `operation spent_tokens_est ceiling_tokens crystalium_gated_in commit_ok`.

Nothing here asks the clock: order is the order of the lines, and none of the sums depends on it.
"""

import json
import os

from ecm_rules.kernel import accounts, files
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import BufferedReader
    from typing import Any

    from ecm_rules.kernel.accounts import Accounts

# Where it stands for a policy that does not say.
FILE = ".eidolons/.context/budget-ledger.jsonl"
FORMAT = 1
# Of a ledger that grew without a reader, a prompt reads this much, the next prompt more; what is not read yet is not
# spent yet, so that nothing ends too early.
MAX_STEP = 4 << 20
MAX_STATE = 256 << 20
# A prompt adds up the last lines, and once in so many bytes somebody keeps the sum.
KEEP_EVERY = 32 << 10
_GUARD = 256
_TAIL = 1 << 16


def load(project: str, paths: "Mapping[str, str]", *, step: "int | None" = MAX_STEP) -> "Accounts":
    """The accounts of a project's ledger; of the lines since the kept sum at most `step` bytes. None: read every line
    anew, whatever was kept. `paths` is the policy's `audit`. Raises OSError; a ledger that is not there is empty.
    """
    path = files.state_path(project, paths.get("budget_ledger", FILE), make=False)
    try:
        stream = places.open_regular(path, follow=False)
    except FileNotFoundError:
        return accounts.Accounts()
    with stream:
        found, start = _resume(path, stream) if step is not None else (accounts.Accounts(), 0)
        stream.seek(start)
        data = stream.read(-1 if step is None else step)
        whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == step else 0)
        for line in data[:whole].split(b"\n"):
            found.feed(line)
        if whole >= KEEP_EVERY:
            _keep(path, stream, found, start + whole)
        found.complete = start + len(data) >= os.fstat(stream.fileno()).st_size
        # The last line may be whole but for its LF. Otherwise somebody is about to write the rest, which is no fault.
        unread = found.unread
        found.feed(data[whole:])
        found.unread = unread
    return found


def spent(project: str, paths: "Mapping[str, str]", session: str) -> "float | None":
    """Tokens that the thread of a session has spent, None where nobody in it has reported. Raises OSError."""
    return accounts.total(load(project, paths), files.short(session))


def report(
    project: str,
    paths: "Mapping[str, str]",
    session: str,
    agent: "str | None",
    tokens: "float | None",
    now: str,
    known: "Accounts | None" = None,
) -> None:
    """Append the running total of a session, or of a subagent of it, in tokens (None: not known), as far as that is
    news: a session that was not there opens a thread. `known` is brought up to date. Raises OSError.
    """
    known = load(project, paths) if known is None else known
    session, agent = files.short(session), files.short(agent) if agent else None
    lines = []
    if not accounts.knows(known, session, agent):
        lines.append(_line(now, session, agent, accounts.OPEN))
    before = accounts.own(known, session, agent)
    if tokens is not None and 0 <= tokens <= accounts.MOST and (before is None or tokens > before):
        lines.append(_line(now, session, agent, accounts.SPENT, spent_tokens=tokens))
    for line in lines:  # what cannot be written has been spent all the same
        known.feed(line)
    for line in lines:
        _append(project, paths, line)


def succeed(project: str, paths: "Mapping[str, str]", session: str, predecessor: str, now: str) -> None:
    """Append that a session continues the thread of its predecessor. Raises OSError."""
    session, predecessor = files.short(session), files.short(predecessor)
    _append(project, paths, _line(now, session, None, accounts.SUCCEED, predecessor=predecessor))


def operation(
    project: str,
    paths: "Mapping[str, str]",
    session: "str | None",
    name: str,
    *,
    ceiling: "float | None",
    gated_in: bool,
    committed: bool,
    now: str,
    agent: "str | None" = None,
) -> None:
    """Append the line that `eidolons context externalize` appends, with what the thread has spent so far in tokens.

    ceiling: tokens, None without one. gated_in: memory was to be had. committed: and took the manifest. Raises OSError.
    """
    session = files.short(session) if session else None
    told = {
        "operation": name,
        "spent_tokens_est": spent(project, paths, session) if session else None,
        "ceiling_tokens": ceiling,
        "crystalium_gated_in": gated_in,
        "commit_ok": committed,
    }
    _append(project, paths, _line(now, session, files.short(agent) if agent else None, accounts.OPERATION, **told))


def externalized_at(
    project: str, paths: "Mapping[str, str]", program: "dict[str, Any]", session: "str | None"
) -> "str | None":
    """When the end of the ledger says that a session was last written down, ISO 8601 in UTC; None where it says nothing
    of it: an operation that has steps writes down first.
    """
    try:
        path = files.state_path(project, paths.get("budget_ledger", FILE), make=False)
        with places.open_regular(path, follow=False) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
            lines = stream.read(_TAIL).split(b"\n")
    except OSError:
        return None
    session = files.short(session) if session else session
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if entry.__class__ is not dict or entry.get("session_id") != session:
            continue
        operation, time = entry.get("operation"), entry.get("ts")
        if operation.__class__ is str and program["steps"].get(operation) and time.__class__ is str:
            return time
    return None


def consult(project: str, paths: "Mapping[str, str]") -> "tuple[Accounts | None, str | None]":
    """(accounts, None), or (None, a complaint) where the ledger cannot be read."""
    try:
        return load(project, paths), None
    except OSError as error:
        return None, _complaint(error)


def unsettled(
    known: "Accounts | None", meter: "dict[str, Any]", session: "str | None", agent: "str | None"
) -> "dict[str, Any]":
    """A meter as it was before `settle`: what it calls spent is the session's own."""
    if known is None or not session:
        return meter
    before = accounts.own(known, files.short(session), files.short(agent) if agent else None)
    return meter if before is None else _with_spent(meter, before)


def settle(
    project: str,
    paths: "Mapping[str, str]",
    known: "Accounts | None",
    meter: "dict[str, Any]",
    agent: "str | None",
) -> "tuple[dict[str, Any], str | None]":
    """Report what a meter measured as spent by its session, and give an orchestrator's meter what the thread has spent
    instead. (meter, a complaint where the report could not be written); the sum holds all the same.
    """
    session, complaint = meter["session_id"], None
    if known is None or not session:
        return meter, None
    tokens = meter["budget"]["spent_tokens_est"]
    try:
        report(project, paths, session, agent, tokens, meter["updated_at"], known)
    except OSError as error:
        complaint = _complaint(error)
    if agent is not None:
        return meter, complaint
    return current(known, meter), complaint


def current(known: "Accounts | None", meter: "Any") -> "Any":
    """An orchestrator's meter (any JSON value) with what the thread of its session has spent by now, where that is
    known. ECM §"Subagent economics (D3)".
    """
    session = meter.get("session_id") if meter.__class__ is dict else None
    if known is None or session.__class__ is not str or meter.get("budget").__class__ is not dict:
        return meter
    now = accounts.total(known, files.short(session))
    return meter if now is None else _with_spent(meter, now)


def _with_spent(meter: "dict[str, Any]", tokens: float) -> "dict[str, Any]":
    budget = meter.get("budget")
    return {**meter, "budget": {**(budget if budget.__class__ is dict else {}), "spent_tokens_est": tokens}}


def _line(now: str, session: "str | None", agent: "str | None", event: str, **more: "Any") -> bytes:
    told = {"ts": now, "session_id": session, **more, "agent_id": agent, "event": event}
    return json.dumps(told, separators=(",", ":")).encode("ascii")


def _append(project: str, paths: "Mapping[str, str]", line: bytes) -> None:
    files.append(files.state_path(project, paths.get("budget_ledger", FILE)), line)


def _complaint(error: OSError) -> str:
    return f"budget ledger: {error.strerror or error}"


def _resume(path: str, stream: "BufferedReader") -> "tuple[Accounts, int]":
    """(the kept sum, the offset up to which it is one): nothing and 0 unless it is a sum of this very ledger."""
    empty = accounts.Accounts(), 0
    try:
        with places.open_regular(_state(path), follow=False) as kept:
            check, _, rest = kept.read(MAX_STATE).partition(b"\n")
    except OSError:
        return empty
    if check != _hash(rest):
        return empty
    head, _, threads = rest.partition(b"\n")
    told = json.loads(head)
    offset = told["offset"]
    identity = _identity(stream, offset)
    if told["format"] != FORMAT or told["ledger"] != identity or identity[1] != offset:
        return empty
    return accounts.Accounts(threads, told["unread"], told["latest"]), offset


def _keep(path: str, stream: "BufferedReader", found: "Accounts", offset: int) -> None:
    head = {
        "format": FORMAT,
        "ledger": _identity(stream, offset),
        "offset": offset,
        "unread": found.unread,
        "latest": found.latest,
    }
    rest = json.dumps(head).encode("ascii") + b"\n" + found.dump()
    try:
        files.replace(_state(path), _hash(rest) + b"\n" + rest)
    except OSError:
        pass  # it is a sum of what is in the ledger, and can be taken again


def _state(path: str) -> str:
    return os.path.splitext(path)[0] + ".state"


def _identity(stream: "BufferedReader", offset: int) -> "list[Any]":
    """[inode, offset as far as there is a file, hash of the bytes before it]: what tells a ledger from another that has
    taken its place. An inode alone does not: it is given again, and its file overwritten.
    """
    start = max(0, offset - _GUARD)
    before = os.pread(stream.fileno(), offset - start, start)
    return [os.fstat(stream.fileno()).st_ino, start + len(before), _hash(before).decode("ascii")]


def _hash(data: bytes) -> bytes:
    # Python's own BLAKE2, without hashlib and the OpenSSL behind it.
    from _blake2 import blake2b

    return blake2b(data, digest_size=16).hexdigest().encode("ascii")
