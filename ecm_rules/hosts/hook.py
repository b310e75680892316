"""`ecm-hook HOST`: an event of a client on stdin, at most one answer on stdout. Part of the runtime ring.

It runs on every prompt, so it imports nothing but the ring while its cached programs are current, and answers in
time or not at all. It never blocks the client, and exits 0 whatever happens; what went wrong is one line on stderr.
"""

import os
import sys
import time

from ecm_rules.engine import program as engine
from ecm_rules.hosts import answers, cache, measuring, moments
from ecm_rules.kernel import kin, meter, payloads
from ecm_rules.kernel.lookup import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_PAYLOAD = 16 << 20
# In seconds, until the project's own `limits.prompt_path_ms` is read.
DEADLINE = 0.3
# In milliseconds, for a machine that is too slow for that; 0 is no deadline.
VARIABLE = "ECM_PROMPT_PATH_MS"
_MEASURED: "dict[str, Any]" = {"moment": "measured", "say": None}
_CONFIGURATION = "eidolons.yaml"
# The part of the time after which nothing is waited for any more, so that there is some left to answer.
_MARGIN = 0.9
_FOR_EVER = 1e6


class Late(BaseException):
    """The deadline has passed."""


def command() -> None:
    """The console script."""
    main()
    # All is written. What the interpreter does on its way out costs more than measuring, and is of no use.
    os._exit(0)


def main() -> int:
    """Answer the payload on stdin; 0."""
    begun = time.monotonic()
    out: bytes = b""
    complaint: "str | None" = None
    try:
        try:
            _alarm(begun + _seconds(DEADLINE))
            out, complaint = run(sys.argv[1:], begun)
        except OSError as error:
            complaint = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        except Exception as error:
            complaint = str(error) or error.__class__.__name__
        finally:
            _alarm(None)
    except Late:  # also while it was said what went wrong; an answer that is whole is given
        complaint = "late: the deadline has passed"
    except BaseException as error:
        complaint = str(error) or error.__class__.__name__
    _write(1, out)
    if complaint:
        _write(2, ("ecm-hook: " + " ".join(complaint.split())[:500] + "\n").encode("utf-8", "replace"))
    return 0


def run(arguments: "list[str]", begun: float) -> "tuple[bytes, str | None]":
    """Handle the payload on stdin: (what goes to stdout, a complaint or None)."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        return b"", "usage: ecm-hook HOST < payload"
    project = project_of(os.getcwd())
    payload = sys.stdin.buffer.read(MAX_PAYLOAD + 1) if sys.stdin else b""
    return (b"", None) if project is None else handle(arguments[0], payload, project, begun, _alarm)


def project_of(folder: str) -> "str | None":
    """The folder of the project that a session in `folder` is about: the nearest above it that is configured, within
    the repository; else the one that the client names in its environment. None without one.
    """
    while True:
        if os.path.exists(os.path.join(folder, _CONFIGURATION)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            break
        folder = parent
    named = (value for name, value in os.environ.items() if name.endswith("_PROJECT_DIR") and os.path.isabs(value))
    return next((value for value in named if os.path.exists(os.path.join(value, _CONFIGURATION))), None)


def handle(
    name: str,
    payload: bytes,
    project: str,
    begun: "float | None" = None,
    alarm: "Callable[[float | None], None] | None" = None,
) -> "tuple[bytes, str | None]":
    """(the answer to a payload of the host `name`, a complaint or None).

    begun: when the client began to wait, by `time.monotonic`. alarm: is told how long it waits. Raises OSError where
    state cannot be read or written, cache.Broken where a table does not load.
    """
    begun = time.monotonic() if begun is None else begun
    # The first event of all, most likely a session's start, waits for the tables; so does what comes along with it.
    cold = not os.path.lexists(os.path.join(project, cache.FILE))
    seconds = moments.PATIENCE if cold else _seconds(DEADLINE)
    if alarm is not None:
        alarm(begun + seconds)
    programs = cache.programs(project, begun + _MARGIN * seconds)
    if cold:
        begun = time.monotonic()
    if programs is None:
        return b"", None
    host = programs["hosts"].get(name)
    if host is None:
        return b"", f"unknown host {name!r}, known: {', '.join(programs['hosts'])}"
    given = meter.parse(payload, MAX_PAYLOAD)
    if isinstance(given, engine.Unreadable):
        return b"", f"payload: {given.reason}"
    event = next((event for event in host["events"] if fits(given, (event,))), _MEASURED)
    if event["moment"] == "ignored":
        return b"", None
    if event["moment"] in moments.UNHURRIED:
        seconds = moments.PATIENCE
    else:
        seconds = _seconds(programs["program"]["limits"]["prompt_path_ms"] / 1000)
    if alarm is not None:
        alarm(begun + seconds)
    told = payloads.read(host, given)
    kin.resolve(project, programs["audit"], told)
    turn = measuring.Turn(project, programs, host, event, given, told, begun + _MARGIN * seconds)
    return _answer(turn), "; ".join(turn.complaints) or None


def _answer(turn: "measuring.Turn") -> bytes:
    moment, channel = turn.event["moment"], turn.channel
    given: "dict[str, Any] | None"
    if moment == "request":
        from ecm_rules.hosts import requests

        messages = requests.rewritten(turn)
        given = {answers.MESSAGES: messages} if messages is not None else None
    else:
        measuring.refresh(turn)
        if moment == "statusline":
            from ecm_rules.hosts import statusline

            given = {answers.TEXT: statusline.render(turn.now, turn.verdict)}
        else:
            texts = moments.tell(turn)
            given = {answers.TEXT: "\n".join(texts)} if texts else None
    return answers.compose(channel, turn.payload, given) if channel is not None and given is not None else b""


def _seconds(usual: float) -> float:
    """How long an event within a turn may take: as usual, or as the environment says."""
    told = os.environ.get(VARIABLE, "")
    return (int(told[:9]) / 1000 or _FOR_EVER) if told.isascii() and told.isdigit() else usual


def _alarm(until: "float | None") -> None:
    """Raise Late at a moment of `time.monotonic`, whatever is going on then; None: not any more."""
    # Python's own module around this costs as much as json.
    import _signal  # type: ignore[import-not-found]

    if not hasattr(_signal, "setitimer"):
        return
    _signal.signal(_signal.SIGALRM, _late)
    _signal.setitimer(_signal.ITIMER_REAL, 0 if until is None else max(0.001, until - time.monotonic()))


def _late(*_: object) -> None:
    raise Late


def _write(stream: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(stream, data) :]
    except OSError:
        pass  # nobody listens


if __name__ == "__main__":
    command()
