"""Streams that are closed, full, or of another encoding: a line at most, never a traceback."""

from __future__ import annotations

import subprocess

import pytest

from tests.commands import BIN
from tests.conftest import FIXTURES

TRANSCRIPT = FIXTURES / "transcripts/01_claude_small.jsonl"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    script = f"cd $(mktemp -d) && {command}"
    return subprocess.run(
        ["bash", "-c", script.replace("ecm-rules", f"{BIN}/ecm-rules")],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        "ecm-rules policy --meter - <&-",
        "ecm-rules policy >/dev/full",
        "ecm-rules policy --json >/dev/full",
        "ecm-rules policy >&-",
        "ecm-rules policy --meter /tmp 2>/dev/full",
        "ecm-rules policy --meter /tmp 2>&-",
        "set -o pipefail; ecm-rules policy | true",
    ],
)
def test_the_drop_in_exits_0_whatever_happens(command: str) -> None:
    done = shell(command)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    "command",
    [
        f"ecm-rules run {TRANSCRIPT} >/dev/full",
        "ecm-rules table >/dev/full",
        "ecm-rules decide lateral-signals --signals - <&-",
    ],
)
def test_other_commands_say_in_a_line_what_is_wrong(command: str) -> None:
    done = shell(command)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    assert shell("ecm-rules table | head -1 >/dev/null").stderr == ""


def test_what_is_for_stderr_never_lands_on_stdout() -> None:
    assert shell("ecm-rules policy --meter /tmp 2>&-").stdout == "operation: continue  (rule P7, zone unknown)\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_the_signs_is_no_error(encoding: str) -> None:
    done = shell(
        f"PYTHONIOENCODING={encoding} ecm-rules run {TRANSCRIPT} && PYTHONIOENCODING={encoding} ecm-rules table"
    )
    assert (done.returncode, done.stderr) == (0, "")
