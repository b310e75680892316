"""The shapes of the tables: Cerberus schemas in rules/schemas/, closed at every level; their errors as findings."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import attrs
import cerberus
from cerberus import errors

from ecm_rules.tables import places, reader
from ecm_rules.tables.findings import EcmError, Finding, Source, Span, escape, nearest, shown, suggest
from ecm_rules.tables.reader import Document, Node

_EXPECTED = {
    "dict": "a mapping",
    "list": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "`true` or `false`",
}
_NESTING = ("schema", "keysrules", "valuesrules")
_FOUND = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number", str: "a string"}


class _Validator(cerberus.Validator):  # type: ignore[misc]  # Cerberus ships no types
    """Cerberus with types that keep booleans and numbers apart, as JSON does."""

    types_mapping = cerberus.Validator.types_mapping.copy()
    types_mapping["integer"] = cerberus.TypeDefinition("integer", (int,), (bool,))
    types_mapping["number"] = cerberus.TypeDefinition("number", (int, float), (bool,))


@functools.cache
def _file(name: str) -> dict[str, Any]:
    document = reader.load(places.shipped(f"rules/schemas/{name}.yaml"))
    if document.findings or document.root is None:
        raise EcmError(document.findings)
    rules: dict[str, Any] = document.root.plain()
    return rules


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The Cerberus schema `name`, with the rules that it takes from `parts` by name written out."""
    # Cerberus' own registry of rule sets is not asked for the fields of a schema's first level, so it cannot serve.
    return {field: _written_out(rule) for field, rule in _file(name).items()}


def _written_out(rule: Any) -> Any:
    if isinstance(rule, str):
        return _written_out(_file("parts")[rule])
    if "is" in rule:
        part = _file("parts")[rule["is"]]
        fields = {"schema": {**part["schema"], **rule["schema"]}} if "schema" in rule else {}
        return _written_out({**part, **{key: value for key, value in rule.items() if key != "is"}, **fields})
    if rule.get("type") == "dict" and "schema" in rule:
        return {**rule, "schema": {field: _written_out(inner) for field, inner in rule["schema"].items()}}
    return {key: _written_out(value) if key in _NESTING else value for key, value in rule.items()}


@attrs.frozen
class Shape:
    """A document against its schema: what can be relied on, what is wrong, and the top-level keys where it is."""

    root: Node | None
    """The document without what reader and schema refused; None where it is no mapping at all."""
    findings: list[Finding]
    broken: frozenset[str]


def validate(name: str, document: Document) -> Shape:
    """`document` against the schema `name`. Nothing is found at or below a place that the reader refused already."""
    source, root = document.source, document.root
    if root is None or not isinstance(root.value, dict):
        refused = root is not None and root.sound and not document.findings
        message = "" if root is None else f"found {_kind(root.value)}, expected a mapping"
        return Shape(None, [source.finding("ECM203", root.span, message)] if refused and root else [], frozenset())
    rules = schema(name)
    validator = _Validator(rules)  # holds the errors of a document, so each has its own
    validator.validate(root.plain(), normalize=False)
    tree = validator._errors  # noqa: SLF001  the documented way to errors that are not yet words
    leaves = [e for e in _leaves(tree) if _is_news(root, e)]
    # A misspelt key is one mistake, not an unknown key and a missing one.
    meant = {
        (*e.document_path[:-1], near)
        for e in leaves
        if e.code == errors.UNKNOWN_FIELD.code
        for near in nearest(str(e.document_path[-1]), _known(rules, e.document_path[:-1]))
    }
    told = [e for e in leaves if e.code != errors.REQUIRED_FIELD.code or e.document_path not in meant]
    broken = {str(path[0]) for path in (*(e.document_path for e in leaves), *meant)}
    broken |= {key for key, node in root.value.items() if not all(n.sound and n.whole for n in node.walk())}
    if not root.whole:  # any of them may have been meant by the key that was refused
        broken |= set(rules)
    return Shape(
        _without(root, {e.document_path for e in leaves}, ()),
        [_finding(source, root, rules, e) for e in told],
        frozenset(broken),
    )


