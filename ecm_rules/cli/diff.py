"""`ecm-rules diff OLD NEW`: where two tables lead to different operations."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable

if TYPE_CHECKING:
    from ecm_rules.analysis.difference import Difference
    from ecm_rules.analysis.logs import Count
    from ecm_rules.engine.policy import Policy


class Format(enum.StrEnum):
    text = "text"
    json = "json"
    markdown = "markdown"


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="A shipped table, a path, a project's folder, git:REV:path, or git:REV: the other one then.",
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same.")],
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.text,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="A policy log: count its verdicts in each region.")
    ] = None,
) -> None:
    """Print each region in which the operation changes, with a witness a side. Exit 0 where there is none, 1 where
    there is one, 2 where a table cannot be read or the comparison is too large to finish.
    """
    from ecm_rules.analysis.boxes import Inconclusive
    from ecm_rules.analysis.difference import compare
    from ecm_rules.analysis.logs import count
    from ecm_rules.analysis.revisions import load_side

    with output.refusals(code=output.UNREADABLE):
        before, after = load_side(old, beside=new), load_side(new, beside=old)
    try:
        difference = compare(before, after)
        counts = count(difference, log) if log is not None else None
    except Inconclusive as reason:
        output.say(f"inconclusive: {reason}")
        raise typer.Exit(output.UNREADABLE) from None
    except OSError as error:
        output.say(f"{printable(log or '')}: {(error.strerror or str(error)).lower()}")
        raise typer.Exit(output.UNREADABLE) from None
    match form:
        case Format.json:
            output.document(_data(before, after, difference, counts))
        case Format.markdown:
            print(_markdown(difference, counts))
        case Format.text:
            print(_text(difference, counts))
    raise typer.Exit(output.FINDINGS if difference.regions or difference.redefined else 0)


def _text(difference: Difference, counts: Count | None) -> str:
    lines = []
    for number, region in enumerate(difference.regions):
        lines.append(region.text)
        width = max(len(str(side.rule)) for side in (region.old, region.new))
        for word, side in (("old", region.old), ("new", region.new)):
            lines.append(f"  {word}  {side.rule or 'no row':<{width}}  {side.witness or 'depends on an expression'}")
        if counts is not None:
            lines.append(f"  {_counted(counts, number)}")
        lines.append("")
    return "\n".join([*lines, *(operation.text for operation in difference.redefined), _summary(difference, counts)])


def _counted(counts: Count, number: int) -> str:
    undecided = counts.undecided[number]
    more = f", {undecided:,} more may be: their lines do not tell" if undecided else ""
    return f"log  {counts.inside[number]:,} of {counts.verdicts:,} verdicts{more}"


def _summary(difference: Difference, counts: Count | None) -> str:
    told = []
    if difference.regions:
        kinds = [region.change for region in difference.regions]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        told.append(f"{len(kinds)} region{'' if len(kinds) == 1 else 's'}: {counted}")
    else:
        same = "every meter leads to the same operation"
        told.append(same if difference.redefined else f"no difference: {same}")
    if difference.redefined:
        many = len(difference.redefined)
        told.append(f"{many} operation{'' if many == 1 else 's'} with other steps")
    if counts is not None and counts.unread:
        told.append(f"{counts.unread:,} of the lines of the log could not be read as verdicts")
    return "; ".join(told)


def _markdown(difference: Difference, counts: Count | None) -> str:
    from ecm_rules.cli.table import Section, markdown

    columns = ["where", "old", "new", "change", *(["in the log"] if counts is not None else []), "witness, old and new"]
    rows = []
    for number, region in enumerate(difference.regions):
        where = region.text.rpartition(": ")[0]
        sides = [f"{side.operation} ({side.rule or 'no row'})" for side in (region.old, region.new)]
        witness = f"`{region.old.witness}` `{region.new.witness}`"
        logged = [_counted(counts, number).removeprefix("log  ")] if counts is not None else []
        rows.append((where, *sides, region.change, *logged, witness))
    section = Section(_summary(difference, counts), tuple(columns), tuple(rows))
    listed = [f"- {operation.text}" for operation in difference.redefined]
    return "\n".join([markdown(section) if rows else f"**{section.title}**", *(["", *listed] if listed else [])])


def _data(before: Policy, after: Policy, difference: Difference, counts: Count | None) -> dict[str, Any]:
    told = []
    for number, region in enumerate(difference.regions):
        entry: dict[str, Any] = {
            "text": region.text,
            "where": region.where,
            "unless": region.unless,
            "roles": region.roles,
            "change": region.change,
        }
        for word, side in (("old", region.old), ("new", region.new)):
            witness = attrs.asdict(side.witness) if side.witness else None
            entry[word] = {"operation": side.operation, "rule": side.rule, "witness": witness}
        if counts is not None:
            entry["logged"] = {"inside": counts.inside[number], "undecided": counts.undecided[number]}
        told.append(entry)
    data: dict[str, Any] = {"same": not (difference.regions or difference.redefined)}
    data |= {"old": before.digest, "new": after.digest, "regions": told}
    data["redefined"] = [attrs.asdict(operation) for operation in difference.redefined]
    if counts is not None:
        data["log"] = {"verdicts": counts.verdicts, "unread": counts.unread}
    return data
