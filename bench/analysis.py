"""Gaps and dead rows, beside z3 on the same programs in the same run.

Exit 1 where the two disagree, where the analysis is inconclusive, or where it is not the faster one.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import tempfile

import timing
from random_tables import as_text, random_table
from z3_oracle import Oracle

from ecm_rules import Policy, load_policy, load_table
from ecm_rules.analysis import boxes
from ecm_rules.analysis.case import LOOKS
from ecm_rules.analysis.space import Space
from ecm_rules.engine import program

Answer = list[tuple[bool, list[bool]]]

# Rows by signals, and how many tables of each.
SIZES = {(50, 8): 5, (200, 12): 3, (400, 20): 2}
# The faster by so much than z3 asked question by question; the shipped table is what every check begins with.
BOUNDS = {"shipped": 20.0}


def ours(policies: list[Policy]) -> list[Answer]:
    """Raises boxes.Inconclusive."""
    answers = []
    for policy in policies:
        spaces, budget = Space.all_of([policy.program]), boxes.Budget(LOOKS)
        answers.append([_answer(space, budget) for space in spaces])
    return answers


def _answer(space: Space, budget: boxes.Budget) -> tuple[bool, list[bool]]:
    rows = space.rows[0]
    fires = [
        boxes.uncovered(boxes.within(space.full, sides), rows[:index], budget) is not None for index, sides in rows
    ]
    return boxes.uncovered(space.full, rows, budget) is not None, fires


def solvers(policies: list[Policy]) -> list[Answer]:
    return [[Oracle(policy.program, role).answer() for role in program.ROLES] for policy in policies]


def one_solver(policies: list[Policy]) -> list[Answer]:
    return [[Oracle(policy.program, role).answer_in_one() for role in program.ROLES] for policy in policies]


def tables(quick: bool) -> dict[str, list[Policy]]:
    found = {"shipped": [load_policy(project=None)]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.yaml"
        for (rows, signals), count in SIZES.items():
            policies = []
            for seed in range(1 if quick else count):
                # With and without a catch-all: whether the last row is needed is the hardest question of all.
                path.write_text(as_text(random_table(rows, signals, seed, catch_all=seed % 2 == 0)))
                policies.append(load_table(path, project=None))
            found[f"{rows} x {signals}"] = policies
    return found


def main() -> int:
    options = timing.arguments(__doc__)
    found: list[timing.Figure] = []
    failed = False
    for name, policies in tables(options.quick).items():
        mine, theirs, best = f"{name}: analysis", f"{name}: z3", f"{name}: z3, one solver for all"
        contenders = {mine: ours, theirs: solvers, best: one_solver}
        try:
            answers = {contender: ask(policies) for contender, ask in contenders.items()}
        except boxes.Inconclusive as reason:
            print(f"{name}: inconclusive: {reason}", file=sys.stderr)
            return 1
        if not answers[mine] == answers[theirs] == answers[best]:
            print(f"{name}: they disagree", file=sys.stderr)
            return 1
        times = 10 if len(policies[0].table.rows) <= 50 else 1
        turns = {contender: functools.partial(ask, policies * times) for contender, ask in contenders.items()}
        medians = timing.rounds(turns, 1 if options.quick else 5)
        found += timing.figures(medians, {theirs: mine, best: mine}, "ms", 1e3, len(policies) * times)
        for rival, bound in ((theirs, BOUNDS.get(name, 1.0)), (best, 1.0)):
            if medians[rival] < medians[mine] * bound:
                print(f"{rival} takes only {medians[rival] / medians[mine]:.1f} times as long", file=sys.stderr)
                failed = True
    timing.report("gaps and dead rows of a table, in both roles", found, options.json)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
