"""The one grammar of a row: `when` is a conjunction of `signal[_suffix]: value | {ref: JMESPath}`. docs/tables.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ecm_rules.tables import domains, expressions
from ecm_rules.tables.findings import Finding, Source, Span, an, escape, nearest, shown, suggest
from ecm_rules.tables.models import Constant, Declared, Row, Test
from ecm_rules.tables.reader import Node

_ORDERINGS = ("lt", "lte", "gt", "gte")
_MEMBERSHIPS = ("in", "not_in")
# Longest first, so that `not_in` is not read as `in`.
SUFFIXES = ("not_in", "missing", "lte", "gte", "lt", "gt", "ne", "in")


@attrs.frozen
class Context:
    """What a row is read against. `document` is the table as its project's layer left it, for `ref`; None where it is
    not sound, so that a `ref` is not blamed for what it points to.
    """

    source: Source
    declared: dict[str, Declared]
    operations: list[str]
    document: dict[str, Any] | None
    findings: list[Finding]

    def report(self, code: str, place: Span, message: str, help: str = "") -> None:
        self.findings.append(self.source.finding(code, place, message, help))


def read_rows(context: Context, node: Node, last: bool = True) -> tuple[Row, ...]:
    """The rows of a document, as far as its schema accepted them. What is wrong goes into the context's findings.

    last: no other rows stand behind these.
    """
    rows: list[Row] = []
    places: dict[str, Span] = {}
    for index, item in enumerate(node.value):
        name, when = item.text("id"), item.get("when")
        identify(context, "row", item, places)
        _lead(context, item.get("operation"))
        tests: tuple[Test, ...] = ()
        if when is not None:
            if not when.keys and when.whole and (index < len(node.value) - 1 or not last):
                message = f"found the catch-all `{name}` before other rows, which it hides"
                help = "move it to the end" if last else "test something: the table's own last row stands behind it"
                context.report("ECM308", when.span, message, help)
            tests = read_tests(context, when)
        spans = [node.span if node is not None else item.span for node in (item.get("id"), item.get("operation"))]
        row = Row(name, tests, item.text("operation"), spans[0], spans[1], context.source, item.text("why"))
        rows.append(row)
    return tuple(rows)


def read_tests(context: Context, node: Node) -> tuple[Test, ...]:
    """The tests of a conjunction; what is wrong with one goes into the context's findings."""
    tests = [_test(context, key, node.keys[key], value) for key, value in node.value.items()]
    return tuple(test for test in tests if test)


def keys(declared: dict[str, Declared]) -> Iterator[tuple[str, Declared, str]]:
    """Every key that a conjunction may have, with the signal and the operator that it means."""
    for name in declared:
        for key in (name, *(f"{name}_{suffix}" for suffix in SUFFIXES)):
            signal, operator = _split(declared, key)
            if signal is not None and takes(signal, operator):
                yield key, signal, operator


def takes(signal: Declared, operator: str) -> bool:
    """Whether an operator fits a signal's type."""
    if operator in _ORDERINGS:
        return signal.type in domains.NUMERIC
    return operator not in _MEMBERSHIPS or signal.type != "boolean"


def identify(context: Context, what: str, item: Node, places: dict[str, Span]) -> None:
    """Note the place of an item's id; one that is there already is found."""
    node = item.get("id")
    if node is None:
        return
    name = node.value
    if name in places:
        message = f"found the {what} `{name}` twice, first at line {places[name].line}"
        context.report("ECM206", node.span, message, "rename one of the two")
    places.setdefault(name, node.span)


def _lead(context: Context, operation: Node | None) -> None:
    if operation is not None and operation.value not in context.operations:
        message = f"found the unknown operation {shown(operation.value)}"
        context.report("ECM307", operation.span, message, suggest(operation.value, context.operations))


def _test(context: Context, key: str, place: Span, value: Node) -> Test | None:
    signal, operator = _split(context.declared, key)
    if signal is None:
        _unknown(context, key, place)
        return None
    ref, constant = "", value.value
    code = "ECM304"
    if isinstance(value.value, dict):
        found = _ref(context, value)
        if found is None:
            return None
        (ref, constant), code = found, "ECM306"
    elif isinstance(value.value, list):
        constant = value.plain()
    if operator == "eq" and isinstance(constant, list):
        operator = "in"
    if not _fits(context, signal, operator, key, place):
        return None
    place_of = value.value["ref"] if ref else value
    checked = _constant(context, signal, operator, constant, place_of, code)
    return None if checked is None else Test(signal.name, operator, checked, place, value.span, ref)


def _split(declared: dict[str, Declared], key: str) -> tuple[Declared | None, str]:
    if key in declared:
        return declared[key], "eq"
    for suffix in SUFFIXES:
        if key.endswith("_" + suffix) and key[: -len(suffix) - 1] in declared:
            return declared[key[: -len(suffix) - 1]], suffix
    return None, ""


