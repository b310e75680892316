"""Finding one's way in an object of JSON by what rules/hosts.yaml says of it. Part of the runtime ring."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Path = Iterable[str | int]


def find(data: "Any", path: "Path") -> "Any":
    """What the keys and indexes of a path lead to; None where they lead nowhere."""
    for key in path:
        if data.__class__ is dict:
            data = data.get(key)
        elif data.__class__ is list and key.__class__ is int and -len(data) <= key < len(data):
            data = data[key]
        else:
            return None
    return data


def first(data: "Any", paths: "Iterable[Path]") -> "Any":
    """What the first of several paths leads to that leads to something; None where none does."""
    for path in paths:
        found = find(data, path)
        if found is not None:
            return found
    return None


def text(data: "Any", paths: "Iterable[Path]") -> "str | None":
    """The first text that is not empty."""
    for path in paths:
        found = find(data, path)
        if found.__class__ is str and found:
            return found
    return None


def number(data: "Any", paths: "Iterable[Path]") -> "float | None":
    """The first number above zero and below any that is no measure of anything."""
    for path in paths:
        found = find(data, path)
        if found.__class__ in (int, float) and 0 < found < 1e15:
            return found
    return None


def fits(data: "dict[str, Any]", patterns: "Iterable[dict[str, Any]]") -> bool:
    """Whether one of the patterns holds: every key that it has, none that it lacks, every path to what it says."""
    return any(_holds(data, pattern) for pattern in patterns)


def _holds(data: "dict[str, Any]", pattern: "dict[str, Any]") -> bool:
    for key in pattern["has"]:
        if key not in data:
            return False
    for key in pattern["lacks"]:
        if key in data:
            return False
    for path, values in pattern["where"]:
        found = find(data, path)
        if found.__class__ not in (str, bool) or found not in values:
            return False
    for path, part in pattern["within"]:
        found = find(data, path)
        if found.__class__ is not str or part not in found:
            return False
    return True
