"""The console scripts as a user runs them: real processes."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(sys.executable).parent


def run(
    *arguments: str, cwd: pathlib.Path | str = ".", stdin: bytes | str = b"", script: str = "ecm-rules", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a console script; its output as text."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **env}
    done = subprocess.run(
        [str(BIN / script), *arguments], cwd=cwd, input=data, capture_output=True, env=environment, timeout=60
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def examples(console: str) -> list[tuple[str, list[str]]]:
    """The arguments of each `ecm-rules` of a console block, and the lines of its output that are shown."""
    found = re.findall(r"^\$ ecm-rules (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE)
    return [(command, shown.splitlines()) for command, shown in found]


def piped(console: str) -> list[tuple[str, str, list[str]]]:
    """The same of what is given on stdin by `echo '…' | ecm-rules …`, that first."""
    found = re.findall(r"^\$ echo '(.*)' \| ecm-rules (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE)
    return [(given, command, shown.splitlines()) for given, command, shown in found]


def unprinted(shown: list[str], output: str) -> list[str]:
    """The shown lines that are not in the output; `…` is the rest of a line, or lines that are left out."""
    printed = [line.rstrip() for line in output.splitlines()]

    def stands(line: str) -> bool:
        beginning, mark, _ = line.partition("…")
        return any(p.startswith(beginning) if mark else p == line for p in printed)

    return [line for line in shown if not stands(line)]
