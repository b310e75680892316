"""One event of a client: the meter is refreshed, the verdict is logged. Part of the runtime ring."""

import json
import os

from ecm_rules.engine import program as engine
from ecm_rules.kernel import audit, files, ladder, ledger, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ecm_rules.kernel.payloads import Told
    from ecm_rules.kernel.work import Work

MAX_TRANSCRIPT = 4 << 20


class Turn:
    """An event with what it was measured to mean.

    project: its folder. programs: `cache.programs`. host, event: their entries in rules/hosts.yaml. payload: as it
    came. told: what it says of the window. before, now: the meter before and after. verdict: as
    `engine.program.decide` gives it. until: when an answer is due, by `time.monotonic`.
    """

    __slots__ = (
        "before", "complaints", "event", "host", "now", "payload", "programs", "project", "told", "until",
        "verdict",
    )  # fmt: skip

    def __init__(
        self,
        project: str,
        programs: "dict[str, Any]",
        host: "dict[str, Any]",
        event: "dict[str, Any]",
        payload: "dict[str, Any]",
        told: "Told",
        until: float,
    ) -> None:
        self.project = project
        self.programs = programs
        self.event = event
        self.host = host
        self.payload = payload
        self.told = told
        self.until = until
        self.before: "dict[str, Any]" = {}
        self.now: "dict[str, Any]" = {}
        self.verdict: "dict[str, Any]" = {}
        self.complaints: "list[str]" = []

    @property
    def paths(self) -> "dict[str, str]":
        """Where things are kept."""
        paths: "dict[str, str]" = self.programs["audit"]
        return paths

    @property
    def channel(self) -> "dict[str, Any] | None":
        """How text gets back; None where it does not."""
        found: "dict[str, Any] | None" = self.host["channels"].get(self.event["say"])
        return found

    @property
    def session(self) -> "str | None":
        return self.told.session

    @property
    def agent(self) -> "str | None":
        return self.told.agent

    @property
    def compactions(self) -> int:
        count = self.now.get("compaction_count")
        return count if count.__class__ is int else 0

    def work(self) -> "Work":
        """What steps are carried out with."""
        from ecm_rules.kernel.work import Work

        limits = self.programs["program"]["limits"]
        return Work(self.project, self.paths, limits, session=self.session, agent=self.agent)


def refresh(turn: Turn) -> None:
    """Measure the window, decide, keep the meter and log the verdict. Raises OSError where state cannot be kept."""
    programs, told, paths = turn.programs, turn.told, turn.paths
    program = programs["program"]
    own = audit.meter_of(paths, told.agent)
    before = meter.load(os.path.join(turn.project, own))
    if not isinstance(before, dict) or before.get("session_id") != told.session:
        before = {}  # another session's count and spending are not this one's
    accounts, unread = ledger.consult(turn.project, paths)
    before = ledger.unsettled(accounts, before, told.session, told.agent)
    tally, complaint = ladder.tally_of(programs, told.transcript, MAX_TRANSCRIPT, (turn.project, own))
    externalized = ledger.externalized_at(turn.project, paths, program, told.session)
    now = ladder.measure(programs, told, tally, before, ceiling=programs["budget_tokens"], externalized_at=externalized)
    now, unwritten = ledger.settle(turn.project, paths, accounts, now, told.agent)
    unsaid = None
    if now["compaction_count"]:
        from ecm_rules.kernel import compactions

        cap = program["limits"]["compaction_depth_cap"]
        unsaid = compactions.follow(turn.project, paths, cap, before, now, told.agent)
    verdict = engine.decide(program, now, engine.role_of(told.agent is not None))
    turn.before, turn.now, turn.verdict = before, now, verdict
    turn.complaints += [said for said in (complaint, unread, unwritten, unsaid) if said]
    try:
        files.replace(files.state_path(turn.project, own), json.dumps(now).encode("ascii"))
    finally:  # it was decided, whether or not the meter could be kept
        answer = audit.answer(program, verdict, now)
        audit.record(turn.project, paths, answer, told.session, now["updated_at"], told.agent)
    if not verdict["steps"] and before.get("zone") not in (None, now["zone"]):
        from ecm_rules.kernel import steps

        steps.run(verdict, programs["playbook"], {}, turn.work())  # the state that was entered has been left
