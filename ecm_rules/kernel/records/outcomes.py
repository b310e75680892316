"""What came of a call, by what rules/hosts.yaml says of a format's results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ecm_rules.kernel.lookup import first, fits
from ecm_rules.kernel.records.model import RESULT, TOOL, Event, Format, Record

_CODE = re.compile(r"-?\d{1,10}")
# So far from its end a text tells its exit code: further up, it is what a command printed.
_NEAR = 200


def result(format: Format, record: Event, text: str, id: str, at: str = "", agent: str | None = None) -> Record:
    """The result of a call. record: what the client wrote down of it; text: what the tool returned."""
    said = format.results
    code = first(record, said["exit"])
    if type(code) is not int:
        code = _exit(said, text)
    failed = fits(record, said["failed"]) or code not in (None, 0)
    refused = fits(record, said["refused"]) or text.startswith(tuple(said["refused_text"]))
    return Record(TOOL, RESULT, _printed(said, text), id=id, failed=failed, refused=refused, at=at, agent=agent)


def _exit(said: Mapping[str, Any], text: str) -> int | None:
    """The exit code that a text tells: in front of the output, else near its end, so that no output is taken for it."""
    head = min((at for mark in said["output_text"] if (at := text.find(mark)) >= 0), default=0)
    for part, last in ((text[:head], False), (text[head:][-_NEAR:], True)):
        for mark in said["exit_text"]:
            at = part.rfind(mark) if last else part.find(mark)
            found = _CODE.match(part, at + len(mark)) if at >= 0 else None
            if found:
                return int(found[0])
    return None


def _printed(said: Mapping[str, Any], text: str) -> str:
    """What a command printed, without what the client puts around it."""
    for mark in said["output_text"]:
        before, found, behind = text.partition(mark)
        if found and (not before or before.endswith("\n")):
            text = behind
            break
    silent = tuple(said["no_output"])
    return "\n".join(line for line in text.split("\n") if not line.startswith(silent)) if silent else text
