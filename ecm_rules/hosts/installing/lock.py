"""The two files of the nexus: `context:` in eidolons.yaml switches a project on; eidolons.lock says what is installed.

Both belong to the nexus, so what stands there is left as it is and only keys that are missing are added. Which these
are is said in the lock itself, at `context.ecm_rules`; what each host's files need to be restored, at its `installed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.hosts.installing import texts, yaml_lines
from ecm_rules.hosts.installing.jobs import Record

PROJECT = "eidolons.yaml"
LOCK = "eidolons.lock"
CONTEXT = "context"
OWN = "ecm_rules"
HOSTS = "per_host"
INSTALLED = "installed"
_ON = {"enabled": True}


@attrs.frozen
class Entry:
    """What the lock says of one host."""

    tier: str
    channel: str
    features: tuple[str, ...]
    records: tuple[Record, ...]


@attrs.frozen
class Lock:
    """What the lock says of us. `switched_on`: the `context:` block of eidolons.yaml is ours; `made`: that file too;
    `created`: the lock is."""

    hosts: Mapping[str, Entry]
    switched_on: bool = False
    made: bool = False
    created: bool = False
    head: Mapping[str, Any] = attrs.field(factory=dict)
    """What the lock has before the hosts."""


def read(text: str | None) -> Lock:
    """What stands in a lock. Raises EcmError where it is no YAML."""
    context = _context(text)
    own = _mapping(context.get(OWN))
    hosts: dict[str, Entry] = {}
    for name, told in _mapping(context.get(HOSTS)).items():
        given = told.get(INSTALLED) if isinstance(told, dict) else None
        if isinstance(given, list):
            records = tuple(record for record in map(Record.of, given) if record is not None)
            features = told.get("ecm_features")
            kept = tuple(map(str, features)) if isinstance(features, list) else ()
            hosts[name] = Entry(str(told.get("tier")), str(told.get("channel")), kept, records)
    head = {key: value for key, value in context.items() if key not in (HOSTS, OWN)}
    created = text is None or own.get("created") is True
    return Lock(hosts, own.get("switched_on") is True, own.get("made") is True, created, head)


def strip(text: str | None) -> str | None:
    """The lock without anything of ours; None where nothing is left of one that we created."""
    if text is None:
        return None
    own = _mapping(_context(text).get(OWN))
    given = own.get("ours")
    ours = [tuple(str(path).split(".")) for path in given] if isinstance(given, list) else []
    for path in [*reversed(ours), (CONTEXT, OWN)]:
        node = yaml_lines.at(yaml_lines.parse(LOCK, text), path)
        if node is None or (node.kind == "mapping" and path in ((CONTEXT,), (CONTEXT, HOSTS))):
            continue
        text = _deleted(text, path, ours)
    return None if own.get("created") is True and not text.split() else text


def write(text: str | None, lock: Lock, head: Mapping[str, Any], version: str) -> str | None:
    """The lock's text with what `lock` says; `head` are the keys of `context:` before the hosts. As it is, where it
    says so already. Raises EcmError where that cannot be added.
    """
    stripped = strip(text)
    if not lock.hosts and not lock.switched_on:
        return stripped
    made, ours = stripped or "", []
    hosts = {name: _entry(entry) for name, entry in lock.hosts.items()}
    wanted = {**head, HOSTS: hosts} if hosts else dict(head)
    there = _context(stripped)
    if not _has(made, (CONTEXT,)):
        ours += [(CONTEXT,), *((CONTEXT, key) for key in wanted), *((CONTEXT, HOSTS, name) for name in hosts)]
        inner = {**wanted, OWN: _own(lock, ours, version)}
        made = yaml_lines.insert(LOCK, made, (), CONTEXT, inner)
    else:
        for key, value in wanted.items():
            if key not in there:
                made = yaml_lines.insert(LOCK, made, (CONTEXT,), key, value)
                ours.append((CONTEXT, key))
        if HOSTS in there:
            made = _merged(made, _mapping(there[HOSTS]), hosts, ours)
        else:
            ours += [(CONTEXT, HOSTS, name) for name in hosts]
        made = yaml_lines.insert(LOCK, made, (CONTEXT,), OWN, _own(lock, ours, version))
    if text is not None and _says(text) == _says(made):
        return text
    return made


def switch_on(text: str | None) -> tuple[str, bool]:
    """eidolons.yaml with a `context:` block, and whether that is new. Raises EcmError where it cannot be added."""
    if text is not None and _has(text, (CONTEXT,), PROJECT):
        return text, False
    return yaml_lines.insert(PROJECT, text or "", (), CONTEXT, {"enabled": True}), True


def switch_off(text: str | None, lock: Lock) -> str | None:
    """eidolons.yaml without the block that we added, unless somebody wrote more into it."""
    node = yaml_lines.at(yaml_lines.parse(PROJECT, text), (CONTEXT,)) if text is not None else None
    if text is None or node is None or not lock.switched_on or node.plain() != _ON:
        return text
    text = yaml_lines.delete(PROJECT, text, (CONTEXT,))
    return None if lock.made and not text.removeprefix(texts.BOM).split() else text


def _merged(text: str, there: Mapping[str, Any], hosts: Mapping[str, Any], ours: list[tuple[str, ...]]) -> str:
    """The hosts among those that another tool recorded: of one that is there, only what we need ourselves."""
    for name, entry in hosts.items():
        known = name in there
        path = (CONTEXT, HOSTS, name) if known else (CONTEXT, HOSTS)
        key = INSTALLED if known else name
        text = yaml_lines.insert(LOCK, text, path, key, entry[INSTALLED] if known else entry)
        ours.append((*path, key))
    return text


def _deleted(text: str, path: tuple[str, ...], ours: list[tuple[str, ...]]) -> str:
    """The lock without a key, and without what only held it, where that is ours."""
    above = yaml_lines.at(yaml_lines.parse(LOCK, text), path[:-1])
    alone = above is not None and len(above.entries) == 1 and path[:-1] in ours
    return _deleted(text, path[:-1], ours) if alone else yaml_lines.delete(LOCK, text, path)


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "tier": entry.tier,
        "channel": entry.channel,
        "ecm_features": list(entry.features),
        INSTALLED: [record.plain() for record in entry.records],
    }


def _own(lock: Lock, ours: list[tuple[str, ...]], version: str) -> dict[str, Any]:
    told = {"switched_on": lock.switched_on, "made": lock.made, "created": lock.created}
    flags = {key: value for key, value in told.items() if value}
    return {"version": version, **flags, "ours": [".".join(path) for path in ours]}


def _context(text: str | None) -> dict[str, Any]:
    node = yaml_lines.at(yaml_lines.parse(LOCK, text), (CONTEXT,)) if text is not None else None
    return _mapping(node.plain() if node is not None else None)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _has(text: str, path: tuple[str, ...], file: str = LOCK) -> bool:
    return yaml_lines.at(yaml_lines.parse(file, text), path) is not None


def _says(text: str) -> Any:
    root = yaml_lines.parse(LOCK, text)
    return root.plain() if root is not None else None


def switched(text: str | None) -> bool | None:
    """Whether eidolons.yaml switches the project on; None where it has no `context:` block. Raises EcmError."""
    node = yaml_lines.at(yaml_lines.parse(PROJECT, text), (CONTEXT,)) if text is not None else None
    return None if node is None else _mapping(node.plain()).get("enabled") is not False
