"""What the lines of a budget ledger add up to: threads of sessions, and what each session and subagent has spent.

ECM §"Subagent economics (D3)". Part of the runtime ring: lines in, numbers out; `ledger` reads and writes the file.

A *thread* is a mapping of its sessions by id, the one that opened it first and each successor after its predecessor:
`{session: {"predecessor": id | None, "spent": tokens | None, "agents": {agent: tokens | None}}, …}`.
"""

import json

from ecm_rules.kernel import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Thread = dict[str, dict[str, Any]]

OPEN = "open"
SPENT = "spent"
SUCCEED = "succeed"
OPERATION = "operation"
MOST = 10**15  # no bill is larger
_SEARCHES = 64


class Accounts:
    """The sum of a ledger's lines. `unread`: how many of them are no event. `latest`: the session of the last event.
    `complete`: whether all lines are in it, or some of the last ones not yet.

    `kept` are threads in the form of `dump`, one a line, that nobody has asked for yet: a ledger has many threads, and
    who asks is in one.
    """

    __slots__ = ("_kept", "_searches", "_threads", "complete", "latest", "unread")

    def __init__(self, kept: bytes = b"", unread: int = 0, latest: "str | None" = None) -> None:
        self._kept = kept
        self._searches = 0
        self._threads: "dict[str, Thread]" = {}
        self.unread = unread
        self.latest = latest
        self.complete = True

    def feed(self, line: bytes) -> None:
        """Add one line, with or without its LF. What is torn, joined, padded or foreign is counted, never guessed."""
        if line.strip() and not self._event(line):
            self.unread += 1

    def thread(self, session: str) -> "Thread | None":
        """The thread of a session, None where no line has told of it."""
        if session not in self._threads:
            self._recall(session)
        return self._threads.get(session)

    def dump(self) -> bytes:
        """All threads, one a line, as `kept` takes them."""
        distinct = {id(thread): thread for thread in self._threads.values()}
        lines = [json.dumps(thread, separators=(",", ":")).encode("ascii") + b"\n" for thread in distinct.values()]
        return b"".join([self._kept, *lines])

    def _event(self, line: bytes) -> bool:
        try:
            event = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return False
        if event.__class__ is not dict:
            return False
        kind = event.get("event", OPERATION)
        if kind == OPERATION and event.get("operation").__class__ is not str:
            return False
        session: "Any" = event.get("session_id")
        agent: "Any" = event.get("agent_id")
        if kind == OPERATION and not session:
            return True  # the nexus has lines of sessions that nobody named
        if not _is_id(session) or not (agent is None or _is_id(agent)):
            return False
        session, agent = files.short(session), files.short(agent) if agent else None
        if kind == SPENT:
            known = self._spent(session, agent, event.get("spent_tokens"))
        elif kind == SUCCEED:
            known = _is_id(event.get("predecessor")) and self._succeed(session, files.short(event["predecessor"]))
        else:
            # What the nexus calls spent in the line of an operation is the fill of the window: it is not added.
            known = kind in (OPEN, OPERATION)
            if known:
                self._account(session, agent)
        if known:
            self.latest = session
        return known

    def _spent(self, session: str, agent: "str | None", tokens: "Any") -> bool:
        if tokens.__class__ not in (int, float) or not 0 <= tokens <= MOST:
            return False
        account = self._account(session, agent)
        # The highest report counts. Hooks run at once, so one that is lower than another is late far more often than it
        # is the beginning of a fresh counter; and a client that resumes into a new transcript copies the old one into
        # it. Adding would count both twice and end a session that has budget left; this at worst lets one go on.
        if agent is None:
            account["spent"] = max(tokens, account["spent"] or 0)
        else:
            account["agents"][agent] = max(tokens, account["agents"][agent] or 0)
        return True

    def _succeed(self, session: str, predecessor: str) -> bool:
        """Join two threads. False where that contradicts what is known: one predecessor a session, and no circle."""
        account = self._account(session, None)
        if account["predecessor"] is not None:
            return bool(account["predecessor"] == predecessor)
        self._account(predecessor, None)
        joined, mine = self._threads[predecessor], self._threads[session]
        if joined is mine:
            return False
        account["predecessor"] = predecessor
        joined.update(mine)
        for each in mine:
            self._threads[each] = joined
        return True

    def _account(self, session: str, agent: "str | None") -> "dict[str, Any]":
        """The account of a session, in a thread of its own where it is new, with a place for the subagent."""
        thread = self.thread(session)
        if thread is None:
            thread = self._threads[session] = {session: {"predecessor": None, "spent": None, "agents": {}}}
        account = thread[session]
        if agent is not None:
            account["agents"].setdefault(agent, None)
        return account

    def _recall(self, session: str) -> None:
        self._searches += 1
        if self._searches > _SEARCHES:  # by now it is cheaper to have them all
            kept, self._kept = self._kept, b""
            for line in kept.splitlines():
                self._take(json.loads(line))
            return
        key = json.dumps(session).encode("ascii") + b":"
        at = self._kept.find(key)
        while at >= 0:
            start, end = self._kept.rfind(b"\n", 0, at) + 1, self._kept.find(b"\n", at) + 1
            thread = json.loads(self._kept[start:end])
            if session in thread:  # and not as the name of a subagent
                self._kept = self._kept[:start] + self._kept[end:]
                self._take(thread)
                return
            at = self._kept.find(key, end)

    def _take(self, thread: "Thread") -> None:
        for session in thread:
            self._threads[session] = thread


def own(accounts: Accounts, session: str, agent: "str | None" = None) -> "float | None":
    """What a session itself, or one of its subagents, has reported as spent, in tokens; None where it has not."""
    account = (accounts.thread(session) or {}).get(session)
    if account is None:
        return None
    spent: "float | None" = account["spent"] if agent is None else account["agents"].get(agent)
    return spent


def total(accounts: Accounts, session: str) -> "float | None":
    """What all sessions and subagents of a session's thread have spent, in tokens; None where none has reported."""
    told = [
        spent
        for account in (accounts.thread(session) or {}).values()
        for spent in (account["spent"], *account["agents"].values())
        if spent is not None
    ]
    return sum(told) if told else None


def knows(accounts: Accounts, session: str, agent: "str | None" = None) -> bool:
    """Whether an event has told of a session, or of one of its subagents."""
    account = (accounts.thread(session) or {}).get(session)
    return account is not None and (agent is None or agent in account["agents"])


def _is_id(value: object) -> bool:
    return value.__class__ is str and value != ""
