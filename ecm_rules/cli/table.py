"""`ecm-rules table`: the decision table, its operations and the pins, as people read them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated, Any

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import render


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

    with output.refusals(project):
        loaded = load_table(name, project=project)
    if loaded.table.notes:
        output.say(render(loaded.table.notes))
    if form is Format.json:
        output.document(_data(loaded))
        return
    sections = [_rows(loaded), *_zones(loaded), _operations(loaded.table), _steps(loaded.table)]
    if loaded.table.pins:
        sections.append(_pins(loaded.table.pins))
    written: Callable[[Section], str] = markdown if form is Format.markdown else text
    print("\n\n".join(written(section) for section in sections))


def _rows(loaded: Any) -> Section:
    """The rows of the program, which is what decides; the reasons and references of the model beside them."""
    rows = []
    for row, written in zip(loaded.program["rows"], loaded.table.rows, strict=True):
        tests = [
            output.condition(*test) + (f" ({source.ref})" if source.ref else "")
            for test, source in zip(row["when"], written.tests, strict=True)
        ]
        rows.append((row["id"], " and ".join(tests) or "anything else", row["operation"], written.why))
    title = "Decision table: the first row that holds wins"
    return Section(title, ("row", "when", "operation", "why"), tuple(rows))


def _zones(loaded: Any) -> list[Section]:
    starts = sorted(loaded.program["zones"].items(), key=lambda zone: zone[1])
    if not starts:
        return []
    ends = [f"to below {output.percent(start)}" for _, start in starts[1:]]
    rows = [("green", f"below {output.percent(starts[0][1])}")]
    rows += [
        (zone, f"{output.percent(start)} {end}")
        for (zone, start), end in zip(starts, [*ends, "and above"], strict=True)
    ]
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


def _data(loaded: Any) -> dict[str, Any]:
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
        "pins": [attrs.asdict(pin) for pin in table.pins],
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
