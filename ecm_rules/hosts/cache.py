"""The programs of a project as plain JSON beside its state, so that a prompt reads no YAML. Part of the runtime ring.

The key is a hash over the version and the content of every file that the programs come from: the cache is current, or
it is built anew. It is data, never code; whatever is not exactly what `build` writes is ignored.
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
    """{"key", "enabled", "audit", "budget_tokens", "program", "hosts", "models"} of a project, None where it has not
    opted in. Raises what `build` raises.
    """
    own = [_content(os.path.join(project, name)) for name in _PROJECT]
    if own[0] is None or b"context" not in own[0]:
        return None
    key = _key([*own, *(_content(places.shipped(name)) for name in _SHIPPED)])
    found = _read(os.path.join(project, FILE), key) or build(project, key)
    return found if found["enabled"] else None


def build(project: str, key: str) -> "dict[str, Any]":
    """Read the tables and write the cache; a cache that cannot be written is done without. Raises EcmError."""
    # The whole of YAML and Cerberus, once after each change of a table.
    from ecm_rules.engine.compile import compile_table
    from ecm_rules.tables.hosts import load_hosts
    from ecm_rules.tables.load import load_policy

    table = load_policy(None, project)
    found = {
        "key": key,
        "enabled": table.enabled,
        "audit": dict(table.audit),
        "budget_tokens": table.budget_tokens,
        "program": compile_table(table),
        **load_hosts(),
    }
    try:
        files.replace(files.state_path(project, FILE), json.dumps(found).encode("ascii"))
    except OSError:
        pass
    return found


def _key(contents: "list[bytes | None]") -> str:
    # Python's own BLAKE2, without hashlib and the OpenSSL behind it.
    from _blake2 import blake2b

    digest = blake2b(__version__.encode(), digest_size=16)
    for content in contents:
        digest.update(b"-" if content is None else b"%d:" % len(content) + content)
    return digest.hexdigest()


def _content(path: str) -> "bytes | None":
    try:
        return files.read(path)
    except OSError:
        return None


def _read(path: str, key: str) -> "dict[str, Any] | None":
    try:
        found = json.loads(files.read(path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if found.__class__ is dict and found.get("key") == key else None
