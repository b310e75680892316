"""What rules/hosts.yaml says of installing: the files of each client, and the edits that wire it in a project."""

from __future__ import annotations

import os
import re
from typing import Any

import attrs

from ecm_rules.tables import hosts, places, reader, schemas
from ecm_rules.tables.findings import EcmError, Finding, in_order, listed, shown
from ecm_rules.tables.reader import Document, Node

KINDS = ("append", "set", "create", "block")
NAMES = ("command", "red_percent", "red_share", "red_tokens", "client_percent", "window")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@attrs.frozen
class Edit:
    """One edit of one file. `at` is a path of keys, empty where the file is created or gets a block; `value` is what is
    appended or set, with placeholders, or the name of a packaged file. `text`: the value is written as a string.
    `windows` are the smallest and the largest window for which it is made, None for any.
    """

    kind: str
    file: str
    at: tuple[str, ...]
    value: Any
    lock: str | None
    text: bool
    windows: tuple[int, int] | None


@attrs.frozen
class Install:
    """How a host is wired. `moments` are what its hook is told of; `window_at` is the file and key of its window."""

    host: str
    title: str
    tier: str
    moments: tuple[str, ...]
    found_by: tuple[str, ...]
    edits: tuple[Edit, ...]
    window_at: tuple[str, str] | None
    keeps: int
    notes: tuple[str, ...]

    @property
    def channel(self) -> str:
        """What is strongest of what is installed: `hooks`, a `plugin`, or `instructions`."""
        kinds = {edit.kind for edit in self.edits}
        return "hooks" if "append" in kinds else "plugin" if "create" in kinds else "instructions"

    @property
    def features(self) -> list[str]:
        """What is reached by it, for the lock."""
        told = [*self.moments] if self.channel != "instructions" else []
        told += ["compaction_threshold"] if any("{red_" in str(edit.value) for edit in self.edits) else []
        return told + (["static_floor"] if any(edit.kind == "block" for edit in self.edits) else [])

    def found_in(self, project: str) -> bool:
        """Whether the project has one of the paths by which the client is known to be used in it."""
        return any(os.path.lexists(os.path.join(project, *path.split("/"))) for path in self.found_by)


def load_installs(path: str | None = None) -> dict[str, Install]:
    """Each host that can be installed, by its name and in the order of the file. Raises EcmError."""
    hosts.load_hosts(path)
    document = reader.load(path or places.shipped(hosts.FILE))
    shape = schemas.validate("hosts", document)
    assert shape.root is not None
    findings: list[Finding] = []
    made = {
        name: _install(document, name, node, findings)
        for name, node in shape.root.value["hosts"].value.items()
        if "install" in node.value
    }
    if findings:
        raise EcmError(in_order(findings))
    return made


def _install(document: Document, name: str, node: Node, findings: list[Finding]) -> Install:
    told, install = node.plain(), node.value["install"]
    given = install.plain()
    moments = [event["moment"] for event in told.get("events", []) if event["moment"] != "ignored"]
    window = given.get("window")
    return Install(
        host=name,
        title=told["title"],
        tier=told["tier"],
        moments=tuple(dict.fromkeys(moments)),
        found_by=tuple(given.get("found_by", ())),
        edits=tuple(edit for one in install.value["edits"].value for edit in _edits(document, one, findings)),
        window_at=(window["file"], window["at"]) if window else None,
        keeps=given.get("keeps", 0),
        notes=tuple(given.get("notes", ())),
    )


def _edits(document: Document, node: Node, findings: list[Finding]) -> list[Edit]:
    """The edits that an entry stands for."""
    given = node.plain()
    kinds = [kind for kind in KINDS if kind in given]
    wrong = _wrong(given, kinds)
    if wrong:
        findings.append(document.source.finding("ECM204", node.span, wrong))
        return []
    (kind,) = kinds
    windows = given.get("windows")
    return [
        Edit(
            kind=kind,
            file=given["file"],
            at=tuple(given.get("at", "").replace("{each}", each).split(".")) if "at" in given else (),
            value=given[kind],
            lock=given.get("lock"),
            text=given.get("text", False),
            windows=(windows["least"], windows["most"]) if windows else None,
        )
        for each in given.get("each", [""])
    ]


def _wrong(given: dict[str, Any], kinds: list[str]) -> str | None:
    """What is wrong with an edit beyond its shape, or None."""
    if len(kinds) != 1:
        return f"found {listed(kinds) if kinds else 'no kind of edit'}, expected one of {listed(KINDS, word='or')}"
    (kind,) = kinds
    file, keyed = given["file"], kind in ("append", "set")
    if keyed != ("at" in given):
        return f"found {'no `at`' if keyed else '`at`'} with `{kind}`, expected {'one' if keyed else 'none'}"
    if os.path.isabs(file) or ".." in file.split("/"):
        return f"found the path {shown(file)}, expected one within a project"
    suffix = file.rpartition(".")[2]
    if keyed and suffix not in ("json", "toml"):
        return f"found `{kind}` for {shown(file)}, expected a file of JSON or TOML"
    if suffix == "toml" and (kind == "append" or "." in given["at"]):
        return f"found `{kind}` at {shown(given['at'])}, expected a top-level key that is set, all that is done to TOML"
    if "{each}" in given.get("at", "") and "each" not in given:
        return "found `{each}` without `each`"
    unknown = [name for name in _PLACEHOLDER.findall(str(given[kind])) if name not in NAMES]
    return f"found the placeholder {shown(unknown[0])}, expected {listed(NAMES, 9, 'or')}" if unknown else None
