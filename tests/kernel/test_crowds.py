"""State under crowds of writers and under writers that are killed: real processes."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import time

from ecm_rules.kernel import accounts, audit, files, ledger
from tests.commands import BIN
from tests.kernel.state import STATE, lines, transcript


def test_forty_pairs_of_hooks_at_once(project: pathlib.Path) -> None:
    for pair in range(40):
        running = []
        for one in range(2):
            path = transcript(project / f"{one}.jsonl", 2 * pair + one + 1)
            given = {"session_id": "s1", "transcript_path": path}
            if one and pair % 2:
                given |= {"agent_id": "a1", "agent_transcript_path": path}
            running.append(
                subprocess.Popen(
                    [BIN / "ecm-hook", "claude-code"], cwd=project, stdin=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
            stdin = running[-1].stdin
            assert stdin is not None
            stdin.write(json.dumps(given).encode())
        assert [process.communicate()[1] for process in running] == [b"", b""]
        assert json.loads((project / STATE / "meter.json").read_bytes())["session_id"] == "s1"
    # On a busy machine a hook may have done without the lock.
    numbers = [line["sequence"] for line in lines(project, "policy-log.jsonl")]
    assert len(numbers) == 80
    assert set(numbers) <= set(range(1, 81))
    found = ledger.load(str(project), {})
    assert (found.unread, accounts.own(found, "s1"), accounts.own(found, "s1", "a1")) == (0, 79, 80)
    assert not list((project / STATE).glob("*.tmp"))


APPEND = """
import sys
from ecm_rules.kernel import accounts, files, ledger
project, me = sys.argv[1], sys.argv[2]
known = accounts.Accounts()
for n in range(1, 201):
    ledger.report(project, {}, me, None, n, "2026-07-07T00:00:00Z", known)
    if n % 20 == 0:
        files.replace(files.state_path(project, ".eidolons/.context/meter.json"), b'{"pad": "%s"}' % (b"x" * 5000))
"""


def test_sixty_four_processes_of_two_hundred_appends(tmp_path: pathlib.Path) -> None:
    crowd = [subprocess.Popen([sys.executable, "-c", APPEND, str(tmp_path), f"s{n}"]) for n in range(64)]
    state = tmp_path / STATE / "meter.json"
    while any(process.poll() is None for process in crowd):
        assert not state.exists() or len(json.loads(state.read_bytes())["pad"]) == 5000
        time.sleep(0.01)
    assert {process.wait() for process in crowd} == {0}
    told = lines(tmp_path, "budget-ledger.jsonl")
    assert sorted((x["session_id"], x["spent_tokens"]) for x in told if x["event"] == "spent") == sorted(
        (f"s{n}", tokens) for n in range(64) for tokens in range(1, 201)
    )
    assert len(told) == 64 * 201
    found = ledger.load(str(tmp_path), {})
    assert {accounts.total(found, f"s{n}") for n in range(64)} == {200}
    assert found.unread == 0


WRITE = """
import sys
from ecm_rules.kernel import accounts, audit, files, ledger
project, known = sys.argv[1], accounts.Accounts()
for n in range(1, 501):
    files.replace(files.state_path(project, audit.METER), b'{"n": %d, "pad": "%s"}' % (n, b"x" * 20_000))
    ledger.report(project, {}, "s1", None, n, "2026-07-07T00:00:00Z", known)
    audit.record(project, {}, audit.no_table(False), "s1", "2026-07-07T00:00:00Z")
"""


def test_killed_at_any_moment_of_five_hundred_writes_a_writer_leaves_the_old_file_or_the_new_one(
    tmp_path: pathlib.Path,
) -> None:
    chance, sequence = random.Random(11), 0
    path = files.state_path(str(tmp_path), audit.METER)
    files.replace(path, b'{"n": 0}')
    for kills in range(1, 21):
        writer = subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)])
        inode = os.stat(path).st_ino
        while os.stat(path).st_ino == inode and writer.poll() is None:  # it has begun
            time.sleep(0.001)
        time.sleep(chance.random() * 0.05)
        writer.kill()
        writer.wait()
        assert 0 <= json.loads(pathlib.Path(path).read_bytes())["n"] <= 500
        audit.record(str(tmp_path), {}, audit.no_table(False), "s1", "2026-07-07T00:00:00Z")
        # A kill may end a write where it crosses a page. What it leaves is one line, and takes no other with it.
        assert ledger.load(str(tmp_path), {}, step=None).unread <= kills
        whole, torn = [], 0
        for line in (tmp_path / STATE / "policy-log.jsonl").read_bytes().split(b"\n")[:-1]:
            try:
                whole.append(json.loads(line))
            except ValueError:
                torn += 1
        numbers = [line["sequence"] for line in whole]
        assert torn <= kills
        assert numbers == sorted(set(numbers))
        assert numbers[-1] > sequence
        sequence = numbers[-1]