def _without(node: Node, refused: set[tuple[str | int, ...]], path: tuple[str | int, ...]) -> Node:
    """The node without the values at the refused paths, and without those that the reader refused."""

    def stays(key: str | int, value: Node) -> bool:
        return value.sound and (*path, key) not in refused

    if isinstance(node.value, dict):
        kept: Any = {k: _without(n, refused, (*path, k)) for k, n in node.value.items() if stays(k, n)}
    elif isinstance(node.value, list):
        kept = [_without(n, refused, (*path, i)) for i, n in enumerate(node.value) if stays(i, n)]
    else:
        return node
    return attrs.evolve(node, value=kept)


def _leaves(found: Any) -> Iterator[Any]:
    for error in found:
        if error.is_group_error:
            yield from _leaves(error.child_errors)
        else:
            yield error


def _is_news(root: Node, error: Any) -> bool:
    """Whether an error does not merely follow from what the reader refused."""
    path = error.document_path
    if error.code == errors.REQUIRED_FIELD.code and not root.at(path[:-1]).whole:
        return False
    if error.code == errors.EMPTY_NOT_ALLOWED.code and not root.at(path).whole:
        return False
    return all(root.at(path[:depth]).sound for depth in range(len(path) + 1))


def _finding(source: Source, root: Node, rules: dict[str, Any], error: Any) -> Finding:
    path = tuple(error.document_path)
    parent, node, key = root.at(path[:-1]), root.at(path), str(path[-1])
    if error.code == errors.UNKNOWN_FIELD.code:
        help = suggest(key, [name for name in _known(rules, path[:-1]) if name not in parent.keys])
        return source.finding("ECM201", parent.keys[key], f"found the unknown key `{escape(key)}`", help)
    if error.code == errors.REQUIRED_FIELD.code:
        return source.finding("ECM202", parent.span, f"found no key `{key}`, which is required here", f"add `{key}:`")
    is_key = error.schema_path[-2:-1] == ("keysrules",) and error.value == key
    place: Span = parent.keys[key] if is_key else node.span
    value = key if is_key else node.value
    code, message, help = _described(error, value, _rule(rules, path))
    return source.finding(code, place, message, help)


def _described(error: Any, value: Any, rule: dict[str, Any]) -> tuple[str, str, str]:
    """Code, message and help of an error about a value or a key that is there."""
    wanted = error.constraint
    size = len(value) if isinstance(value, list | str | dict) else 0
    match error.code:
        case errors.BAD_TYPE.code | errors.NOT_NULLABLE.code:
            types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
            help = "quote it" if types == ["string"] and isinstance(value, bool | int | float) else ""
            return "ECM203", f"found {_kind(value)}, expected {' or '.join(_EXPECTED[t] for t in types)}", help
        case errors.REGEX_MISMATCH.code:
            pattern = wanted.removesuffix(r"\Z")
            return "ECM205", f"found {shown(value)}, expected an ASCII id as in `{pattern}`", _non_ascii(value)
        case errors.UNALLOWED_VALUE.code:
            return "ECM204", f"found {shown(value)}, expected another value", suggest(str(value), map(str, wanted))
        case errors.MIN_VALUE.code:
            return "ECM204", f"found {shown(value)}, expected at least {wanted}", ""
        case errors.MAX_VALUE.code:
            return "ECM204", f"found {shown(value)}, expected at most {wanted}", ""
        case errors.EMPTY_NOT_ALLOWED.code:
            return "ECM204", f"found {_kind(value)} with nothing in it, expected at least one entry", ""
        case errors.MAX_LENGTH.code:
            what = "characters" if isinstance(value, str) else "entries"
            return "ECM204", f"found {size} {what}, expected at most {wanted}", ""
    return "ECM204", f"found {shown(value)}, which the rule `{error.rule}` does not allow", ""


def _kind(value: Any) -> str:
    if isinstance(value, dict | list):
        return shown(value)
    return f"{_FOUND[type(value)]}, {shown(value)}" if value is not None else "null"


def _non_ascii(value: Any) -> str:
    odd = sorted({c for c in str(value) if ord(c) > 126})
    return "not ASCII: " + ", ".join(f"U+{ord(c):04X}" for c in odd[:5]) if odd else ""


def _rule(rules: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """The Cerberus rule that governs the value at `path`."""
    rule: dict[str, Any] = {"schema": rules}
    for step in path:
        below = rule.get("schema", {})
        rule = (below if isinstance(step, int) else below.get(step)) or rule.get("valuesrules", {})
    return rule


def _known(rules: dict[str, Any], path: tuple[str | int, ...]) -> list[str]:
    return list(_rule(rules, path).get("schema", {}))
