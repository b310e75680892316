"""The one intermediate form of a resolved table, and its interpreter.

A *program* is plain, JSON-able data:

```
{"format": 1, "version": "0.1", "snapshot": "meter", "digest": "<SHA-256 of the rest, as `dumps` writes it>",
 "fields":  [{"name", "path": [key, …] | "search": JMESPath, "type", "values"?, "min"?, "max"?, "above"?, "below"?,
              "missing"?, "scope"?}, …],
 "signals": [{"name", "from": EXPRESSION, …as a field}, …],
 "rows":    [{"id", "when": [[signal, operator, constant], …], "operation"}, …],
 "steps":   {operation: [step, …]},
 "remap":   {role: {operation: operation}},
 "zones":   {name: threshold}, "limits": {name: number}}
```

An EXPRESSION reads the typed fields, with JMESPath's semantics: `["field", name]`, `["literal", scalar]`,
`[comparison, a, b]`, `["and" | "or", a, b]`, `["not", a]`, or `["search", text, [field, …]]` for what
only the library can do, over the fields that it reads.

This module belongs to the runtime ring: it runs on every prompt, so it imports nothing heavy but json (and, where a
table asks for it, jmespath). docs/tables.md has the semantics.
"""

import json
from operator import eq, ge, gt, le, lt, ne

from ecm_rules.tables.domains import LARGEST, accept, expected
from ecm_rules.tables.domains import ROLES as ROLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Program = dict[str, Any]
    Spec = dict[str, Any]
    Faults = list[list[str]]

FORMAT = 1
CONTINUE = "continue"
_NO_ROW = ["rows", "no row holds"]

_COMPARE: "dict[str, Callable[[Any, Any], bool]]" = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lte": le,
    "gt": gt,
    "gte": ge,
    "in": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
}
_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def role_of(subagent: bool) -> str:
    """The role of who asks."""
    return ROLES[1] if subagent else ROLES[0]


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(value.__class__, "no JSON")


class Unreadable:
    """A snapshot that was there but is not exactly one JSON object; `reason` says what it is."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def dumps(value: object) -> str:
    """Canonical JSON of `value`: sorted keys, no spaces, ASCII. What digests are taken over."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(program: "Program") -> str:
    """SHA-256 of the canonical JSON of a program, its own digest left out."""
    from hashlib import sha256

    rest = {key: value for key, value in program.items() if key != "digest"}
    return sha256(dumps(rest).encode("ascii")).hexdigest()


def loads(text: str) -> "Program":
    """Program from the JSON that `dumps` gave. Raises ValueError for anything that is no program of this format, or
    whose digest is not its own.
    """
    program = json.loads(text)
    if program.__class__ is not dict or program.get("format") != FORMAT:
        raise ValueError(f"no program of format {FORMAT}")
    if program.get("digest") != digest(program):
        raise ValueError("the program was changed: its digest is not its own")
    return program


def decide(program: "Program", snapshot: "Any", role: str = ROLES[0]) -> "dict[str, Any]":
    """Verdict of `program` on `snapshot` (a dict as JSON gives it, None where there is none) as a plain dict.

    Never raises on a JSON value. Raises ValueError for a role that is neither orchestrator nor subagent.
    """
    return _judge(program, read(program, snapshot, role), role)


def is_event(entry: "Any") -> bool:
    """Whether the JSON of a line of a policy log, the nexus' too, is an event and no verdict."""
    return entry.__class__ is dict and entry.get("event").__class__ is str and "raw_operation" not in entry


