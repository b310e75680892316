"""The shapes of the tables as JSON Schema, draft 7, for editors: what Cerberus checks, and the words that rows may use.

Never stricter than loading; looser where JSON Schema cannot say it: `2.0` is an integer to it, a `ref` any string.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.tables import invariants, load, places, reader, rows, schemas
from ecm_rules.tables.models import Declared, Vocabulary

Schema = dict[str, Any]

# Whose rows use the context policy's vocabulary, not one of their own.
_SPEAKING = ("context-policy", "project-ecm")
# The marks, by `meta`, of the places where they are used.
_WORDS = ("when", "assume", "assert", "operation")
# What an editor opens is a project's file, of which only this key is ours.
_WITHIN = {"project-context": "context"}
_TYPES = {
    "dict": "object",
    "list": "array",
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_SIZES = {"object": "Properties", "array": "Items", "string": "Length"}
_BOUNDS = {"min": "minimum", "max": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
_REF = {"$ref": "#/definitions/ref"}


def derive(name: str) -> Schema:
    """The JSON Schema of the files whose shape is rules/schemas/`name`.yaml."""
    speaks = name in _SPEAKING
    words = _words(load.shipped_vocabulary()) if speaks else {mark: {} for mark in _WORDS}
    body = _Shapes(words).closed(schemas.schema(name))
    body = {"properties": {_WITHIN[name]: body}} if name in _WITHIN else body
    definitions = {"definitions": {"ref": _ref()}} if speaks else {}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, "description": _about(name)}
    return {**head, **body, **definitions}


def _about(name: str) -> str:
    """The comment that a schema's file begins with."""
    text = reader.load(places.shipped(f"rules/schemas/{name}.yaml")).source.text
    return " ".join(line[2:] for line in itertools.takewhile(lambda line: line.startswith("# "), text.split("\n")))


@attrs.frozen
class _Shapes:
    """From Cerberus to JSON Schema. `words` has what the vocabulary adds, by the `meta` that marks its places."""

    words: Mapping[str, Schema]

    def closed(self, fields: Mapping[str, Any]) -> Schema:
        """A mapping with these keys and no others."""
        required = [key for key, rule in fields.items() if rule.get("required")]
        return _closed({key: self.value(rule) for key, rule in fields.items()}, *required)

    def value(self, rule: Mapping[str, Any]) -> Schema:
        """What fits a set of Cerberus' rules. Raises ValueError where one has no counterpart here."""
        if rule.get("type") == "list" and rule.get("meta") in load.shipped_tables():  # its rows, with its words
            table = load.load_table(rule["meta"], None)
            rest = {key: constraint for key, constraint in rule.items() if key != "meta"}
            return _Shapes(_words(table.vocabulary)).value(rest)
        if not rule.get("empty", True):
            rule = {"minlength": 1, **rule}
        types = rule.get("type", list(_TYPES))
        kinds = [_TYPES[kind] for kind in (types if isinstance(types, list) else [types])]
        kinds += ["null"] if rule.get("nullable") else []
        made: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
        for key, constraint in rule.items():
            keywords = self.keywords(key, constraint, kinds)
            if taken := made.keys() & keywords.keys() - {"type"}:
                raise ValueError(f"found `{key}` beside a rule that is `{min(taken)}` in JSON Schema as well")
            made = {**keywords, **made}
        return made

    def keywords(self, key: str, constraint: Any, kinds: list[str]) -> Schema:
        match key:
            case "type" | "required" | "nullable" | "empty":
                return {}  # said by the value or by the mapping around it
            case "min" | "max":
                return {_BOUNDS[key]: constraint}
            case "minlength" | "maxlength":
                return {key[:3] + _SIZES[kind]: constraint for kind in kinds if kind in _SIZES}
            case "allowed" if not {"array", "object"} & set(kinds):
                return {"enum": [*constraint, None] if "null" in kinds else constraint}
            case "regex":
                return {"pattern": _pattern(constraint)}
            case "schema" if "object" not in kinds:
                return {"items": self.value(constraint)}
            case "schema" if "array" not in kinds:
                return self.closed(constraint)
            case "keysrules":
                return {"propertyNames": self.value(constraint)}
            case "valuesrules":
                return {"additionalProperties": self.value(constraint)}
            case "meta" if constraint in self.words:
                return self.words[constraint]
        raise ValueError(f"found `{key}: {constraint}` of {', '.join(kinds)}, expected a rule that is known here")


def _closed(properties: Mapping[str, Schema], *required: str) -> Schema:
    made = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": list(required)} if required else made


def _pattern(regex: str) -> str:
    """Cerberus matches from the start, and to the end by a `\\Z` that JavaScript does not have."""
    body = regex.removesuffix(r"\Z") + "$"
    return f"^(?:{body})" if "|" in body else f"^{body}"


def _words(vocabulary: Vocabulary) -> dict[str, Schema]:
    declared, operations = vocabulary.declared(), {o.name: o.why for o in vocabulary.operations}
    rule = Declared("rule", {"name": "rule", "type": "string"})  # of which table, an editor does not know
    return {
        "when": _tests(declared),
        "assume": _tests(invariants.assumable(declared)),
        "assert": _tests({**invariants.assertable(operations, ()), "rule": rule}),
        "operation": {"enum": list(operations), "enumDescriptions": list(operations.values())},
    }


def _tests(declared: dict[str, Declared]) -> Schema:
    return _closed({key: _constant(signal, operator) for key, signal, operator in rows.keys(declared)})


def _constant(signal: Declared, operator: str) -> Schema:
    """What a test may compare a signal with."""
    bounds = {keyword: signal.spec[bound] for bound, keyword in _BOUNDS.items() if bound in signal.spec}
    one = {"enum": signal.spec["values"]} if signal.type == "enum" else {"type": signal.type, **bounds}
    many = {"type": "array", "items": one, "minItems": 1}
    match operator:
        case "missing":
            forms: list[Schema] = [{"type": "boolean"}]
        case "in" | "not_in":
            forms = [many]
        case "eq" if rows.takes(signal, "in"):
            forms = [one, many]
        case _:
            forms = [one]
    about = {"description": signal.why} if signal.why else {}
    return {**about, "anyOf": [*forms, _REF]}


def _ref() -> Schema:
    limits = [f"limits.{name}" for name in schemas.schema("context-policy")["limits"]["schema"]]
    what = "A JMESPath expression over this table."
    return _closed({"ref": {"type": "string", "description": what, "examples": limits}}, "ref")
