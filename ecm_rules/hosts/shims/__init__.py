"""What is copied into a project where a client takes code and no command: one file each, complete in itself.

`const COMMAND = […]` is the one line in which an installed file differs from ours.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence

FILES = {"opencode": "opencode.js", "pi": "pi.ts", "copilot": "copilot.mjs"}
_COMMAND = re.compile(r"^const COMMAND = .*$", re.MULTILINE)


def source(host: str) -> str:
    """The shim of a host, as we keep it. Raises KeyError for a host without one."""
    return (pathlib.Path(__file__).parent / FILES[host]).read_text(encoding="utf-8")


def text(host: str, command: Sequence[str]) -> str:
    """The shim of a host with the command that it is to run: the program, by its absolute path, and its arguments."""
    # JSON's escapes are JavaScript's, and ASCII survives whatever the client takes the file's encoding for.
    line = f"const COMMAND = {json.dumps(list(command))}"
    return _COMMAND.sub(lambda _: line, source(host), count=1)
