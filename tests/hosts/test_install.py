"""`ecm-rules install` and `remove` as a user runs them, on whole projects."""

from __future__ import annotations

import json
import os
import pathlib
import re
import stat
import subprocess
import tomllib
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecm_rules.hosts.installing import changes
from ecm_rules.hosts.installing.install import Outcome, UnknownHost, install, remove
from ecm_rules.kernel import files
from ecm_rules.tables.findings import EcmError
from ecm_rules.tables.installs import load_installs
from tests.commands import BIN, examples, run, unprinted
from tests.conftest import FIXTURES, ROOT

HOSTS = list(load_installs())
SETTINGS = ".claude/settings.json"
CODEX = ".codex/config.toml"
HOOK = str(BIN / "ecm-hook")


def snapshot(project: pathlib.Path) -> dict[str, bytes | str | None]:
    """Every file, link and folder of a project with its bytes, and modes but for the folders'."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(project.rglob("*")):
        name = str(path.relative_to(project))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = None if path.is_dir() else path.read_bytes() + oct(path.stat().st_mode).encode()
    return found


def write(project: pathlib.Path, **texts: str) -> None:
    for name, text in texts.items():
        put(project, name, text)


def put(project: pathlib.Path, name: str, text: str) -> pathlib.Path:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def sound(outcome: Outcome) -> Outcome:
    assert outcome.findings == ()
    return outcome


def lock_of(project: pathlib.Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((project / "eidolons.lock").read_text())["context"]
    return found


def settings_of(project: pathlib.Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / SETTINGS).read_text())
    return found


def full(project: pathlib.Path) -> None:
    """A project of somebody who has something in every file."""
    put(project, SETTINGS, '{\n  // mine\n  "hooks": {\n    "Stop": [{"hooks": []}],\n    "PreCompact": [ ]\n  }\n}')
    put(project, ".codex/hooks.json", '{"hooks":{}}\n')
    put(project, CODEX, 'model = "x" # a\r\n\r\n# about\r\n[p]\r\na = 1\r\n')
    put(project, ".gemini/settings.json", '{\n\t"model": {"name": "x"},\n}\n')
    put(project, ".github/copilot-instructions.md", "# Be nice")
    put(project, ".opencode/plugin/mine.js", "")
    put(project, ".pi/x", "")
    put(project, ".cursor/rules/mine.mdc", "---\n---\n")
    put(project, "AGENTS.md", "# Agents\n\n")
    put(project, "eidolons.yaml", "version: 1\nmembers: [x]\n# the end")
    put(project, "eidolons.lock", "version: 2\nmembers:\n  - name: x # y\n")


@pytest.mark.parametrize("host", [*HOSTS, None])
@pytest.mark.parametrize("prepared", [False, True])
def test_what_is_installed_can_be_removed_to_the_byte(host: str | None, prepared: bool, tmp_path: pathlib.Path) -> None:
    if prepared:
        full(tmp_path)
    names = [host] if host else HOSTS
    before = snapshot(tmp_path)
    done = sound(install(str(tmp_path), names))
    assert [wired.install.host for wired in done.hosts] == names
    once = snapshot(tmp_path)
    assert once != before
    assert sound(install(str(tmp_path), names)).changed == ()
    assert snapshot(tmp_path) == once
    sound(remove(str(tmp_path)))
    assert snapshot(tmp_path) == before
    sound(install(str(tmp_path), names))
    assert snapshot(tmp_path) == once
    sound(remove(str(tmp_path), names))
    assert snapshot(tmp_path) == before
    assert remove(str(tmp_path)).changed == ()


def test_hosts_come_and_go_one_by_one(tmp_path: pathlib.Path) -> None:
    full(tmp_path)
    before = snapshot(tmp_path)
    states = [before]
    for host in HOSTS:
        sound(install(str(tmp_path), [host]))
        states.append(snapshot(tmp_path))
    for host, state in zip(reversed(HOSTS[1:]), reversed(states[1:-1]), strict=True):
        sound(remove(str(tmp_path), [host]))
        assert snapshot(tmp_path) == state
    sound(remove(str(tmp_path)))
    assert snapshot(tmp_path) == before


def test_one_command_switches_a_project_on(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".claude").mkdir()
    done = run("install", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Claude Code (T3, hooks): .claude/settings.json\n3 files written")
    payload = (FIXTURES / "hosts/claude-code/UserPromptSubmit.json").read_bytes()
    (entry,) = settings_of(tmp_path)["hooks"]["UserPromptSubmit"]
    (hook,) = entry["hooks"]
    subprocess.run(["/bin/sh", "-c", hook["command"]], input=payload, cwd=tmp_path, check=True)
    assert (tmp_path / ".eidolons/.context/meter.json").is_file()
    again = run("install", cwd=tmp_path)
    assert again.stdout == "Claude Code (T3, hooks): nothing to do, installed already\n"
    assert run("remove", cwd=tmp_path).returncode == 0
    assert not (tmp_path / SETTINGS).exists()


def test_only_the_hosts_of_the_project_are_wired(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "GEMINI.md", "")
    put(tmp_path, ".cursorrules", "")
    assert [wired.install.host for wired in install(str(tmp_path)).hosts] == ["gemini-cli", "cursor"]


def test_a_project_without_a_client_asks_for_one(tmp_path: pathlib.Path) -> None:
    done = run("install", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "name one with --host (`codex`" in done.stderr
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("command", ["install", "remove"])
def test_an_unknown_host_is_bad_usage(command: str, tmp_path: pathlib.Path) -> None:
    done = run(command, "--host", "claude", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "unknown host 'claude': did you mean `claude-code`?\n",
    )
    assert run(command, "--project", "nowhere", cwd=tmp_path).returncode == 2
    with pytest.raises(UnknownHost):
        install(str(tmp_path), ["x"])


def test_a_dry_run_prints_a_diff_that_git_applies_and_writes_nothing(tmp_path: pathlib.Path) -> None:
    full(tmp_path)
    before = snapshot(tmp_path)
    done = run("install", "--dry-run", *(f"--host={host}" for host in HOSTS), cwd=tmp_path)
    assert done.returncode == 0
    assert snapshot(tmp_path) == before
    subprocess.run(["git", "apply", "-"], input=done.stdout.encode(), cwd=tmp_path, check=True)
    applied = snapshot(tmp_path)
    assert sound(install(str(tmp_path), HOSTS)).changed == ()
    assert snapshot(tmp_path) == applied
    undone = run("remove", "--dry-run", cwd=tmp_path)
    subprocess.run(["git", "apply", "-"], input=undone.stdout.encode(), cwd=tmp_path, check=True)
    assert {name: data for name, data in snapshot(tmp_path).items() if data is not None} == {
        name: data for name, data in before.items() if data is not None
    }


AWKWARD = ["a b", "it's", 'say "x"', "$HOME `id` \\", "déjà 🎉", "-n", "a\tb", "*?[x]", "a;b&c|d>e"]


def hook_in(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A stand-in for the hook in a folder, which notes the arguments that it is called with."""
    folder.mkdir(parents=True)
    program = folder / "ecm-hook"
    program.write_text('#!/bin/sh\nprintf "%s" "$*" > "$NOTE"\n')
    program.chmod(0o755)
    monkeypatch.setattr(changes, "program", lambda: str(program))
    return program