def decide_again(
    program: "Program",
    signals: "dict[str, Any]",
    missing: "list[str]",
    degraded: "list[dict[str, str]]",
    role: str = ROLES[0],
) -> "dict[str, Any]":
    """The verdict that told these `signals`, `missing` and `degraded`, from what they tell of the fields alone: signals
    are computed and rows are tried anew. Raises ValueError or KeyError for what no verdict of this program tells.
    """
    values: "dict[str, Any]" = {}
    absent: "list[str]" = []
    for declared in program["fields"]:
        name = declared["name"]
        given = None if name in missing else accept(declared, signals[name])
        if given is None and name not in missing:
            raise ValueError(f"`{name}` is {_shown(signals[name])}, expected {expected(declared)}")
        _settle(declared, given, values, absent)
    # Why a field was not taken stood in the snapshot, and only the verdict still tells it.
    faults = [[fault["path"], fault["reason"]] for fault in degraded]
    return _judge(program, _signals(program, role, values, absent, [f for f in faults if f != _NO_ROW]), role)


def _judge(program: "Program", seen: "tuple[dict[str, Any], list[str], Faults]", role: str) -> "dict[str, Any]":
    values, missing, faults = seen
    row = first(program, values, missing)
    if row is None:
        faults.append(list(_NO_ROW))
    raw, operation = outcome(program, row, role)
    return {
        "rule": row["id"] if row else None,
        "operation": operation,
        "raw_operation": raw,
        "role": role,
        "steps": list(program["steps"].get(operation, ())),
        "signals": values,
        "missing": missing,
        "degraded": [{"path": path, "reason": reason} for path, reason in faults],
        "digest": program["digest"],
    }


def outcome(program: "Program", row: "dict[str, Any] | None", role: str) -> "tuple[str, str]":
    """(what a row says, what the role is given of it); no row says `continue`."""
    raw: str = row["operation"] if row else CONTINUE
    return raw, program["remap"].get(role, {}).get(raw, raw)


def read(program: "Program", snapshot: "Any", role: str = ROLES[0]) -> "tuple[dict[str, Any], list[str], Faults]":
    """(values, missing, faults) of a snapshot.

    values: {name: typed value, the `missing` value in its place, or None}, fields first, then signals. missing: names
    of those that the snapshot did not give. faults: [path, reason] of each that it gave wrongly; it counts as missing.
    """
    values: "dict[str, Any]" = {}
    missing: "list[str]" = []
    faults: "Faults" = []
    if snapshot.__class__ is not dict:
        if snapshot is not None:
            faults.append([program["snapshot"], _why_no_object(snapshot)])
        snapshot = {}
    for declared in program["fields"]:
        value = None
        if declared.get("scope", role) == role:
            value = _field(declared, snapshot, faults)
        _settle(declared, value, values, missing)
    return _signals(program, role, values, missing, faults)


def _signals(
    program: "Program", role: str, values: "dict[str, Any]", missing: "list[str]", faults: "Faults"
) -> "tuple[dict[str, Any], list[str], Faults]":
    """What `read` gives, its fields read."""
    if role not in ROLES:
        raise ValueError(f"role is {role!r}, expected one of {', '.join(ROLES)}")
    typed = dict(values)
    for declared in program["signals"]:
        value = None
        if declared.get("scope", role) == role:
            value = _signal(declared, typed, faults)
        _settle(declared, value, values, missing)
    return values, missing, faults


def first(program: "Program", values: "dict[str, Any]", missing: "list[str]") -> "dict[str, Any] | None":
    """The first row whose every test holds, or None."""
    row: "dict[str, Any]"
    for row in program["rows"]:
        for name, operator, constant in row["when"]:
            if not holds(operator, values[name], name in missing, constant):
                break
        else:
            return row
    return None


def holds(operator: str, value: "Any", missing: bool, constant: "Any") -> bool:
    """Whether one test holds. A missing signal without a `missing` value satisfies only `missing`."""
    if operator == "missing":
        return missing is constant
    return value is not None and _COMPARE[operator](value, constant)


