"""Pins as a file says them, with the sources of their texts, and what no schema says of these. docs/pins.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ecm_rules.tables import expressions, places, reader
from ecm_rules.tables.findings import Finding, Source, Span, shown
from ecm_rules.tables.models import Pin
from ecm_rules.tables.reader import Node

SHIPPED = "roster/pins.yaml"
KINDS = ("file", "meter", "literal", "tool_result")
# Ways to take a part of a file, of which a source has one at most.
PARTS = ("section", "between", "block", "value")
_OF_A_FILE = (*PARTS, "format", "columns", "sha256", "template")
FORMATS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)\}")
_LINE_END = re.compile("[\r\n]")
# A line that is a declaration. `lifecycle.grammar` is the authority, on a floor above; a test holds the two together.
_DECLARATION = re.compile(r"(?:^|[\r\n])<!--(?:ephemeral|(?:/?BLOCK_ID|DISCARD_BLOCK):[a-z0-9_-]+)-->(?=[\r\n]|\Z)")


@attrs.frozen
class Rules:
    """What the shipped file says of all pins, whoever appends them."""

    default: tuple[Mapping[str, Any], ...]
    """The sources of a pin that has none of its own."""
    never: Mapping[str, list[str]]
    """By key of a source, the beginnings of what it is refused for."""

    def named(self, id: str, why: str, origin: str) -> Pin:
        """A pin that is known by its id alone."""
        return Pin(id, why, id, origin, self.default)


@functools.cache
def rules() -> Rules:
    """The rules of the shipped file, which no other file of that name replaces."""
    root = reader.load(places.shipped(SHIPPED)).root
    told = root.plain() if root is not None else {}
    return Rules(tuple(told.get("named", ())), told.get("never", {}))


def declares(text: str) -> bool:
    """Whether a text holds a line that is exactly a declaration of a lifetime."""
    return _DECLARATION.search(text) is not None


def is_below(path: str) -> bool:
    """Whether a path leads to something below the folder that it is relative to, by what it says."""
    steps = path.split("/")
    return not (
        path.startswith(("/", "~")) or {"", ".", ".."} & set(steps) or re.search(r"[\\\x00-\x1f]|^[A-Za-z]:", path)
    )


def read(source: Source, root: Node, origin: str, given: Rules) -> tuple[list[tuple[Pin, Node]], list[Finding]]:
    """The pins of a document that its schema accepted, each with its node, and what is wrong with them."""
    pins = []
    check = _Check(source, given)
    named = root.get("named")
    for node in named.value if named is not None else ():
        check.source(node)
    for node in root.value["pins"].value:
        if node.get("id") is None or node.get("why") is None:
            continue  # its schema has said so
        pin = given.named(node.text("id"), node.text("why"), origin)
        check.trust(node)
        if (marker := node.get("marker")) is not None:
            check.marker(marker)
            pin = attrs.evolve(pin, marker=marker.value)
        if sources := list(_sources(node)):
            for one in sources:
                check.source(one)
            pin = attrs.evolve(pin, sources=tuple(one.plain() for one in sources))
        pins.append((pin, node))
    return pins, check.findings


def _sources(node: Node) -> Iterator[Node]:
    first, others = node.get("source"), node.get("otherwise")
    if first is not None:
        yield first
    yield from others.value if others is not None else ()


class _Check:
    """What is wrong with markers and sources, found one by one."""

    def __init__(self, source: Source, given: Rules) -> None:
        self._source = source
        self._rules = given
        self.findings: list[Finding] = []

    def marker(self, node: Node) -> None:
        if not node.value.strip() or _LINE_END.search(node.value):
            found = "blanks alone" if not node.value.strip() else "a line end in a marker"
            self._report("ECM204", node.span, f"found {found}, expected a text within one line")
        elif declares(node.value):
            self._report("ECM407", node.span, "found a marker that is a declaration", "a declaration is no content")

    def source(self, node: Node) -> None:
        if not self.trust(node) or not self._kind(node):
            return
        for key in (key for key in node.value if key in _OF_A_FILE and "file" not in node.keys):
            self._report("ECM204", node.keys[key], f"found `{key}` without `file`", "it says which part of a file")
        parts = [key for key in node.value if key in PARTS or (key == "columns" and "value" in node.value)]
        if len(parts) > 1:
            first, second = parts[0], parts[1]
            self._report("ECM204", node.keys[second], f"found `{second}` beside `{first}`, expected one of them")
        between = node.get("between")
        if between is not None and len(between.value) != 2:
            message = f"found {len(between.value)} lines, expected two: where the part begins and where it ends"
            self._report("ECM204", between.span, message)
        self._file(node)
        self._expressions(node)
        self._texts(node)

    def trust(self, node: Node) -> bool:
        """Whether what a pin or a source says of its content does not rule it out."""
        help = "a pin says what a person or the project decided; what a tool returned is read again, never pinned"
        if "tool_result" in node.value:
            self._report("ECM406", node.keys["tool_result"], "found the result of a tool as a source of a pin", help)
            return False
        for key, beginnings in self._rules.never.items():
            told = node.get(key)
            if told is None:
                continue
            if re.sub("[^a-z0-9]", "", told.value.lower()).startswith(tuple(word.lower() for word in beginnings)):
                self._report("ECM406", told.span, f"found content of {key} {shown(told.value)}", help)
                return False
        return True

    def _kind(self, node: Node) -> bool:
        """Whether it is known where the content comes from."""
        kinds = [key for key in node.value if key in KINDS]
        # A key that was refused may have been meant as one of them.
        if not kinds and node.whole and node.keys.keys() == node.value.keys():
            message = "found no `file`, `meter` or `literal`, one of which is required here"
            self._report("ECM202", node.span, message, "say where the text comes from")
        elif len(kinds) > 1:
            message = f"found `{kinds[1]}` beside `{kinds[0]}`, expected one of them"
            self._report("ECM204", node.keys[kinds[1]], message, "another source goes into `otherwise`")
        return len(kinds) == 1

    def _file(self, node: Node) -> None:
        for path in files(node.get("file")):
            if not is_below(path.value):
                message = f"found {shown(path.value)}, expected a path below the project's folder, with `/`"
                self._report("ECM204", path.span, message)
            elif (path.value + "/").startswith(places.STATE):
                help = "sessions write there what tools have said too; the meter is read by `meter`"
                self._report("ECM406", path.span, f"found a file below `{places.STATE}` as a source of a pin", help)
            elif "value" in node.value and format_of(path.value, node.text("format")) is None:
                message = f"found `value` of {shown(path.value)}, whose format its name does not tell"
                self._report("ECM204", path.span, message, f"add `format:`, one of {', '.join(sorted(_FORMATS))}")

    def _expressions(self, node: Node) -> None:
        for key in ("value", "sha256"):
            told = node.get(key)
            if told is None or not isinstance(told.value, str):
                continue
            try:
                expressions.check(told.value)
            except expressions.Invalid as invalid:
                self._report("ECM309", told.span, invalid.message, invalid.help)

    def _texts(self, node: Node) -> None:
        for key in ("literal", "template", "meter"):
            told = node.get(key)
            if told is None:
                continue
            if not told.value.strip():
                self._report("ECM204", told.span, "found blanks alone, expected a text")
            elif declares(told.value):
                message = f"found a declaration in `{key}`, expected a text that declares nothing"
                self._report("ECM407", told.span, message, "indent the line, or take it out")
            elif key == "meter" and not PLACEHOLDER.search(told.value):
                message = "found no `{path}` of the meter in the text, expected at least one"
                self._report("ECM204", told.span, message, "as in `compactions: {compaction_count}`")

    def _report(self, code: str, place: Span, message: str, help: str = "") -> None:
        self.findings.append(self._source.finding(code, place, message, help))


_FORMATS = set(FORMATS.values())


def files(node: Node | None) -> list[Node]:
    """The paths of a source, each with its place."""
    if node is None:
        return []
    return node.value if isinstance(node.value, list) else [node]


def format_of(path: str, told: str = "") -> str | None:
    """The format of a file that holds data, by what is told or else its name; None for a text."""
    return told or next((form for ending, form in FORMATS.items() if path.endswith(ending)), None)
