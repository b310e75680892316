"""What is told when, by the kind of an event. Part of the runtime ring.

A prompt is told the meter and the verdict; a tool's result only that the zone has changed; a session's start the pins,
and the digest of the brief that it succeeds. What takes its time is an errand: it is run apart, and what it has to
say is told by whichever event comes first once it is done.
"""

from ecm_rules.engine import zones
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
    _run(turn, errands)
    return _collected(turn, memo.PINS)


def _prompt(turn: "Turn", texts: "list[str]") -> None:
    texts.append(line(turn))
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        _moved(turn, known)
        errands = _due(turn, known)
    if "operation" not in errands:
        texts += _notices(turn)
    _run(turn, errands)
    _add(turn, texts)


def _tool_result(turn: "Turn", texts: "list[str]") -> None:
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        before = _moved(turn, known)
        errands = _due(turn, known)
    # That there is room, nobody has to be told who was not told otherwise.
    if before != known.zone and (before is not None or turn.verdict["steps"]):
        texts.append(f"Context zone changed: {before or zones.UNKNOWN} -> {known.zone}.")
    _run(turn, errands)
    _add(turn, texts)


def _session(turn: "Turn", texts: "list[str]") -> None:
    if turn.event["forgets"]:
        # The prompt that comes along with it must know at once.
        with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
            known.boundary = None
    elif turn.agent is None:
        _run(turn, ["pins", "succession", "sweep"] if turn.event["moment"] == "session_start" else ["pins"])
        texts += _collected(turn, memo.PINS)
        texts += _collected(turn, memo.REST)


def _before_compaction(turn: "Turn", _: "list[str]") -> None:
    with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
        # The meter may count fewer: where no transcript tells it, another session may have had the meter since.
        known.compacting = max(turn.compactions, known.boundary or 0)
    _run(turn, ["bracket"])


_MOMENTS: "dict[str, Callable[[Turn, list[str]], None]]" = {
    "prompt": _prompt,
    "tool_result": _tool_result,
    "session_start": _session,
    "session_resumed": _session,
    "session_compacted": _session,
    "after_compaction": _session,
    "before_compaction": _before_compaction,
}


def _moved(turn: "Turn", known: "memo.Memo") -> "str | None":
    """The zone as it was told before, and from now on is. Not to know is not to leave."""
    before, known.moved = known.zone, True
    if turn.now["zone"] != zones.UNKNOWN:
        known.zone = turn.now["zone"]
    return before


def _due(turn: "Turn", known: "memo.Memo") -> "list[str]":
    """The errands that an event within a turn gives rise to."""
    errands = _due_pins(turn, known)
    if not errands and known.verify is not None and turn.told.transcript is not None and not _untold_pins(turn):
        known.verify = None  # once, whatever comes of it
        errands.append("verify")
    if turn.verdict["steps"] and _entered(turn):
        errands.append("operation")
    return errands


def _untold_pins(turn: "Turn") -> bool:
    """Whether the pins are still to be told, so that they cannot be in the window yet."""
    return memo.waits(turn.project, turn.paths, turn.session, turn.agent, memo.PINS)


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

    told = steps.run(turn.verdict, turn.programs["playbook"], {}, turn.work(), host=turn.host["carries_out"])
    turn.complaints += told["complaints"]
    return steps.notices(told)


def _run(turn: "Turn", errands: "list[str]") -> None:
    """Run errands apart. What they have to say is in the outboxes afterwards, or later."""
    if not errands:
        return
    from ecm_rules.hosts import apart

    def job() -> bytes:
        from ecm_rules.hosts import errands as known

        known.run(turn, errands)
        return b""

    apart.run(job, turn.until)


def _collected(turn: "Turn", outbox: str) -> "list[str]":
    """What is to be told, where this event can tell it."""
    if turn.channel is None:
        return []
    return memo.collect(turn.project, turn.paths, turn.session, turn.agent, outbox)


def _add(turn: "Turn", texts: "list[str]") -> None:
    """Add the pins, and as much of the rest as there is room for beside what is told already, one text at least; what
    is left waits for the next event. Cache discipline C-4.
    """
    limits = turn.programs["program"]["limits"]
    room = limits["injected_artifact_max_tokens"] * limits["bytes_per_token"] - _size(texts)
    texts += _collected(turn, memo.PINS)  # told, whatever becomes of the rest
    told = _collected(turn, memo.REST)
    fit = len(told)
    while fit > 1 and _size(told[:fit]) > room:
        fit -= 1
    for text in told[fit:]:
        memo.leave(turn.project, turn.paths, turn.session, turn.agent, memo.REST, text)
    texts += told[:fit]


def _size(texts: "list[str]") -> int:
    return sum(len(text.encode("utf-8", "replace")) + 1 for text in texts)
