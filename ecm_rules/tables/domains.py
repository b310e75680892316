"""What a declared field or signal takes: the one check that tables are read with and snapshots are measured by.

`declared` is the program's form of a declaration: `{"name", "type", "values"?, "min"?, "max"?, "above"?, "below"?, …}`.
Part of the runtime ring: no imports.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# A number is one that a double can hold: this refuses infinities and integers of a million digits alike.
LARGEST = 1.7976931348623157e308
_INFINITY = float("inf")
NUMERIC = ("integer", "number")
# Who may ask a table.
ROLES = ("orchestrator", "subagent")


def accept(declared: "Mapping[str, Any]", value: "Any") -> "Any":
    """`value` as the declared type has it (2.0 is the integer 2), or None where type, range or values refuse it."""
    kind = declared["type"]
    if kind == "enum":
        return value if value.__class__ is str and value in declared["values"] else None
    if kind == "boolean":
        return value if value.__class__ is bool else None
    if kind == "string":
        return value if value.__class__ is str else None
    if value.__class__ is not int and value.__class__ is not float:
        return None
    if not (declared.get("min", -LARGEST) <= value <= declared.get("max", LARGEST)):
        return None
    if value <= declared.get("above", -_INFINITY) or value >= declared.get("below", _INFINITY):
        return None
    if kind == "integer" and value.__class__ is float:
        return int(value) if value % 1 == 0 else None
    return value


def expected(declared: "Mapping[str, Any]") -> str:
    """What a declared field or signal takes, in words."""
    kind: str = declared["type"]
    if kind == "enum":
        return "one of " + ", ".join(declared["values"])
    if kind in ("boolean", "string"):
        return "a " + kind
    words = "a whole number" if kind == "integer" else "a number"
    if "min" in declared and "max" in declared and "above" not in declared and "below" not in declared:
        return f"{words} from {declared['min']} to {declared['max']}"
    bounds = (("min", "at least"), ("above", "above"), ("max", "at most"), ("below", "below"))
    told = [f"{word} {declared[key]}" for key, word in bounds if key in declared]
    return f"{words} {' and '.join(told)}" if told else words
