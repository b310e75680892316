"""Entering, not being: whether the state that a verdict describes has been entered just now. RULINGS ECM 8 and 15.

Part of the runtime ring. Each hook is a process of its own, so what was entered is remembered beside the meter, in one
file a session or subagent, and a lock keeps two that ask at once from carrying out one operation twice.

A *state* is a zone between two compaction boundaries; within it, only a more severe operation is demanded anew. A row
that tests neither (the budget's) is a state of its own, which lasts as long as that row fires. An unknown zone that
demands nothing ends no state: not to know is not to leave.
"""

import json
import os

from ecm_rules.kernel import audit, files, locks
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.kernel.locks import Lock

    State = dict[str, Any]

FORMAT = 1
# What failed, or was broken off, is tried so many times in a state: a full disk is no reason to try for ever.
ATTEMPTS = 3
BEGUN = "begun"
FAILED = "failed"
Busy = locks.Busy
"""Somebody else is carrying out an operation of this session."""


class Entry:
    """A locked state. `entered` tells whether its operation is to be carried out, `lasts` that it was before."""

    __slots__ = ("_lock", "_path", "_slot", "_state", "entered", "lasts")

    def __init__(self, path: str, lock: "Lock", state: "State") -> None:
        self._path = path
        self._lock: "Lock | None" = lock
        self._state = state
        self._slot: "State" = {}
        self.entered = False
        self.lasts = False

    def decide(self, playbook: "Mapping[str, Any]", verdict: "Mapping[str, Any]") -> None:
        """Judge a verdict, and keep that its operation has begun. Raises OSError where it cannot be kept."""
        before = json.dumps(self._state)
        self._slot, self.entered = judge(self._state, playbook, verdict)
        self.lasts = bool(verdict["steps"]) and not self.entered
        if self.entered:
            self._slot["outcome"] = BEGUN
            self._slot["attempts"] = self._slot.get("attempts", 0) + 1
        if json.dumps(self._state) != before:
            self._keep()

    @property
    def made(self) -> "dict[str, Any]":
        """What the operation made when it was carried out: paths by name."""
        made = self._slot.get("made")
        return made if made.__class__ is dict else {}

    def close(
        self, outcome: "str | None" = None, handed_out: bool = False, made: "dict[str, Any] | None" = None
    ) -> None:
        """Keep what came of the operation, where there was one, and give the lock back. Raises OSError.

        handed_out: that the host was told to do something, so that it is not told again.
        """
        if self._lock is None:
            return
        try:
            if outcome is not None:
                self._slot["outcome"], self._slot["handed_out"] = outcome, handed_out
                self._slot["made"] = made or {}
                self._keep()
        finally:
            lock, self._lock = self._lock, None
            locks.release(lock)

    def _keep(self) -> None:
        files.replace(self._path, json.dumps(self._state).encode("ascii"))


def judge(state: "State", playbook: "Mapping[str, Any]", verdict: "Mapping[str, Any]") -> "tuple[State, bool]":
    """(the part of the state that the verdict's row is about, whether its operation is to be carried out); `state` is
    brought up to date. verdict: as `engine.program.decide` gives it.
    """
    rule, operation, signals = verdict["rule"], verdict["operation"], verdict["signals"]
    zone, boundary = signals.get(playbook["zone"]), signals.get(playbook["boundary"]) or 0
    severity = playbook["severity"].get(operation, 0)
    if not verdict["steps"]:
        if zone != "unknown":
            state["lasting"] = {}
            if state["zoned"].get("zone") != zone:
                state["zoned"] = {"zone": zone, "boundary": boundary, "severity": severity}
        return {}, False
    if rule in playbook["lasting"]:
        known = state["lasting"].get(rule)
        slot: "State" = known if known.__class__ is dict else {}
        state["lasting"] = {rule: slot}
        return slot, not slot or _unfinished(slot)
    state["lasting"] = {}
    slot = state["zoned"]
    fresh = not slot or slot.get("zone") != zone or boundary > slot["boundary"]
    if fresh or severity > slot["severity"]:
        # A count that was once higher has been: whatever reads lower now is no new boundary later.
        most = max(boundary, 0 if slot.get("boundary").__class__ is not int else slot["boundary"])
        slot = state["zoned"] = {"zone": zone, "boundary": most, "severity": severity, "rule": rule}
        return slot, True
    return slot, slot.get("rule") == rule and _unfinished(slot)


def would_enter(
    project: str,
    paths: "Mapping[str, str]",
    session: "str | None",
    agent: "str | None",
    playbook: "Mapping[str, Any]",
    verdict: "Mapping[str, Any]",
) -> bool:
    """Whether the operation of a verdict is to be carried out, as far as that can be said without the lock."""
    try:
        path = files.state_path(project, file_of(paths, session, agent), make=False)
        return judge(_read(path, _who(session, agent)), playbook, verdict)[1]
    except OSError:
        return True  # whoever tries says what is wrong


def begin(
    project: str,
    paths: "Mapping[str, str]",
    session: "str | None",
    agent: "str | None",
    patience: "float | None" = None,
) -> Entry:
    """The state of a session, or of a subagent of it, locked. `close` it. A state that is corrupt is a new one.

    Raises Busy where the lock cannot be had within `patience` (else `files.PATIENCE`) seconds, and OSError.
    """
    who = _who(session, agent)
    path = files.state_path(project, file_of(paths, session, agent))
    lock = locks.take(os.path.splitext(path)[0] + ".lock", files.PATIENCE if patience is None else patience)
    try:
        return Entry(path, lock, _read(path, who))
    except BaseException:
        locks.release(lock)
        raise


def _who(session: "str | None", agent: "str | None") -> "State":
    return {
        "format": FORMAT,
        "session_id": files.short(session or ""),
        "agent_id": files.short(agent) if agent else None,
    }


def file_of(paths: "Mapping[str, str]", session: "str | None", agent: "str | None") -> str:
    """Where the state of a session, or of a subagent, stands, relative to the project: beside the meter."""
    folder = os.path.dirname(paths.get("meter", audit.METER))
    session = session or ""
    # The length keeps a subagent's name apart from a session's that looks like it.
    name = session if agent is None else f"{len(session)}/{session}/{agent}"
    return f"{folder}/entered-{files.session_name(name)}.json" if name else f"{folder}/entered.json"


def _unfinished(slot: "State") -> bool:
    """Whether an operation came to nothing, may be tried again, and has not been handed to the host."""
    attempts = slot.get("attempts")
    return (
        slot.get("outcome") in (BEGUN, FAILED)
        and slot.get("handed_out") is not True
        and attempts.__class__ is int
        and attempts < ATTEMPTS
    )


def _read(path: str, who: "State") -> "State":
    empty: "State" = {**who, "zoned": {}, "lasting": {}}
    try:
        with places.open_regular(path, follow=False) as stream:
            found = json.loads(stream.read(files.MAX_BYTES))
        zoned, lasting = found["zoned"], found["lasting"]
        sound = zoned.__class__ is dict and lasting.__class__ is dict
        numbers = [zoned[key].__class__ is int for key in ("boundary", "severity")] if zoned else []
        if not sound or not all(numbers) or any(found[key] != who[key] for key in who):
            return empty
    except FileNotFoundError:
        return empty
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return empty
    return {**who, "zoned": zoned, "lasting": lasting}
