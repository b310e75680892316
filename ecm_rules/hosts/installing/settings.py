"""The edits of a client's JSON: items of ours in lists, and keys that we set, among whatever else stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ecm_rules.hosts.installing import jsonc, texts
from ecm_rules.hosts.installing.jobs import Change, Held, Job, Record, same
from ecm_rules.hosts.installing.jsonc import Value

Path = tuple[str | int, ...]
_KINDS = {"object": "an object", "list": "a list"}


def occurrences(job: Job, text: str) -> list[tuple[Path, str]]:
    """Where an item of a list calls the hook for this host, and by which command."""
    root = jsonc.parse(job.file, text)
    tops = {change.at[0] for change in job.changes if change.kind == "append"}
    found: list[tuple[Path, str]] = []
    for entry in root.entries if root is not None and root.kind == "object" else ():
        if entry.key in tops:
            found += _items(job, entry.value, (entry.key or "",))
    return found


def _items(job: Job, value: Value, path: Path) -> Iterator[tuple[Path, str]]:
    for index, entry in enumerate(value.entries):
        here = (*path, index if entry.key is None else entry.key)
        if value.kind == "list" and entry.value.kind == "object":
            commands = [e.value.scalar for e in entry.value.entries if job.is_ours(e.value.scalar)]
            if commands:
                yield here, commands[0]
                continue
        yield from _items(job, entry.value, here)


def strip(job: Job, text: str | None) -> str | None:
    """The text without anything of ours; None where nothing is left of a file that we created."""
    if text is None or jsonc.parse(job.file, text) is None:
        return text
    while found := occurrences(job, text):
        text = _take(job, text, found[-1][0])
    for change in job.changes:
        value = _value(job, text, change) if change.kind == "set" else None
        if value is not None and job.owns(change, value.plain()):
            text = _take(job, text, change.at)
    return _emptied(job, text)


def put(job: Job, text: str | None) -> tuple[str, dict[str, Held]]:
    """The text with everything of ours, and what came of each key that is to be set. What is as it should be stays
    where it is. Raises EcmError where something else stands in the place of a container.
    """
    values: dict[str, Held] = {}
    if text is None or jsonc.parse(job.file, text) is None:
        given = text or ""
        text = (
            given + (texts.newline(given) if given.strip(" \t\r\n" + texts.BOM) and given[-1] != "\n" else "") + "{}\n"
        )
    for change in job.changes:
        if change.wanted:
            _passable(job, text, change)
    text = _without_stale(job, text)
    for change in job.changes:
        if change.kind == "append":
            if not any(path[: len(change.at)] == change.at for path, _ in occurrences(job, text)):
                text = _add(job, text, change.at, [change.value], change.value)
            continue
        value = _value(job, text, change)
        if value is not None:
            owned = job.owns(change, value.plain())
            if change.wanted:
                values[change.name] = job.held(change, owned)
            if not owned or (change.wanted and job.suits(change, value.plain())):
                continue
            text = _take(job, text, change.at)
        if not change.wanted:
            continue
        values[change.name] = job.held(change, True)
        text = _add(job, text, change.at, change.value)
    return text, values


def record(job: Job, stripped: str | None) -> Record:
    """What has to be remembered of a file without anything of ours, so that it can be restored."""
    root = jsonc.parse(job.file, stripped) if stripped is not None else None
    if stripped is None or root is None:
        return Record(job.file, created=stripped is None, was=stripped)
    found: dict[str, str | None] = {}
    for change in job.changes:
        for depth in range(len(change.at) + (change.kind == "append")):
            container = jsonc.at(root, change.at[:depth])
            if container is not None and container.kind != "scalar" and (depth or not container.entries):
                inside = None if container.entries else jsonc.interior(stripped, container)
                found[".".join(change.at[:depth])] = inside
    return Record(job.file, found=found)


def verify(job: Job, text: str, stripped: str | None) -> bool:
    """Whether a text says, but for what is ours, what the stripped one says. `job` has the record of the edit."""
    root, bare = jsonc.parse(job.file, text), jsonc.parse(job.file, stripped) if stripped is not None else None
    if root is None:
        return False
    return same(_pruned(job, root.plain()), bare.plain() if bare is not None else {})


def _pruned(job: Job, plain: Any) -> Any:
    """The same removal as `strip` makes, in the values instead of the text."""

    def prune(value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            kept = {key: prune(inner, (*path, key)) for key, inner in value.items()}
            owned = [c.at[-1] for c in job.changes if c.kind == "set" and c.at[:-1] == path and c.at[-1] in value]
            gone = {key for key in owned if job.owns(_change(job, (*path, key)), value[key])}
            return {
                key: inner
                for key, inner in kept.items()
                if key not in gone
                and not (inner in ({}, []) and value[key] not in ({}, []) and _ours(job, (*path, key)))
            }
        if isinstance(value, list):
            kept_items = []
            for item in value:
                if isinstance(item, dict) and any(map(job.is_ours, item.values())):
                    continue
                pruned = prune(item, (*path, 0))
                if not isinstance(item, dict) or set(pruned) == set(item):  # else nothing else was in it
                    kept_items.append(pruned)
            return kept_items
        return value

    tops = {change.at[0] for change in job.changes}
    if not isinstance(plain, dict):
        return plain
    inside = prune({key: value for key, value in plain.items() if key in tops}, ())
    return {
        key: inside[key] if key in tops else value for key, value in plain.items() if key not in tops or key in inside
    }


def _change(job: Job, path: Path) -> Change:
    return next(change for change in job.changes if change.kind == "set" and change.at == path)


def _value(job: Job, text: str, change: Change) -> Value | None:
    root = jsonc.parse(job.file, text)
    return jsonc.at(root, change.at) if root is not None else None


def _without_stale(job: Job, text: str) -> str:
    """The text without items of ours that another version, or another place of the hook, left, or that stand twice."""
    wanted = {change.at for change in job.changes if change.kind == "append"}
    while True:
        seen: set[Path] = set()
        for path, command in reversed(occurrences(job, text)):
            place = next((at for at in wanted if path[: len(at)] == at), None)
            if place is None or place in seen or command != job.command:
                text = _take(job, text, path)
                break
            seen.add(place)
        else:
            return text


def _ours(job: Job, path: Path) -> bool:
    """Whether a container is there because of us; without a record, one that is left empty is."""
    if any(isinstance(step, int) for step in path):
        return True
    return job.record is None or ".".join(map(str, path)) not in job.record.found


def _take(job: Job, text: str, path: Path) -> str:
    """The text without what stands at a path, and without the containers that are there only because of it."""
    root = jsonc.parse(job.file, text)
    container = jsonc.at(root, path[:-1]) if root is not None else None
    if container is None:
        return text
    last = path[-1]
    index = last if isinstance(last, int) else [entry.key for entry in container.entries].index(last)
    text, above = jsonc.remove(text, container, index), path[:-1]
    root = jsonc.parse(job.file, text)
    container = jsonc.at(root, above) if root is not None else None
    if container is None or container.entries:
        return text
    if above and _ours(job, above):
        inner = [depth for depth, step in enumerate(above) if isinstance(step, int)]
        return _take(job, text, above[: inner[-1] + 1] if inner else above)
    inside = job.record.found.get(".".join(map(str, above))) if job.record else None
    return _refilled(text, container, inside)


def _refilled(text: str, container: Value, inside: str | None) -> str:
    """The text with the space that an empty container had, unless somebody wrote a comment there since."""
    if inside is None or inside.split() != jsonc.interior(text, container).split():
        return text
    return text[: container.start + 1] + inside + text[container.end - 1 :]


def _emptied(job: Job, text: str) -> str | None:
    """The text, or what stood there where nothing of it is left."""
    root = jsonc.parse(job.file, text)
    known = job.record
    if known is None or root is None or root.kind != "object" or root.entries or jsonc.interior(text, root).split():
        return text
    if not known.created and known.was is None:
        return text
    around = text[: root.start] + text[root.end :]
    if around.split() == (known.was or "").split():
        return None if known.created else known.was
    return around if not known.created else text


def _add(job: Job, text: str, path: tuple[str, ...], value: Any, item: Any = None) -> str:
    """The text with a value at a path, containers made where there are none; `item` where the list is there."""
    root = jsonc.parse(job.file, text)
    assert root is not None
    for depth in range(len(path)):
        if jsonc.at(root, path[: depth + 1]) is None:
            for step in reversed(path[depth + 1 :]):
                value = {step: value}
            return jsonc.insert(text, root, path[:depth], path[depth], value)
    return jsonc.insert(text, root, path, None, item)


def _passable(job: Job, text: str, change: Change) -> None:
    """Raise EcmError where the containers on a path are of another kind, or one of its keys stands twice."""
    value = jsonc.parse(job.file, text)
    for depth, step in enumerate((*change.at, None)):
        if value is None or (step is None and change.kind == "set"):
            return
        kind = "list" if step is None else "object"
        if value.kind != kind:
            place = f"at `{'.'.join(change.at[:depth])}`" if depth else "as the whole"
            found = _KINDS.get(
                value.kind, "null" if value.scalar is None else f"`{text[value.start : value.end][:40]}`"
            )
            texts.refuse(
                job.file,
                text,
                value.start,
                texts.OTHER_KIND,
                f"found {found} {place}, expected {_KINDS[kind]}",
                "change it, or remove it, and install again",
                value.end - value.start,
            )
        same_key = [entry for entry in value.entries if entry.key == step] if step is not None else []
        if len(same_key) > 1:
            line = text.count("\n", 0, same_key[0].start) + 1
            message = f"found the key `{step}` twice, first at line {line}, expected it once"
            texts.refuse(
                job.file,
                text,
                same_key[1].start,
                texts.UNREADABLE,
                message,
                "remove one of the two",
                len(step or "") + 2,
            )
        value = same_key[0].value if same_key else None


def plan(job: Job, text: str | None) -> tuple[str, Record]:
    """The text with everything of ours, and what to remember."""
    stripped = strip(job, text)
    made, values = put(job, text)
    return made, attrs.evolve(record(job, stripped), values=values)
