"""rules/hosts.yaml as the plain data that the runtime ring reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ecm_rules import __version__
from ecm_rules.tables import expressions, places, reader, schemas
from ecm_rules.tables.findings import EcmError, Finding, in_order, shown
from ecm_rules.tables.reader import Document, Node

FILE = "rules/hosts.yaml"
Collecting = dict[str, dict[str, Any]]
_TEMPLATES = ("transcript_at", "agent_transcript_at")
_PATTERNS = ("known_by", "other_window", "compacted")
_TEXTS = ("refused_text", "exit_text", "output_text", "no_output")
_CALL = ("file", "line", "written", "patch", "changes", "command", "parts", "to_dos", "to_do", "task", "status")
_INSERTED = ("inserted", "inserted_tags", "attached")
_PAYLOAD = ("session", "agent", "transcript", "agent_transcript", "model", "used", "used_percentage", "used_elsewhere",
            "window", "children", *_TEMPLATES, *_PATTERNS)  # fmt: skip

_Key = TypeVar("_Key", str, str | int)


def load_hosts(path: str | None = None) -> dict[str, Any]:
    """What the file says, its paths as lists of keys and indexes, and what it leaves out as nothing::

        {"hosts": {name: {"payload": {key: [path, …] | [template, …] | [pattern, …],
                                      "children": [{"parent": [path, …], **pattern}, …]},
                          "carries_out": [step, …],
                          "events": [{"moment", "say": channel | None, "messages": [path, …], "shape", "carries",
                                      "forgets", **pattern}, …],
                          "channels": {name: {"put": [[path, template], …], "most", "unit", "escapes",
                                               "with_tools"}}}},
         "formats": {name: {"reader", "known_by": [pattern, …], "usage": {sum: [[1 | -1, path], …]},
                            "blocks": {type: [[kind, [path, …]], …]}, "overhead_tokens"}},
         "models": {prefix: window in tokens},
         "key": a hash of the formats and of the version that reads them}

    where a pattern is {"has": [key, …], "lacks": [key, …], "where": [[path, [value, …]], …], "within": [[path, text],
    …]}; a host that sends nothing is left out. Raises EcmError.
    """
    document, root = _read(path)
    plain = _Plain(document)
    told = root["hosts"].value
    hosts = {name: plain.host(node.value) for name, node in told.items() if "payload" in node.value}
    formats = {name: plain.format(node) for name, node in root["formats"].value.items()}
    windows: dict[str, int] = {}
    for node in root["models"].value:
        model = node.value["model"]
        if model.value in windows:
            message = f"found the model {shown(model.value)} twice"
            plain.findings.append(document.source.finding("ECM206", model.span, message))
        windows[model.value] = node.value["window"].value
    for node in root["formats"].value.values():  # what is wrong there is wrong, though only who collects needs it
        plain.collecting(node)
    plain.done()
    key = hashlib.sha256(json.dumps([__version__, formats]).encode("ascii")).hexdigest()[:32]
    return {"hosts": hosts, "formats": formats, "models": windows, "key": key}


def load_collecting(path: str | None = None) -> Collecting:
    """What the file says of the identifiers in each format, apart from what the hook reads at each prompt::

        {name: {"known_by": [pattern, …],
                "tools": {name: {"file" | "line" | …: [path, …], "parts_are": [pattern, …], "done": [text, …]}},
                "results": {"failed" | "refused": [pattern, …], "exit": [path, …], "refused_text" | …: [text, …]},
                "inserted" | "inserted_tags" | "attached": [text, …]}}

    Raises EcmError.
    """
    document, root = _read(path)
    plain = _Plain(document)
    made = {
        name: {"known_by": plain.patterns(node.value["known_by"]), **plain.collecting(node)}
        for name, node in root["formats"].value.items()
    }
    plain.done()
    return made


def _read(path: str | None) -> tuple[Document, dict[str, Node]]:
    document = reader.load(path or places.shipped(FILE))
    shape = schemas.validate("hosts", document)
    findings: list[Finding] = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    root: dict[str, Node] = shape.root.value
    return document, root


class _Plain:
    """Nodes that their schema accepted, as plain data; what is wrong with a path is a finding."""

    def __init__(self, document: Document) -> None:
        self.source = document.source
        self.findings: list[Finding] = []

    def done(self) -> None:
        """Raises EcmError where something is wrong."""
        if self.findings:
            raise EcmError(in_order(self.findings))

    def payload(self, node: Node) -> dict[str, Any]:
        made: dict[str, Any] = {key: [] for key in _PAYLOAD}
        for key, given in node.value.items():
            if key in _PATTERNS:
                made[key] = self.patterns(given)
            elif key in _TEMPLATES:
                made[key] = [one.value for one in _several(given)]
            elif key == "children":
                made[key] = [{**self.pattern(one), "parent": self.paths(one.value["parent"])} for one in given.value]
            else:
                made[key] = self.paths(given)
        return made

    def format(self, node: Node) -> dict[str, Any]:
        given = node.value
        return {
            "reader": given["reader"].value,
            "known_by": self.patterns(given["known_by"]),
            "usage": {name: [self.term(term) for term in sum.value] for name, sum in given["usage"].value.items()},
            "blocks": {
                type: [[kind, self.paths(paths)] for kind, paths in parts.value.items()]
                for type, parts in given["blocks"].value.items()
            },
            "overhead_tokens": given["overhead_tokens"].value,
        }

    def host(self, given: Mapping[str, Node]) -> dict[str, Any]:
        channels = given["channels"].value if "channels" in given else {}
        return {
            "payload": self.payload(given["payload"]),
            "carries_out": given["carries_out"].plain() if "carries_out" in given else [],
            "events": [self.event(node, channels) for node in given["events"].value] if "events" in given else [],
            "channels": {name: self.channel(node.value) for name, node in channels.items()},
        }

    def event(self, node: Node, channels: Mapping[str, Node]) -> dict[str, Any]:
        given = node.value
        say = given.get("say")
        if say is not None and say.value not in channels:
            message = f"found the channel {shown(say.value)}, expected one of the host's `channels`"
            self.findings.append(self.source.finding("ECM204", say.span, message))
        return {
            "moment": given["moment"].value,
            "say": say and say.value,
            "messages": self.paths(given["messages"]) if "messages" in given else [],
            "shape": given["shape"].value if "shape" in given else None,
            **{key: key in given and given[key].value for key in ("carries", "forgets")},
            **self.pattern(node),
        }

    def channel(self, given: Mapping[str, Node]) -> dict[str, Any]:
        put = given.get("put")
        return {
            "put": [[self.path(at, put.keys[at]), one.value] for at, one in put.value.items()] if put else [],
            "most": given["most"].value if "most" in given else None,
            "unit": given["unit"].value if "unit" in given else "characters",
            **{key: key in given and given[key].value for key in ("escapes", "with_tools")},
        }

    def collecting(self, node: Node) -> dict[str, Any]:
        given = node.value
        results = given["results"].value
        return {
            "tools": {name: self.call(call.value) for name, call in given["tools"].value.items()},
            "results": {
                **{key: self.optional(results, key, self.patterns) for key in ("failed", "refused")},
                "exit": self.optional(results, "exit", self.paths),
                **{key: self.optional(results, key, Node.plain) for key in _TEXTS},
            },
            **{key: self.optional(given, key, Node.plain) for key in _INSERTED},
        }

    def call(self, given: dict[str, Node]) -> dict[str, Any]:
        return {
            **{key: self.optional(given, key, self.paths) for key in _CALL},
            "parts_are": self.optional(given, "parts_are", self.patterns),
            "done": self.optional(given, "done", Node.plain),
        }

    @staticmethod
    def optional(given: dict[str, Node], key: str, read: Callable[[Node], Any]) -> Any:
        return read(given[key]) if key in given else []

    def patterns(self, node: Node) -> list[dict[str, Any]]:
        return [self.pattern(one) for one in node.value]

    def pattern(self, node: Node) -> dict[str, Any]:
        given = node.value
        listed = {key: given[key].plain() if key in given else [] for key in ("has", "lacks")}
        return listed | {key: self.pairs(given[key]) if key in given else [] for key in ("where", "within")}

    def pairs(self, node: Node) -> list[Any]:
        return [[self.path(path, node.keys[path]), said.plain()] for path, said in node.value.items()]

    def term(self, node: Node) -> list[Any]:
        return [-1 if node.value.startswith("-") else 1, self.path(node.value.removeprefix("-"), node.span)]

    def paths(self, node: Node) -> list[list[str | int]]:
        return [self.way(one.value, one.span, expressions.way_of, "keys and indexes") for one in _several(node)]

    def path(self, text: str, place: Any) -> list[str]:
        return self.way(text, place, expressions.path, "keys")

    def way(self, text: str, place: Any, read: Callable[[str], list[_Key] | None], of: str) -> list[_Key]:
        try:
            keys = read(text)
            message = f"found an expression, expected a path of {of}, which is all that the hook can follow"
        except expressions.Invalid as invalid:
            keys, message = None, invalid.message
        if keys is None:
            self.findings.append(self.source.finding("ECM309", place, message))
        return keys or []


def _several(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]
