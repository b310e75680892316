"""What a payload of a client's hook or statusline says of the window. Part of the runtime ring.

Which client sent it, and where it says what, is data: rules/hosts.yaml.
"""

import os

from ecm_rules.kernel import files
from ecm_rules.kernel.lookup import fits, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GIVEN = "given"
"""The basis of a window that whoever calls has named."""
_LONGEST_ID = 200
# Moments at which a compaction lies behind, whether this payload or another is the one that counts it.
_EMPTIED = ("after_compaction", "session_compacted")


class Told:
    """What is told of a session: by a payload, by flags, or by both.

    used, used_percentage: the client's reading of the window, in tokens and 0 to 100; used_elsewhere: one that its
    transcript outranks. window: in tokens, `window_basis` says by whom. about: whether the payload has a place for a
    percentage, so that saying nothing there means something. compacted: whether a compaction has just happened, and
    counts; emptied: whether one has, as far as the window is concerned. nests: whether a session may be a subagent of
    another one, which `kin.resolve` knows. unread: that there was something, and nobody knows what it said.
    """

    __slots__ = (
        "about", "agent", "compacted", "emptied", "model", "nests", "session", "transcript", "unread", "used",
        "used_elsewhere", "used_percentage", "window", "window_basis",
    )  # fmt: skip

    def __init__(self) -> None:
        self.session: "str | None" = None
        self.agent: "str | None" = None
        self.transcript: "str | None" = None
        self.model: "str | None" = None
        self.used: "float | None" = None
        self.used_percentage: "float | None" = None
        self.used_elsewhere: "float | None" = None
        self.window: "float | None" = None
        self.window_basis: "str | None" = None
        self.about = False
        self.compacted = False
        self.emptied = False
        self.nests = False
        self.unread = False


def recognise(hosts: "dict[str, Any]", payload: "dict[str, Any]") -> "str | None":
    """The name of the host that sent a payload, None where none is known to send such."""
    return next((name for name, host in hosts.items() if fits(payload, host["payload"]["known_by"])), None)


def read(host: "dict[str, Any]", payload: "dict[str, Any]") -> Told:
    """What a payload of this host says."""
    keys, told = host["payload"], Told()
    session, agent = _id(payload, keys["session"]), text(payload, keys["agent"])
    told.nests = bool(keys["children"])
    for child in keys["children"]:
        parent = _id(payload, child["parent"]) if agent is None and fits(payload, (child,)) else None
        if session and parent and parent != session:
            session, agent = parent, session
    told.session = session
    told.agent = agent
    told.model = text(payload, keys["model"])
    if agent is None:
        told.transcript = text(payload, keys["transcript"]) or _derived(keys["transcript_at"], session, None, None)
    else:
        told.transcript = text(payload, keys["agent_transcript"]) or _derived(
            keys["agent_transcript_at"], session, agent, text(payload, keys["transcript"])
        )
    told.compacted = fits(payload, keys["compacted"])
    moment = next((event["moment"] for event in host["events"] if fits(payload, (event,))), None)
    told.emptied = told.compacted or moment in _EMPTIED
    if fits(payload, keys["other_window"]):
        return told
    told.used = number(payload, keys["used"])
    told.used_percentage = number(payload, keys["used_percentage"])
    told.used_elsewhere = number(payload, keys["used_elsewhere"])
    told.window = number(payload, keys["window"])
    told.window_basis = "client" if told.window else None
    told.about = any(_leads(payload, path) for path in keys["used_percentage"])
    return told


def _id(payload: "dict[str, Any]", paths: "list[list[str | int]]") -> "str | None":
    """The id of a session, as it is kept."""
    found = text(payload, paths)
    return files.session_name(found) if found and len(found) > _LONGEST_ID else found


def _leads(payload: "dict[str, Any]", path: "list[str]") -> bool:
    """Whether there is what the last key of a path would be in."""
    found: "Any" = payload
    for key in path[:-1]:
        found = found.get(key) if found.__class__ is dict else None
    return len(path) > 1 and found is not None


def _derived(
    templates: "list[str]", session: "str | None", agent: "str | None", transcript: "str | None"
) -> "str | None":
    """Where a file stands that a payload does not name: the first place that can be told and is there."""
    given = {"session": session, "agent": agent, "transcript": transcript and os.path.splitext(transcript)[0]}
    for template in templates:
        path = template
        for name, value in given.items():
            if f"{{{name}}}" not in path:
                continue
            if not value or (name != "transcript" and files.session_name(value) != value):
                break
            path = path.replace(f"{{{name}}}", value)
        else:
            found = _expanded(path)
            if found is not None and os.path.isfile(found):
                return found
    return None


def _expanded(path: str) -> "str | None":
    """A path with the home or the one variable that it begins with; None where that is not set."""
    if path.startswith("$"):
        name, _, rest = path[1:].partition("/")
        value = os.environ.get(name)
        return f"{value}/{rest}" if value else None
    return os.path.expanduser(path)
