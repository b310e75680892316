"""The policy vectors: the nexus' own kernel as the oracle, through the command that anyone can run."""

from __future__ import annotations

import json
import pathlib

from ecm_rules import Policy
from ecm_rules.engine import program
from tests.commands import run
from tests.conftest import FIXTURES

GRID = FIXTURES / "policy/grid.jsonl"
HOSTILE = FIXTURES / "policy/hostile.jsonl"


def count(path: pathlib.Path) -> int:
    return path.read_text().count("\n")


def test_every_vector_passes() -> None:
    done = run("conformance", "policy", str(GRID), str(HOSTILE))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{count(GRID) + count(HOSTILE)} passed, 0 failed\n"


def test_interpreter_and_bare_row_agree_with_the_oracle_on_every_cell_of_the_grid(policy: Policy) -> None:
    for line in GRID.read_text().split("\n")[:-1]:
        vector = json.loads(line)
        role = program.ROLES[1] if vector["subagent"] else program.ROLES[0]
        verdict = program.decide(policy.program, vector["meter"], role)
        assert {key: verdict[key] for key in vector["expect"]} == vector["expect"]
        assert policy.rule_for(vector["meter"], role) == vector["expect"]["rule"]
