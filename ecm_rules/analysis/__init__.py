"""Proofs about decision tables: exact answers about every snapshot, each with a witness.

`check(policy)` gives every finding about a table, `compare(old, new)` the regions in which two lead to different
operations, `nearest(policy, meter, role)` the smallest changes that make other rows fire, `run_files(paths)` what
became of scenarios, `measure(policy, results)` what they exercise. What is too large to prove is never guessed: `check`
reports ECM610, the others raise `Inconclusive`. What only JMESPath can evaluate is taken for free and said to be.
"""

from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.coverage import Coverage, measure
from ecm_rules.analysis.difference import Difference, Redefined, Region, Side, compare
from ecm_rules.analysis.misses import Change, Miss, nearest
from ecm_rules.analysis.proofs import check
from ecm_rules.analysis.scenarios import Result, Tested, run_files
from ecm_rules.engine.policy import rezone

__all__ = [
    "Change",
    "Coverage",
    "Difference",
    "Inconclusive",
    "Miss",
    "Redefined",
    "Region",
    "Result",
    "Side",
    "Tested",
    "check",
    "compare",
    "measure",
    "nearest",
    "rezone",
    "run_files",
]
