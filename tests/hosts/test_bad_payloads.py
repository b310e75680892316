"""Whatever a client sends, and whatever is wrong with the machine: exit 0, at most one document that the client takes,
at most one line on stderr, and never a traceback.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ecm_rules.hosts import cache, hook
from tests.commands import BIN
from tests.conftest import FIXTURES
from tests.hosts import accepted, clients
from tests.hosts.clients import Client
from tests.kernel.test_faults import unprivileged

PAYLOADS = {
    host: sorted((FIXTURES / "hosts" / host).rglob("*.json"), key=lambda path: path.name) for host in clients.HOSTS
}
WRONG: list[Any] = [None, True, -1, 1e308, "", "\ud800\0/../<!--", [], {}, ["a"], {"a": {"b": None}}]
MEGABYTE = "x" * (1 << 20)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a payload, by the keys that lead there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*above, key)
        yield from places(each, (*above, key))


def changed(payload: Any, place: tuple[Any, ...], *value: Any) -> Any:
    """The payload with another value at a place, or without it."""
    whole = json.loads(json.dumps(payload))
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    if value:
        inner[place[-1]] = value[0]
    else:
        del inner[place[-1]]
    return whole


def variants(payload: Any, source: random.Random) -> Iterator[Any]:
    """A payload without each of its fields, and with another value in each; deep inside, some of them."""
    known = list(places(payload))
    shallow = [place for place in known if len(place) <= 2]
    deep = [place for place in known if len(place) > 2]
    for place in source.sample(shallow, min(10, len(shallow))) + source.sample(deep, min(2, len(deep))):
        yield changed(payload, place, *source.choice([(), (source.choice(WRONG),)]))
    if shallow:
        yield changed(payload, source.choice(shallow), MEGABYTE)


def said(done: subprocess.CompletedProcess[bytes], host: str, payload: Any) -> str:
    """What went to stderr, of a hook that behaved."""
    err = done.stderr.decode()
    assert done.returncode == 0
    assert (err.count("\n") <= 1, "Traceback" in err) == (True, False), err
    accepted.check(host, payload, done.stdout)
    return err


@pytest.mark.parametrize("host", clients.HOSTS)
def test_every_field_missing_or_of_another_kind(host: str, copied: pathlib.Path) -> None:
    """In this process, without errands, which a process of its own runs: they are below."""
    source = random.Random(host)
    tried, answered = 0, 0
    for path in PAYLOADS[host]:
        for payload in variants(json.loads(path.read_text()), source):
            data = json.dumps(payload).encode()
            stdout, complaint = hook.handle(host, data, str(copied), time.monotonic() - 10**9)
            assert accepted.faults(host, payload, stdout) == [], (path, data[:500])
            assert complaint is None or isinstance(complaint, str)
            tried, answered = tried + 1, answered + bool(stdout)
    assert tried > 100
    assert answered > 5


@pytest.mark.parametrize("host", clients.HOSTS)
def test_a_sample_of_them_as_processes(host: str, copied: pathlib.Path) -> None:
    source = random.Random(host)
    whole = [variant for path in PAYLOADS[host] for variant in variants(json.loads(path.read_text()), source)]
    for payload in [*source.sample(whole, 10), json.loads(PAYLOADS[host][0].read_text()) | {"more": MEGABYTE}]:
        said(clients.run(host, json.dumps(payload).encode(), copied), host, payload)


PROMPT = json.dumps(clients.recorded("claude-code", "UserPromptSubmit")).encode()
BYTES = {
    "nothing": b"",
    "blanks": b" \n",
    "no JSON": b"hello",
    "cut off": PROMPT[:-20],
    "two documents": PROMPT + PROMPT,
    "a list": b"[" + PROMPT + b"]",
    "a text": b'"prompt"',
    "null": b"null",
    "latin-1": b'{"session_id": "caf\xe9"}',
    "utf-16": PROMPT.decode().encode("utf-16"),
    "NULs": b"\0" * 1000,
    "too deep": b'{"a":' * 200_000,
    "NaN": b'{"hook_event_name": "UserPromptSubmit", "x": NaN}',
    "a huge number": b'{"hook_event_name": "UserPromptSubmit", "x": ' + b"9" * 10_000 + b"}",
    "the same key twice": PROMPT[:-1] + b', "session_id": 5}',
    "too much": b'{"x": "' + b"x" * (17 << 20) + b'"}',
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_no_payload(data: bytes, copied: pathlib.Path) -> None:
    done = clients.run("claude-code", data, copied)
    err = said(done, "claude-code", {"hook_event_name": "UserPromptSubmit"})
    expected = data.startswith(b'{"hook_event_name') or data.endswith(b"5}")
    assert (bool(done.stdout), err.startswith("ecm-hook: payload: ")) in ((True, False), (False, True))
    assert bool(done.stdout) == (expected and b"NaN" not in data)


def test_a_mark_of_byte_order_is_none_of_the_payload(copied: pathlib.Path) -> None:
    done = clients.run("claude-code", b"\xef\xbb\xbf" + PROMPT, copied)
    assert clients.text_of("claude-code", done.stdout).startswith("Context: zone=unknown")
    assert done.stderr == b""


STREAMS = [" ".join(each) for n in (1, 2, 3) for each in itertools.combinations(("<&-", ">&-", "2>&-"), n)]


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("name", ["SessionStart.startup", "UserPromptSubmit"])
def test_streams_that_are_closed(name: str, streams: str, copied: pathlib.Path) -> None:
    payload = FIXTURES / f"hosts/claude-code/{name}.json"
    source = "" if "<&-" in streams else f"< {payload}"
    script = f"{BIN / 'ecm-hook'} claude-code {source} {streams}"
    done = subprocess.run(["bash", "-c", script], cwd=copied, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    accepted.check("claude-code", json.loads(payload.read_text()), done.stdout)
    # What went nowhere went into no file of the state either.
    for path in {*(copied / clients.STATE).glob("*.jsonl")} - {copied / cache.FILE}:
        for line in path.read_bytes().splitlines():
            json.loads(line)
            assert b"hookSpecificOutput" not in line
            assert b"ecm-hook:" not in line


def test_stdout_that_nobody_reads(copied: pathlib.Path) -> None:
    client = Client("claude-code", copied)
    process = client.start(client.payload("start"))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait(60) == 0


def test_stdin_that_never_ends_is_given_up(copied: pathlib.Path) -> None:
    process = subprocess.Popen(
        [BIN / "ecm-hook", "claude-code"],
        cwd=copied,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ECM_PROMPT_PATH_MS": "300"},
    )
    assert process.stdin is not None
    process.stdin.write(PROMPT[:100])
    process.stdin.flush()
    assert process.wait(60) == 0  # though its stdin is open
    out, err = process.communicate()
    assert (out, err) == (b"", b"ecm-hook: late: the deadline has passed\n")


@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_project_that_cannot_be_written(mode: int, copied: pathlib.Path) -> None:
    for fresh in (False, True):
        folder = copied / ".eidolons" if fresh else copied / clients.STATE
        if fresh:
            shutil.rmtree(copied / clients.STATE)
        folder.chmod(mode)
        try:
            for moment in ("start", "prompt", "tool", "before", "compacted", "stop"):
                payload = Client("claude-code", copied).payload(moment)
                done = unprivileged(BIN / "ecm-hook", "claude-code", cwd=copied, stdin=json.dumps(payload).encode())
                assert (done.returncode, done.stderr.count("\n")) == (0, 1), (moment, done.stderr)
                assert "Permission denied" in done.stderr
                assert "written down" not in done.stdout
                accepted.check("claude-code", payload, done.stdout.encode())
        finally:
            folder.chmod(0o700)


def test_a_transcript_that_is_not_there_or_is_none(copied: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "garbage").write_bytes(random.Random(1).randbytes(100_000))
    (tmp_path / "empty").touch()
    client = Client("claude-code", copied)
    client.complaints = []
    client.send("start")
    for path in ("/nowhere/t.jsonl", "/dev/zero", "folder", "pipe", "garbage", "empty", "a\0b", "x" * 5000):
        for moment in ("prompt", "compacted"):
            client.send(moment, transcript_path=str(tmp_path / path))
    assert not any("Traceback" in each for each in client.complaints)
    assert {verdict["operation"] for verdict in client.log()} <= {"continue"}


def test_a_working_folder_that_was_deleted(copied: pathlib.Path) -> None:
    gone = copied / "gone"
    gone.mkdir()
    payload = FIXTURES / "hosts/claude-code/UserPromptSubmit.json"
    script = f"cd {gone} && rmdir {gone} && {BIN / 'ecm-hook'} claude-code < {payload}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    said(done, "claude-code", json.loads(payload.read_text()))


@pytest.mark.parametrize("flags", [{"PYTHONWARNINGS": "always"}, {"PYTHONDEVMODE": "1"}, {"PYTHONWARNINGS": "error"}])
def test_no_warning_of_python_is_seen(flags: dict[str, str], copied: pathlib.Path) -> None:
    client = Client("claude-code", copied)
    client.env |= flags
    assert client.send("start")
    client.fill(0.95)
    assert "handoff" in client.send("prompt")
    for moment in ("tool", "before", "compacted", "after", "tool", "stop"):
        client.send(moment)


@pytest.mark.parametrize("moment", ["prompt", "tool"])
def test_thirty_at_once_on_one_session(moment: str, copied: pathlib.Path) -> None:
    client = Client("claude-code", copied)
    client.send("start")
    client.fill(0.95)
    payload = client.payload(moment)
    running = [client.start(payload) for _ in range(30)]
    answers = [process.communicate() for process in running]
    assert {process.returncode for process in running} == {0}
    for out, err in answers:
        accepted.check("claude-code", payload, out)
        assert err in (b"", b"ecm-hook: busy: another hook of this session\n")
    assert len(client.log()) == 31
    assert max(verdict["sequence"] for verdict in client.log()) <= 31
    texts = [clients.text_of("claude-code", out) for out, _ in answers]
    texts += [client.send("tool"), client.send("tool")]
    # Told once, by whichever: the brief; and the zone, unless each of them had to wait for another.
    assert sum("The brief for a fresh session is" in text for text in texts) == 1
    assert sum("zone changed" in text for text in texts) <= 1
    assert (len(client.made("handoff-*.md")), len(client.log("operation"))) == (1, 1)
    assert client.made("*.tmp") == []


HEAVY = {
    "yaml", "cerberus", "jmespath", "typer", "attrs", "attr", "dataclasses", "typing", "pathlib", "logging", "tempfile",
    "hashlib", "subprocess", "socket", "signal",
}  # fmt: skip
RUN = """
import sys
sys.argv[1:] = [{host!r}]
from ecm_rules.hosts import cache, hook
hook.main()
print("\\n", *sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("host", clients.HOSTS)
def test_no_event_imports_anything_heavy_while_the_tables_are_as_they_were(host: str, copied: pathlib.Path) -> None:
    client = Client(host, copied)
    client.send("start")
    client.fill(0.95)
    moments = [m for m in clients.RECORDED[host] if not m.startswith("agent")]
    payloads = [client.payload(m) for m in ("prompt", *moments)]
    if host == "claude-code":
        payloads.append(client.payload("statusline.after-turn"))
    for payload in payloads:
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}" + RUN.format(host=host)],
            cwd=copied,
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **client.env},
        )
        loaded = set(done.stderr.split("\n")[-2].split())
        assert "ecm_rules.hosts.measuring" in loaded
        assert loaded & HEAVY == set()
