"""Verdicts a second: the evaluator beside a hand-written if-chain, CEL and Zen, on the same table and meters."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import cel
import handwritten
import timing
import zen

from ecm_rules import load_policy

GRID = pathlib.Path(__file__).parent.parent / "fixtures/policy/grid.jsonl"
CEILING = "m.budget.ceiling_tokens"
SPENT = "(has(m.budget.spent_tokens_est) && m.budget.spent_tokens_est != null ? m.budget.spent_tokens_est : 0)"


def or_else(name: str, default: str) -> str:
    return f"(has(m.{name}) && m.{name} != null ? m.{name} : {default})"


CEL = f"""
has(m.budget) && m.budget != null && has({CEILING}) && {CEILING} != null && {SPENT} >= {CEILING} ? "P1"
: {or_else("zone", "'unknown'")} == "critical" ? "P2"
: {or_else("zone", "'unknown'")} == "red" && {or_else("compaction_count", "0")} < 2 ? "P3"
: {or_else("zone", "'unknown'")} == "red" ? "P4"
: {or_else("zone", "'unknown'")} == "amber" && double({or_else("tool_result_share_est", "0.0")}) >= 0.4 ? "P5"
: {or_else("zone", "'unknown'")} == "amber" ? "P6"
: "P7"
"""

INPUTS = {
    "budget": "budget != null and budget.ceiling_tokens != null and (budget.spent_tokens_est ?? 0) >= budget.ceiling_tokens",
    "zone": "zone ?? 'unknown'",
    "count": "compaction_count ?? 0",
    "share": "tool_result_share_est ?? 0",
}
ROWS = [
    {"budget": "true", "rule": '"P1"'},
    {"zone": '"critical"', "rule": '"P2"'},
    {"zone": '"red"', "count": "< 2", "rule": '"P3"'},
    {"zone": '"red"', "rule": '"P4"'},
    {"zone": '"amber"', "share": ">= 0.4", "rule": '"P5"'},
    {"zone": '"amber"', "rule": '"P6"'},
    {"rule": '"P7"'},
]


def zen_graph() -> dict[str, Any]:
    table = {
        "hitPolicy": "first",
        "inputs": [{"id": name, "name": name, "field": field} for name, field in INPUTS.items()],
        "outputs": [{"id": "rule", "name": "rule", "field": "rule"}],
        "rules": [{"_id": str(n), **dict.fromkeys(INPUTS, ""), **row} for n, row in enumerate(ROWS)],
    }
    kinds = {"in": "inputNode", "table": "decisionTableNode", "out": "outputNode"}
    nodes = [{"id": i, "name": i, "type": kind, "content": table if i == "table" else {}} for i, kind in kinds.items()]
    edges = [
        {"id": a + b, "sourceId": a, "targetId": b, "type": "edge"} for a, b in (("in", "table"), ("table", "out"))
    ]
    return {"nodes": nodes, "edges": edges}


def contenders() -> dict[str, Callable[[Any], Any]]:
    policy = load_policy(project=None)
    program = cel.compile(CEL)
    engine = zen.ZenEngine({"loader": {"type": "static", "content": {"policy": zen_graph()}}})
    return {
        "hand-written if-chain": handwritten.rule,
        "rule_for": policy.rule_for,
        "decide": policy.decide,
        "common-expression-language": lambda meter: program.execute({"m": meter}),
        "zen-engine, static loader": lambda meter: engine.evaluate("policy", meter)["result"]["rule"],
    }


def main() -> int:
    options = timing.arguments(__doc__)
    vectors = [json.loads(line) for line in GRID.read_text(encoding="utf-8").split("\n")[:-1]]
    vectors = [vector for vector in vectors if not vector["subagent"]]
    meters = [vector["meter"] for vector in vectors]
    functions = contenders()
    for name, function in functions.items():
        for vector in vectors:
            answer = function(vector["meter"])
            rule = getattr(answer, "rule", answer)
            if rule != vector["expect"]["rule"]:
                print(f"{name} answers {rule} to {vector['meter']}, not {vector['expect']['rule']}", file=sys.stderr)
                return 1

    def over_all(function: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            for meter in meters:
                function(meter)

        return run

    names = list(functions)
    fast = {name: over_all(functions[name]) for name in names[:3]}
    medians = timing.rounds(fast, 300 if options.quick else 2000)
    found = timing.figures(medians, dict.fromkeys(names[1:3], names[0]), "ns", 1e9, len(meters))
    # The peers take tens of times longer, so ours run beside them again: a ratio is of one run. They answer with the
    # bare row as `rule_for` does; `decide` does more, and is held against them all the same.
    again = {f"{name}, beside the peers": over_all(functions[name]) for name in names[1:3]}
    medians = timing.rounds(again | {n: over_all(functions[n]) for n in names[3:]}, 20 if options.quick else 100)
    for ours in again:
        found += timing.figures(medians, dict.fromkeys(names[3:], ours), "ns", 1e9, len(meters))
    timing.report("a verdict", [f for f in found if f["beside"] or f["name"] == names[0]], options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
