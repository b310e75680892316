"""Where the shipped tables stand: inside the wheel, or beside the package in a checkout. Part of the runtime ring."""

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_WHEEL = os.path.join(_PACKAGE, "_data")
ROOT = _WHEEL if os.path.isdir(_WHEEL) else os.path.dirname(_PACKAGE)
FOLDERS = ("roster", "rules")


def path(name: str) -> str:
    """Path of a shipped file by its name below the root, as in `rules/signals.yaml`."""
    return os.path.join(ROOT, *name.split("/"))


def names() -> "dict[str, str]":
    """Every shipped table by its stem: {"context-policy": path, …}, sorted."""
    found = {}
    for folder in FOLDERS:
        for file in os.listdir(path(folder)):
            if file.endswith(".yaml"):
                found[file.removesuffix(".yaml")] = os.path.join(path(folder), file)
    return dict(sorted(found.items()))
