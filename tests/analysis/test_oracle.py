"""Gaps and dead rows of random tables: the analysis and z3 agree on each."""

from __future__ import annotations

import pathlib

import pytest
from random_tables import as_text, random_table
from z3_oracle import Oracle

from ecm_rules import Policy, load_table
from ecm_rules.analysis.proofs import check
from ecm_rules.engine import program


def agree(policy: Policy) -> tuple[bool, bool]:
    """Whether there is a gap, and dead rows; that both say so."""
    found = check(policy)
    gap = any(f.code == "ECM601" for f in found)
    dead = {f.message.split("`")[1] for f in found if f.code in ("ECM602", "ECM603")}
    answers = [Oracle(policy.program, role).answer_in_one() for role in program.ROLES]
    assert gap == any(open_ for open_, _ in answers)
    rows = [row.id for row in policy.table.rows]
    assert dead == {name for n, name in enumerate(rows) if not any(fires[n] for _, fires in answers)}
    assert not any(f.code == "ECM610" and f.severity == "error" for f in found)
    return gap, bool(dead)


@pytest.mark.parametrize("batch", range(10))
def test_gaps_and_dead_rows_are_those_that_a_solver_finds(batch: int, tmp_path: pathlib.Path) -> None:
    seen = set()
    for number in range(52):
        seed = batch * 52 + number
        document = random_table(4 + seed % 12, 3 + seed % 8, seed, tests=1 + seed % 3, catch_all=seed % 4 == 0)
        path = tmp_path / f"{seed}.yaml"
        path.write_text(as_text(document))
        seen.add(agree(load_table(path, project=None)))
    assert len(seen) >= 3  # tables of several kinds, or nothing was tested


def test_a_solver_for_each_question_says_the_same(policy: Policy) -> None:
    for role in program.ROLES:
        oracle = Oracle(policy.program, role)
        assert oracle.answer() == oracle.answer_in_one()


def test_the_shipped_tables_are_as_a_solver_says(policy: Policy) -> None:
    assert agree(policy) == (False, False)
    assert agree(load_table("lateral-signals", project=None)) == (False, False)
    assert agree(load_table("trust-sources", project=None)) == (False, False)
