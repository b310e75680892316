"""Leftovers go, a bounded number at a time and off the path of a prompt; nothing that anybody could miss does."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from ecm_rules import Policy
from ecm_rules.hosts import hook
from ecm_rules.kernel import checkpoints, locks, status, succession, sweep
from ecm_rules.kernel.status import Flags
from tests.conftest import FIXTURES
from tests.kernel.state import STATE

WEEK = 7 * 86_400
TEMPORARY = ".0123456789abcdef.tmp"
LEFT = [
    "meter.json" + TEMPORARY, "handoff-20260707T000000Z.md" + TEMPORARY, "budget-ledger.state" + TEMPORARY,
    "entered-s1.json", "entered-s1.lock", "entered-s2.lock", "entered-s3.json", "compacted-s1.json",
    "compacted-h-0123.json", "handoff-20260707T000000Z.md.taken", "handoff-20260707T000000Z-2.md.taken",
]  # fmt: skip
KEPT = [
    "meter.json", "meter-a1.json", "meter-entered-s1.json", "policy-log.jsonl", "budget-ledger.jsonl", "budget-ledger.state",
    "programs.json", "reading-0123456789abcdef.json", "handoff.json", "handoff-20260707T000000Z.md",
    "handoff-20260707T000000Z.envelope.json", "externalized-20260707T000000Z.json", "warned", "notes.tmp", "mine.taken",
    "x.0123.tmp", "entered-s1.json.bak", "xentered-s1.json", "entered-.json", "compacted-a b.json", TEMPORARY,
]  # fmt: skip


def lay(project: pathlib.Path, *names: str, age: float = WEEK + 60) -> pathlib.Path:
    folder = project / STATE
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
        os.utime(folder / name, (time.time() - age,) * 2)
    return folder


def swept(project: pathlib.Path, policy: Policy) -> int:
    return sweep.sweep(str(project), policy.table.audit, policy.table.limits)


def test_what_is_left_over_for_a_week_goes_and_all_else_stays(tmp_path: pathlib.Path, policy: Policy) -> None:
    folder = lay(tmp_path, *LEFT, *KEPT)
    assert swept(tmp_path, policy) >= len(LEFT)
    assert sorted(os.listdir(folder)) == sorted(KEPT)
    assert swept(tmp_path, policy) == 0


@pytest.mark.parametrize("age", [0, WEEK - 60, -WEEK])
def test_what_is_younger_or_of_the_future_stays(age: float, tmp_path: pathlib.Path, policy: Policy) -> None:
    folder = lay(tmp_path, *LEFT, age=age)
    assert swept(tmp_path, policy) == 0
    assert sorted(os.listdir(folder)) == sorted(LEFT)


def test_a_state_that_is_younger_than_its_lock_keeps_both(tmp_path: pathlib.Path, policy: Policy) -> None:
    folder = lay(tmp_path, "entered-s1.lock")
    lay(tmp_path, "entered-s1.json", age=60)
    assert swept(tmp_path, policy) == 0
    assert sorted(os.listdir(folder)) == ["entered-s1.json", "entered-s1.lock"]


def test_a_state_whose_lock_is_held_stays(tmp_path: pathlib.Path, policy: Policy) -> None:
    folder = lay(tmp_path, "entered-s1.json", "entered-s1.lock", "entered-s2.json")
    lock = locks.take(str(folder / "entered-s1.lock"), 0)
    try:
        swept(tmp_path, policy)
    finally:
        locks.release(lock)
    assert sorted(os.listdir(folder)) == ["entered-s1.json", "entered-s1.lock"]


def test_links_and_folders_are_neither_followed_nor_removed(tmp_path: pathlib.Path, policy: Policy) -> None:
    elsewhere = lay(tmp_path / "elsewhere", "entered-s1.json", "target")
    folder = lay(tmp_path / "project")
    old = (time.time() - WEEK - 60,) * 2
    for name in ("entered-s1.json", "entered-s2.lock", "compacted-s1.json", "x" + TEMPORARY):
        (folder / name).symlink_to(elsewhere / "target")
        os.utime(folder / name, old, follow_symlinks=False)
    (folder / "compacted-s2.json").mkdir()
    os.utime(folder / "compacted-s2.json", old)
    there = sorted(os.listdir(folder))
    assert swept(tmp_path / "project", policy) == 0
    assert sorted(os.listdir(folder)) == there
    (tmp_path / "linked/.eidolons").mkdir(parents=True)
    (tmp_path / "linked" / STATE).symlink_to(elsewhere)
    assert swept(tmp_path / "linked", policy) == 0
    assert sorted(os.listdir(elsewhere)) == ["entered-s1.json", "target"]


def test_a_brief_that_was_taken_is_not_offered_again(project: pathlib.Path, policy: Policy) -> None:
    for _ in range(2):
        checkpoints.handoff(str(project), {"task_state": "t"}, session="s1")
        assert succession.take_over(str(project), policy.table.audit, "s2", "2026-07-07T00:00:00Z") is not None
    taken = sorted((project / STATE).glob("*.taken"))
    for path in taken:
        os.utime(path, (time.time() - WEEK - 60,) * 2)
    assert swept(project, policy) == 1
    assert succession.waiting(str(project), policy.table.audit) is None
    (left,) = (project / STATE).glob("*.taken")
    offered = json.loads((project / STATE / succession.FILE).read_text())["brief_path"]
    assert left.name == f"{os.path.basename(offered)}.taken"


def test_a_sweep_is_bounded(tmp_path: pathlib.Path, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MOST", 5)
    folder = lay(tmp_path, *(f"compacted-s{number}.json" for number in range(12)))
    assert [swept(tmp_path, policy) for _ in range(4)] == [5, 5, 2, 0]
    lay(tmp_path, *(f"compacted-s{number}.json" for number in range(12)))
    monkeypatch.setattr(sweep, "SEEN", 3)
    assert swept(tmp_path, policy) == 3
    assert len(os.listdir(folder)) == 9


def test_where_nothing_can_be_removed_nothing_is_raised(
    tmp_path: pathlib.Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(tmp_path, policy) == 0
    assert not (tmp_path / ".eidolons").exists()
    assert sweep.sweep(str(tmp_path), {}, {}) == 0
    assert sweep.sweep(str(tmp_path), {"meter": "../../x"}, policy.table.limits) == 0

    def refused(*_: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = lay(tmp_path, *LEFT)
    monkeypatch.setattr(os, "unlink", refused)
    assert swept(tmp_path, policy) == 0
    assert len(os.listdir(folder)) >= len(LEFT)
    (tmp_path / "file").mkdir()
    (tmp_path / "file/.eidolons").write_text("")
    assert swept(tmp_path / "file", policy) == 0


def test_the_verbs_sweep_and_a_prompt_does_not(project: pathlib.Path) -> None:
    name = "compacted-old.json"
    given = (FIXTURES / "hosts/claude-code/statusline.after-turn.json").read_bytes()
    folder = lay(project, name)
    assert hook.handle("claude-code", given, str(project))[1] is None
    assert (folder / name).exists()
    assert status.refresh(str(project), Flags("10")).complaints == ()
    assert not (folder / name).exists()
    for verb in (checkpoints.externalize, checkpoints.handoff):
        lay(project, name)
        verb(str(project), {})
        assert not (folder / name).exists()
