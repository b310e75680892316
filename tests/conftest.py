"""Paths and policies that many tests share."""

from __future__ import annotations

import pathlib

import pytest

from ecm_rules import Policy, load_policy

ROOT = pathlib.Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The shipped policy, without any project's layer."""
    return load_policy(project=None)


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    """A project that opted in."""
    (tmp_path / "eidolons.yaml").write_text("context: {}\n")
    return tmp_path