@pytest.mark.parametrize("name", AWKWARD)
def test_commands_survive_a_shell(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook_in(tmp_path / "bin" / name, monkeypatch)
    project = tmp_path / f"project {name}"
    project.mkdir()
    sound(install(str(project), HOSTS))
    files_of = {"claude-code": SETTINGS, "codex": ".codex/hooks.json", "gemini-cli": ".gemini/settings.json", "copilot": ".github/hooks/ecm-rules.json"}  # fmt: skip
    for host, file in files_of.items():
        found = json.dumps(json.loads((project / file).read_text())["hooks"])
        commands = {json.loads(f'"{part}"') for part in _commands(found)}
        assert len(commands) == 1
        note = tmp_path / "note"
        subprocess.run(["/bin/sh", "-c", commands.pop()], env={**os.environ, "NOTE": str(note)}, check=True)
        assert note.read_text() == host
        note.unlink()
    sound(remove(str(project)))
    assert snapshot(project) == {}


def _commands(text: str) -> list[str]:
    return re.findall(r'"(?:command|bash)": "((?:[^"\\]|\\.)*ecm-hook(?:[^"\\]|\\.)*)"', text)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(alphabet=st.characters(exclude_characters="/\0\n\r", exclude_categories=["Cs"]), min_size=1, max_size=12)
)
def test_any_path_of_the_hook_is_quoted_and_known_again(name: str) -> None:
    from ecm_rules.hosts.installing.changes import Situation
    from ecm_rules.hosts.installing.jobs import Job

    command = Situation(f"/opt/{name}/ecm-hook", {"red": 0.75}, None).command("codex")
    said = subprocess.run(["/bin/sh", "-c", f"printf '%s|' {command}"], capture_output=True, check=True).stdout.decode()
    assert said == f"/opt/{name}/ecm-hook|codex|"
    assert Job("codex", "", command, ()).is_ours(command)
    assert not Job("pi", "", command, ()).is_ours(command)


