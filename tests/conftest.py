"""Paths and policies that many tests share."""

from __future__ import annotations

import os
import pathlib

import pytest
from hypothesis import settings

from ecm_rules import Policy, load_policy

# Where a change is judged, the same examples are tried each time; at home, new ones.
settings.register_profile("judged", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("judged")

ROOT = pathlib.Path(__file__).parent.parent
# A machine that runs tests is no measure of how long a prompt may take.
os.environ.setdefault("ECM_PROMPT_PATH_MS", "0")

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
