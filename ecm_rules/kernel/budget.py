"""The verb `budget`: what the sessions of a thread have spent, against its ceiling. ECM §"Subagent economics (D3)"."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import load_policy
from ecm_rules.kernel import accounts, audit, files, ledger, meter
from ecm_rules.tables.findings import EcmError


@attrs.frozen
class Account:
    """A session of the thread. All numbers are tokens, None where nobody reported any. `own` is without subagents."""

    session: str
    predecessor: str | None
    own: float | None
    agents: Mapping[str, float | None]

    @property
    def total(self) -> float | None:
        return _sum([self.own, *self.agents.values()])


@attrs.frozen
class Budget:
    """A thread and its ceiling in tokens. `sessions` begin with the one that opened it; there are none where the ledger
    knows none. `unread` lines of the ledger are no event. `complaints` are lines for stderr.
    """

    session: str | None
    sessions: tuple[Account, ...]
    ceiling: float | None
    unread: int
    complaints: tuple[str, ...]

    @property
    def thread(self) -> str | None:
        """The session that opened it."""
        return self.sessions[0].session if self.sessions else None

    @property
    def spent(self) -> float | None:
        return _sum([account.total for account in self.sessions])

    @property
    def left(self) -> float | None:
        """What may still be spent; None without a ceiling, or where nobody knows what was spent."""
        return None if self.ceiling is None or self.spent is None else max(self.ceiling - self.spent, 0)

    def to_dict(self) -> dict[str, Any]:
        sessions = [
            {
                "session_id": account.session,
                "predecessor": account.predecessor,
                "spent_tokens": account.own,
                "subagents": [{"agent_id": agent, "spent_tokens": spent} for agent, spent in account.agents.items()],
                "total_tokens": account.total,
            }
            for account in self.sessions
        ]
        return {
            "session_id": self.session,
            "thread": self.thread,
            "sessions": sessions,
            "spent_tokens_est": self.spent,
            "ceiling_tokens": self.ceiling,
            "left_tokens": self.left,
            "budget_spent_gte_ceiling": self.left == 0,
            "unread_lines": self.unread,
        }


def budget(project: str, session: str | None = None) -> Budget:
    """The thread of a session; of none given, of the session that was measured last, else of the ledger's last line.
    Fails open, never raises: what could not be read is among the complaints.
    """
    complaints: list[str] = []
    paths: Mapping[str, str] = {}
    ceiling: float | None = None
    table = None
    try:
        table = load_policy(project=project)
        paths, ceiling = table.table.audit, table.table.budget_tokens
    except EcmError as error:
        complaints.append(str(error))
    except Exception as error:  # fails open, whatever it is
        complaints.append(f"no table: {error.__class__.__name__}: {error}")
    known = accounts.Accounts()
    try:
        known = ledger.load(project, paths, step=None)
    except OSError as error:
        complaints.append(f"budget ledger: {error.strerror or error}")
    seen = meter.load(os.path.join(project, audit.meter_of(paths, None)))
    measured = seen.get("session_id") if isinstance(seen, dict) else None
    if session:
        session = files.short(session)
        if known.thread(session) is None:
            complaints.append(f"no line of the ledger tells of session {session}")
    elif isinstance(measured, str) and known.thread(files.short(measured)) is not None:
        session = files.short(measured)
    else:
        session = known.latest
    thread = known.thread(session) if session else None
    # Without one in the project the ceiling is what `status --budget-ceiling` gave a session of the thread.
    if ceiling is None and table is not None and measured in (thread or ()):
        ceiling = program.read(table.program, seen)[0].get("ceiling")
    told = [Account(s, a["predecessor"], a["spent"], a["agents"]) for s, a in (thread or {}).items()]
    return Budget(session, tuple(told), ceiling, known.unread, tuple(complaints))


def _sum(told: list[float | None]) -> float | None:
    numbers = [number for number in told if number is not None]
    return sum(numbers) if numbers else None