def _unknown(context: Context, key: str, place: Span) -> None:
    stems = [name for name in context.declared if key.startswith(name + "_")]
    if stems:
        stem = max(stems, key=len)
        message = f"found the unknown suffix `{escape(key[len(stem) :])}` of `{stem}`"
        fitting = [s for s in sorted(SUFFIXES) if takes(context.declared[stem], s)]
        context.report("ECM302", place, message, "known: " + ", ".join(f"`_{s}`" for s in fitting))
        return
    suffix = next((s for s in SUFFIXES if key.endswith("_" + s)), "")
    near = nearest(key.removesuffix("_" + suffix) if suffix else key, context.declared)
    help = f"did you mean `{near[0]}{'_' + suffix if suffix else ''}`?" if near else suggest(key, context.declared)
    context.report("ECM301", place, f"found the unknown signal `{escape(key)}`", help)


def _ref(context: Context, value: Node) -> tuple[str, Any] | None:
    """(expression, what it resolves to), or None where it does not."""
    if len(value.value) < len(value.keys) or not value.whole:
        return None  # the reader has refused a part of it
    inner = value.value.get("ref")
    if inner is None or len(value.value) > 1:
        extra = next((k for k in value.value if k != "ref"), None)
        if extra is not None:
            context.report(
                "ECM201",
                value.keys[extra],
                f"found the unknown key `{escape(extra)}`",
                "a value is a literal or `{ref: path}`",
            )
        else:
            context.report("ECM202", value.span, "found an empty mapping, expected a literal or `{ref: path}`")
        return None
    if not isinstance(inner.value, str):
        message = f"found {shown(inner.value)}, expected a JMESPath expression over this table"
        context.report("ECM203", inner.span, message)
        return None
    if context.document is None:
        return None
    try:
        constant = expressions.fold(inner.value, context.document)
    except expressions.Invalid as invalid:
        context.report("ECM306", inner.span, invalid.message, invalid.help)
        return None
    if constant is None:
        limits = [f"limits.{name}" for name in context.document.get("limits", {})]
        context.report(
            "ECM306",
            inner.span,
            f"found `{escape(inner.value)}`, which resolves to nothing in this table",
            suggest(inner.value, limits),
        )
        return None
    return inner.value, constant


def _fits(context: Context, signal: Declared, operator: str, key: str, place: Span) -> bool:
    if takes(signal, operator):
        return True
    if operator in _ORDERINGS:
        message = f"found `{escape(key)}`, but `{signal.name}` is {an(signal.type)}, which has no order"
        other = "" if signal.type == "boolean" else f" or `{signal.name}_in`"
        context.report("ECM303", place, message, f"compare with `{signal.name}`{other}")
    else:
        context.report(
            "ECM303", place, f"found `{escape(key)}`, but `{signal.name}` is a boolean", f"compare with `{signal.name}`"
        )
    return False


def _constant(
    context: Context, signal: Declared, operator: str, constant: Any, node: Node, code: str
) -> Constant | None:
    """The constant as the signal's domain has it, or None with a finding."""
    if operator == "missing":
        if not isinstance(constant, bool):
            context.report("ECM203", node.span, f"found {shown(constant)}, expected `true` or `false`")
            return None
        return constant
    if operator not in _MEMBERSHIPS:
        taken: Constant | None = _member(context, signal, constant, node, code)
        return taken
    if not isinstance(constant, list):
        context.report("ECM203", node.span, f"found {shown(constant)}, expected a list")
        return None
    if not constant:
        effect = "matches nothing" if operator == "in" else "excludes nothing"
        context.report("ECM305", node.span, f"found an empty list, which {effect}", "name at least one value")
        return None
    places = node.value if isinstance(node.value, list) else [node] * len(constant)
    members = tuple(_member(context, signal, c, p, code) for c, p in zip(constant, places, strict=True))
    return None if None in members else members


def _member(context: Context, signal: Declared, constant: Any, node: Node, code: str) -> Any:
    # A table says what it means: a count is written as one, though a meter's 2.0 is read as 2.
    whole = signal.type != "integer" or not isinstance(constant, float)
    taken = domains.accept(signal.spec, constant) if whole else None
    if taken is None:
        help = ""
        if code == "ECM306":  # the value stands elsewhere
            help = f"`{signal.name}` takes another kind of value"
        elif isinstance(constant, str) and signal.type == "enum":
            help = suggest(constant, signal.spec["values"])
        elif isinstance(constant, str) and signal.type in (*domains.NUMERIC, "boolean"):
            help = "remove the quotes"
        elif isinstance(constant, bool) and signal.type in ("enum", "string"):
            help = "quote it"
        context.report(
            code,
            node.span,
            f"found {shown(constant)} for `{signal.name}`, expected {domains.expected(signal.spec)}",
            help,
        )
    return taken