def test_a_plugin_calls_the_command_as_words(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = hook_in(tmp_path / 'a "b" \\c', monkeypatch)
    project = tmp_path / "p"
    project.mkdir()
    sound(install(str(project), ["opencode", "pi"]))
    for file, host in ((".opencode/plugin/ecm-rules.js", "opencode"), (".pi/extensions/ecm-rules.ts", "pi")):
        line = next(line for line in (project / file).read_text().splitlines() if line.startswith("const COMMAND"))
        assert json.loads(line.partition(" = ")[2].rstrip(";")) == [str(program), host]


def test_another_place_of_the_hook_replaces_the_old_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "p"
    full(project)
    before = snapshot(project)
    hook_in(tmp_path / "old", monkeypatch)
    sound(install(str(project), HOSTS))
    hook_in(tmp_path / "new", monkeypatch)
    sound(install(str(project), HOSTS))
    text = "".join(path.read_text() for path in project.rglob("*") if path.is_file())
    assert str(tmp_path / "old") not in text
    assert str(tmp_path / "new") in text
    sound(remove(str(project)))
    assert snapshot(project) == before


# What the lock says.


def test_the_lock_is_valid_for_the_nexus_and_says_what_is_effective(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "eidolons.yaml", "context:\n  thresholds: {amber: 0.4, red: 0.6}\n")
    put(tmp_path, SETTINGS, '{"statusLine": {"type": "command", "command": "mine"}, "compactThreshold": 75}')
    done = sound(install(str(tmp_path), HOSTS))
    context = lock_of(tmp_path)
    jsonschema.validate(context, LOCK_SCHEMA)
    assert (context["ecm_version"], context["host_tier"]) == ("0.1", "T3")
    assert context["thresholds"] == {"amber": 0.4, "red": 0.6, "critical": 0.9}
    assert (context["statusline_managed"], context["compactthreshold_managed"]) == (False, False)
    assert context["codex_autocompact_managed"] is True
    assert {host: (told["tier"], told["channel"]) for host, told in context["per_host"].items()} == {
        "codex": ("T3", "hooks"), "copilot": ("T3", "hooks"), "gemini-cli": ("T3", "hooks"), "opencode": ("T3", "plugin"), "pi": ("T3", "plugin"),
        "claude-code": ("T3", "hooks"), "cursor": ("T0", "instructions"), "agents-md": ("T0", "instructions"),
    }  # fmt: skip
    assert "statusline" in context["per_host"]["claude-code"]["ecm_features"]
    (values,) = [record["values"] for record in context["per_host"]["claude-code"]["installed"]]
    assert values["statusLine"] == {"managed": False}
    assert [key for wired in done.hosts for _, key in wired.foreign] == ["statusLine", "compactThreshold"]
    assert settings_of(tmp_path)["statusLine"] == {"type": "command", "command": "mine"}
    assert HOOK not in (tmp_path / "eidolons.lock").read_text()


# The `context` part of the nexus' schema of its lock.
LOCK_SCHEMA = {
    "type": "object",
    "properties": {
        "schema_version": {"type": "integer"},
        "ecm_version": {"type": "string"},
        "host_tier": {"type": "string"},
        "thresholds": {"type": "object", "additionalProperties": {"type": "number"}},
        "compactthreshold_managed": {"type": "boolean"},
        "statusline_managed": {"type": "boolean"},
        "codex_autocompact_managed": {"type": "boolean"},
        "per_host": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["tier", "channel"],
                "properties": {
                    "tier": {"type": "string", "enum": ["T0", "T1", "T2", "T3"]},
                    "channel": {"type": "string"},
                    "ecm_features": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
}


def test_a_lock_that_got_lost_loses_no_hook(tmp_path: pathlib.Path) -> None:
    put(tmp_path, SETTINGS, '{"a": 1}\n')
    sound(install(str(tmp_path)))
    (tmp_path / "eidolons.lock").unlink()
    hooks = settings_of(tmp_path)["hooks"]
    sound(install(str(tmp_path)))
    assert settings_of(tmp_path)["hooks"] == hooks
    (tmp_path / "eidolons.lock").unlink()
    sound(remove(str(tmp_path)))
    # Whose a bare value is, only the lock knows.
    assert settings_of(tmp_path) == {"a": 1, "compactThreshold": 75, "env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "84"}}


# The window and the red boundary.


@pytest.mark.parametrize(
    ("red", "window", "percent", "client", "told"),
    [
        (0.75, None, 75, "84", None), (0.75, 200_000, 75, "84", "200000"), (0.75, 1_000_000, 75, "77", None), (0.7, 100_000, 70, "88", "100000"),
        (0.75, 30_000, 75, "99", None), (0.75, 20_000, 75, "99", None), (0.655, None, 65.5, "73", None), (0.72, 200_000, 72, "80", "200000"),
    ],
)  # fmt: skip
def test_compaction_happens_at_the_red_boundary_of_the_full_window(
    red: float, window: int | None, percent: float, client: str, told: str | None, tmp_path: pathlib.Path
) -> None:
    put(tmp_path, "eidolons.yaml", f"context:\n  thresholds: {{amber: 0.4, red: {red}}}\n")
    if window:
        put(tmp_path, ".eidolons/ecm.yaml", f"window_tokens: {window}\n")
    sound(install(str(tmp_path), ["claude-code", "codex", "gemini-cli"]))
    made = settings_of(tmp_path)
    assert made["compactThreshold"] == percent
    assert made["env"]["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"] == client
    assert made["env"].get("CLAUDE_CODE_AUTO_COMPACT_WINDOW") == told
    limit = tomllib.loads((tmp_path / CODEX).read_text())["model_auto_compact_token_limit"]
    assert limit == int(round(red * 1000) * (window or 200_000) // 1000)
    assert limit <= 0.9 * (window or 200_000)
    assert json.loads((tmp_path / ".gemini/settings.json").read_text())["model"]["compressionThreshold"] == red


def test_codex_says_its_window_itself(tmp_path: pathlib.Path) -> None:
    put(tmp_path, CODEX, "model_context_window = 400000\n")
    sound(install(str(tmp_path)))
    assert "model_auto_compact_token_limit = 300000\n" in (tmp_path / CODEX).read_text()
    put(tmp_path, ".eidolons/ecm.yaml", "window_tokens: 100000\n")
    sound(install(str(tmp_path)))
    assert "model_auto_compact_token_limit = 75000\n" in (tmp_path / CODEX).read_text()
    sound(remove(str(tmp_path)))
    assert (tmp_path / CODEX).read_text() == "model_context_window = 400000\n"


def test_a_window_that_grew_takes_its_setting_back(tmp_path: pathlib.Path) -> None:
    put(tmp_path, ".eidolons/ecm.yaml", "window_tokens: 200000\n")
    sound(install(str(tmp_path), ["claude-code"]))
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW" in settings_of(tmp_path)["env"]
    put(tmp_path, ".eidolons/ecm.yaml", "window_tokens: 1000000\n")
    sound(install(str(tmp_path)))
    assert settings_of(tmp_path)["env"] == {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "77"}


# Opting in and out.


def test_a_project_that_said_no_is_not_overruled(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path, "eidolons.yaml", "context: {enabled: false} # not yet\n")
    done = run("install", "--host", "claude-code", cwd=tmp_path)
    assert done.returncode == 0
    assert "`enabled: false`" in done.stderr
    assert path.read_text() == "context: {enabled: false} # not yet\n"
    run("remove", cwd=tmp_path)
    assert path.read_text() == "context: {enabled: false} # not yet\n"


def test_a_block_that_was_there_stays(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path, "eidolons.yaml", "context: {}\n")
    sound(install(str(tmp_path), ["pi"]))
    sound(remove(str(tmp_path)))
    assert path.read_text() == "context: {}\n"


def test_a_block_of_ours_that_was_written_on_stays_and_it_is_said(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["pi"]))
    path = tmp_path / "eidolons.yaml"
    path.write_text(path.read_text() + "  budget_tokens: 5\n")
    done = sound(remove(str(tmp_path)))
    assert done.notes == ("`context:` in eidolons.yaml was changed since, and stays",)
    assert path.read_text() == "context:\n  enabled: true\n  budget_tokens: 5\n"
    assert not (tmp_path / "eidolons.lock").exists()


# What is refused, and what is installed all the same.

BAD = [
    (SETTINGS, '{"hooks": []}', "1:11", "found a list at `hooks`, expected an object"),
    (SETTINGS, '{"a": 1', "1:8", "found the end of the file"),
    (SETTINGS, '{"hooks": {"Stop": null}}', "1:20", "found null at `hooks.Stop`, expected a list"),
    (SETTINGS, "\xff", "", "found an end"),
    (".codex/hooks.json", "[]", "1:1", "found a list as the whole"),
    (CODEX, "a = \n", "1:5", "found no TOML"),
    ("AGENTS.md", "<!-- ecm-rules end agents-md -->\n", "1:1", "expected one pair"),
    (".opencode/plugin/ecm-rules.js", "// mine\n", "1:1", "found a file that `ecm-rules` did not write"),
]


@pytest.mark.parametrize(("file", "text", "place", "message"), [bad for bad in BAD if bad[1] != "\xff"])
def test_a_refusal_names_the_place_and_the_others_are_installed(
    file: str, text: str, place: str, message: str, tmp_path: pathlib.Path
) -> None:
    path = put(tmp_path, file, text)
    done = run("install", *(f"--host={host}" for host in HOSTS), cwd=tmp_path)
    assert done.returncode == 1
    assert f"{file}:{place}: error ECM90" in done.stderr
    assert message in done.stderr
    assert "\n  help: " in done.stderr
    assert path.read_text() == text
    refused = {host for host, made in load_installs().items() if any(edit.file == file for edit in made.edits)}
    assert set(lock_of(tmp_path)["per_host"]) == set(HOSTS) - refused
    for host in refused:  # all of its files or none
        for edit in load_installs()[host].edits:
            assert edit.file == file or not (tmp_path / edit.file).exists()


@pytest.mark.parametrize("data", [b'{"a": "\xff"}', "{}".encode("utf-16"), b"\xef\xbb\xbf\x80"])
def test_what_is_no_utf_8_is_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    put(tmp_path, SETTINGS, "")
    (tmp_path / SETTINGS).write_bytes(data)
    (finding,) = install(str(tmp_path)).findings
    assert "expected UTF-8" in finding.message
    assert (tmp_path / SETTINGS).read_bytes() == data


@pytest.mark.parametrize(
    ("file", "text"),
    [("eidolons.yaml", "a: ]\n"), ("eidolons.lock", "a: ]\n"), ("eidolons.yaml", "[1]\n"), ("eidolons.yaml", "context: {enabled: 3}\n"),
     ("eidolons.yaml", "context: {thresholds: {red: 0.99}}\n"), ("eidolons.lock", "{a: 1}\n"), ("eidolons.lock", "context:\n")],
)  # fmt: skip
def test_a_nexus_file_that_does_not_load_refuses_everything(file: str, text: str, tmp_path: pathlib.Path) -> None:
    put(tmp_path, file, text)
    (tmp_path / ".claude").mkdir()
    before = snapshot(tmp_path)
    done = run("install", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{file}:1:" in done.stderr.replace("./", "")
    assert "Traceback" not in done.stderr
    assert snapshot(tmp_path) == before


def test_a_link_within_the_project_is_followed_and_stays_one(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "shared/settings.json", "{}\n")
    (tmp_path / ".claude").mkdir()
    (tmp_path / SETTINGS).symlink_to("../shared/settings.json")
    (tmp_path / ".codex").symlink_to("shared")
    before = snapshot(tmp_path)
    sound(install(str(tmp_path)))
    assert (tmp_path / SETTINGS).is_symlink()
    assert "hooks" in settings_of(tmp_path)
    assert (tmp_path / "shared/hooks.json").is_file()
    sound(remove(str(tmp_path)))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind", ["file", "folder", "dangling", "state", "pipe", "directory", "loop"])
def test_what_leads_elsewhere_is_refused(kind: str, tmp_path: pathlib.Path) -> None:
    project, outside = tmp_path / "p", tmp_path / "outside"
    put(outside, "settings.json", "{}\n")
    (project / ".claude").mkdir(parents=True)
    path = project / SETTINGS
    if kind == "file":
        path.symlink_to(outside / "settings.json")
    elif kind == "folder":
        path.parent.rmdir()
        path.parent.symlink_to(outside)
    elif kind == "dangling":
        path.symlink_to("nothing.json")
    elif kind == "state":
        put(project, ".eidolons/.context/meter.json", "{}")
        path.symlink_to("../.eidolons/.context/meter.json")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("settings.json")
    (finding,) = install(str(project), ["claude-code"]).findings
    assert (finding.code, finding.file) == ("ECM903", SETTINGS)
    assert finding.help
    assert snapshot(outside) == {"settings.json": b"{}\n" + oct((outside / "settings.json").stat().st_mode).encode()}
    assert not (project / "eidolons.lock").exists()


def test_a_read_only_file_is_refused_and_others_keep_their_mode(tmp_path: pathlib.Path) -> None:
    path, other = put(tmp_path, SETTINGS, "{}"), put(tmp_path, "AGENTS.md", "x\n")
    path.chmod(0o444)
    other.chmod(0o640)
    done = install(str(tmp_path), ["claude-code", "agents-md"])
    (finding,) = done.findings
    assert (finding.code, "read-only" in finding.message) == ("ECM903", True)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("{}", 0o444)
    assert stat.S_IMODE(other.stat().st_mode) == 0o640
    assert list(lock_of(tmp_path)["per_host"]) == ["agents-md"]


def test_a_huge_file_is_refused(tmp_path: pathlib.Path) -> None:
    put(tmp_path, SETTINGS, '{"a": "' + "x" * files.MAX_BYTES + '"}')
    (finding,) = install(str(tmp_path)).findings
    assert "more than 1048576 bytes" in finding.message


def test_a_folder_that_cannot_be_written_is_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(path: str, data: bytes, *_: object, **__: object) -> None:
        if path.endswith("settings.json"):
            raise OSError(28, "No space left on device")
        with open(path, "wb") as stream:
            stream.write(data)

    monkeypatch.setattr(files, "replace", full_disk)
    (tmp_path / ".claude").mkdir()
    (finding,) = install(str(tmp_path)).findings
    assert finding.message == "cannot be written: no space left on device"
    monkeypatch.undo()
    sound(remove(str(tmp_path)))
    assert snapshot(tmp_path) == {".claude": None}


def test_a_user_goes_on_working_between_install_and_remove(tmp_path: pathlib.Path) -> None:
    full(tmp_path)
    sound(install(str(tmp_path), HOSTS))
    for name, old, new in (
        (SETTINGS, '"hooks": {', '"model": "x",\n  "hooks": {'),
        (CODEX, 'model = "x"', 'model = "y"'),
        ("AGENTS.md", "# Agents", "# More agents"),
        ("eidolons.lock", "name: x # y", "name: z"),
        ("eidolons.yaml", "version: 1", "version: 2"),
    ):
        text = (tmp_path / name).read_bytes().decode()
        assert old in text
        put(tmp_path, name, text.replace(old, new, 1))
    put(tmp_path, ".gemini/settings.json", (tmp_path / ".gemini/settings.json").read_text() + "// a last word\n")
    assert sound(install(str(tmp_path))).changed == ()
    sound(remove(str(tmp_path)))
    assert (tmp_path / SETTINGS).read_text() == '{\n  // mine\n  "model": "x",\n  "hooks": {\n    "Stop": [{"hooks": []}],\n    "PreCompact": [ ]\n  }\n}'  # fmt: skip
    assert (tmp_path / CODEX).read_bytes().startswith(b'model = "y" # a\r\n\r\n#')
    assert (tmp_path / "AGENTS.md").read_text() == "# More agents\n\n"
    assert (tmp_path / "eidolons.lock").read_text() == "version: 2\nmembers:\n  - name: z\n"
    assert (tmp_path / "eidolons.yaml").read_text() == "version: 2\nmembers: [x]\n# the end"
    assert (tmp_path / ".gemini/settings.json").read_text() == '{\n\t"model": {"name": "x"},\n}\n// a last word\n'


def test_a_project_without_a_hook_program_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "PROGRAM", "no-such-program")
    with pytest.raises(EcmError) as caught:
        install(str(tmp_path), ["pi"])
    assert "no-such-program" in str(caught.value)


def test_hosts_are_removed_where_the_project_s_own_file_is_broken(tmp_path: pathlib.Path) -> None:
    sound(install(str(tmp_path), ["claude-code"]))
    (tmp_path / "eidolons.yaml").write_text("context: [\n")
    done = run("remove", cwd=tmp_path)
    assert done.returncode == 1
    assert "eidolons.yaml:2:1: error ECM901" in done.stderr
    assert not (tmp_path / SETTINGS).exists()
    (tmp_path / "eidolons.yaml").write_text("context:\n  enabled: true\n")
    assert run("remove", cwd=tmp_path).returncode == 0
    assert snapshot(tmp_path) == {}


def test_the_page_shows_what_is_printed(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".claude").mkdir()
    page = (ROOT / "docs/install.md").read_text()
    (block,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    for command, shown in examples(block):
        done = run(*command.split(), cwd=tmp_path)
        assert (done.returncode, unprinted(shown, done.stdout)) == (0, [])
    assert snapshot(tmp_path) == {".claude": None}
    for host, made in load_installs().items():
        assert f"| `{host}` |" in page
        assert all(edit.file in page for edit in made.edits)
