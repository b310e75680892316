"""Which regions of a difference the verdicts of a policy log fall in; what a line does not tell is never guessed."""

from __future__ import annotations

import json
from typing import Any

import attrs

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box, Budget, Row
from ecm_rules.analysis.case import NODES
from ecm_rules.analysis.difference import Difference
from ecm_rules.analysis.dimensions import Dimension
from ecm_rules.analysis.space import Space
from ecm_rules.engine import program as engine
from ecm_rules.engine.zones import UNKNOWN, rezone


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
    the new one makes of it is known where the line has the utilization too, or where it is the same in every case.
    """
    verdicts = unread = 0
    inside, undecided = [0] * len(difference.regions), [0] * len(difference.regions)
    spaces = {space.role: space for space in difference.spaces}
    seen: dict[tuple[str, Box], list[bool | None]] = {}
    with open(path, "rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            space, box = _placed(line, spaces)
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


def _placed(line: bytes, spaces: dict[str, Space]) -> tuple[Space | None, Box | None]:
    """The box of all that a line may mean; None where it is no verdict, or one that the tables cannot read."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None, None
    if entry.__class__ is not dict or "rule" not in entry or "operation" not in entry:
        return None, None
    space = spaces[engine.role_of(entry.get("subagent") is True)]
    known, missing = _known(entry, space)
    box = tuple(_possible(space, dimension, entry, known, missing) for dimension in space.dimensions)
    return space, box if known and all(box) else None


def _known(entry: dict[str, Any], space: Space) -> tuple[dict[str, Any], set[str]]:
    """The values of the names that the line tells, and those of them that were missing."""
    signals, missing = entry.get("signals"), entry.get("missing")
    if signals.__class__ is dict and missing.__class__ is list and signals:
        return dict(signals), {name for name in missing if isinstance(name, str)}
    program = space.sources[0].program
    snapshot = {key: value for key, value in entry.items() if value is not None}
    values, missing, _ = engine.read({**program, "signals": []}, snapshot, space.role)
    told = {name: value for name, value in values.items() if name not in missing}
    told |= {s["name"]: entry[s["name"]] for s in program["signals"] if entry.get(s["name"]).__class__ is bool}
    return told, set()


def _possible(
    space: Space, dimension: Dimension, entry: dict[str, Any], known: dict[str, Any], missing: set[str]
) -> int:
    """The cells that agree with what the line tells."""
    values = [dict(known) for _ in space.sources]
    for n, source in enumerate(space.sources):
        for field in source.fields:
            name = field["name"]
            if tuple(field["path"]) not in source.derived or name not in known:
                continue
            zone = rezone(entry, source.program)
            if zone != UNKNOWN:
                values[n][name] = zone
            elif n > 0:
                del values[n][name]
    fits = 0
    for signature, cell in dimension.signatures.items():
        told = zip(dimension.tests, signature, strict=True)
        if all(
            engine.holds(operator, values[n][name], name in missing, constant) is holds
            for (n, (name, operator, constant)), holds in told
            if name in values[n]
        ):
            fits |= 1 << cell
    return fits


def _lies_in(box: Box, role: str, regions: tuple[tuple[str, tuple[Box, ...]], ...]) -> bool | None:
    """Whether all of a box lies in a region (True), nothing (False), or a part (None)."""
    rows: list[Row] = [
        (n, tuple(enumerate(piece))) for name, pieces in regions if name == role for n, piece in enumerate(pieces)
    ]
    if boxes.uncovered(box, rows, Budget(NODES)) is None:
        return True
    return None if any(all(boxes.within(box, sides)) for _, sides in rows) else False
