"""The programs of a project as plain JSON beside its state, so that a prompt reads no YAML. Part of the runtime ring.

The key is a hash over the version and the content of every table that the programs come from: the cache is current, or
it is built anew. It is data, never code.
"""

import json
import os

from ecm_rules import __version__
from ecm_rules.kernel import files
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = ".eidolons/.context/programs.json"
_PROJECT = ("eidolons.yaml", ".eidolons/ecm.yaml")
_SHIPPED = (
    "roster/context-policy.yaml",
    "roster/pins.yaml",
    "rules/signals.yaml",
    "rules/operations.yaml",
    "rules/hosts.yaml",
)


def programs(project: str) -> "dict[str, Any] | None":
    """{"enabled", "audit", "budget_tokens", "window_tokens", "program", "playbook"} of a project and what `load_hosts`
    gives.

    None where it has not opted in. Raises what `build` raises, and OSError where a file is there but cannot be read.
    """
    own = [_content(os.path.join(project, name)) for name in _PROJECT]
    # Most projects have no such key, and are not worth a parser; what looks like one is left to the parser.
    if own[0] is None or b"context" not in own[0]:
        return None
    key = _key([*own, *(_content(places.shipped(name)) for name in _SHIPPED)])
    found = _read(os.path.join(project, FILE), key)
    if found is None:
        found = build(project)
        if found["enabled"] or os.path.isdir(os.path.join(project, places.STATE)):
            _write(project, key, found)
    return found if found["enabled"] else None


def build(project: str) -> "dict[str, Any]":
    """The programs of a project from its tables. Raises EcmError."""
    # The whole of YAML and Cerberus, once after each change of a table.
    from ecm_rules.engine.compile import compile_table
    from ecm_rules.kernel import playbook
    from ecm_rules.tables.hosts import load_hosts
    from ecm_rules.tables.load import load_policy

    table = load_policy(None, project)
    return {
        "enabled": table.enabled,
        "audit": dict(table.audit),
        "budget_tokens": table.budget_tokens,
        "window_tokens": table.window_tokens,
        "program": compile_table(table),
        "playbook": playbook.of(table),
        **load_hosts(),
    }


def _read(path: str, key: str) -> "dict[str, Any] | None":
    """What the cache holds; None for anything but what `_write` wrote for this key."""
    try:
        outer = json.loads(files.read(path))
        data = outer["data"]
        if outer["key"] != key or outer["checksum"] != _key([data.encode("ascii")]):
            return None
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None
    found: "dict[str, Any]" = json.loads(data)
    return found


def _write(project: str, key: str, found: "dict[str, Any]") -> None:
    data = json.dumps(found)
    outer = {"key": key, "checksum": _key([data.encode("ascii")]), "data": data}
    try:
        files.replace(files.state_path(project, FILE), json.dumps(outer).encode("ascii"))
    except OSError:
        pass  # a cache that cannot be written is done without; the meter behind it says so


def _key(contents: "list[bytes | None]") -> str:
    """A hash over this version of the package and some contents."""
    # Python's own BLAKE2, without hashlib and the OpenSSL behind it.
    from _blake2 import blake2b

    digest = blake2b(__version__.encode(), digest_size=16)
    for content in contents:
        digest.update(b"-" if content is None else b"%d:" % len(content) + content)
    return digest.hexdigest()


def _content(path: str) -> "bytes | None":
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
