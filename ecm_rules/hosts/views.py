"""Requests that pass a client's hook, with what was consumed left out and active blocks put in. ACLP V1 §"Request
processing order"; docs/lifecycle.md §"In the clients". Part of the runtime ring.

Each request is a process of its own, so the lifetimes of a session, or of a subagent of it, are kept beside the meter.
What a view leaves out follows from the history alone. What it puts in follows from the history, the sources and what
is kept, and all three are there again with the next request, whether or not this one could keep anything: so each
request begins with the bytes of the one before it. Where what is kept cannot be read, nothing is put in, for a block
that was discarded must not come back; where it is no state any more, it begins anew.
"""

import json
import os

from ecm_rules.kernel import audit, files, locks
from ecm_rules.lifecycle.injection import FIRST
from ecm_rules.lifecycle.providers import SHAPES
from ecm_rules.lifecycle.session import Session
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ecm_rules.lifecycle.session import View
    from ecm_rules.lifecycle.shapes import Shape
    from ecm_rules.lifecycle.trust import Policy, Source

    Sources = Iterable[tuple[str, Source | str]]

EVENT = "lifetime"
# In seconds; who comes later keeps what is new with its next request.
PATIENCE = 0.1
MAX_BYTES = 8 << 20
# How far back the log is searched for events of which it is not known whether they were written.
_TAIL = 1 << 20
_MARK = "<!--"
_BOM = b"\xef\xbb\xbf"


def view(
    project: str,
    paths: "Mapping[str, str]",
    trust: "Policy",
    shape_name: str,
    session: "str | None",
    agent: "str | None",
    messages: "list[Any]",
    sources: "Sources" = (),
    *,
    patience: float = PATIENCE,
) -> "tuple[list[Any] | None, list[str]]":
    """(the messages to send, None where they are to be sent as they came; complaints).

    paths: where the meter and the policy log stand. session: None where the payload does not say, as OpenCode's: its
    messages do. sources: Markdown that is loaded as context, each with its name or `Source`, as it is now; what was
    loaded before is not loaded again. What is returned shares what is not rewritten with `messages`, which are not
    changed. Never raises for anything in them, nor for a state that cannot be read or kept, which is a complaint.
    """
    shape = SHAPES.get(shape_name)
    if shape is None or not isinstance(messages, list):
        return None, [f"found no messages of a known shape {shape_name!r}"]
    try:
        told = _Request(
            project, paths, trust, shape, session or shape.session(messages), agent, messages, list(sources)
        )
        return told.view(patience)
    except Exception as error:  # whatever it was, the client has a request to send
        return None, [f"lifetimes: {error.__class__.__name__}: {error}"]


def read_sources(project: str, names: "Iterable[str]") -> "tuple[list[tuple[str, str]], list[str]]":
    """(Markdown files of a project, as `view` takes them, by their names relative to it; complaints).

    Of one that cannot be read now, what was loaded before holds.
    """
    found: "list[tuple[str, str]]" = []
    complaints = []
    for name in names:
        try:
            # One byte-order mark that may begin a file is no part of it.
            found.append((files.read(os.path.join(project, name)).removeprefix(_BOM).decode("utf-8"), name))
        except (OSError, ValueError) as error:
            complaints.append(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}")
    return found, complaints


def file_of(paths: "Mapping[str, str]", session: "str | None", agent: "str | None") -> str:
    """Where the lifetimes of a session, or of a subagent, stand, relative to the project: beside the meter."""
    folder = os.path.dirname(paths.get("meter", audit.METER))
    session = session or ""
    # The length keeps a subagent's name apart from a session's that looks like it.
    name = session if agent is None else f"{len(session)}/{session}/{agent}"
    return f"{folder}/lifetimes-{files.session_name(name)}.json" if name else f"{folder}/lifetimes.json"


class _State:
    """What is kept: a snapshot whose audit holds the events that are not known to be in the log, and marks of what was
    loaded. corrupt: whether something else stood there.
    """

    __slots__ = ("corrupt", "loaded", "snapshot")

    def __init__(self, snapshot: "dict[str, Any]", loaded: "list[str]", corrupt: bool = False) -> None:
        self.snapshot = snapshot
        self.loaded = loaded
        self.corrupt = corrupt


