"""Which regions of a difference the verdicts of a policy log fall in; what a line does not tell is never guessed."""

from __future__ import annotations

import json
from typing import Any

import attrs

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box, Budget, Row
from ecm_rules.analysis.case import LOOKS
from ecm_rules.analysis.difference import Difference
from ecm_rules.analysis.dimensions import Dimension
from ecm_rules.analysis.sources import Sources
from ecm_rules.analysis.space import Space
from ecm_rules.engine import program as engine
from ecm_rules.engine.compile import fields_of
from ecm_rules.engine.zones import UNKNOWN, rezone
from ecm_rules.tables.domains import accept


@attrs.frozen
class Count:
    """Of a log: the verdicts in each region, those that may lie in it or not, and the lines that are no verdict."""

    verdicts: int
    unread: int
    inside: tuple[int, ...]
    undecided: tuple[int, ...]


def count(difference: Difference, path: str) -> Count:
    """Count the lines of a JSONL log of verdicts by region. Raises OSError where it cannot be read.

    A line has the signals of a verdict, or the keys that the nexus logs. Its zone is taken for the old table's; what
    the new one makes of it is known where the line has the utilization too, or where it is the same in every case. An
    event is passed over.
    """
    verdicts = unread = 0
    inside, undecided = [0] * len(difference.regions), [0] * len(difference.regions)
    spaces = {space.role: space for space in difference.spaces}
    seen: dict[tuple[str, Box], list[bool | None]] = {}
    with open(path, "rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            entry = _entry(line)
            if engine.is_event(entry):
                continue
            space, box = _placed(entry, spaces)
            if space is None or box is None:
                unread += 1
                continue
            verdicts += 1
            key = space.role, box
            if key not in seen:
                seen[key] = [_lies_in(box, space.role, region.boxes) for region in difference.regions]
            for n, answer in enumerate(seen[key]):
                inside[n] += answer is True
                undecided[n] += answer is None
    return Count(verdicts, unread, tuple(inside), tuple(undecided))


def _entry(line: bytes) -> Any:
    """The JSON of a line, None where it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _placed(entry: Any, spaces: dict[str, Space]) -> tuple[Space | None, Box | None]:
    """The box of all that a line may mean; None where it is no verdict, or one that the tables cannot read."""
    if entry.__class__ is not dict or "rule" not in entry or "operation" not in entry:
        return None, None
    space = spaces[engine.role_of(entry.get("subagent") is True)]
    known, missing, given = _known(entry, space)
    read = [_as_read(space, number, entry, known, missing) for number in range(len(space.sources))]
    box = tuple(_possible(dimension, read, given) for dimension in space.dimensions)
    return space, box if (known or missing) and all(box) else None


def _known(entry: dict[str, Any], space: Space) -> tuple[dict[str, Any], set[str], bool]:
    """What a line tells by name, the names that its snapshot did not give, and whether the others were given: a line of
    the nexus has a default where nothing was. What is in neither is not told.
    """
    program = space.sources[0].program
    declared = {d["name"]: d for d in (*program["fields"], *program["signals"])}
    signals, missing = entry.get("signals"), entry.get("missing")
    absent: set[str] = set()
    told = True
    if signals.__class__ is dict and missing.__class__ is list and signals:
        absent = {name for name in missing if name.__class__ is str and name in declared}
        given = {name: value for name, value in signals.items() if name in declared and name not in absent}
    else:
        # A line of the nexus: null, a key that is not there, or what the role is not given, tells nothing.
        told, hidden = False, space.sources[0].hidden(space.role)
        paths = {f["path"][0]: f["name"] for f in program["fields"] if len(f.get("path", ())) == 1}
        given = {paths.get(key, key): value for key, value in entry.items() if paths.get(key, key) in declared}
        given = {name: value for name, value in given.items() if name not in hidden}
    taken = {name: accept(declared[name], value) for name, value in given.items()}
    return {name: value for name, value in taken.items() if value is not None}, absent, told


def _as_read(
    space: Space, number: int, entry: dict[str, Any], known: dict[str, Any], missing: set[str]
) -> tuple[dict[str, Any], set[str]]:
    """The values that a program reads of a line, as far as that is certain, and which of them are missing."""
    first, source = space.sources[0], space.sources[number]
    values: dict[str, Any] = {}
    for spec in (*source.program["fields"], *source.program["signals"]):
        name = spec["name"]
        zoned = tuple(spec.get("path", ())) in source.derived
        if zoned and (zone := rezone(entry, source.program)) != UNKNOWN:
            values[name] = zone
        elif (number == 0 or (not zoned and _same(first, source, name))) and (name in known or name in missing):
            values[name] = spec.get("missing") if name in missing else known[name]
    return values, missing


def _same(one: Sources, other: Sources, name: str) -> bool:
    """Whether two programs read a name alike, but for what takes its place where it is missing."""

    def declared(source: Sources, name: str, *left_out: str) -> Any:
        specs = (*source.program["fields"], *source.program["signals"])
        return [{k: v for k, v in spec.items() if k not in left_out} for spec in specs if spec["name"] == name]

    mine = declared(one, name, "missing")
    if not mine or mine != declared(other, name, "missing"):
        return False
    # A signal is computed from what stands in the place of a field that is missing, too.
    return all(declared(one, n) == declared(other, n) for n in fields_of(mine[0].get("from", ["literal", None])))


def _possible(dimension: Dimension, read: list[tuple[dict[str, Any], set[str]]], given: bool) -> int:
    """The cells that agree with what is certain. given: that a value was given is certain, too."""
    fits = 0
    for signature, cell in dimension.signatures.items():
        told = zip(dimension.tests, signature, strict=True)
        if all(
            engine.holds(operator, read[n][0][name], name in read[n][1], constant) is holds
            for (n, (name, operator, constant)), holds in told
            if name in read[n][0] and (given or operator != "missing")
        ):
            fits |= 1 << cell
    return fits


def _lies_in(box: Box, role: str, regions: tuple[tuple[str, tuple[Box, ...]], ...]) -> bool | None:
    """Whether all of a box lies in a region (True), nothing (False), or a part (None)."""
    rows: list[Row] = [
        (n, tuple(enumerate(piece))) for name, pieces in regions if name == role for n, piece in enumerate(pieces)
    ]
    if boxes.uncovered(box, rows, Budget(LOOKS)) is None:
        return True
    return None if any(all(boxes.within(box, sides)) for _, sides in rows) else False
