"""State under crowds, crashes, full disks and hostile names: exit 0, at most one line on stderr, and nothing untrue."""

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
from typing import Any

import pytest

from ecm_rules.hosts import cache, hook
from ecm_rules.kernel import accounts, audit, files, ledger, meter
from ecm_rules.kernel.budget import budget
from ecm_rules.kernel.policy import evaluate
from tests.commands import BIN, run
from tests.conftest import FIXTURES

STATE = ".eidolons/.context"
STATUSLINE = json.loads((FIXTURES / "hosts/claude-code/statusline.after-turn.json").read_text())


def transcript(path: pathlib.Path, tokens: int) -> str:
    message = {"id": "m", "model": "claude-opus-4-5", "usage": {"input_tokens": tokens}}
    path.write_text(json.dumps({"type": "assistant", "sessionId": "s1", "message": message}) + "\n")
    return str(path)


def lines(project: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """The lines of a log, of which none may be torn."""
    whole, _, rest = (project / STATE / name).read_bytes().rpartition(b"\n")
    assert rest == b""
    return [json.loads(line) for line in whole.split(b"\n")]


def quiet(done: subprocess.CompletedProcess[str], said: int = 1) -> str:
    """What a command said: it ended well, and in so many lines."""
    assert (done.returncode, done.stderr.count("\n")) == (0, said), done.stderr
    return done.stderr


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
    for _ in range(20):
        writer = subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)])
        inode = os.stat(path).st_ino
        while os.stat(path).st_ino == inode and writer.poll() is None:  # it has begun
            time.sleep(0.001)
        time.sleep(chance.random() * 0.05)
        writer.kill()
        writer.wait()
        assert 0 <= json.loads(pathlib.Path(path).read_bytes())["n"] <= 500
        assert ledger.load(str(tmp_path), {}).unread == 0
        lines(tmp_path, "budget-ledger.jsonl")
        audit.record(str(tmp_path), {}, audit.no_table(False), "s1", "2026-07-07T00:00:00Z")
        numbers = [line["sequence"] for line in lines(tmp_path, "policy-log.jsonl")]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers[-1] > sequence
        sequence = numbers[-1]


