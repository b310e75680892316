"""The verb `status`: what is told and what a transcript says, written as the meter. ECM §"The meter + zone ladder"."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.engine import zones
from ecm_rules.engine.policy import Policy, load_policy
from ecm_rules.engine.program import Unreadable
from ecm_rules.kernel import audit, compactions, files, kin, ladder, ledger, meter, payloads, sweep
from ecm_rules.kernel.payloads import GIVEN, Told
from ecm_rules.kernel.tally import Tally
from ecm_rules.tables.findings import EcmError
from ecm_rules.tables.hosts import load_hosts

DEFAULT_WINDOW = 200_000
MAX_PAYLOAD = 16 << 20
_MANY = 10**12
# What a script passes on where its own source says nothing.
_NOTHING = ("", "null")


class UnknownHost(Exception):
    """A host that rules/hosts.yaml does not know."""


@attrs.frozen
class Flags:
    """The verb's options as they were typed, None where not: numbers are read, and refused, one by one."""

    used_percentage: str | None = None
    transcript: str | None = None
    session: str | None = None
    subagent: bool = False
    window_tokens: str | None = None
    tool_result_share: str | None = None
    compaction_count: str | None = None
    budget_ceiling: str | None = None
    host: str | None = None


@attrs.frozen
class Status:
    """A meter, where it was written (None: it was not), the zones it was judged by, and lines for stderr."""

    meter: dict[str, Any]
    path: str | None
    zones: Mapping[str, float]
    complaints: tuple[str, ...]


def refresh(project: str, flags: Flags, payload: bytes | None = None) -> Status:
    """Measure and write the meter. Fails open: what is wrong is a complaint, and what is unknown is `unknown`.

    payload: of a hook or statusline of any host, None for none; flags beat it. Raises UnknownHost.
    """
    complaints: list[str] = []
    known = load_hosts()
    if flags.host is not None and flags.host not in known["hosts"]:
        raise UnknownHost(f"unknown host {flags.host!r}, known: {', '.join(known['hosts'])}")
    policy, sound = _policy(project, complaints)
    programs = {**known, "program": policy.program, "window_tokens": policy.table.window_tokens}
    numbers = _Numbers(complaints)
    told = Told() if payload is None else _payload(known["hosts"], payload, flags.host, complaints)
    kin.resolve(project, policy.table.audit, told)
    _apply(told, flags, numbers)
    own = audit.meter_of(policy.table.audit, told.agent or (told.session if flags.subagent else None))
    tally = _tally(programs, told, flags, (project, own), complaints)
    if tally is not None and told.agent is None and tally.subagent():
        told.agent = _agent(told.transcript or "")
        own = audit.meter_of(policy.table.audit, told.agent)
    told.unread = told.unread or (payload is not None and told.session is None)
    accounts, unread = ledger.consult(project, policy.table.audit)
    before = ledger.unsettled(accounts, _before(project, own, told, complaints), told.session, told.agent)
    ceiling = numbers.read("--budget-ceiling", flags.budget_ceiling, 0, _MANY)
    compactions_given = numbers.read("--compaction-count", flags.compaction_count, 0, _MANY)
    told.emptied = told.emptied or (compactions_given or 0) > _count(before)
    made = ladder.measure(
        programs,
        told,
        tally,
        before,
        ceiling=_ceiling(ceiling, policy.table.budget_tokens, before),
        default_window=DEFAULT_WINDOW,
        externalized_at=ledger.externalized_at(project, policy.table.audit, policy.program, told.session),
    )
    _override(made, numbers.read("--tool-result-share", flags.tool_result_share, 0, 1), compactions_given)
    made, unwritten = ledger.settle(project, policy.table.audit, accounts, made, told.agent)
    cap = policy.program["limits"]["compaction_depth_cap"]
    unsaid = compactions.follow(project, policy.table.audit, cap, before, made, told.agent)
    complaints += [complaint for complaint in (unread, unwritten, unsaid) if complaint]
    if not sound:
        made["zone"] = zones.UNKNOWN
    written = _written(project, own, made, complaints)
    sweep.sweep(project, policy.table.audit, policy.table.limits)
    return Status(made, written, policy.table.zones if sound else {}, tuple(complaints))


