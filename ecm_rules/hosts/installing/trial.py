"""One installed hook, run once as its client would: by a shell, on a recorded payload, beside a copy of the tables.

The copy keeps the trial from the project's own meter, log and ledger.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time

import attrs

from ecm_rules.hosts import cache
from ecm_rules.hosts.installing import changes, install
from ecm_rules.kernel import audit, meter
from ecm_rules.tables.findings import EcmError, clip, printable
from ecm_rules.tables.installs import Install

SESSION = "ecm-rules-doctor"
PATIENCE = 10.0
_LATE = b"ecm-hook: late: "


@attrs.frozen
class Trial:
    """What came of it. `answer` is `nothing` or `json`, or None where it is neither; `faults` says what a client would
    stumble over; `measured` is None where nothing was to be: the project is switched off, or the hook gave up, `late`.
    """

    command: str
    milliseconds: float
    exit: int | None
    answer: str | None
    measured: bool | None
    faults: tuple[str, ...]
    late: bool = False


def run(host: Install, command: str | list[str], project: str) -> Trial | None:
    """Run a command, a text for a shell or a list of words, on the host's payload; None where none is packaged for it.

    Raises EcmError where the project's tables cannot be copied.
    """
    try:
        payload = changes.packaged("payloads", f"{host.host}.json").encode("utf-8")
    except EcmError:
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as copy:  # a hook may still have work in it
        install.copy_tables(project, copy)
        programs = cache.programs(copy)  # compiled beforehand, as they are at any prompt but the first
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        exit, stdout, stderr, taken = _timed(words, payload, copy, _environment())
        faults = [fault for fault in (_ended(exit, stderr), _complained(stderr), unfit(stdout)) if fault]
        late, measured = _LATE in stderr, None
        if programs is not None and not faults and not late:
            known = meter.load(os.path.join(copy, audit.meter_of(programs["audit"], None)))
            measured = isinstance(known, dict) and known.get("session_id") == SESSION
            faults += [] if measured else ["found no meter after the hook, expected one of its session"]
    answer = None if unfit(stdout) else "json" if stdout.strip() else "nothing"
    shown = command if isinstance(command, str) else json.dumps(command)
    return Trial(shown, round(taken * 1000, 1), exit, answer, measured, tuple(faults), late)


def unfit(stdout: bytes) -> str | None:
    """What keeps a client from taking an answer, or None: nothing at all is one, and so is exactly one JSON object."""
    if not stdout.strip():
        return None
    try:
        told = json.loads(stdout)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict):
        return None
    seen = clip(printable(stdout.decode("utf-8", "replace").strip()), 60)
    return f"found `{seen}` on stdout, expected nothing or one JSON object"


def _timed(
    words: list[str], payload: bytes, folder: str, env: dict[str, str]
) -> tuple[int | None, bytes, bytes, float]:
    """Exit code (None: it did not end in time), stdout, stderr and the seconds that it took."""
    begin = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603  a client runs the very same
            words, input=payload, capture_output=True, cwd=folder, env=env, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as late:
        return None, late.stdout or b"", late.stderr or b"", time.monotonic() - begin
    except OSError as error:
        return 127, b"", (error.strerror or str(error)).encode(), time.monotonic() - begin
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begin


def _environment() -> dict[str, str]:
    """The environment without what would lead the hook to a project of somebody's."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_PROJECT_DIR")}


def _ended(exit: int | None, stderr: bytes) -> str | None:
    if exit is None:
        return f"found no end within {PATIENCE:g} s, expected one"
    said = clip(printable(stderr.decode("utf-8", "replace").strip()), 200)
    return f"found exit code {exit}, expected 0{': ' + said if said else ''}" if exit else None


def _complained(stderr: bytes) -> str | None:
    """What the hook itself said; a client shows it to nobody."""
    lines = stderr.replace(_LATE, b"").decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.startswith("ecm-hook: ")]
    return f"found a complaint: {clip(printable(said[0].removeprefix('ecm-hook: ')), 200)}" if said else None
