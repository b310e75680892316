"""Gaps and dead rows of random tables: the analysis and z3 agree on each."""

from __future__ import annotations

import pathlib

import pytest
from random_tables import as_text, random_table

from ecm_rules import load_table
from ecm_rules.analysis.proofs import check
from tests.analysis.z3_oracle import Oracle

ROLES = ("orchestrator", "subagent")


@pytest.mark.parametrize("batch", range(10))
def test_gaps_and_dead_rows_are_those_that_a_solver_finds(batch: int, tmp_path: pathlib.Path) -> None:
    seen: set[tuple[bool, bool]] = set()
    for number in range(52):
        seed = batch * 52 + number
        document = random_table(4 + seed % 12, 3 + seed % 8, seed, tests=1 + seed % 3, catch_all=seed % 4 == 0)
        path = tmp_path / f"{seed}.yaml"
        path.write_text(as_text(document))
        policy = load_table(path, project=None)
        found = check(policy)
        gap = any(f.code == "ECM601" for f in found)
        dead = {f.message.split("`")[1] for f in found if f.code in ("ECM602", "ECM603")}
        oracles = [Oracle(document, role) for role in ROLES]
        assert gap == any(oracle.has_gap() for oracle in oracles), seed
        fires = {row["id"]: any(o.fires(n) for o in oracles) for n, row in enumerate(document["rules"])}
        assert dead == {name for name, alive in fires.items() if not alive}, seed
        assert not any(f.code == "ECM610" and f.severity == "error" for f in found), seed
        seen.add((gap, bool(dead)))
    assert len(seen) >= 3  # tables of several kinds, or nothing was tested
