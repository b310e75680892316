"""The lifecycle vectors: written from the protocol, compared with its reference, run as anyone can."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import pytest

from ecm_rules.lifecycle import Trust, load_trust
from ecm_rules.lifecycle.conformance import NoVector, differences
from tests.commands import run
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "lifecycle"
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


@pytest.fixture(scope="module")
def trust() -> Trust:
    return load_trust(project=None)


def vector(file: str, name: str) -> Any:
    """A copy of a vector, to be broken."""
    return copy.deepcopy(next(v for v in FILES[file] if v["name"] == name))


def test_every_vector_passes() -> None:
    done = run("conformance", "lifecycle", str(FOLDER))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"{sum(map(len, FILES.values()))} passed, 0 failed"
    assert not any(" failed: " in line for line in done.stdout.splitlines())


def places(trust: Trust, broken: Any) -> list[str]:
    return [difference.where for difference in differences(broken, trust)]


def test_a_broken_parse_vector_is_told_by_what_differs(trust: Trust) -> None:
    broken = vector("parse-exactness", "plain text")
    assert places(trust, broken) == []
    broken["expect"] |= {"ephemeral": True, "diagnostics": [{"code": "unclosed-block", "line": 1}]}
    assert places(trust, broken) == ["ephemeral", "diagnostics"]


def test_a_broken_session_vector_is_told_by_its_step(trust: Trust) -> None:
    broken = vector("session-discard", "trusted control removes only its target")
    assert places(trust, broken) == []
    broken["steps"][1]["expect"] |= {"request_sequence": 2, "view": [{}]}
    broken["steps"][2]["trusted"] = False
    assert places(trust, broken) == [
        "step 1 request view",
        "step 1 request request_sequence",
        "step 2 control audit",
        "step 2 control active",
        "step 3 request active",
        "audit",
        "blocks",
    ]


def test_what_raises_is_a_failure_of_its_vector_alone(trust: Trust) -> None:
    broken = vector("session-discard", "trusted control removes only its target")
    broken["steps"][0]["markdown"] = 3
    (difference,) = differences(broken, trust)
    assert difference.where == "exception"
    assert str(difference.seen).startswith("TypeError: ")


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        {"name": "a"},
        {"name": "a", "expect": {}},
        {"name": "a", "expect": {}, "given": {}},
        {"name": "a", "expect": {"audit": [], "blocks": []}, "steps": [{"op": "dance"}]},
        {"name": "a", "expect": {"audit": [], "blocks": []}, "steps": [{"op": "request"}]},
        {"name": "a", "expect": {"audit": [], "blocks": []}, "steps": [3]},
        {"name": "a", "expect": {"audit": [], "blocks": []}, "steps": 3},
    ],
)
def test_what_is_no_vector_is_refused(entry: Any, trust: Trust, tmp_path: pathlib.Path) -> None:
    with pytest.raises(NoVector):
        differences(entry, trust)
    (tmp_path / "v.json").write_text(json.dumps([entry]))
    done = run("conformance", "lifecycle", "v.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "v.json: entry 1 is no vector: " in done.stderr


def test_a_failure_is_a_line_and_a_contested_one_fails_nothing(tmp_path: pathlib.Path) -> None:
    broken = vector("parse-exactness", "plain text")
    broken["expect"]["ephemeral"] = True
    (tmp_path / "a.json").write_text(json.dumps([broken, {**broken, "contested": True}]))
    done = run("conformance", "lifecycle", ".", cwd=tmp_path)
    assert done.returncode == 1
    given = json.dumps(broken["given"])
    assert done.stdout.splitlines() == [
        f"./a.json: plain text: failed: given {given} (ephemeral); expected true; seen false",
        f"./a.json: plain text: contested: given {given} (ephemeral); expected true; seen false",
        "1 passed, 1 failed",
    ]


@pytest.mark.parametrize("content", ["", "{}", "[", "[1]", "\ufeff[]", '"\ud800"', "[" * 100_000])
def test_what_is_no_file_of_vectors_is_unreadable(content: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    done = run("conformance", "lifecycle", "a.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_no_vectors_are_no_success(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    assert run("conformance", "lifecycle", "a.json", cwd=tmp_path).returncode == 1
    assert run("conformance", "policy", ".", cwd=tmp_path).returncode == 2
    assert run("conformance", "lifecycle", "nowhere.json", cwd=tmp_path).returncode == 2
    assert run("conformance", "dance", ".", cwd=tmp_path).returncode == 2
