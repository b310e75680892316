"""What a session was told, so that it is told once. RULINGS ECM 15. Part of the runtime ring.

Each hook is a process of its own. A *memo* remembers, in one file a session or subagent beside the meter, the zone that
was last told and the pins that were last injected; *outboxes* hold texts that were finished too late for the event
that asked for them, until an event comes that can tell them.
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

    Paths = Mapping[str, str]

PATIENCE = 0.05
# Nobody waits for whoever leaves a text.
PATIENCE_TO_LEAVE = 5.0
PINS = "untold-pins"
REST = "untold"
_KINDS = {
    "zone": str, "boundary": int, "content": str, "compacting": int, "moved": bool, "verify": int, "carried": str,
}  # fmt: skip


class Memo:
    """A memo, locked. `close` it.

    zone: as it was told. boundary: how many compactions lay behind the session when its pins were injected. content:
    what these said. compacting: how many lay behind it when the client began another. moved: whether there was a prompt
    or a tool since then. verify: the boundary behind
    which nobody has looked for the pins yet. carried: what every request is given until the next boundary. Each None
    where there is none.
    """

    __slots__ = ("_before", "_lock", "_path", "boundary", "carried", "compacting", "content", "moved", "verify", "zone")

    def __init__(self, path: str, lock: "Lock", known: "dict[str, Any]") -> None:
        self._path = path
        self._lock: "Lock | None" = lock
        self.zone: "str | None" = known["zone"]
        self.boundary: "int | None" = known["boundary"]
        self.content: "str | None" = known["content"]
        self.compacting: "int | None" = known["compacting"]
        self.moved: "bool | None" = known["moved"]
        self.verify: "int | None" = known["verify"]
        self.carried: "str | None" = known["carried"]
        self._before = known

    def __enter__(self) -> "Memo":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Keep what is known now, and give the lock back. Raises OSError."""
        lock, self._lock = self._lock, None
        try:
            known = {key: getattr(self, key) for key in _KINDS}
            if kind is None and known != self._before:
                files.replace(self._path, json.dumps(known).encode("ascii"))
        finally:
            if lock is not None:
                locks.release(lock)


def begin(project: str, paths: "Paths", session: "str | None", agent: "str | None") -> Memo:
    """The memo of a session, or of a subagent of it; one that is corrupt is a new one. Raises locks.Busy, OSError."""
    path = files.state_path(project, _name(paths, "told", session, agent, ".json"))
    lock = locks.take(os.path.splitext(path)[0] + ".lock", PATIENCE)
    try:
        return Memo(path, lock, _read(path))
    except BaseException:
        locks.release(lock)
        raise


def leave(
    project: str,
    paths: "Paths",
    session: "str | None",
    agent: "str | None",
    outbox: str,
    text: str,
    instead: bool = False,
) -> None:
    """Put a text into an outbox, `PINS` or `REST`. instead: of all that is in it. Raises locks.Busy, OSError."""
    path = files.state_path(project, _name(paths, outbox, session, agent, ".jsonl"))
    lock = locks.take(f"{path}.lock", PATIENCE_TO_LEAVE)
    try:
        line = json.dumps(text).encode("ascii")
        if instead:
            files.replace(path, line + b"\n")
        else:
            files.append(path, line)
    finally:
        locks.release(lock)


def waits(project: str, paths: "Paths", session: "str | None", agent: "str | None", outbox: str) -> bool:
    """Whether there is something in an outbox. Raises OSError."""
    return os.path.lexists(files.state_path(project, _name(paths, outbox, session, agent, ".jsonl"), make=False))


def collect(project: str, paths: "Paths", session: "str | None", agent: "str | None", outbox: str) -> "list[str]":
    """Take the texts that an outbox holds, oldest first. Of many that ask at once, one gets them. Raises locks.Busy,
    OSError.
    """
    path = files.state_path(project, _name(paths, outbox, session, agent, ".jsonl"), make=False)
    if not os.path.lexists(path):
        return []
    # Whoever leaves a text has the file open for a moment: what was taken from under it would be lost.
    lock = locks.take(f"{path}.lock", PATIENCE)
    try:
        lines = files.read(path).split(b"\n")
        os.unlink(path)
    except FileNotFoundError:
        return []
    finally:
        locks.release(lock)
    found = []
    for line in lines:
        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if text.__class__ is str:
            found.append(text)
    return found


def _name(paths: "Paths", what: str, session: "str | None", agent: "str | None", ending: str) -> str:
    folder = os.path.dirname(paths.get("meter", audit.METER))
    session = session or ""
    # The length keeps a subagent's name apart from a session's that looks like it.
    name = session if agent is None else f"{len(session)}/{session}/{agent}"
    return f"{folder}/{what}-{files.session_name(name)}{ending}" if name else f"{folder}/{what}{ending}"


def _read(path: str) -> "dict[str, Any]":
    try:
        with places.open_regular(path, follow=False) as stream:
            found = json.loads(stream.read(files.MAX_BYTES))
    except FileNotFoundError:
        found = {}
    except (ValueError, RecursionError):
        found = {}
    if found.__class__ is not dict:
        found = {}
    return {key: found.get(key) if found.get(key).__class__ is kind else None for key, kind in _KINDS.items()}
