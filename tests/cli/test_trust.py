"""Trust sources as the people of a project meet them: seen, decided, compared, explained, checked and tested."""

from __future__ import annotations

import json
import pathlib

import pytest

from ecm_rules import load_table
from tests.commands import run
from tests.conftest import FIXTURES

RUNNER = (
    "  - {id: RUNNER, when: {declaration: discard, source_id: runner}, operation: allow, why: it knows the phases}\n"
)
DISCARD = {"declaration": "discard", "origin": "custom", "source_id": "runner"}


@pytest.fixture
def folder(project: pathlib.Path) -> pathlib.Path:
    """A project that trusts its runner."""
    append(project, RUNNER)
    return project


def append(project: pathlib.Path, rows: str) -> None:
    (project / ".eidolons").mkdir(exist_ok=True)
    (project / ".eidolons/ecm.yaml").write_text("trust_sources:\n" + rows)


def test_the_table_shows_the_projects_rows_and_its_digest(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    lines = [line.split()[0] for line in run("table", "trust-sources", cwd=folder).stdout.splitlines()[4:8]]
    assert lines == ["T1", "T2", "RUNNER", "T3"]
    shown = json.loads(run("table", "trust-sources", "--format", "json", cwd=folder).stdout)
    assert shown["digest"] == load_table("trust-sources", project=folder).digest
    assert shown["digest"] != load_table("trust-sources", project=None).digest


def test_a_source_is_decided_with_the_projects_rows(folder: pathlib.Path) -> None:
    ask = ("decide", "trust-sources", "--signals", json.dumps(DISCARD))
    assert run(*ask, "--project", str(folder)).stdout == "operation: allow  (rule RUNNER)\n"
    (folder / "eidolons.yaml").write_text("context: {enabled: false}\n")
    assert run(*ask, "--project", str(folder)).stdout == "operation: deny  (rule T3)\n"


def test_it_is_explained_what_would_have_been_allowed(folder: pathlib.Path) -> None:
    meter = json.dumps({**DISCARD, "source_id": "walker"})
    done = run("explain", "--policy", "trust-sources", "--meter", "-", cwd=folder, stdin=meter)
    assert "✗ RUNNER  allow  source_id is walker, not runner\n" in done.stdout
    assert "would fire with source_id walker → runner\n" in done.stdout


def test_the_difference_is_whom_the_project_trusts(folder: pathlib.Path) -> None:
    done = run("diff", "trust-sources", ".", cwd=folder)
    assert done.returncode == 1
    assert "declaration discard and source_id runner, unless `T2` holds: deny → allow (looser)\n" in done.stdout
    assert run("diff", ".", "trust-sources", cwd=folder).stdout.endswith("1 region: 1 stricter\n")
    assert run("diff", "context-policy", ".", cwd=folder).returncode == 0
    append(folder, "  []\n")
    assert run("diff", "trust-sources", ".", cwd=folder).returncode == 0


@pytest.mark.parametrize("paths", [[], [".eidolons/ecm.yaml"], ["eidolons.yaml"], ["."]])
def test_a_projects_rows_are_checked_wherever_its_files_are(paths: list[str], folder: pathlib.Path) -> None:
    assert run("check", "--strict", *paths, cwd=folder).returncode == 0
    append(folder, RUNNER + "  - {id: LATE, when: {declaration: discard, source_id: runner}, operation: deny}\n")
    done = run("check", *paths, cwd=folder)
    assert done.returncode == 1
    assert ".eidolons/ecm.yaml:3:10: error ECM603: found the row `LATE`, which is unreachable" in done.stdout
    assert done.stdout.count("error ECM") == 1  # though more than one of the files leads to it
    append(folder, "  - {id: ALL, when: {declaration: discard}, operation: allow}\n")
    done = run("check", *paths, cwd=folder)
    assert ".eidolons/ecm.yaml:2:56: error ECM404: found `allow` in `ALL`, which names no source" in done.stdout


def test_nothing_is_decided_by_rows_that_are_refused(folder: pathlib.Path) -> None:
    append(folder, "  - {id: ALL, when: {declaration: discard}, operation: allow}\n")
    for command in (["table", "trust-sources"], ["decide", "trust-sources", "--signals", json.dumps(DISCARD)]):
        done = run(*command, cwd=folder)
        assert (done.returncode, done.stdout) == (1, "")
        assert "ECM404" in done.stderr


def test_a_test_that_changes_nothing_is_taken_out_of_a_projects_row(folder: pathlib.Path) -> None:
    append(folder, "  - {id: RUNNER, when: {source_id: runner, source_id_missing: false}, operation: allow}\n")
    assert "fixed ECM605" in run("check", "--fix", ".eidolons/ecm.yaml", cwd=folder).stdout
    assert (folder / ".eidolons/ecm.yaml").read_text().endswith("when: {source_id: runner}, operation: allow}\n")


def test_the_shipped_scenarios_exercise_every_row_and_region(folder: pathlib.Path) -> None:
    scenarios = str(FIXTURES / "scenarios/trust-sources.yaml")
    assert run("test", scenarios, "--fail-under", "100", cwd=folder).returncode == 0
    done = run("test", scenarios, "--project", ".", "--coverage", cwd=folder)
    assert done.returncode == 0
    assert "  not fired: RUNNER\n" in done.stdout
