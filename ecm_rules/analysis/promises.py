"""What must hold of every table: the protocol's rules about operations, the table's own invariants, its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ecm_rules.analysis import boxes
from ecm_rules.analysis.boxes import Box
from ecm_rules.analysis.case import Case
from ecm_rules.analysis.space import Space
from ecm_rules.engine import program as engine
from ecm_rules.tables.findings import WARNING, Finding, Fix, Source, listed
from ecm_rules.tables.invariants import ROLE
from ecm_rules.tables.models import Invariant, Operation, Test, Vocabulary

EXTERNALIZE = "externalize"


def unsafe_operations(words: Vocabulary) -> Iterator[Finding]:
    """Operations that lose content before it is written down, or that leave out what must follow a step. ECM §Pins."""
    known = {operation.name: operation for operation in words.operations}
    steps = {step.name: step for step in words.steps}
    first = known[EXTERNALIZE].steps if EXTERNALIZE in known else ()
    for operation in words.operations:
        for position, name in enumerate(operation.steps):
            step = steps[name]
            before = operation.steps[:position]
            if step.lossy and not (first and _in_order(first, before)):
                message = f"found `{operation.name}`, which loses content in `{name}` before `{EXTERNALIZE}` is done"
                yield _about(words, operation, "ECM701", message, f"list `{EXTERNALIZE}` before it")
                break
        for position, name in enumerate(operation.steps):
            behind = operation.steps[position + 1 :]
            if not _in_order(steps[name].followed_by, behind):
                wanted = ", ".join(f"`{step}`" for step in steps[name].followed_by)
                message = f"found `{operation.name}`, in which {wanted} do not follow `{name}`"
                yield _about(words, operation, "ECM702", message, "list them behind it, in this order")
                break


def successors_of_subagents(case: Case) -> Iterator[Finding]:
    """Rows that give a subagent an operation which starts a successor. ECM §"The decision table"."""
    steps = {step.name: step for step in case.table.vocabulary.steps}
    spawning = {o.name for o in case.table.vocabulary.operations if any(steps[name].successor for name in o.steps)}
    space, outcomes = case.spaces[1], case.outcomes[1]
    for index, row in enumerate(case.table.rows):
        if outcomes[index] in spawning and (box := case.fires(space, index)) is not None:
            message = f"found `{outcomes[index]}` for a subagent in `{row.id}`, which starts a successor"
            message += case.caveat(space, box)
            help = f"map `{row.operation}` in `subagents.operation_remap`"
            yield row.source.finding("ECM703", row.operation_span, message, help, witness=space.witness(box))


def unreached_operations(case: Case) -> Iterator[Finding]:
    """Operations of the vocabulary that are the outcome of no row in any role."""
    reached = {
        outcomes[index]
        for space, _, outcomes in case.roles()
        for index in range(len(case.table.rows))
        if case.fires(space, index) is not None
    }
    words, source = case.table.vocabulary, case.table.source
    missed = [operation for operation in words.operations if operation.name not in reached]
    if words.source.file == source.file:
        for operation in missed:
            message = f"found no row that leads to `{operation.name}`, in either role"
            yield source.finding("ECM609", operation.span, message, "add a row, or remove the operation", WARNING)
    elif missed:
        message = f"found no row that leads to {listed([o.name for o in missed], most=10)}, in either role"
        yield source.finding("ECM609", case.table.span, message, "add a row where one is wanted", WARNING)


def repeated_limits(case: Case) -> Iterator[Finding]:
    """Thresholds of rows and invariants that are written out though a limit says the same, so that lowering the limit
    does not reach them.
    """
    declared = case.table.vocabulary.declared()
    related = any(d.limit for d in declared.values())
    asked = [(row.id, row.source, test) for row in case.table.rows for test in row.tests]
    asked += [(i.id, i.source, test) for i in case.table.invariants for test in i.assume if test.signal in declared]
    for name, source, test in asked:
        if test.ref or test.operator not in ("eq", "ne", "lt", "lte", "gt", "gte"):
            continue
        if isinstance(test.constant, bool) or not isinstance(test.constant, int | float):
            continue
        known = [declared[test.signal].limit] if related else list(case.table.unlowered)
        # Of whole numbers, `above 1` is `at least 2`.
        beside = declared[test.signal].type == "integer" and test.operator in ("gt", "lte")
        for limit in (limit for limit in known if limit):
            value = case.table.unlowered.get(limit)
            if value == test.constant or (beside and value == test.constant + 1):
                yield _repeated(name, source, test, limit, value == test.constant)
                break


def broken_invariants(case: Case) -> Iterator[Finding]:
    """The table's own invariants that do not hold, with a witness; and those that assume what cannot be."""
    for invariant in case.table.invariants:
        considered = 0
        findings: dict[str, Finding] = {}
        for space, _, _ in case.roles():
            box = _assumed(invariant, space)
            if box is None:
                continue
            considered += 1
            for told, where in _breaches(case, space, invariant, box):
                message = f"found {told}, against the invariant `{invariant.id}`"
                witness = space.witness(where)
                findings.setdefault(
                    told, invariant.source.finding("ECM611", invariant.span, message, invariant.why, witness=witness)
                )
        yield from findings.values()
        if not considered:
            message = f"found the invariant `{invariant.id}`, whose assumption nothing can meet"
            yield invariant.source.finding(
                "ECM612", invariant.span, message, "correct `assume`, or remove the invariant"
            )


