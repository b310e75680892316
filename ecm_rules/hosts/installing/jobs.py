"""What is to be done to one file for one host, and what is remembered of it so that it can be undone."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

import attrs

PROGRAM = "ecm-hook"


@attrs.frozen
class Held:
    """A value at a key that we wanted to set: whether it is ours, and if so, which it is (None for a mapping, which its
    command tells)."""

    managed: bool
    value: Any = None


@attrs.frozen
class Record:
    """What a file does not tell by itself. `found` has each container on our paths that was there before us, by its
    path, with the space in it where it was empty; `was` is the text of a file that held nothing.
    """

    file: str
    created: bool = False
    folders: tuple[str, ...] = ()
    was: str | None = None
    found: Mapping[str, str | None] = attrs.field(factory=dict)
    values: Mapping[str, Held] = attrs.field(factory=dict)

    def plain(self) -> dict[str, Any]:
        """As it stands in the lock; what says nothing is left out."""
        values = {at: attrs.asdict(held, filter=lambda _, value: value is not None) for at, held in self.values.items()}
        told = {"created": self.created, "folders": list(self.folders), "found": dict(self.found), "values": values}
        kept = {key: value for key, value in told.items() if value}
        return {"file": self.file, **kept, **({"was": self.was} if self.was is not None else {})}

    @classmethod
    def of(cls, given: Any) -> Record | None:
        """The record that `plain` gave; None for anything else, for the lock is a file that others write too."""
        if not isinstance(given, dict) or not isinstance(given.get("file"), str):
            return None
        found, values, was = given.get("found", {}), given.get("values", {}), given.get("was")
        folders = given.get("folders", [])
        sound = isinstance(found, dict) and all(isinstance(inside, str | None) for inside in found.values())
        sound = sound and isinstance(values, dict) and all(isinstance(held, dict) for held in values.values())
        sound = sound and isinstance(folders, list) and all(isinstance(folder, str) for folder in folders)
        if not sound or not isinstance(was, str | None):
            return None
        held = {str(at): Held(told.get("managed") is True, told.get("value")) for at, told in values.items()}
        return cls(given["file"], given.get("created") is True, tuple(folders), was, found, held)


@attrs.frozen
class Change:
    """An edit with its places and values filled in. `at` is the path of keys, `name` the same in words; of a file that
    is created or a block, `value` is the text. One that is not `wanted` is only taken back.
    """

    kind: str
    file: str
    at: tuple[str, ...] = ()
    value: Any = None
    wanted: bool = True

    @property
    def name(self) -> str:
        return ".".join(self.at)


@attrs.frozen
class Job:
    """All changes of one host to one file. `command` is the hook's, as a shell takes it."""

    host: str
    file: str
    command: str
    changes: tuple[Change, ...]
    record: Record | None = None

    def is_ours(self, text: Any) -> bool:
        """Whether a text is a command that calls the hook for this host, wherever that stands."""
        if not isinstance(text, str) or PROGRAM not in text:
            return False
        try:
            words = shlex.split(text)
        except ValueError:
            return False
        return len(words) == 2 and os.path.basename(words[0]) == PROGRAM and words[1] == self.host

    def owns(self, change: Change, value: Any) -> bool:
        """Whether a value that stands at a key is the one that we set there."""
        if isinstance(value, dict) and any(map(self.is_ours, value.values())):
            return True
        held = self.record.values.get(change.name) if self.record else None
        return held is not None and held.managed and same(held.value, value)

    def suits(self, change: Change, value: Any) -> bool:
        """Whether a value that is ours is as it should be; what else stands beside the command is up to the user."""
        if isinstance(value, dict):
            return self.command in value.values()
        return same(value, change.value)

    def held(self, change: Change, managed: bool) -> Held:
        return Held(managed, change.value if managed and not isinstance(change.value, dict) else None)


def same(one: Any, other: Any) -> bool:
    """Equality that keeps 1, 1.0 and true apart."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
