"""A client in a terminal, for what it does only there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from types import TracebackType

from e2e.harness.runner import Session

_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_=>78])")


class Terminal:
    """The client's own interface in 40 lines of 120 columns; what is written to it is kept. To be used in a `with`."""

    def __init__(self, session: Session, *arguments: str, **env: str) -> None:
        self._screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = session.environment(TERM="xterm-256color", **env)
        self._process = subprocess.Popen(
            [session.program, *arguments],
            cwd=session.place.project,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._written = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        """Type a line, and send it off."""
        self._read(1)
        os.write(self._screen, text.encode())
        self._read(1)  # what comes with the text in one go is taken for pasted
        os.write(self._screen, b"\r")

    def wait_for(self, pattern: str, seconds: float = 30) -> None:
        """Wait for something to be shown; AssertionError if it never is."""
        self.wait_until(lambda: bool(re.search(pattern, _ESCAPES.sub(" ", self._written))), seconds)

    def wait_until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        """Wait for something to be the case; AssertionError if it never is."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read(0.2)  # a client whose terminal nobody reads stops
            if holds():
                return
        raise AssertionError(f"in vain: {_ESCAPES.sub(' ', self._written)[-4000:]!r}")

    def _read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._screen], [], [], left)[0]:
                try:
                    self._written += os.read(self._screen, 65536).decode("utf-8", "replace")
                except OSError:
                    return  # the client has ended
