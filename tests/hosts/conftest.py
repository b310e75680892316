"""A project that opted in, with the programs that its first hook leaves, so that no test builds them again."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from tests.hosts import clients


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The project of the fixtures, opted in. It is copied, and stays as it is."""
    project = clients.opted_in(tmp_path_factory.mktemp("warm"))
    assert clients.run("claude-code", b'{"session_id": "s0"}', project).stderr == b""
    for path in (project / clients.STATE).iterdir():
        if path.name != "programs.jsonl":
            path.unlink()
    return project


@pytest.fixture
def copied(warm: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """One of its own for a test."""
    return shutil.copytree(warm, tmp_path / "project")
