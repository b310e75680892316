"""Runs a client in a home of its own, before a model that does as it is told, and says what the model was sent."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from e2e.harness import setup
from e2e.harness.clients import CLIENTS, Place

SUMMARY = "FAKE-SUMMARY"
_FOREIGN = re.compile(
    r"(CLAUDE|ANTHROPIC|AI_AGENT|CODEX|OPENAI|GEMINI|GOOGLE|OPENCODE|COPILOT|GH_|GITHUB_|PI_|XDG_|ECM_)"
    r"|.*_PROXY$|(http|https|all)_proxy$"
)
_API = "import sys; from e2e.harness.fake_api import main; main()"


class Request(NamedTuple):
    """A request that reached the model, and what it answered: the call of a tool, FAKE-SUMMARY or FAKE-FINAL."""

    name: str
    answer: str
    body: Any

    @property
    def text(self) -> str:
        """All that it says, one string a line."""
        return "\n".join(strings(self.body))


class Session(NamedTuple):
    """A client with its home and project, over as many runs as one likes. See `session`."""

    host: str
    place: Place
    log: pathlib.Path
    mark: str

    def ask(self, prompt: str, *options: str, further: bool = False, **env: str) -> list[Request]:
        """Ask something in a new session, or in the last one; the requests that this led to."""
        client = CLIENTS[self.host]
        before = len(self.requests())
        arguments = [*(client.further if further else client.fresh), prompt]
        done = self._run([*options, *arguments], env)
        assert done.returncode == 0, (
            f"{self.host} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        return self.requests()[before:]

    def requests(self) -> list[Request]:
        """All requests so far, without those that only count tokens or list models."""
        found = []
        for path in sorted(self.log.glob("*.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["answer"]:
                found.append(Request(path.stem, document["answer"], document["body"]))
        return found

    def environment(self, **more: str) -> dict[str, str]:
        """What the client gets: nothing of an account or session of ours."""
        mine = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
        own = {"HOME": str(self.place.home), "TMPDIR": str(self.place.home / "tmp"), "TZ": "UTC", "ECM_E2E": self.mark}
        own["PWD"] = str(self.place.project)  # OpenCode believes it, and a change of folder alone leaves it
        own["ECM_PROMPT_PATH_MS"] = "1500"  # whether an answer arrives is asked here, not how busy this machine is
        path = f"{setup.node()}{os.pathsep}{mine.get('PATH', '')}"
        return {**mine, **own, "PATH": path, **CLIENTS[self.host].prepare(self.place), **more}

    @property
    def program(self) -> str:
        """The client's executable."""
        return str(self.place.hosts / self.host / "node_modules" / CLIENTS[self.host].program)

    def _run(self, arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments],
            cwd=self.place.project,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


@contextmanager
def session(host: str, folder: pathlib.Path) -> Iterator[Session]:
    """A client with a new home and an empty repository below `folder`; all that it leaves running is ended."""
    home, project, log = folder / "home", folder / "project", folder / "log"
    for path in (home / "tmp", project, log):
        path.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", project], check=True)
    arguments = ["--log", str(log)]
    with subprocess.Popen([sys.executable, "-c", _API, *arguments], stdout=subprocess.PIPE, text=True) as api:
        try:
            assert api.stdout is not None
            address = api.stdout.readline().strip()
            place = Place(home.resolve(), project.resolve(), address, setup.hosts_dir())
            made = Session(host, place, log, str(folder))
            yield made
        finally:
            _end_leftovers(f"ECM_E2E={folder}")
            api.terminate()


def strings(value: Any) -> Iterator[str]:
    """The strings of a JSON document, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def after_summary(requests: list[Request]) -> list[Request]:
    """The requests behind the last one that asked for a summary, which must be there."""
    (last, *_) = [n for n, request in reversed(list(enumerate(requests))) if SUMMARY in request.answer] or [None]
    assert last is not None, f"nothing was compacted: {[request.answer for request in requests]}"
    return requests[last + 1 :]


def _end_leftovers(mark: str) -> None:
    """End daemons and hanging tools that the client left, known by the variable that only its run handed down."""
    wanted = mark.encode()
    for attempt in (signal.SIGTERM, signal.SIGKILL):
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in entry.read_bytes().split(b"\0"):
                    os.kill(int(entry.parent.name), attempt)
            except OSError:
                continue  # ended meanwhile, or not ours
        time.sleep(0.2)
