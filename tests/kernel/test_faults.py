"""State on full disks, without permission, and under hostile names: exit 0, at most one line on stderr, nothing untrue."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from ecm_rules.hosts import cache, hook
from ecm_rules.kernel import accounts, audit, files, ledger, meter
from ecm_rules.kernel.budget import budget
from ecm_rules.kernel.policy import evaluate
from tests.commands import BIN, run
from tests.conftest import FIXTURES
from tests.kernel.state import STATE, lines, transcript

STATUSLINE = json.loads((FIXTURES / "hosts/claude-code/statusline.after-turn.json").read_text())


def quiet(done: subprocess.CompletedProcess[str], said: int = 1) -> str:
    """What a command said: it ended well, and in so many lines."""
    assert (done.returncode, done.stderr.count("\n")) == (0, said), done.stderr
    return done.stderr


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
        assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 3]
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
        assert hook.handle("claude-code", json.dumps(given).encode(), str(project))[1] is None
    found = budget(str(project), name)
    assert (found.complaints, found.thread, found.spent) == ((), files.short(name), 1200)
    assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 3]
    assert sorted(os.listdir(project)) == [".eidolons", "eidolons.yaml", "t.jsonl"]
    readings = [reading.name for reading in (project / STATE).glob("reading-*.json")]
    assert sorted(os.listdir(project / STATE)) == sorted([
        *readings,
        "budget-ledger.jsonl", f"meter-{files.session_name(name)}.json", "meter.json", "policy-log.jsonl", "programs.jsonl"
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
        assert hook.handle("claude-code", json.dumps(given).encode(), str(project))[1] is None
    assert [line["sequence"] for line in lines(project, "policy-log.jsonl")] == [1, 2, 3, 4, 5]
    budgets = [line["signals"]["spent"] for line in lines(project, "policy-log.jsonl")]
    assert budgets == [100, 200, 300, 300, 400]
    assert ledger.spent(str(project), {}, "s1") == 400
