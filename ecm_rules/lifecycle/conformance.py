"""Lifecycle vectors: language-neutral data that says what texts declare and what sessions do. fixtures/lifecycle/

A parse vector gives a text and expects its document; a session vector gives steps, each with what it must add to the
audit, which blocks are active after it, and what a request's view is.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from ecm_rules.lifecycle import grammar
from ecm_rules.lifecycle.session import Session, View
from ecm_rules.lifecycle.trust import Source, Trust

SECONDS = 1.0
_DOCUMENT = ("ephemeral", "blocks", "discards", "diagnostics", "ordinary_markdown")
# The fields that a step of each kind has.
_STEPS = {
    "load_source": ("source", "markdown", "trigger", "expect"),
    "control": ("source", "markdown", "trigger", "trusted", "expect"),
    "request": ("messages", "expect"),
    "snapshot_restore": (),
    "snapshot": ("slot",),
    "restore": ("slot", "expect"),
}


class NoVector(ValueError):
    """What was given is no vector."""


@attrs.frozen
class Difference:
    """Something that a vector expects and that is otherwise: where, and both, as JSON values."""

    where: str
    seen: Any
    expected: Any


def differences(vector: Any, trust: Trust) -> list[Difference]:
    """What is otherwise than a vector expects; `trust` is the table by which sources are judged.

    Diagnostics of a text are compared in any order, those of a session each once, all else exactly. Whatever is raised
    is a difference too, and so is taking longer than a second. Raises NoVector for what is no vector.
    """
    run = _runner(vector)
    begun = time.process_time()
    try:
        found = list(run(vector, trust))
    except Exception as error:  # a vector that brings us down has failed; the others go on
        found = [Difference("exception", f"{error.__class__.__name__}: {error}", None)]
    spent = time.process_time() - begun
    return [*found, Difference("seconds", round(spent, 3), SECONDS)] if spent > SECONDS else found


def described(document: grammar.Document) -> dict[str, Any]:
    """A document as vectors write it."""
    return {
        "ephemeral": document.ephemeral,
        "blocks": [
            {"id": b.id, "content": b.content, "start_line": b.start_line, "end_line": b.end_line}
            for b in document.blocks
        ],
        "discards": [{"block_id": d.block_id, "line": d.line} for d in document.discards],
        "diagnostics": [{"code": d.code, "line": d.line} for d in document.diagnostics],
        "ordinary_markdown": document.ordinary_markdown,
    }


def _runner(vector: Any) -> Callable[[Any, Trust], Iterator[Difference]]:
    """What runs a vector, once its fields are known to be there."""
    expect = _fields(vector, "vector", ("name", "expect"))["expect"]
    if "given" in vector:
        _fields(vector["given"], "given", ("markdown", "source"))
        _fields(expect, "expect", _DOCUMENT)
        return _parse
    if not isinstance(_fields(vector, "vector", ("steps",))["steps"], list):
        raise NoVector("`steps` is no list")
    _fields(expect, "expect", ("audit", "blocks"))
    for number, step in enumerate(vector["steps"]):
        op = _fields(step, f"step {number}", ("op",))["op"]
        if op not in _STEPS:
            raise NoVector(f"step {number} has the unknown op {op!r}, known: {', '.join(_STEPS)}")
        _fields(step, f"step {number}", _STEPS[op])
    return _session


def _fields(value: Any, what: str, names: tuple[str, ...]) -> Any:
    missing = [name for name in names if not isinstance(value, dict) or name not in value]
    if missing:
        raise NoVector(f"{what} has no {', '.join(f'`{name}`' for name in missing)}")
    return value


def _parse(vector: Any, trust: Trust) -> Iterator[Difference]:  # noqa: ARG001  a text is nobody's yet
    seen = described(grammar.parse(vector["given"]["markdown"], vector["given"]["source"]))
    expect = {field: vector["expect"][field] for field in _DOCUMENT}
    for told in (seen, expect):
        told["diagnostics"] = _sorted(told["diagnostics"], ("code", "line"))
    yield from (d for field in _DOCUMENT for d in _compare(field, seen[field], expect[field]))


def _session(vector: Any, trust: Trust) -> Iterator[Difference]:
    session, slots = Session(trust), {}
    for number, step in enumerate(vector["steps"]):
        op, expect = step["op"], step.get("expect", {})
        where, before = f"step {number} {op}", len(session.audit)
        match op:
            case "snapshot_restore":
                snapshot = json.loads(json.dumps(session.snapshot()))
                session = Session(trust)
                session.restore(snapshot)
                continue
            case "snapshot":
                slots[step["slot"]] = session.snapshot()
                continue
            case "restore":
                session.restore(slots[step["slot"]])
                yield from _compare(f"{where} active", session.active, expect["active"])
                if "request_sequence" in expect:
                    sequence = session.request_sequence
                    yield from _compare(f"{where} request_sequence", sequence, expect["request_sequence"])
                continue
            case "load_source":
                source = Source(step["source"], "context_source", explicitly_loaded=True, trigger=step["trigger"])
                document = session.load_source(step["markdown"], source)
                if "ordinary_markdown" in expect:
                    ordinary = document.ordinary_markdown
                    yield from _compare(f"{where} ordinary_markdown", ordinary, expect["ordinary_markdown"])
            case "control":
                session.control(step["markdown"], _source(step))
            case "request":
                yield from _request(session, step, where)
        yield from _compare(f"{where} audit", _audit(session)[before:], expect["audit"])
        yield from _compare(f"{where} active", session.active, expect["active"])
    expect = vector["expect"]
    yield from _compare("audit", _audit(session), expect["audit"])
    yield from _compare("blocks", session.blocks, expect["blocks"])
    if "diagnostics" in expect:
        seen, told = (_sorted(d, ("code", "source", "line")) for d in (session.diagnostics, expect["diagnostics"]))
        yield from _compare("diagnostics", list(dict.fromkeys(seen)), list(dict.fromkeys(told)))


def _request(session: Session, step: Any, where: str) -> Iterator[Difference]:
    expect, given = step["expect"], copy.deepcopy(step["messages"])
    view = session.view(given, {told["index"]: _source(told) for told in step.get("trusted", ())})
    yield from _compare(f"{where} history", given, step["messages"])
    yield from _compare(f"{where} view", view.core, expect["view"])
    yield from _compare(f"{where} request_sequence", view.request_sequence, expect["request_sequence"])
    yield from _compare(f"{where} rewritten in place", _shared(view, given), [])


def _shared(view: View, given: list[Any]) -> list[int]:
    """The messages that were rewritten and are nevertheless the history's own."""
    changed = {change["index"] for change in view.changes}
    return sorted(index for index in changed if view.core[index] is given[index])


def _source(told: Mapping[str, Any]) -> Source:
    origin = "host_workflow" if told["trusted"] else "custom"
    return Source(told["source"], origin, trigger=told["trigger"])


def _audit(session: Session) -> list[dict[str, Any]]:
    return [{key: value for key, value in event.items() if key != "timestamp"} for event in session.audit]


def _sorted(told: list[dict[str, Any]], keys: tuple[str, ...]) -> list[str]:
    return sorted(json.dumps({key: entry[key] for key in keys}) for entry in told)


def _compare(where: str, seen: Any, expected: Any) -> Iterator[Difference]:
    if seen != expected:
        yield Difference(where, seen, expected)