def within(folder: pathlib.Path, script: str, size: str = "256k") -> list[str]:
    """Run a script in a small file system of its own; what it prints, by line."""
    (folder / "disk").mkdir()
    mounted = f"mount -t tmpfs -o size={size} tmpfs {folder}/disk && cd {folder}/disk"
    inside = ["unshare", "-rm", "bash", "-c"]
    if not shutil.which("unshare") or subprocess.run([*inside, mounted], capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here, not even in a namespace of its own")
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PAYLOAD": json.dumps(STATUSLINE)}
    done = subprocess.run(
        [*inside, f"{mounted} && {script}"], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()


HOOKS = """
ask() { "$@" > ../out 2> ../err <<< "$PAYLOAD"; echo "exit $?"; wc -l < ../err; cat ../err; }
echo 'context: {}' > eidolons.yaml
ask ecm-hook claude-code
"""
ASKED = """
ask ecm-hook claude-code
ask ecm-rules policy; cat ../out
ask ecm-rules budget --json; cat ../out
ls -A .eidolons/.context; cp -r .eidolons ../after
"""


def test_a_full_disk(tmp_path: pathlib.Path) -> None:
    # The last page of a log still takes a part of a line.
    told = within(tmp_path, HOOKS + "cat /dev/zero > filler 2> /dev/null; for n in 1 2 3; do " + ASKED + "done")
    assert told[:2] == ["exit 0", "0"]
    assert {said for exit, said in itertools.pairwise(told) if exit == "exit 0"} == {"0", "1"}
    assert any("No space left" in line or "the disk is full" in line for line in told)
    assert [line for line in told if line.startswith("operation:")] == [
        "operation: continue  (rule P7, zone green)"
    ] * 3
    assert not any(line.endswith(".tmp") for line in told)
    after = tmp_path / "after"
    assert json.loads((after / ".context/meter.json").read_bytes())["zone"] == "green"
    for log in after.glob(".context/*.jsonl"):
        whole, _, rest = log.read_bytes().rpartition(b"\n")
        assert rest == b""
        assert all(json.loads(line) for line in whole.split(b"\n"))


def test_a_disk_that_was_full_from_the_start(tmp_path: pathlib.Path) -> None:
    script = HOOKS.replace("ask ecm-hook", "cat /dev/zero > filler 2> /dev/null; ask ecm-hook") + "ls -A"
    told = within(tmp_path, script)
    assert told[:2] == ["exit 0", "1"]
    assert "No space left on device" in told[2]


def test_a_read_only_file_system(tmp_path: pathlib.Path) -> None:
    told = within(tmp_path, HOOKS + "mount -o remount,ro .; cd .; " + ASKED)
    assert told[:5] == ["exit 0", "0", "exit 0", "1", told[4]]
    assert told[4].startswith("ecm-hook: ")
    assert "Read-only file system" in told[4]
    assert told[5:9] == [
        "exit 0",
        "1",
        "not logged: Read-only file system",
        "operation: continue  (rule P7, zone green)",
    ]
    assert told[9:11] == ["exit 0", "0"]


def unprivileged(
    *command: str | pathlib.Path, cwd: pathlib.Path, stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run a command whom permissions bind, which they do not for root."""
    without: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("permissions do not bind root, and there is no setpriv")
        without = [
            "setpriv",
            "--bounding-set=-dac_override,-dac_read_search",
            "--inh-caps=-dac_override,-dac_read_search",
        ]
    done = subprocess.run([*without, *command], cwd=cwd, input=stdin, capture_output=True, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_folder_without_permission(mode: int, project: pathlib.Path) -> None:
    payload = json.dumps(STATUSLINE).encode()
    assert run("claude-code", cwd=project, stdin=payload, script="ecm-hook").stderr == ""
    before, session = (project / audit.METER).read_bytes(), STATUSLINE["session_id"]
    (project / STATE).chmod(mode)
    try:
        asked = unprivileged(BIN / "ecm-hook", "claude-code", cwd=project, stdin=payload)
        verb = unprivileged(BIN / "ecm-rules", "policy", cwd=project)
        shown = unprivileged(BIN / "ecm-rules", "budget", "--json", cwd=project)
    finally:
        (project / STATE).chmod(0o700)
    assert "Permission denied" in quiet(asked)
    assert (verb.returncode, shown.returncode) == (0, 0)
    if mode:  # no new file, but logs that are there may still be appended to
        assert (verb.stderr, verb.stdout) == ("", "operation: continue  (rule P7, zone green)\n")
        assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 1]
        assert (shown.stderr, json.loads(shown.stdout)["thread"]) == ("", session)
    else:
        assert "not logged: Permission denied\n" in verb.stderr
        assert verb.stdout == "operation: continue  (rule P7, zone unknown)\n"
        assert (shown.stderr, json.loads(shown.stdout)["thread"]) == ("budget ledger: Permission denied\n", None)
        assert len(lines(project, "policy-log.jsonl")) == 1
    assert (project / audit.METER).read_bytes() == before


@pytest.mark.parametrize("relative", [audit.METER, audit.LOG, ledger.FILE])
def test_a_file_without_permission(relative: str, project: pathlib.Path) -> None:
    given = {"session_id": "s1", "transcript_path": transcript(project / "t.jsonl", 600)}
    (project / STATE).mkdir(parents=True)
    (project / relative).write_bytes(b"")
    (project / relative).chmod(0)
    asked = unprivileged(BIN / "ecm-hook", "claude-code", cwd=project, stdin=json.dumps(given).encode())
    if relative == audit.METER:  # it is replaced
        quiet(asked, 0)
    else:
        assert "Permission denied" in quiet(asked)
    assert json.loads((project / audit.METER).read_bytes())["budget"]["spent_tokens_est"] == 600


@pytest.mark.parametrize("relative", [".eidolons", STATE])
def test_a_folder_that_is_a_file(relative: str, project: pathlib.Path) -> None:
    (project / relative).parent.mkdir(exist_ok=True)
    (project / relative).write_text("a file")
    payload = json.dumps(STATUSLINE).encode()
    assert "Not a directory" in quiet(run("claude-code", cwd=project, stdin=payload, script="ecm-hook"))
    verb = run("policy", cwd=project)
    assert quiet(verb) == "not logged: Not a directory\n"
    assert verb.stdout == "operation: continue  (rule P7, zone unknown)\n"
    assert quiet(run("budget", cwd=project)) == "budget ledger: Not a directory\n"
    assert (project / relative).read_text() == "a file"


FILES = [audit.METER, f"{STATE}/meter-a1.json", audit.LOG, ledger.FILE, cache.FILE, f"{STATE}/budget-ledger.state"]


@pytest.mark.parametrize("relative", [".eidolons", STATE, *FILES])
def test_a_link_at_any_state_path(
    relative: str, project: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    target = elsewhere if relative not in FILES else elsewhere / "victim"
    if relative in FILES:
        target.write_text("precious")
    (project / relative).parent.mkdir(parents=True, exist_ok=True)
    (project / relative).symlink_to(target)
    if relative == f"{STATE}/budget-ledger.state":  # long enough for a sum to be kept
        for n in range(400):
            ledger.report(str(project), {}, f"s{n}", None, 1, "2026-07-07T00:00:00Z", accounts.Accounts())
    path = transcript(project / "t.jsonl", 600)
    for agent in (None, "a1"):
        given = {"session_id": "s1", "agent_id": agent, "transcript_path": path, "agent_transcript_path": path}
        done = run("claude-code", cwd=project, stdin=json.dumps(given).encode(), script="ecm-hook")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.count("\n") <= 1
    assert len(evaluate(str(project)).complaints) <= 2
    assert len(budget(str(project)).complaints) <= 1
    if relative in FILES:
        assert (target.read_text(), os.listdir(elsewhere)) == ("precious", ["victim"])
    else:
        assert os.listdir(elsewhere) == []
    assert (project / relative).is_symlink()


HOSTILE = ["../../x", "a\0b", "CON", "s" * 300, "/etc/passwd", "\ud800", "a\nb", "-", "."]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name: str, project: pathlib.Path) -> None:
    path = transcript(project / "t.jsonl", 600)
    for agent in (None, name, name):
        given = {"session_id": name, "agent_id": agent, "transcript_path": path, "agent_transcript_path": path}
        assert hook.handle("claude-code", json.dumps(given).encode(), str(project)) is None
    found = budget(str(project), name)
    assert (found.complaints, found.thread, found.spent) == ((), files.short(name), 1200)
    assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 3]
    assert sorted(os.listdir(project)) == [".eidolons", "eidolons.yaml", "t.jsonl"]
    assert sorted(os.listdir(project / STATE)) == sorted([
        "budget-ledger.jsonl", f"meter-{files.session_name(name)}.json", "meter.json", "policy-log.jsonl", "programs.json"
    ])  # fmt: skip


def test_a_hostile_name_as_an_option(project: pathlib.Path) -> None:
    for name in HOSTILE:
        if "\0" not in name and name.isprintable():
            for _ in range(2):
                assert not evaluate(str(project), session=name, subagent=True).complaints
    done = run("policy", "--subagent", "--session-id", "../../x", cwd=project)
    assert quiet(done, 0) == ""
    assert lines(project, "policy-log.jsonl")[-1]["sequence"] == 3
    assert os.listdir(project / STATE) == ["policy-log.jsonl"]


def test_a_clock_that_jumps_back(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for year, tokens in ((2026, 100), (2025, 200), (1970, 300), (2001, 250), (2030, 400)):
        monkeypatch.setattr(meter, "now", lambda year=year: f"{year}-01-01T00:00:00Z")
        given = {"session_id": "s1", "transcript_path": transcript(project / "t.jsonl", tokens)}
        assert hook.handle("claude-code", json.dumps(given).encode(), str(project)) is None
    assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 3, 4, 5]
    budgets = [line["signals"]["spent"] for line in lines(project, "policy-log.jsonl")]
    assert budgets == [100, 200, 300, 300, 400]
    assert ledger.spent(str(project), {}, "s1") == 400