def evaluate(expression: "Sequence[Any]", typed: "dict[str, Any]") -> "Any":
    """Value of an EXPRESSION over the typed fields. Raises what jmespath raises where only the library can do it."""
    kind = expression[0]
    if kind == "field":
        return typed[expression[1]]
    if kind == "literal":
        return expression[1]
    if kind == "search":
        return search(expression[1], {name: typed[name] for name in expression[2]})
    left = evaluate(expression[1], typed)
    if kind == "not":
        return not _truthy(left)
    if kind == "and":
        return evaluate(expression[2], typed) if _truthy(left) else left
    if kind == "or":
        return left if _truthy(left) else evaluate(expression[2], typed)
    right = evaluate(expression[2], typed)
    if kind == "eq":
        return _same(left, right)
    if kind == "ne":
        return not _same(left, right)
    if left.__class__ in (int, float) and right.__class__ in (int, float):
        return _COMPARE[kind](left, right)
    return None


def search(text: str, document: "Any") -> "Any":
    import jmespath

    return jmespath.search(text, document)


def _field(declared: "Spec", snapshot: "Any", faults: "Faults") -> "Any":
    if "search" in declared:
        value = _searched(declared["name"], declared["search"], snapshot, faults)
        place = declared["name"]
    else:
        value = snapshot
        path = declared["path"]
        for depth, key in enumerate(path):
            if value.__class__ is not dict:
                _fault(faults, _dotted(path[:depth]), f"found {kind(value)}, expected an object")
                return None
            value = value.get(key)
            if value is None:
                return None
        place = _dotted(path)
    return _accepted(declared, value, place, faults)


def _signal(declared: "Spec", typed: "dict[str, Any]", faults: "Faults") -> "Any":
    expression = declared["from"]
    if expression[0] == "search":
        needed = {name: typed[name] for name in expression[2]}
        value = _searched(declared["name"], expression[1], needed, faults)
    else:
        value = evaluate(expression, typed)
    return _accepted(declared, value, declared["name"], faults)


def _searched(name: str, text: str, document: "Any", faults: "Faults") -> "Any":
    try:
        return search(text, document)
    except Exception as error:  # whatever a function of the library says to values of a kind it does not take
        _fault(faults, name, f"its expression failed: {error.__class__.__name__}")
        return None


def _accepted(declared: "Spec", value: "Any", place: str, faults: "Faults") -> "Any":
    if value is None:
        return None
    taken = accept(declared, value)
    if taken is None:
        _fault(faults, place, f"found {_shown(value)}, expected {expected(declared)}")
    return taken


def _settle(declared: "Spec", value: "Any", values: "dict[str, Any]", missing: "list[str]") -> None:
    name = declared["name"]
    if value is None:
        missing.append(name)
        value = declared.get("missing")
    values[name] = value


def _dotted(path: "list[str]") -> str:
    """A path as JMESPath writes it: a key that is no plain name is quoted."""
    return ".".join(key if key.isidentifier() and key.isascii() else json.dumps(key) for key in path)


def _fault(faults: "Faults", path: str, reason: str) -> None:
    if not any(known == path for known, _ in faults):
        faults.append([path, reason])


def _why_no_object(snapshot: object) -> str:
    if snapshot.__class__ is Unreadable:
        return snapshot.reason
    return f"found {kind(snapshot)}, expected an object"


def _shown(value: "Any") -> str:
    """A value in a few ASCII characters, whatever its size."""
    if value.__class__ is str:
        return json.dumps(value if len(value) <= 40 else value[:40] + "…")
    if value.__class__ in (int, float):
        if not -LARGEST <= value <= LARGEST:  # neither is what is not a number
            return "a number that no double holds"
        return repr(value) if -1e15 < value < 1e15 else f"{float(value):.6g}"
    return kind(value)


def _truthy(value: object) -> bool:
    """JMESPath's truth: null, false and what is empty are false; every number is true."""
    return value.__class__ in (int, float) or bool(value)


def _same(a: object, b: object) -> bool:
    """JMESPath's equality of scalars: `true` is not 1."""
    return (a.__class__ is bool) == (b.__class__ is bool) and a == b
