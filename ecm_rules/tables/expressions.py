"""JMESPath as the tables use it: parsed once, at authoring time, and translated into the program where it is simple.

A path, a literal, a comparison, or a boolean of these becomes an expression of the program (see `engine.program`);
anything else stays JMESPath text, which costs the import of the library when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath import exceptions, functions, parser

from ecm_rules.tables.domains import LARGEST, NUMERIC
from ecm_rules.tables.findings import escape

Expression = list[Any]

_BOOLEANS = {"and_expression": "and", "or_expression": "or"}
_BACKTICKS = "a number, `true` or `null` is written in backticks there, and a string in single quotes"
_LONGEST = 1000
_DEEPEST = 32
_LARGEST_GROWTH = 1000
# Node types whose children all see the same document; of the others only the first child sees it.
_TRANSPARENT = (
    *_BOOLEANS,
    "not_expression",
    "comparator",
    "function_expression",
    "multi_select_list",
    "multi_select_dict",
    "key_val_pair",
)
# A verdict must not depend on the order of an object's keys.
_ORDERED = ("keys", "values")


class Invalid(Exception):
    """The text is no expression that the tables take: a message, the name at fault where there is one, and help."""

    def __init__(self, message: str, name: str = "", help: str = "") -> None:
        super().__init__(message)
        self.message, self.name, self.help = message, name, help


def path(text: str) -> list[str] | None:
    """The keys of a plain path such as `budget.ceiling_tokens`; None where the expression is more than that.

    Raises Invalid.
    """
    way = way_of(text) or []
    keys = [key for key in way if isinstance(key, str)]
    return keys if keys and len(keys) == len(way) else None


def way_of(text: str) -> list[str | int] | None:
    """The keys and indexes of a path such as `messages[-1].info.id`; None where the expression is more than that.

    Raises Invalid.
    """
    tree = _parse(text)
    _check_order(tree, (*_ORDERED, "to_string"))
    return _way(tree)


def translate(text: str, types: Mapping[str, str]) -> Expression:
    """The program's expression for `text` over fields of the given types. Raises Invalid."""
    tree = _parse(text)
    _check_order(tree, _ORDERED)
    roots = _roots(tree)
    for name in roots:
        if name is not None and name not in types:
            raise Invalid(f"found the unknown field `{escape(name)}`", name)
    needed = list(types) if None in roots else [name for name in types if name in roots]
    return _simple(tree, types) or ["search", text, needed]


def check(text: str) -> None:
    """Raises Invalid where a text is no expression that the tables take, of a document that is not there yet."""
    _parse(text)


def fold(text: str, document: Any) -> Any:
    """What a `ref` finds in the document; None where it finds nothing. Raises Invalid."""
    _parse(text)
    try:
        return jmespath.search(text, document)
    except Exception as error:  # functions of the library raise what their arguments make Python raise
        raise Invalid(f"the expression failed: {_first_line(error)}") from None


def _parse(text: str) -> Any:
    if len(text) > _LONGEST:
        raise Invalid(f"found an expression of {len(text)} characters, expected at most {_LONGEST}")
    try:
        # A cache of the parser's own would keep texts of any size alive.
        tree = parser.Parser().parse(text).parsed
    except (exceptions.JMESPathError, ValueError, RecursionError) as error:
        told = _first_line(error).removesuffix(", for expression")
        raise Invalid(f"not a JMESPath expression: {told}", help=_BACKTICKS) from None
    if _depth(tree) > _DEEPEST:
        raise Invalid(f"found an expression nested deeper than {_DEEPEST} levels")
    if _growth(tree) > _LARGEST_GROWTH:
        raise Invalid("found an expression that multiplies what it is given too often")
    for name, count in _calls(tree):
        _check_call(name, count)
    return tree


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for child in tree["children"]:
        if isinstance(child, dict):
            yield from _nodes(child)


def _growth(tree: Any) -> int:
    """By how much the expression can multiply what it reads: each multiselect copies it for each of its parts."""
    growth = 1
    for node in _nodes(tree):
        if node["type"] in ("multi_select_list", "multi_select_dict"):
            growth *= len(node["children"])
    return growth


def _check_order(tree: Any, functions_: tuple[str, ...]) -> None:
    for node in _nodes(tree):
        if node["type"] == "value_projection" or (
            node["type"] == "function_expression" and node["value"] in functions_
        ):
            what = "`*`" if node["type"] == "value_projection" else f"`{node['value']}`"
            raise Invalid(f"found {what}, whose result depends on the order of an object's keys")


def _calls(tree: Any) -> list[tuple[str, int]]:
    """Name and number of arguments of every function that is called."""
    return [(n["value"], len(n["children"])) for n in _nodes(tree) if n["type"] == "function_expression"]


def _check_call(name: str, count: int) -> None:
    known = functions.Functions.FUNCTION_TABLE
    if name not in known:
        raise Invalid(f"found the unknown function `{name}`")
    signature = known[name]["signature"]
    variadic = bool(signature) and bool(signature[-1].get("variadic"))
    if count < len(signature) or (count > len(signature) and not variadic):
        raise Invalid(f"found {count} arguments of `{name}`, expected {len(signature)}")


def _first_line(error: BaseException) -> str:
    return escape(str(error).partition("\n")[0].rstrip(":"))[:200] or error.__class__.__name__


def _depth(tree: Any) -> int:
    level, deep = [tree], 0
    while level:
        level, deep = [child for node in level for child in node["children"] if isinstance(child, dict)], deep + 1
    return deep


def _way(tree: Any) -> list[str | int] | None:
    if tree["type"] in ("field", "index"):
        return [tree["value"]]
    if tree["type"] in ("subexpression", "index_expression"):
        parts = [_way(child) for child in tree["children"]]
        if all(parts):
            return [key for part in parts for key in part or ()]
    return None


def _roots(tree: Any) -> list[str | None]:
    """The fields that are read from the document itself; None among them where it is read as a whole."""
    kind, children = tree["type"], tree["children"]
    if kind == "field":
        return [tree["value"]]
    if kind in ("literal", "expref"):  # an `expref` reads elements, not the document
        return []
    if kind == "subexpression" and children[0]["type"] == "current":  # `@.name` is `name`
        return _roots(children[1])
    if not children:
        return [None]
    seen = children if kind in _TRANSPARENT else children[:1]
    return [name for child in seen if isinstance(child, dict) for name in _roots(child)]


def _simple(tree: Any, types: Mapping[str, str]) -> Expression | None:
    kind, value = tree["type"], tree.get("value")
    if kind == "field":
        return ["field", value]
    if kind == "literal":
        return _literal(value)
    if kind not in (*_BOOLEANS, "not_expression", "comparator"):
        return None
    children = [_simple(child, types) for child in tree["children"]]
    if not all(children):
        return None
    if kind == "comparator" and value not in ("eq", "ne"):
        for child in children:
            _check_ordered(child, types)
    operator = value if kind == "comparator" else _BOOLEANS.get(kind, "not")
    return [operator, *children]


def _literal(value: Any) -> Expression | None:
    if isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
        raise Invalid("found a number that no double can hold, expected a finite number")
    return ["literal", value] if value is None or isinstance(value, bool | int | float | str) else None


def _check_ordered(expression: Any, types: Mapping[str, str]) -> None:
    kind, value = expression[0], expression[-1]
    if kind == "field" and types[value] not in NUMERIC:
        raise Invalid(f"found `{value}`, which is no number ({types[value]}), in an ordering", value)
    if (kind == "literal" and type(value) not in (int, float)) or kind not in ("field", "literal"):
        raise Invalid("found something that is not a number in an ordering, expected a number")
