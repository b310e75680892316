"""Proofs about decision tables: exact answers about everything that they can be asked, each with a witness.

`check(policy)` gives every finding about a table, `compare(old, new)` the regions in which two lead to different
operations. Both raise, or report, that they were not finished where a table is too large: an answer is never guessed.
"""

from ecm_rules.analysis.boxes import Inconclusive
from ecm_rules.analysis.difference import Difference, Region, Side, compare
from ecm_rules.analysis.proofs import check
from ecm_rules.engine.policy import rezone

__all__ = ["Difference", "Inconclusive", "Region", "Side", "check", "compare", "rezone"]
