"""State as many tests write and read it: transcripts, logs, and the events of a ledger."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from ecm_rules.kernel import accounts
from ecm_rules.kernel.accounts import Accounts

STATE = ".eidolons/.context"
NOW = "2026-07-07T00:00:00Z"


def transcript(path: pathlib.Path, tokens: int) -> str:
    message = {"id": "m", "model": "claude-opus-4-5", "usage": {"input_tokens": tokens}}
    path.write_text(json.dumps({"type": "assistant", "sessionId": "s1", "message": message}) + "\n")
    return str(path)


def lines(project: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """The lines of a log, of which none may be torn."""
    whole, _, rest = (project / STATE / name).read_bytes().rpartition(b"\n")
    assert rest == b""
    return [json.loads(line) for line in whole.split(b"\n")]


def line(event: str, session: object, **more: object) -> bytes:
    return json.dumps({"ts": NOW, "session_id": session, "event": event, **more}).encode()


def spent(session: object, tokens: object, agent: object = None) -> bytes:
    return line("spent", session, spent_tokens=tokens, agent_id=agent)


def after(session: object, predecessor: object) -> bytes:
    return line("succeed", session, predecessor=predecessor)


# Events of three hundred sessions, each with a subagent that has the name of another session.
MANY = [each for n in range(300) for each in (line("open", f"s{n}"), spent(f"s{n}", n), spent(f"s{n}", 1, f"s{n + 1}"))]


def everything(found: Accounts) -> dict[str, Any]:
    return {"unread": found.unread} | {f"s{n}": accounts.total(found, f"s{n}") for n in range(310)}
