"""A project with one pin of its own, and what is done to it: installing, handing over, looking at its files."""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
import sys
from typing import NamedTuple

from e2e.harness.runner import Session

BIN = pathlib.Path(sys.executable).parent
PIN = "The port is PIN-8443."
CONFIGURATION = "context:\n  enabled: true\n"
OWN = f"pins:\n  - id: port\n    why: the tests look for it\n    source: {{literal: {PIN}}}\n"
STATE = ".eidolons/.context/"


class Project(NamedTuple):
    """A project and the client that runs in it."""

    session: Session

    @classmethod
    def make(cls, session: Session) -> Project:
        made = cls(session)
        (made.folder / ".eidolons").mkdir()
        (made.folder / "eidolons.yaml").write_text(CONFIGURATION)
        (made.folder / ".eidolons/ecm.yaml").write_text(OWN)
        return made

    @property
    def folder(self) -> pathlib.Path:
        return self.session.place.project

    def run(self, *arguments: str) -> str:
        """What `ecm-rules` says there; it must exit 0."""
        command = [str(BIN / "ecm-rules"), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *hosts: str) -> None:
        """Install our hooks for the client that runs here, or for others."""
        for host in hosts or (self.session.host,):
            self.run("install", "--host", host)

    def remove(self) -> None:
        """Take out again what was installed."""
        self.run("remove")

    def session_id(self) -> str:
        """The client's session that was measured last."""
        return str(json.loads((self.folder / STATE / "meter.json").read_text())["session_id"])

    def files(self) -> dict[str, str]:
        """The files, without repository and state, by their digests."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and not name.startswith((".git/", STATE)):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
