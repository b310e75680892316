"""`ecm-rules doctor`: each hook is run as its client would, and what is missing is named."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import attrs
import pytest

from ecm_rules.hosts.installing import changes, doctor, trial
from ecm_rules.hosts.installing.doctor import Diagnosis, examine, repair
from ecm_rules.hosts.installing.install import install
from ecm_rules.tables.findings import ERROR, WARNING
from ecm_rules.tables.installs import load_installs
from tests.commands import BIN, run
from tests.conftest import FIXTURES
from tests.hosts.test_install import HOSTS, SETTINGS, hook_in, put, settings_of, snapshot, sound

LIVE = [host for host, made in load_installs().items() if made.channel != "instructions"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged is what a hook does, not what else the machine does meanwhile."""
    monkeypatch.setenv("ECM_PROMPT_PATH_MS", "0")


def told(found: Diagnosis, severity: str | None = None) -> list[str]:
    """Code and message of each finding but for the time that a hook took, which the machine's load decides."""
    slow = [f for f in found.findings if "prompt_path_ms" in f.message]
    return [f"{f.code} {f.message}" for f in found.findings if f not in slow and severity in (None, f.severity)]


def test_a_project_that_is_fully_wired_is_clean(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), HOSTS))
    before = snapshot(tmp_path)
    found = examine(str(tmp_path))
    assert told(found) == []
    assert [host.install.host for host in found.hosts] == HOSTS
    assert all(host.wired == host.wanted for host in found.hosts)
    tried = {host.install.host: host.trial for host in found.hosts if host.trial}
    assert list(tried) == LIVE
    for host, attempt in tried.items():
        assert (attempt.exit, attempt.measured, attempt.faults) == (0, True, ())
        assert attempt.answer in ("nothing", "json")
        assert host in attempt.command
        assert attempt.milliseconds > 0
    assert snapshot(tmp_path) == before, "a trial touches nothing of the project"
    assert any("not trusted" in note for note in found.notes)
    assert any("Copilot also runs" in note for note in found.notes)


@pytest.mark.parametrize("host", LIVE)
def test_each_host_has_a_small_payload_of_its_own_session(host: str) -> None:
    text = changes.packaged("payloads", f"{host}.json")
    assert trial.SESSION in text
    assert len(text) < 1000


