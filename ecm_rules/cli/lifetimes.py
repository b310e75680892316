"""Declarations, views and audits as people and as machines read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecm_rules.cli import output
from ecm_rules.cli.reports import as_data
from ecm_rules.cli.table import Section, text
from ecm_rules.lifecycle import Document, Session, Shape, View
from ecm_rules.lifecycle.conformance import described
from ecm_rules.lifecycle.findings import CODES
from ecm_rules.lifecycle.injection import LAST
from ecm_rules.lifecycle.shapes import TOOL
from ecm_rules.tables.findings import Finding, clip, printable

# Whoever reads a thousand findings reads no more; all of them are in the JSON form.
MOST = 1000
_DIAGNOSTICS = {code: diagnostic for diagnostic, code in CODES.items()}

_KEEPS = "what a provider has cached stays"
_COSTS = "each change of it costs what a provider has cached"

# What became of an attempt, in words.
_WHY = {
    "block_activated": "the trust table lets it define blocks",
    "activation_denied": "the trust table does not let it define blocks",
    "block_discarded": "the trust table lets it discard blocks",
    "discard_denied": "the trust table does not let it discard blocks",
    "discard_unknown": "no block of this id was ever active",
    "discard_already_applied": "the block is discarded already",
}


def documents(read: Iterable[Document], found: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    """What files declare, as one JSON document."""
    return {"files": [{"file": d.source, **described(d), "diagnostics": _diagnostics(found[d.source])} for d in read]}


def show_documents(read: Iterable[Document], found: Mapping[str, Sequence[Finding]]) -> None:
    """The same for people."""
    for document in read:
        findings = found[document.source]
        counts = [
            "ephemeral" if document.ephemeral else "not ephemeral",
            _count(len(document.blocks), "block"),
            _count(len(document.discards), "discard"),
            _count(len(findings), "diagnostic"),
        ]
        print(f"{printable(document.source)}: {', '.join(counts)}")
        for block in document.blocks:
            print(f"  block    {_short(block.id)}  lines {block.start_line} to {block.end_line}")
        for discard in document.discards:
            print(f"  discard  {_short(discard.block_id)}  line {discard.line}")
        if findings:
            output.show_findings(findings[:MOST])
        if findings[MOST:]:
            print(f"{len(findings) - MOST:,} more; --json has all of them")


def viewed(view: View, events: list[dict[str, Any]], findings: Sequence[Finding]) -> dict[str, Any]:
    """A view, what was audited while it was made, and what sources and controls declare in vain."""
    return {
        "request_sequence": view.request_sequence,
        "messages": view.messages,
        "system": view.system,
        "injected": view.injected,
        "changes": view.changes,
        "active": view.active,
        "audit": events,
        "problems": view.problems,
        "diagnostics": _diagnostics(findings),
    }


def show_view(view: View, session: Session, history: Sequence[Any], events: list[dict[str, Any]]) -> None:
    """The same for people: what of the history is not sent as it is, and why."""
    title = (
        f"Request {view.request_sequence}: {_count(len(history), 'message')}, {_count(len(view.changes), 'tombstone')}"
    )
    changes = [_tombstone(change, history, session.shape) for change in view.changes]
    if view.injected is not None or view.system:
        changes.append(_injection(view, session))
    sections = [Section(title, ("message", "role", "what", "why"), tuple(changes))] if changes else []
    if events:
        told = tuple((e["action"], _short(e.get("block_id", "-")), _short(e["source"]), _why(e)) for e in events)
        sections.append(Section("Events", ("action", "block", "source", "why"), told))
    if view.problems:
        problems = tuple((str(p.get("index", "-")), p["code"], printable(p["message"])) for p in view.problems)
        sections.append(Section("Problems", ("message", "code", "what"), problems))
    if not changes:
        print(f"{title}; it is sent as it is")
    _show(sections)


def audited(session: Session) -> dict[str, Any]:
    """What a session has kept, as one JSON document."""
    return {
        "request_sequence": session.request_sequence,
        "audit": session.audit,
        "blocks": session.blocks,
        "diagnostics": session.diagnostics,
    }


def show_audit(session: Session) -> None:
    """The same for people."""
    events = tuple(
        (
            printable(str(event["timestamp"])),
            str(event["request_sequence"]),
            _short(event["action"]),
            _short(event.get("block_id", "-")),
            _short(event["source"]),
            _short(event["trigger"]),
            _number(event.get("original_bytes")),
        )
        for event in session.audit
    )
    blocks = tuple(
        (_short(b["id"]), b["status"], _short(b["source"]), _number(len(b["content"].encode("utf-8", "surrogatepass"))))
        for b in session.blocks
    )
    columns = ("time", "request", "action", "block", "source", "trigger", "bytes")
    sections = [Section(f"Audit of {_count(session.request_sequence, 'request')}", columns, events)] if events else []
    if blocks:
        sections.append(Section("Blocks", ("block", "status", "source", "bytes"), blocks))
    if not sections:
        print(f"{_count(session.request_sequence, 'request')}, nothing to audit")
    _show(sections)


def _diagnostics(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings under the names that the protocol has for them; `finding` is the code of the page."""
    return [{**as_data(f), "code": _DIAGNOSTICS[f.code], "finding": f.code} for f in findings]


def _tombstone(change: Mapping[str, Any], history: Sequence[Any], shape: Shape) -> tuple[str, ...]:
    index, slot = change["index"], change["slot"]
    place = str(index) if slot is None else f"{index}, part {slot}"
    role = shape.role(history[index]) if slot is None else TOOL
    what = f"a tombstone stands for {_number(change['original_bytes'])} bytes"
    why = f"an answer stands later, in message {shape.latest_answer(history)}"
    return place, _short(role or "-"), what, why


def _injection(view: View, session: Session) -> tuple[str, ...]:
    what = f"{_count(len(view.active), 'active block')} injected: {clip(', '.join(map(_short, view.active)), 200)}"
    if view.injected is None:
        return "-", "system", what, f"beside the messages, in the system text; {_COSTS}"
    role = session.shape.role(view.messages[view.injected]) or "-"
    if len(view.messages) == len(view.core):
        return str(view.injected), _short(role), what, f"within its text, in front; {_COSTS}"
    behind = view.injected == len(view.messages) - 1
    why = "behind the history" if behind else f"in front of message {view.injected}"
    return "new", _short(role), what, f"{why}; {_KEEPS if session.inject == LAST else _COSTS}"


def _why(event: Mapping[str, Any]) -> str:
    if event["action"] == "ephemeral_consumed":
        return f"an answer stands later; {_number(event['original_bytes'])} bytes"
    return _WHY.get(event["action"]) or printable(str(event.get("reason", "")))


def _show(sections: Sequence[Section]) -> None:
    """Tables: Rich ones on a terminal, plain ones in a pipe or with NO_COLOR."""
    if sys.stdout is None or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        if sections:
            print("\n\n".join(text(section) for section in sections))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    for section in sections:
        table = Table(*section.columns, title=Text(section.title, "bold"), title_justify="left")
        for row in section.rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(count: Any) -> str:
    return f"{count:,}" if isinstance(count, int) else "-"


def _short(name: Any) -> str:
    return printable(clip(str(name), 60))
