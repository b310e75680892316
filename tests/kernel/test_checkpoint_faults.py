"""Checkpoints on full disks, without permission and at hostile paths: exit 0, one line on stderr, nothing claimed."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from ecm_rules import kernel, load_policy
from tests.commands import BIN, run
from tests.kernel.state import STATE, lines
from tests.kernel.test_faults import HOSTILE, unprivileged, within

VERBS = """
said() { wc -l < ../err; cat ../err; cat ../out; }
ask() { "$@" > ../out 2> ../err; echo "exit $?"; said; }
"""
ASKED = """
ask ecm-rules externalize --anchor a:1 --json
ask ecm-rules handoff --task-state "$LONG" --json
ask ecm-rules handoff --task-state "$LONG" --profile ecl
ls -A .eidolons/.context 2> /dev/null || true
"""


def answers(told: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told if line.startswith("{")]


def nothing_saved(told: list[str], why: str) -> None:
    """Every verb ended well, in one line, and claims nothing."""
    said = [told[n + 1] for n, line in enumerate(told) if line == "exit 0"]
    assert said == ["1"] * 3
    saved, handed = answers(told)
    assert (saved["commit_ok"], saved["file_floor_path"]) == (False, None)
    assert [handed[key] for key in ("brief_path", "envelope_path", "sha256", "ingest_ok")] == [None, None, None, False]
    assert {step["outcome"] for step in handed["steps"]} == {"failed"}
    assert "brief     not saved" in told
    complaints = [line for line in told if line.startswith(("nothing was saved", "no brief was saved"))]
    assert len(complaints) == 3
    assert all(why in line for line in complaints)


def test_a_full_disk(tmp_path: pathlib.Path) -> None:
    script = VERBS + "mkdir -p .eidolons/.context; LONG=x; cat /dev/zero > filler 2> /dev/null;" + ASKED
    told = within(tmp_path, script)
    nothing_saved(told, "No space left on device")
    assert not [line for line in told if line.endswith((".tmp", ".md", "Z.json"))]


def test_a_disk_that_fills_up_in_a_brief(tmp_path: pathlib.Path) -> None:
    script = (
        VERBS + "LONG=$(printf '%*s' 100000 x); mkdir -p .eidolons/.context; head -c 180000 /dev/zero > filler;" + ASKED
    )
    told = within(tmp_path, script)
    saved, handed = answers(told)
    assert saved["file_floor_path"] is not None
    assert (handed["brief_path"], handed["envelope_path"]) == (None, None)
    assert handed["tokens_est"] > 25_000
    assert not [line for line in told if line.endswith((".tmp", ".md"))]


def test_a_read_only_file_system(tmp_path: pathlib.Path) -> None:
    nothing_saved(within(tmp_path, VERBS + "LONG=x; mount -o remount,ro .; cd .;" + ASKED), "Read-only file system")


def test_a_folder_without_permission(project: pathlib.Path) -> None:
    (project / STATE).mkdir(parents=True)
    (project / STATE).chmod(0o500)
    try:
        done = [unprivileged(BIN / "ecm-rules", verb, "--json", cwd=project) for verb in ("externalize", "handoff")]
    finally:
        (project / STATE).chmod(0o700)
    assert [(each.returncode, each.stderr.count("\n")) for each in done] == [(0, 1)] * 2
    assert all(
        "saved: Permission denied" in each.stderr or "; file_floor: Permission denied" in each.stderr for each in done
    )
    assert os.listdir(project / STATE) == []


@pytest.mark.parametrize("relative", [".eidolons", STATE])
@pytest.mark.parametrize("link", [True, False])
def test_a_folder_that_is_a_file_or_a_link(
    relative: str, link: bool, project: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / relative).parent.mkdir(exist_ok=True)
    if link:
        (project / relative).symlink_to(elsewhere)
    else:
        (project / relative).write_text("a file")
    for verb in ("externalize", "handoff"):
        done = run(verb, "--json", cwd=project)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)
        found = json.loads(done.stdout)
        assert found.get("brief_path") is found.get("file_floor_path") is None
    assert os.listdir(elsewhere) == []
    policy = load_policy(project=str(project))
    told = kernel.run(policy.decide({"zone": "red"}), str(project), policy=policy, session="s1")
    assert (told["outcome"], told["actions"]) == ("failed", [])


FILES = [
    "policy-log.jsonl",
    "budget-ledger.jsonl",
    "handoff.json",
    "no-memory.warned",
    "entered-s1.json",
    "entered-s1.lock",
]


@pytest.mark.parametrize("name", FILES)
def test_a_link_at_any_state_path(name: str, project: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    victim = tmp_path_factory.mktemp("elsewhere") / "victim"
    victim.write_text("precious")
    (project / STATE).mkdir(parents=True)
    (project / STATE / name).symlink_to(victim)
    for verb in ("externalize", "handoff"):
        assert run(verb, "--session-id", "s1", cwd=project).returncode == 0
    policy = load_policy(project=str(project))
    told = kernel.run(policy.decide({"zone": "critical"}), str(project), policy=policy, session="s1")
    assert told["outcome"] == ("failed" if name.startswith("entered") else "degraded")
    assert victim.read_text() == "precious"
    assert (project / STATE / name).is_symlink()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name: str, project: pathlib.Path) -> None:
    policy = load_policy(project=str(project))
    for agent in (None, name):
        role = "subagent" if agent else "orchestrator"
        verdict = policy.decide({"zone": "critical"}, role)
        told = [kernel.run(verdict, str(project), policy=policy, session=name, agent=agent) for _ in range(2)]
        assert [each["ran"] for each in told] == [True, False]
        assert told[0]["outcome"] == ("host" if agent else "degraded")
    assert sorted(os.listdir(project)) == [".eidolons", "eidolons.yaml"]
    assert os.listdir(project / ".eidolons") == [".context"]
    assert len(lines(project, "budget-ledger.jsonl")) == 2
    if "\0" not in name and name.isprintable():
        for option in ("--session-id", "--thread-id", "--scope-project"):
            done = run("handoff", option, name, "--profile", "ecl", "--json", cwd=project)
            assert json.loads(done.stdout)["envelope_path"]
    assert sorted(os.listdir(project)) == [".eidolons", "eidolons.yaml"]