class _Request:
    """One request of a session."""

    __slots__ = ("_agent", "_messages", "_paths", "_project", "_session", "_shape", "_sources", "_trust", "complaints")

    def __init__(
        self,
        project: str,
        paths: "Mapping[str, str]",
        trust: "Policy",
        shape: "Shape",
        session: "str | None",
        agent: "str | None",
        messages: "list[Any]",
        sources: "list[tuple[str, Source | str]]",
    ) -> None:
        self._project = project
        self._paths = paths
        self._trust = trust
        self._shape = shape
        self._session = session
        self._agent = agent
        self._messages = messages
        self._sources = sources
        self.complaints: "list[str]" = []

    def view(self, patience: float) -> "tuple[list[Any] | None, list[str]]":
        """As the function."""
        name = file_of(self._paths, self._session, self._agent)
        try:
            before = self._read(files.state_path(self._project, name, make=False))
        except OSError as error:
            self.complaints.append(f"lifetimes cannot be read, no block is put in: {error.strerror or error}")
            self._sources = []
            _, made = self._made(self._new())
            return self._sent(made)
        after, made = self._made(before)
        if _differ(before, after):
            try:
                made = self._keep(files.state_path(self._project, name), patience)
            except locks.Busy:
                self.complaints.append("lifetimes are in use: what is new is kept with the next request")
            except OSError as error:
                self.complaints.append(f"lifetimes are not kept: {error.strerror or error}")
        return self._sent(made)

    def _sent(self, made: "View") -> "tuple[list[Any] | None, list[str]]":
        changed = bool(made.changes) or made.injected is not None
        return made.messages if changed else None, [*dict.fromkeys(self.complaints), *_said(made.problems)]

    def _made(self, state: _State) -> "tuple[_State, View]":
        """What is to be kept after this request, and its view."""
        # In front, blocks are part of the prefix that all requests have in common; behind, they would move each time.
        lifetimes = Session(self._trust, shape=self._shape, inject=FIRST)
        lifetimes.restore(state.snapshot)
        loaded = dict.fromkeys(state.loaded)
        for text, source in self._sources:
            if text.__class__ is not str:
                self.complaints.append(f"a source is no text: {source}")
            elif _MARK in text:
                mark = self._mark(text, source)
                if mark not in loaded:
                    loaded[mark] = None
                    lifetimes.load_source(text, source)
        made = lifetimes.view(self._messages)
        return _State(lifetimes.snapshot(), list(loaded)), made

    def _keep(self, path: str, patience: float) -> "View":
        """Make the view from what is kept now, and keep what is new. Raises locks.Busy, OSError.

        Events are kept first and logged then, so that none is lost, whenever this ends; those of which it is not known
        whether they were logged are searched for, so that none is there twice.
        """
        lock = locks.take(os.path.splitext(path)[0] + ".lock", patience)
        try:
            before = self._read(path)
            after, made = self._made(before)
            if not _differ(before, after):
                return made
            self._write(path, after)
            events = after.snapshot["audit"]
            if events:
                after.snapshot["audit"] = self._log(events, bool(before.snapshot["audit"]))
                self._write(path, after)
            return made
        finally:
            locks.release(lock)

    def _log(self, events: "list[dict[str, Any]]", search: bool) -> "list[dict[str, Any]]":
        """Append events to the policy log; those that could not be."""
        logged = self._logged() if search else set()
        for at, event in enumerate(events):
            told = {
                "event": EVENT,
                "evaluated_at": event["timestamp"],
                "session_id": files.short(self._session) if self._session else None,
                "agent_id": files.short(self._agent) if self._agent else None,
                **{key: value for key, value in event.items() if key != "timestamp"},
            }
            try:
                if audit.event_line(told) not in logged:
                    audit.event(self._project, self._paths, told)
            except OSError as error:
                self.complaints.append(f"lifetimes are not logged: {error.strerror or error}")
                return events[at:]
        return []

    def _logged(self) -> "set[bytes]":
        """The last lines of the policy log."""
        try:
            path = files.state_path(self._project, self._paths.get("policy_log", audit.LOG), make=False)
            with places.open_regular(path, follow=False) as stream:
                stream.seek(max(0, stream.seek(0, 2) - _TAIL))
                return set(stream.read().split(b"\n"))
        except FileNotFoundError:
            return set()

    def _read(self, path: str) -> _State:
        """What is kept at a path; what is no such thing is begun anew. Raises OSError."""
        try:
            with places.open_regular(path, follow=False) as stream:
                data = stream.read(MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return self._new()
        try:
            found = json.loads(data)
            loaded = found.pop("loaded")
            Session(self._trust).restore(found)
            if not isinstance(loaded, list) or not all(isinstance(mark, str) for mark in loaded):
                raise ValueError("no marks")
            return _State(found, loaded)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            self.complaints.append(f"lifetimes were no longer readable and begin anew: {os.path.basename(path)}")
            return self._new(corrupt=True)

    def _new(self, corrupt: bool = False) -> _State:
        return _State(Session(self._trust).snapshot(), [], corrupt)

    def _write(self, path: str, state: _State) -> None:
        data = json.dumps({**state.snapshot, "loaded": state.loaded}).encode("ascii")
        if len(data) > MAX_BYTES:
            raise OSError(f"more than {MAX_BYTES} bytes")
        files.replace(path, data)

    def _mark(self, text: str, source: "Source | str") -> str:
        """A hash over a source and who judges it. What a table allows that did not before is loaded anew."""
        from _blake2 import blake2b

        known: "list[Any]" = [getattr(self._trust, "digest", "")]
        if isinstance(source, str):
            known.append(source)
        else:
            known += [source.id, source.origin, source.explicitly_loaded, source.message_class]
        return blake2b(json.dumps([*known, text]).encode("ascii"), digest_size=16).hexdigest()


def _differ(before: _State, after: _State) -> bool:
    """Whether there is something to keep. How many requests there were is nothing by itself: a request that nothing
    came of costs no file.
    """
    if before.corrupt or before.snapshot["audit"] or before.loaded != after.loaded:
        return True
    return any(value != before.snapshot[key] for key, value in after.snapshot.items() if key != "request_sequence")


def _said(problems: "list[dict[str, Any]]") -> "list[str]":
    """The problems of a view, of each kind the first."""
    first: "dict[str, dict[str, Any]]" = {}
    for problem in problems:
        first.setdefault(problem["code"], problem)
    return [
        f"message {problem['index']}: {problem['message']}" if "index" in problem else str(problem["message"])
        for problem in first.values()
    ]