def _agent(path: str) -> str:
    """Whose transcript it is, by the name that its client gives it: `agent-<id>.jsonl`."""
    return os.path.splitext(os.path.basename(path))[0].removeprefix("agent-")


class _Numbers:
    """Numbers that were typed. One that is none is a complaint, and counts as not given."""

    def __init__(self, complaints: list[str]) -> None:
        self.complaints = complaints

    def read(self, name: str, text: str | None, least: float, most: float) -> float | None:
        if text is None or text.strip() in _NOTHING:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if least <= number <= most:
            return int(number) if number.is_integer() else number
        self.complaints.append(f"{name}: found {text!r}, expected a number from {least} to {most}")
        return None


def _policy(project: str, complaints: list[str]) -> tuple[Policy, bool]:
    """The project's policy, or the shipped one and that it is not the project's."""
    try:
        return load_policy(project=project), True
    except EcmError as error:
        complaints.append(str(error))
        return load_policy(project=None), False


def _apply(told: Told, flags: Flags, numbers: _Numbers) -> None:
    """What was typed beats what the payload says."""
    told.session = flags.session or told.session
    if flags.subagent:
        told.agent = flags.session or told.agent or told.session or ""
    if flags.transcript:
        told.transcript = flags.transcript
    window = numbers.read("--window-tokens", flags.window_tokens, 1, _MANY)
    if window is not None:
        told.window, told.window_basis = window, GIVEN
    percentage = numbers.read("--used-percentage", flags.used_percentage, 0, 100)
    if percentage is not None:
        told.used_percentage, told.used, told.about = percentage, None, True


def _payload(hosts: dict[str, Any], data: bytes, host: str | None, complaints: list[str]) -> Told:
    given = meter.parse(data, MAX_PAYLOAD)
    if isinstance(given, Unreadable):
        complaints.append(f"payload: {given.reason}")
        return _unread()
    name = host or payloads.recognise(hosts, given)
    if name is None:
        complaints.append("payload: found the keys of no known host, expected a hook's or a statusline's")
        return _unread()
    return payloads.read(hosts[name], given)


def _unread() -> Told:
    told = Told()
    told.unread = True
    return told


def _tally(
    programs: dict[str, Any], told: Told, flags: Flags, state: tuple[str, str], complaints: list[str]
) -> Tally | None:
    if flags.transcript and not os.path.lexists(flags.transcript):
        complaints.append("transcript: no such file")
    tally, complaint = ladder.tally_of(programs, told.transcript, None, state)
    if complaint:
        complaints.append(complaint)
    if tally is not None and told.session is None:
        told.session = tally.chain().session
    return tally


def _before(project: str, own: str, told: Told, complaints: list[str]) -> dict[str, Any]:
    """The meter so far: nothing where there is none, or it is another session's."""
    found = meter.load(os.path.join(project, own))
    if isinstance(found, Unreadable):
        complaints.append(f"earlier meter: {found.reason}")
    if not isinstance(found, dict):
        return {}
    theirs = found.get("session_id")
    if told.session is None and isinstance(theirs, str):
        told.session = theirs
    return found if theirs is None or theirs == told.session else {}


def _ceiling(given: float | None, projects: int | None, before: dict[str, Any]) -> int | None:
    """The budget: given (0 takes it away), the project's, or that of the meter so far."""
    if given is not None:
        return int(given) or None
    budget = before.get("budget")
    earlier = budget.get("ceiling_tokens") if isinstance(budget, dict) else None
    usable = isinstance(earlier, int) and not isinstance(earlier, bool) and 0 < earlier < _MANY
    return projects or (earlier if usable else None)


def _count(before: dict[str, Any]) -> int:
    count = before.get("compaction_count")
    return count if isinstance(count, int) else 0


def _override(made: dict[str, Any], share: float | None, count: float | None) -> None:
    if share is not None:
        made["tool_result_share_est"] = share
    elif made["tool_result_share_est"] is None:
        made["tool_result_share_est"] = 0
    if count is not None:
        made["compaction_count"] = int(count)


def _written(project: str, own: str, made: dict[str, Any], complaints: list[str]) -> str | None:
    try:
        files.replace(files.state_path(project, own), json.dumps(made).encode("ascii"))
    except OSError as error:
        complaints.append(f"not written: {error.strerror or error}")
        return None
    return own