def test_the_command_prints_one_document(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    done = run("doctor", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert set(found) == {"version", "enabled", "digest", "meter", "hosts", "findings", "notes"}
    (host,) = found["hosts"]
    assert (host["host"], host["tier"], host["channel"], host["wired"], host["wanted"]) == (
        "claude-code",
        "T3",
        "hooks",
        10,
        10,
    )
    assert host["hook"]["command"] == f"{BIN / 'ecm-hook'} claude-code"
    assert (found["enabled"], found["meter"], len(found["digest"])) == (True, None, 64)


def test_people_see_what_was_measured_last(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    payload = (FIXTURES / "hosts/claude-code/statusline.after-turn.json").read_bytes()
    run("claude-code", cwd=tmp_path, stdin=payload, script="ecm-hook")
    done = run("doctor", cwd=tmp_path)
    assert "✓ Claude Code (T3, hooks)  10 of 10 entries · hook " in done.stdout
    assert "meter   green 15.0%, " in done.stdout
    assert " old, from the client's reading (host)\n" in done.stdout
    assert "tables  " in done.stdout
    meter = json.loads(run("doctor", "--json", cwd=tmp_path).stdout)["meter"]
    assert (meter["basis"], meter["zone"], meter["age_seconds"] < 60) == ("client's reading", "green", True)


def test_nothing_installed_is_an_error(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "GEMINI.md", "")
    done = run("doctor", cwd=tmp_path)
    assert done.returncode == 1
    assert "error ECM914: found no `context:` in the project" in done.stdout
    assert "error ECM911: found nothing installed in this project" in done.stdout
    assert "GEMINI.md: warning ECM911: found signs of Gemini CLI" in done.stdout or ".gemini: warning" in done.stdout
    assert run("doctor", "--project", "nowhere", cwd=tmp_path).returncode == 2


def edited(project: pathlib.Path, old: str, new: str, file: str = SETTINGS) -> None:
    text = (project / file).read_text()
    assert old in text
    put(project, file, text.replace(old, new))


WRONG = {
    "an event is missing": ('"PreCompact"', '"Other"', ["found no hook of ours at `hooks.PreCompact`", "found a hook of ours at `hooks.Other.hooks`"]),
    "a setting is missing": ('"compactThreshold": 75,', "", ["found no `compactThreshold`, expected `75`"]),
    "another program": ("ecm-hook claude-code", "ecm-hook codex", ["found no hook of ours at `hooks.Stop`"]),
    "a command that is gone": (str(BIN / "ecm-hook"), "/gone/ecm-hook", ['which is not there any more; expected `"']),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_wired_is_named_and_repaired(name: str, tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    hooks = settings_of(tmp_path)["hooks"]
    old, new, messages = WRONG[name]
    edited(tmp_path, old, new)
    wrong = told(examine(str(tmp_path)), ERROR)
    for message in messages:
        assert any(message in one for one in wrong), wrong
    found = repair(str(tmp_path))
    assert told(found, ERROR) == []
    if name != "another program":
        assert settings_of(tmp_path)["hooks"] == hooks


def test_a_hook_that_stands_twice_is_an_error(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    made = settings_of(tmp_path)
    made["hooks"]["Stop"] *= 2
    put(tmp_path, SETTINGS, json.dumps(made))
    assert told(examine(str(tmp_path))) == ["ECM911 found our hook 2 times at `hooks.Stop`, expected it once"]
    assert told(repair(str(tmp_path))) == []
    assert len(settings_of(tmp_path)["hooks"]["Stop"]) == 1


def test_what_somebody_else_holds_is_a_warning(tmp_path: pathlib.Path) -> None:
    put(tmp_path, SETTINGS, '{\n  "statusLine": {"type": "command", "command": "mine"},\n  "compactThreshold": 75\n}\n')
    sound(install(str(tmp_path)))
    found = examine(str(tmp_path))
    assert told(found) == ["ECM913 found a mapping at `statusLine`, which is not ours; we would set our command"]
    (finding,) = [f for f in found.findings if f.code == "ECM913"]
    assert (finding.severity, finding.line, finding.column) == (WARNING, 2, 17)
    assert run("doctor", cwd=tmp_path).returncode == 0


def test_a_hook_of_another_installation_is_a_warning_and_is_not_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, note = tmp_path / "p", tmp_path / "note"
    project.mkdir()
    monkeypatch.setenv("NOTE", str(note))
    with monkeypatch.context() as patch:
        hook_in(tmp_path / "other", patch)
        sound(install(str(project), ["codex", "pi"]))
    found = examine(str(project))
    assert not note.exists()
    assert all("expected that of this installation" in one for one in told(found, WARNING))
    assert len(told(found, WARNING)) == 7
    assert told(found, ERROR) == ["ECM911 found another text than this version writes"]
    assert told(repair(str(project))) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "found exit code 3, expected 0"),
        ("echo oops >&2; exit 1", "found exit code 1, expected 0: oops"),
        ("echo ecm-hook: no table >&2", "found a complaint: no table"),
        ("echo hello", "found `hello` on stdout, expected nothing or one JSON object"),
        ("echo '{} {}'", "expected nothing or one JSON object"),
        ("echo 3", "expected nothing or one JSON object"),
        ("exit 0", "found no meter after the hook"),
        ("sleep 5", "found no end within 0.3 s"),
    ],
)
def test_a_hook_that_misbehaves_is_an_error(
    script: str, message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = hook_in(tmp_path / "a b", monkeypatch)
    program.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(trial, "PATIENCE", 0.3 if "sleep" in script else 10)
    project = tmp_path / "p"
    project.mkdir()
    sound(install(str(project), ["claude-code"]))
    (wrong,) = told(examine(str(project)), ERROR)
    assert wrong.startswith("ECM912 Claude Code's hook: ")
    assert message in wrong


def test_a_slow_hook_is_a_warning() -> None:
    host = load_installs()["pi"]
    slow = trial.Trial("x", 301.0, 0, "nothing", True, ())
    (finding,) = doctor._tried(host, slow, 300, "f")
    assert (finding.severity, "found 301 ms, expected at most 300" in finding.message) == (WARNING, True)
    assert doctor._tried(host, attrs.evolve(slow, milliseconds=300), 300, "f") == []
    (finding,) = doctor._tried(host, attrs.evolve(slow, milliseconds=300, late=True), 300, "f")
    assert finding.severity == WARNING


def test_a_hook_that_gives_up_in_time_is_late_and_not_at_fault(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = hook_in(tmp_path / "a", monkeypatch)
    program.write_text("#!/bin/sh\necho ecm-hook: late: the deadline has passed >&2\n")
    project = tmp_path / "p"
    project.mkdir()
    sound(install(str(project), ["claude-code"]))
    found = examine(str(project))
    assert told(found) == []
    assert [host.trial and (host.trial.late, host.trial.measured) for host in found.hosts] == [(True, None)]


def test_the_trial_runs_by_the_projects_own_tables(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    before = examine(str(tmp_path)).digest
    edited(tmp_path, "  enabled: true", "  thresholds: {amber: 0.3}", "eidolons.yaml")
    assert examine(str(tmp_path)).digest != before
    edited(tmp_path, "0.3", "0.99", "eidolons.yaml")
    found = examine(str(tmp_path))
    assert found.digest is None
    assert any(finding.code == "ECM401" and finding.file.endswith("eidolons.yaml") for finding in found.findings)
    done = run("doctor", cwd=tmp_path)
    assert (done.returncode, "tables  do not load" in done.stdout) == (1, True)


def test_a_project_that_is_switched_off_is_a_warning(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "eidolons.yaml", "context: {enabled: false}\n")
    sound(install(str(tmp_path), ["pi"]))
    found = examine(str(tmp_path))
    assert told(found) == ["ECM914 found `context.enabled` at false, with which every hook does nothing"]
    assert [host.trial and host.trial.measured for host in found.hosts] == [None]


def test_fix_adds_the_block_that_got_lost(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["pi"]))
    (tmp_path / "eidolons.yaml").unlink()
    (tmp_path / "eidolons.lock").unlink()
    assert run("doctor", "--fix", cwd=tmp_path).returncode == 0
    assert told(examine(str(tmp_path))) == []


def test_fix_says_what_it_cannot(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    put(tmp_path, SETTINGS, '{"hooks": []}')
    done = run("doctor", "--fix", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{SETTINGS}:1:11: error ECM902: found a list at `hooks`" in done.stdout


@pytest.mark.parametrize("file", ["eidolons.lock", "eidolons.yaml", SETTINGS, ".eidolons/.context/meter.json"])
def test_broken_files_are_findings_never_tracebacks(file: str, tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    put(tmp_path, file, "{\n")
    for option in ([], ["--json"], ["--fix"]):
        done = run("doctor", *option, cwd=tmp_path)
        assert done.returncode in (0, 1)
        assert "Traceback" not in done.stderr
        if option == ["--json"]:
            document: dict[str, Any] = json.loads(done.stdout)
            assert document["hosts"] or file == "eidolons.lock"
