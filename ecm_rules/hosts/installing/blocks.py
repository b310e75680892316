"""Our text in somebody's Markdown, between two comments; what stands before and behind them is not touched."""

from __future__ import annotations

import re

from ecm_rules.hosts.installing import texts
from ecm_rules.hosts.installing.jobs import Held, Job, Record

_FRONT = re.compile(r"---\n.*?\n---\n", re.DOTALL)


def strip(job: Job, text: str | None) -> str | None:
    """The text without our block; None where nothing is left of a file that we created."""
    if text is None:
        return None
    place = _place(job, text)
    if place is None:
        return text
    stripped = texts.without(text, *place, blank=True)
    if job.record is not None and job.record.created and stripped.split() in ([], _front(job).split()):
        return None
    return stripped


def put(job: Job, text: str | None) -> tuple[str, dict[str, Held]]:
    """The text with our block, where it stands or at the end. A new file begins with the block's front matter."""
    end = texts.newline(text or "")
    body = _begin(job) + "\n" + _body(job) + _end(job)
    block = body.replace("\n", end)
    if text is None:
        front = _front(job)
        return texts.appended(front, block, blank=True) if front else texts.appended("", block), {}
    place = _place(job, text)
    if place is not None:
        return text[: place[0]] + block + text[place[1] :], {}
    return texts.appended(text, block, blank=True), {}


def plan(job: Job, text: str | None) -> tuple[str, Record]:
    """The text with our block, and what to remember."""
    stripped = strip(job, text)
    return put(job, text)[0], Record(job.file, created=stripped is None)


def verify(job: Job, text: str, stripped: str | None) -> bool:
    """Whether a text is, but for our block and blank lines, the stripped one."""
    place = _place(job, text)
    rest = (text[: place[0]] + text[place[1] :]).split() if place else text.split()
    return rest == (stripped.split() if stripped is not None else _front(job).split())


def _front(job: Job) -> str:
    match = _FRONT.match(job.changes[0].value)
    return match.group() if match else ""


def _body(job: Job) -> str:
    text: str = job.changes[0].value
    return text.removeprefix(_front(job)).strip("\n") + "\n"


def _begin(job: Job) -> str:
    return f"<!-- ecm-rules begin {job.host}: `ecm-rules install` keeps this block; edits in it are lost -->"


def _end(job: Job) -> str:
    return f"<!-- ecm-rules end {job.host} -->"


def _place(job: Job, text: str) -> tuple[int, int] | None:
    """From where to where our block stands, or None. Raises EcmError where its markers are no pair."""
    marker = re.compile(
        rf"^\ufeff?(<!-- ecm-rules (begin|end) {re.escape(job.host)}(?::[^\n]*)? -->)[ \t]*\r?$", re.MULTILINE
    )
    found = list(marker.finditer(text))
    if not found:
        return None
    words = [match[2] for match in found]
    if words != ["begin", "end"]:
        wrong = next((m for m, expected in zip(found, ("begin", "end"), strict=False) if m[2] != expected), found[-1])
        other = "`begin`" if wrong[2] == "end" else "`end`"
        message = f"found the marker `{wrong[2]}` of our block without its {other}, expected one pair"
        texts.refuse(
            job.file,
            text,
            wrong.start(1),
            texts.UNREADABLE,
            message,
            "remove the marker, or the whole block",
            len(wrong[1]),
        )
    return found[0].start(1), found[1].end(1)
