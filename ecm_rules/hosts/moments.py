"""What is told when, by the kind of an event. Part of the runtime ring.

A prompt is told the meter and the verdict; a tool's result only that the zone has changed; a session's start the pins,
and the digest of the brief that it succeeds. What takes its time is an errand: it is run apart, and what it has to
say is told by whichever event comes first once it is done.
"""

from ecm_rules.hosts import memo
from ecm_rules.kernel import locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ecm_rules.hosts.measuring import Turn

# Before these go on, what must be done is waited for, so many seconds at most; all others have to be quick.
UNHURRIED = ("session_start", "session_resumed", "session_compacted", "before_compaction", "after_compaction")
PATIENCE = 10.0


def tell(turn: "Turn") -> "list[str]":
    """The texts that an event is to be answered with, in order. Never raises for a state that cannot be kept."""
    moment = _MOMENTS.get(turn.event["moment"])
    if moment is None:
        return []
    texts: "list[str]" = []
    try:
        moment(turn, texts)
    except locks.Busy:
        turn.complaints.append("busy: another hook of this session")
    except OSError as error:
        turn.complaints.append(f"not remembered: {error.strerror or error}")
        if turn.event["moment"] == "prompt" or turn.agent is not None:
            texts += _notices(turn)
    return texts


def line(turn: "Turn") -> str:
    """The meter and the verdict in one line, in the nexus' words."""
    share, verdict = turn.now["utilization"], turn.verdict
    told = "unknown" if share is None else f"{share:.2f}"
    rule = f"({verdict['rule']})" if verdict["rule"] else ""
    return f"Context: zone={turn.now['zone']} util={told} policy={verdict['operation']}{rule}."


def pins(turn: "Turn") -> "list[str]":
    """The pins where they are due, for a request that carries them."""
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        errands = _due_pins(turn, known)
    return _run(turn, errands, (memo.PINS,))


def _prompt(turn: "Turn", texts: "list[str]") -> None:
    texts.append(line(turn))
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        known.zone, known.moved = turn.now["zone"], True
        errands = _due(turn, known)
    if "operation" not in errands:
        texts += _notices(turn)
    texts += _run(turn, errands)


def _tool_result(turn: "Turn", texts: "list[str]") -> None:
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        before, known.zone, known.moved = known.zone, turn.now["zone"], True
        errands = _due(turn, known)
    if before is not None and before != turn.now["zone"]:
        texts.append(f"Context zone changed: {before} -> {turn.now['zone']}.")
    texts += _run(turn, errands)


def _session(turn: "Turn", texts: "list[str]") -> None:
    if turn.agent is None:
        texts += _run(turn, ["pins", "succession"] if turn.event["moment"] == "session_start" else ["pins"])


def _before_compaction(turn: "Turn", texts: "list[str]") -> None:
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        known.compacting = turn.compactions
    texts += _run(turn, ["bracket"])


_MOMENTS: "dict[str, Callable[[Turn, list[str]], None]]" = {
    "prompt": _prompt,
    "tool_result": _tool_result,
    "session_start": _session,
    "session_resumed": _session,
    "session_compacted": _session,
    "after_compaction": _session,
    "before_compaction": _before_compaction,
}


def _due(turn: "Turn", known: "memo.Memo") -> "list[str]":
    """The errands that an event within a turn gives rise to."""
    errands = _due_pins(turn, known)
    if not errands and known.verify is not None and turn.told.transcript is not None:
        known.verify = None  # once, whatever comes of it
        errands.append("verify")
    if turn.verdict["steps"] and _entered(turn):
        errands.append("operation")
    return errands


def _entered(turn: "Turn") -> bool:
    from ecm_rules.kernel import entering

    playbook = turn.programs["playbook"]
    return entering.would_enter(turn.project, turn.paths, turn.session, turn.agent, playbook, turn.verdict)


def _due_pins(turn: "Turn", known: "memo.Memo") -> "list[str]":
    """Whether the pins are not in the window: never injected, or only before the last compaction."""
    due = turn.agent is None and (known.boundary is None or turn.compactions > known.boundary)
    return ["pins"] if due else []


def _notices(turn: "Turn") -> "list[str]":
    """What is told again while a state lasts, and all that can be told where no state can be kept."""
    if not turn.verdict["steps"]:
        return []
    from ecm_rules.kernel import steps

    told = steps.run(turn.verdict, turn.programs["playbook"], {}, turn.work(), host=())
    turn.complaints += told["complaints"]
    return [action["text"] for action in told["actions"] if action["text"]]


def _run(turn: "Turn", errands: "list[str]", outboxes: "tuple[str, ...]" = (memo.PINS, memo.REST)) -> "list[str]":
    """Run errands apart, and take what is to be told where this event can tell it."""
    if errands:
        from ecm_rules.hosts import apart

        def job() -> None:
            from ecm_rules.hosts import errands as known

            known.run(turn, errands)

        apart.run(job, turn.until)
    if turn.channel is None:
        return []
    who = turn.project, turn.paths, turn.session, turn.agent
    return [text for outbox in outboxes for text in memo.collect(*who, outbox)]
