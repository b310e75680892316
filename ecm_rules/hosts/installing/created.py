"""Files that are ours from the first line to the last: a plugin of a client that has no hooks."""

from __future__ import annotations

import json
import re
import shlex

from ecm_rules.hosts.installing import texts
from ecm_rules.hosts.installing.jobs import Held, Job, Record

_COMMAND = re.compile(r"^(const COMMAND\b[^=\n]*= ).*$", re.MULTILINE)


def strip(job: Job, text: str | None) -> str | None:
    """None in the place of a file of ours; what is not ours stays."""
    return None if text is not None and _is_ours(job, text) else text


def put(job: Job, text: str | None) -> tuple[str, dict[str, Held]]:
    """Our file. Raises EcmError where another one stands in its place."""
    if text is not None and not _is_ours(job, text):
        first = text.split("\n", 1)[0].rstrip("\r")
        texts.refuse(
            job.file,
            text,
            0,
            texts.NOT_WRITABLE,
            "found a file that `ecm-rules` did not write, expected none",
            "move it elsewhere, and install again",
            len(first),
        )
    return written(job), {}


def plan(job: Job, text: str | None) -> tuple[str, Record]:
    """Our file, and what to remember."""
    return put(job, text)[0], Record(job.file, created=True)


def verify(job: Job, text: str, stripped: str | None) -> bool:
    """Whether there is nothing but ours."""
    return stripped is None and _is_ours(job, text)


def written(job: Job) -> str:
    """The packaged file with the hook's command in it, as a list of words."""
    words = json.dumps(shlex.split(job.command))
    template: str = job.changes[0].value
    return _COMMAND.sub(lambda line: f"{line[1]}{words};", template, count=1)


def command(text: str) -> list[str] | None:
    """The words of the command that a file of ours calls, or None where it says none."""
    line = _COMMAND.search(text)
    try:
        words = json.loads(line.group()[len(line[1]) :].rstrip("; \r")) if line else None
    except ValueError:
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def _is_ours(job: Job, text: str) -> bool:
    """Its first line tells."""
    template: str = job.changes[0].value
    return text.split("\n", 1)[0].rstrip() == template.split("\n", 1)[0].rstrip()
