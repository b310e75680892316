"""The console scripts as a user runs them: real processes."""

from __future__ import annotations

import os
import pathlib
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
