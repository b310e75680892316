"""A decision table under analysis: its space in each role, its outcomes, and the budget of the proofs."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ecm_rules.analysis import boxes, words
from ecm_rules.analysis.boxes import Box, Budget, Row
from ecm_rules.analysis.space import Space
from ecm_rules.engine import program as engine
from ecm_rules.engine.policy import Policy
from ecm_rules.tables.findings import listed
from ecm_rules.tables.models import Table

# How often the proofs about a table may hold a row against a box; the shipped policy takes some hundreds.
LOOKS = 30_000_000


@attrs.frozen(eq=False)
class Case:
    """`spaces` has one space a role. `budget` is shared by all that is asked about the table."""

    policy: Policy
    spaces: tuple[Space, ...]
    budget: Budget
    outcomes: tuple[tuple[str, ...], ...]
    """The operation of each row in each role, after the role's remap."""
    shapes: tuple[Space, ...]
    """The spaces that differ: one where no signal is a single role's."""
    meeting: dict[tuple[str, int, int], Box | None] = attrs.field(factory=dict)
    """What was answered already."""

    @classmethod
    def of(cls, policy: Policy, budget: Budget | None = None) -> Case:
        """Raises Inconclusive where the space itself is too large."""
        asked = [
            test.condition
            for invariant in policy.table.invariants
            for test in invariant.assume
            if test.signal in policy.table.vocabulary.declared()
        ]
        spaces = Space.all_of([policy.program], asked)
        rows = policy.program["rows"]
        outcomes = tuple(tuple(engine.outcome(policy.program, row, role)[1] for row in rows) for role in engine.ROLES)
        one, other = spaces
        shapes = spaces[:1] if one.rows == other.rows and one.dimensions == other.dimensions else spaces
        return cls(policy, spaces, budget or Budget(LOOKS), outcomes, shapes)

    @property
    def table(self) -> Table:
        return self.policy.table

    def roles(self) -> Iterator[tuple[Space, tuple[Row, ...], tuple[str, ...]]]:
        """Each role's space, rows and outcomes."""
        for space, outcomes in zip(self.spaces, self.outcomes, strict=True):
            yield space, space.rows[0], outcomes

    def fires(self, space: Space, index: int) -> Box | None:
        """A box in which the row is the first to hold, or None where there is none."""
        return self.together(space, index, index)

    def outcomes_of(self, space: Space) -> tuple[str, ...]:
        """The operation of each row in the role of a space."""
        return self.outcomes[self.spaces.index(space)]

    def together(self, space: Space, earlier: int, index: int) -> Box | None:
        """A box in which row `earlier` is the first to hold and row `index` holds too, or None where there is none."""
        role = space.role if len(self.shapes) > 1 else self.shapes[0].role
        key = role, earlier, index
        if key not in self.meeting:
            rows = space.rows[0]
            both = boxes.within(boxes.within(space.full, rows[index][1]), rows[earlier][1])
            self.meeting[key] = boxes.uncovered(both, rows[:earlier], self.budget)
        return self.meeting[key]

    def told(self, space: Space, box: Box) -> str:
        """The box in words, and what was taken for free."""
        return words.sentence(space, box) + self.caveat(space, box)

    def caveat(self, space: Space, box: Box) -> str:
        """What was taken for free, in parentheses; empty where nothing was."""
        free = space.free(box)
        return f" (whatever the expression of {listed(free)} can give)" if free else ""
