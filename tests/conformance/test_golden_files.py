"""The golden files, through the command that anyone can run; and what it says of files that are none."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

from tests.commands import run
from tests.conftest import FIXTURES

ATOMOS = FIXTURES / "atomos"


@pytest.mark.parametrize(
    ("kind", "folder", "count"),
    [
        ("handoff", "atomos/parity", 7),
        ("handoff", "atomos/parity/fully-populated", 1),
        ("manifest", "atomos/parity-manifest", 3),
        ("envelope", "atomos/conformant", 3),
        ("envelope", "atomos/failing", 7),
        ("envelope", "atomos", 10),
        ("envelope", "envelopes", 14),
    ],
)
def test_every_vector_passes(kind: str, folder: str, count: int) -> None:
    done = run("conformance", kind, str(FIXTURES / folder))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{count} passed, 0 failed\n", "")


@pytest.mark.parametrize(
    ("kind", "vector", "file"),
    [
        ("handoff", "parity/fully-populated", "brief.md"),
        ("handoff", "parity/fully-populated", "sha256"),
        ("handoff", "parity/fully-populated", "envelope.json"),
        ("handoff", "parity/fully-populated", "advisory.json"),
        ("manifest", "parity-manifest/manifest-populated", "manifest.json"),
        ("manifest", "parity-manifest/manifest-populated", "sha256"),
        ("manifest", "parity-manifest/manifest-populated", "core.json"),
        ("manifest", "parity-manifest/manifest-populated", "core.sha256"),
        ("envelope", "conformant/pass", "payload.md"),
    ],
)
def test_one_byte_is_a_failure_that_is_shown(kind: str, vector: str, file: str, tmp_path: pathlib.Path) -> None:
    copied = tmp_path / "vector"
    shutil.copytree(ATOMOS / vector, copied)
    data = (copied / file).read_bytes()
    (copied / file).write_bytes(data[:-1] + b" ")
    done = run("conformance", kind, str(tmp_path))
    line, closing = done.stdout.splitlines()
    assert (done.returncode, closing) == (1, "0 passed, 1 failed")
    assert line.startswith(f"{tmp_path}: vector: failed: given vector/")
    assert "; expected " in line
    assert "; seen " in line
    assert kind == "envelope" or f"{file} at byte {len(data) - 1}" in line


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"brief.md": "", "input.json": "{"}, "vector: found no JSON in input.json"),
        ({"brief.md": "", "input.json": "[]"}, "vector: found no object in input.json"),
        ({"brief.md": "", "input.json": '{"x": 1}'}, "vector: found `x`, expected one of "),
        ({"brief.md": "", "input.json": '{"anchors": [1]}'}, "vector: found another kind of value at `anchors`"),
        ({"brief.md": "", "input.json": '{"narrative": 1}'}, "vector: found another kind of value at `narrative`"),
        ({"brief.md": ""}, "vector: input.json cannot be read"),
    ],
)
def test_what_is_no_vector_is_said(files: dict[str, str], says: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "vector").mkdir()
    for name, text in files.items():
        (tmp_path / "vector" / name).write_text(text)
    done = run("conformance", "handoff", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{tmp_path}: {says}")


def test_an_expectation_without_a_verdict_and_folders_without_vectors(tmp_path: pathlib.Path) -> None:
    assert run("conformance", "handoff", str(tmp_path)).returncode == 1
    assert run("conformance", "handoff", str(tmp_path / "nowhere")).returncode == 2
    assert run("conformance", "handoff", str(FIXTURES / "policy/grid.jsonl")).returncode == 2
    (tmp_path / "expected.json").write_text(json.dumps({"mode": "warn"}))
    done = run("conformance", "envelope", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "found no `verdict`" in done.stderr
