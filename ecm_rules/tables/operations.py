"""Operations and their steps: rules/operations.yaml, or the same sections of a table that brings its own."""

from __future__ import annotations

from ecm_rules.tables.findings import Finding, Source, shown, suggest
from ecm_rules.tables.models import Operation, Step
from ecm_rules.tables.reader import Node

_DEEPEST = 16
_LONGEST = 64


def read_operations(
    source: Source, root: Node, findings: list[Finding]
) -> tuple[tuple[Step, ...], tuple[Operation, ...]]:
    """(steps, operations) of a document that its schema accepted; operations that stand as steps are expanded."""
    steps = {}
    for name, node, _ in root.entries("steps"):
        given = node.plain()
        followed_by = tuple(given.pop("followed_by", ()))
        steps[name] = Step(name, followed_by=followed_by, **given)
    for _, node, _ in root.entries("steps"):
        following = node.get("followed_by")
        for item in following.value if following is not None else ():
            if item.value not in steps:
                message = f"found the unknown step {shown(item.value)}"
                findings.append(source.finding("ECM307", item.span, message, suggest(item.value, steps)))
    expansion = _Expansion(source, root, steps, findings)
    operations = []
    for name, node, place in root.entries("operations"):
        if name in steps:
            message = f"found the operation `{name}`, which is a step already"
            findings.append(source.finding("ECM206", place, message, "rename it"))
        listed = tuple(item.value for item in expansion.listed[name])
        severity = node.get("severity")
        operations.append(
            Operation(
                name,
                listed,
                expansion.of(name),
                place,
                node.text("why"),
                severity.value if severity is not None else None,
                node.text("notice"),
            )
        )
    return tuple(steps.values()), tuple(operations)


class _Expansion:
    """Operations written out, each once, so that a mistake is told once and at its own place."""

    def __init__(self, source: Source, root: Node, steps: dict[str, Step], findings: list[Finding]) -> None:
        self.source = source
        self.steps = steps
        self.findings = findings
        self.listed: dict[str, list[Node]] = {}
        for name, node, _ in root.entries("operations"):
            steps_of = node.get("steps")
            self.listed[name] = steps_of.value if steps_of is not None else []
        self.done: dict[str, tuple[str, ...]] = {}
        self.open: list[str] = []
        self.deep = False

    def of(self, name: str) -> tuple[str, ...]:
        if name in self.done:
            return self.done[name]
        self.open.append(name)
        steps: tuple[str, ...] = ()
        for item in self.listed[name]:
            steps += self.item(item)
            if len(steps) > _LONGEST:
                self.report(item, "ECM310", f"found more than {_LONGEST} steps of `{name}`, written out", "list fewer")
                steps = ()
                break
        self.open.pop()
        self.done[name] = steps
        return steps

    def item(self, item: Node) -> tuple[str, ...]:
        name = item.value
        if name in self.steps:
            return (name,)
        if name not in self.listed:
            known = [*self.steps, *self.listed]
            self.report(item, "ECM307", f"found the unknown step {shown(name)}", suggest(name, known))
        elif name in self.open:
            self.report(item, "ECM310", f"found `{name}`, whose steps lead back to it", "break the circle")
        elif name not in self.done and len(self.open) > _DEEPEST:
            if not self.deep:  # once: what is behind it is as deep again
                self.report(item, "ECM310", f"found operations within operations, {_DEEPEST} deep", "list the steps")
            self.deep = True
        else:
            return self.of(name)
        return ()

    def report(self, item: Node, code: str, message: str, help: str) -> None:
        self.findings.append(self.source.finding(code, item.span, message, help))
