"""P1-P7 as a person would write them by hand, with the type guards of the shipped fields: the yardstick of the evaluator's speed.

`python handwritten.py GRID.jsonl` checks it against the policy grid (orchestrator rows).
"""

import json
import sys

ZONES = frozenset(("green", "amber", "red", "critical", "unknown"))


def rule(meter):
    budget = meter.get("budget")
    if budget.__class__ is dict:
        ceiling = budget.get("ceiling_tokens")
        kind = ceiling.__class__
        if (kind is int or kind is float) and 0 < ceiling < 1e308:
            spent = budget.get("spent_tokens_est")
            kind = spent.__class__
            if (kind is int or kind is float) and ceiling <= spent < 1e308:
                return "P1"
    zone = meter.get("zone")
    if zone.__class__ is not str or zone not in ZONES:
        return "P7"
    if zone == "critical":
        return "P2"
    if zone == "red":
        count = meter.get("compaction_count")
        kind = count.__class__
        if kind is int or (kind is float and count == count // 1):
            return "P4" if count >= 2 else "P3"
        return "P3"
    if zone == "amber":
        share = meter.get("tool_result_share_est")
        kind = share.__class__
        if (kind is float or kind is int) and 0.4 <= share <= 1:
            return "P5"
        return "P6"
    return "P7"


if __name__ == "__main__":
    rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    rows = [row for row in rows if not row["subagent"]]
    bad = [row for row in rows if rule(row["meter"]) != row["expect"]["rule"]]
    print(f"{len(rows) - len(bad)} passed, {len(bad)} failed")
    sys.exit(bool(bad))
