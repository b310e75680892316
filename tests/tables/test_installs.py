"""What rules/hosts.yaml says of installing: read with places, and enough to wire a client that nobody thought of."""

from __future__ import annotations

import json
import pathlib

import pytest

from ecm_rules import EcmError
from ecm_rules.hosts.installing import install
from ecm_rules.tables import installs
from ecm_rules.tables.installs import Edit, load_installs
from tests.commands import run
from tests.conftest import ROOT
from tests.marked import unmark

SHIPPED = (ROOT / "rules/hosts.yaml").read_text()
FORMATS = SHIPPED[SHIPPED.index("formats:") : SHIPPED.index("# The clients.")]


def hosts(edits: str) -> str:
    return f"schema_version: 1\n{FORMATS}hosts:\n  new:\n    title: New\n    tier: T2\n    install:\n      edits:\n        - {edits}\nmodels: []\n"


def test_each_becomes_an_edit_of_its_own() -> None:
    made = load_installs()["claude-code"]
    events = [edit.at[1] for edit in made.edits if edit.kind == "append"]
    assert events == [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SubagentStop",
    ]
    assert made.edits[-1] == Edit(
        "set",
        ".claude/settings.json",
        ("env", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
        "{window}",
        None,
        True,
        (100_000, 200_000),
    )
    assert (made.keeps, made.channel) == (20_000, "hooks")


def test_every_host_is_installed_by_data_that_is_packaged() -> None:
    for host in load_installs().values():
        for edit in host.edits:
            if edit.kind in ("create", "block"):
                folder = "shims" if edit.kind == "create" else "floors"
                assert (ROOT / "ecm_rules/hosts" / folder / edit.value).is_file()


WRONG = {
    "no kind": (
        "«{file: a.json, at: b}»",
        "found no kind of edit, expected one of `append`, `set`, `create` or `block`",
    ),
    "two kinds": ("«{file: a.json, at: b, set: 1, create: x}»", "found `set` and `create`"),
    "a key without a place": ("«{file: a.json, set: 1}»", "found no `at` with `set`, expected one"),
    "a place for a file": ("«{file: a.md, at: b, block: x}»", "found `at` with `block`, expected none"),
    "a path out of the project": ("«{file: ../a.json, at: b, set: 1}»", "expected one within a project"),
    "an absolute path": ("«{file: /a.json, at: b, set: 1}»", "expected one within a project"),
    "a format that is not edited": ("«{file: a.ini, at: b, set: 1}»", "expected a file of JSON or TOML"),
    "a table in TOML": ("«{file: a.toml, at: b.c, set: 1}»", "expected a top-level key"),
    "a list in TOML": ("«{file: a.toml, at: b, append: {x: 1}}»", "expected a top-level key"),
    "each without a list": ('«{file: a.json, at: "b.{each}", set: 1}»', "found `{each}` without `each`"),
    "an unknown placeholder": ('«{file: a.json, at: b, set: "{red}"}»', "found the placeholder `red`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_edit_that_makes_no_sense_is_refused_at_its_place(name: str, tmp_path: pathlib.Path) -> None:
    marked, message = WRONG[name]
    text, spans = unmark(hosts(marked))
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    with pytest.raises(EcmError) as caught:
        load_installs(str(path))
    (finding,) = caught.value.findings
    assert finding.code == "ECM204"
    assert message in finding.message
    assert (finding.line, finding.column) == spans[0][:2]
    done = run("check", str(path))
    assert done.returncode == 1
    assert message in done.stdout


def test_a_new_host_is_yaml_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(
        hosts('{file: .new/conf.json, each: [start, stop], at: "on.{each}", append: {run: "{command}"}}')
        .replace("models: []", "        - {file: .new/conf.toml, at: limit, set: \"{red_tokens}\", lock: new_managed}\nmodels: []")
    )  # fmt: skip
    made = load_installs(str(path))
    monkeypatch.setattr(installs, "load_installs", lambda: made)
    project = tmp_path / "p"
    project.mkdir()
    done = install.install(str(project), ["new"])
    assert done.findings == ()
    (stop,) = json.loads((project / ".new/conf.json").read_text())["on"]["stop"]
    assert stop["run"].endswith("/ecm-hook new")
    assert (project / ".new/conf.toml").read_text() == "limit = 150000\n"
    assert "new_managed: true" in (project / "eidolons.lock").read_text()
    install.remove(str(project), ["new"])
    assert list(project.iterdir()) == []
