"""The programs of a project as plain JSON beside its state, so that a prompt reads no YAML. Part of the runtime ring.

The first line has the key, and a checksum of the second, which has the data. The key is a hash over the version and the
content of every table that the programs come from: the cache is current, or it is built anew. It is data, never code.
"""

import json
import os

from ecm_rules import __version__
from ecm_rules.hosts import apart
from ecm_rules.kernel import files
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = ".eidolons/.context/programs.jsonl"
_PROJECT = ("eidolons.yaml", ".eidolons/ecm.yaml")
_SHIPPED = (
    "roster/context-policy.yaml",
    "roster/pins.yaml",
    "roster/trust-sources.yaml",
    "rules/signals.yaml",
    "rules/operations.yaml",
    "rules/hosts.yaml",
)
# Between a key and its colon.
_BETWEEN = b"\"' \t\r\n"
_MOST_BETWEEN = 1000


class Broken(ValueError):
    """A table of the project does not load: the findings."""


def programs(project: str, until: "float | None" = None) -> "dict[str, Any] | None":
    """{"enabled", "audit", "budget_tokens", "window_tokens", "program", "playbook", "trust"} of a project and what
    `load_hosts` gives. `trust` is the program of a `lifecycle.trust.Trust`.

    None where it has not opted in. until: when they must be there, by `time.monotonic`: what takes longer to build is
    kept for the next that asks, and nobody has it now. Raises Broken, and OSError where a file is there but cannot be
    read, or not in time.
    """
    own = [_content(os.path.join(project, name)) for name in _PROJECT]
    # Most projects have no such key, and are not worth a parser; what looks like one is left to the parser.
    if own[0] is None or not _looks_like_a_key(own[0], b"context"):
        return None
    key = _key([*own, *(_content(places.shipped(name)) for name in _SHIPPED)])
    path = os.path.join(project, FILE)
    found = _read(path, key)
    if found is None:
        found = _built(project, key) if until is None else _awaited(project, key, until)
    if "broken" in found:
        raise Broken(found["broken"])
    return found if found["enabled"] else None


def build(project: str) -> "dict[str, Any]":
    """The programs of a project from its tables. Raises EcmError."""
    # The whole of YAML and Cerberus, once after each change of a table.
    from ecm_rules.engine.compile import compile_table
    from ecm_rules.kernel import playbook
    from ecm_rules.lifecycle.facade import TABLE
    from ecm_rules.tables.hosts import load_hosts
    from ecm_rules.tables.load import load_policy, load_table

    table = load_policy(None, project)
    return {
        "enabled": table.enabled,
        "audit": dict(table.audit),
        "budget_tokens": table.budget_tokens,
        "window_tokens": table.window_tokens,
        "context_sources": list(table.context_sources),
        "program": compile_table(table),
        "playbook": playbook.of(table),
        "trust": compile_table(load_table(TABLE, project)),
        **load_hosts(),
    }


def _looks_like_a_key(text: bytes, word: bytes) -> bool:
    """Whether a word stands before a colon anywhere, in quotes or not: whatever is a key of YAML does."""
    at = text.find(word)
    while at >= 0:
        at += len(word)
        if text[at : at + _MOST_BETWEEN].lstrip(_BETWEEN)[:1] == b":":
            return True
        at = text.find(word, at)
    return False


def _built(project: str, key: str) -> "dict[str, Any]":
    """What `build` gives, kept; findings are kept as well, for they are to be told at each prompt."""
    from ecm_rules.tables.findings import EcmError

    try:
        found = build(project)
    except EcmError as error:
        found = {"broken": str(error), "enabled": True}
    if found["enabled"] or os.path.isdir(os.path.join(project, places.STATE)):
        _write(project, key, found)
    return found


def _awaited(project: str, key: str, until: float) -> "dict[str, Any]":
    # What cannot be kept, or must not be, is handed over, and built once all the same.
    said = apart.run(lambda: json.dumps(_built(project, key)).encode("ascii"), until)
    if said is None:
        raise OSError("the tables are still being read")
    found: "dict[str, Any]" = json.loads(said) if said else _built(project, key)  # which says what is wrong
    return found


def _read(path: str, key: str) -> "dict[str, Any] | None":
    """What the cache holds; None for anything but what `_write` wrote for this key."""
    try:
        head, _, data = files.read(path).partition(b"\n")
        if head != _head(key, data):
            return None
    except OSError:
        return None
    found: "dict[str, Any]" = json.loads(data)
    return found


def _write(project: str, key: str, found: "dict[str, Any]") -> None:
    data = json.dumps(found).encode("ascii") + b"\n"
    try:
        files.replace(files.state_path(project, FILE), _head(key, data) + b"\n" + data)
    except OSError:
        pass  # a cache that cannot be written is done without; the meter behind it says so


def _head(key: str, data: bytes) -> bytes:
    return json.dumps({"key": key, "checksum": _key([data])}).encode("ascii")


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
