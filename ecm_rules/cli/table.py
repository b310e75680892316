"""`ecm-rules table`: the decision table, its operations and the pins, as people read them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated, Any

import attrs
import typer

from ecm_rules.cli import output


class Format(enum.StrEnum):
    text = "text"
    markdown = "markdown"
    json = "json"


@attrs.frozen
class Section:
    """A titled table of strings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table(
    name: Annotated[str, typer.Argument(metavar="TABLE", help="A shipped table's name, or a path.")] = "context-policy",
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.text,
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="The project whose layer is applied.")] = ".",
) -> None:
    """Print a decision table with its operations and, for the context policy, its pins. Exit 1 on findings."""
    from ecm_rules.engine.policy import load_table
    from ecm_rules.tables.load import load_pins

    with output.refusals():
        loaded = load_table(name, project=project)
        pins = load_pins(project) if loaded.table.zones else ()
    for note in loaded.table.notes:
        output.say(f"{note.file}:{note.line}:{note.column}: {note.severity} {note.code}: {note.message}; {note.help}")
    if form is Format.json:
        output.document(_data(loaded, pins))
        return
    sections = [
        _rows(loaded.table),
        *_thresholds(loaded.table),
        _operations(loaded.table),
        _steps(loaded.table),
        *([_pins(pins)] if pins else []),
    ]
    render: Callable[[Section], str] = markdown if form is Format.markdown else text
    print("\n\n".join(render(section) for section in sections))


def _rows(table: Any) -> Section:
    rows = []
    for row in table.rows:
        tests = " and ".join(
            output.condition(t.signal, t.operator, t.constant) + (f" ({t.ref})" if t.ref else "") for t in row.tests
        )
        rows.append((row.id, tests or "anything else", row.operation, row.why))
    return Section("Decision table: the first row that holds wins", ("row", "when", "operation", "why"), tuple(rows))


def _thresholds(table: Any) -> list[Section]:
    if not table.zones:
        return []
    starts = sorted(table.zones.items(), key=lambda zone: zone[1])
    rows = [("green", f"below {starts[0][1]:.0%}")]
    for index, (zone, start) in enumerate(starts):
        rows.append(
            (
                zone,
                f"{start:.0%} to below {starts[index + 1][1]:.0%}"
                if index + 1 < len(starts)
                else f"{start:.0%} and above",
            )
        )
    return [Section("Zones", ("zone", "of the window"), (*rows, ("unknown", "no reading that can be trusted")))]


def _operations(table: Any) -> Section:
    rows = tuple((o.name, ", ".join(o.listed) or "nothing", o.why) for o in table.vocabulary.operations)
    return Section("Operations; a step that is an operation stands for its steps", ("operation", "steps", "why"), rows)


def _steps(table: Any) -> Section:
    rows = tuple(
        (s.name, s.surface, "yes" if s.lossy else "no", s.degrades_to or "-", s.why) for s in table.vocabulary.steps
    )
    return Section("Steps", ("step", "carried out by", "loses content", "degrades to", "why"), rows)


def _pins(pins: Any) -> Section:
    return Section(
        "Pins: what survives every lossy step", ("pin", "why", "from"), tuple((p.id, p.why, p.origin) for p in pins)
    )


def _data(loaded: Any, pins: Any) -> dict[str, Any]:
    table = loaded.table
    return {
        "version": table.version,
        "digest": loaded.digest,
        "zones": dict(table.zones),
        "limits": dict(table.limits),
        "budget_tokens": table.budget_tokens,
        "rows": [
            {
                "id": row.id,
                "when": [
                    {
                        "signal": t.signal,
                        "operator": t.operator,
                        "value": t.constant,
                        **({"ref": t.ref} if t.ref else {}),
                    }
                    for t in row.tests
                ],
                "operation": row.operation,
                "why": row.why,
            }
            for row in table.rows
        ],
        "operations": {
            o.name: {"listed": o.listed, "steps": o.steps, "why": o.why} for o in table.vocabulary.operations
        },
        "steps": {s.name: {k: v for k, v in attrs.asdict(s).items() if k != "name"} for s in table.vocabulary.steps},
        "remap": {role: dict(mapping) for role, mapping in table.remap.items()},
        "pins": [attrs.asdict(pin) for pin in pins],
    }


def markdown(section: Section) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"

    head = [f"**{section.title}**", "", line(section.columns), "|" + "---|" * len(section.columns)]
    return "\n".join([*head, *(line(row) for row in section.rows)])


def text(section: Section) -> str:
    widths = [max(len(row[i]) for row in (section.columns, *section.rows)) for i in range(len(section.columns))]

    def line(cells: tuple[str, ...]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([section.title, "", line(section.columns), rule, *(line(row) for row in section.rows)])