def _about(words: Vocabulary, operation: Operation, code: str, message: str, help: str) -> Finding:
    return words.source.finding(code, operation.span, message, help)


def _in_order(wanted: tuple[str, ...], steps: tuple[str, ...]) -> bool:
    """Whether the wanted steps are all there, one behind the other."""
    rest = iter(steps)
    return all(step in rest for step in wanted)


def _repeated(name: str, source: Source, test: Test, limit: str, same: bool) -> Finding:
    reference = f"{{ref: limits.{limit}}}"
    written = f"{source.text_at(test.span)}: {source.text_at(test.value_span)}"
    message = f"found `{written}` in `{name}`, which repeats `limits.{limit}`"
    other = f"{test.signal}_{'gte' if test.operator == 'gt' else 'lt'}: {reference}"
    help = f"write `{reference if same else other}`, so that a lower limit reaches it"
    fix = Fix(test.value_span, reference) if same else None
    return source.finding("ECM607", test.value_span, message, help, fix=fix)


def _assumed(invariant: Invariant, space: Space) -> Box | None:
    """What the invariant is about in this role; None where it is about nothing."""
    tests = []
    for test in invariant.assume:
        if test.signal == ROLE and not any(ROLE in dimension.names for dimension in space.dimensions):
            if not engine.holds(test.operator, space.role, False, test.constant):
                return None
        else:
            tests.append(test.condition)
    box = boxes.within(space.full, space.sides(tests))
    return box if all(box) else None


def _breaches(case: Case, space: Space, invariant: Invariant, box: Box) -> Iterator[tuple[str, Box]]:
    """What is decided against the invariant, and where."""
    rows = space.rows[0]
    outcomes = case.outcomes_of(space)
    for index, row in enumerate(case.table.rows):
        decided = {"operation": outcomes[index], "raw_operation": row.operation, "rule": row.id}
        if not _holds(invariant, decided):
            found = boxes.uncovered(boxes.within(box, rows[index][1]), rows[:index], case.budget)
            if found is not None:
                yield f"`{outcomes[index]}` by `{row.id}`{case.caveat(space, found)}", found
    nothing: dict[str, Any] = {"operation": engine.CONTINUE, "raw_operation": engine.CONTINUE, "rule": None}
    if not _holds(invariant, nothing) and (found := boxes.uncovered(box, rows, case.budget)) is not None:
        yield f"`{engine.CONTINUE}` by no row{case.caveat(space, found)}", found


def _holds(invariant: Invariant, decided: dict[str, Any]) -> bool:
    return all(
        engine.holds(test.operator, decided[test.signal], decided[test.signal] is None, test.constant)
        for test in invariant.asserts
    )
