"""Strict reading: YAML text to located nodes, every refusal of docs/tables.md a finding, all of them together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import attrs
import yaml

from ecm_rules.tables import places, scalars
from ecm_rules.tables.findings import Finding, Source, Span, escape

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_ENTRIES = 1000
# What belongs to others is not ours to refuse, but reading it takes stack.
_MAX_MUTED_DEPTH = 200

# libyaml where PyYAML was built with it, else the same grammar in Python: slower, and other only in odd corners.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNFIT = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@attrs.frozen
class Node:
    """A value with its place. `keys` has the place of each key where the value is a mapping."""

    value: Any
    span: Span
    keys: dict[str, Span] = attrs.field(factory=dict)
    sound: bool = True
    """False where the value was refused: whatever else is wrong with it follows from that."""
    whole: bool = True
    """False where a key of the mapping was refused: what seems to be missing may have been meant by it."""

    def plain(self) -> Any:
        """The value alone, as dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def at(self, path: tuple[str | int, ...]) -> Node:
        """The node at `path`, or the nearest one above it that exists."""
        node = self
        for step in path:
            try:
                node = node.value[step]
            except (KeyError, IndexError, TypeError):
                return node
        return node

    def walk(self) -> Iterator[Node]:
        yield self
        for node in (
            self.value.values() if isinstance(self.value, dict) else self.value if isinstance(self.value, list) else ()
        ):
            yield from node.walk()

    def get(self, key: str) -> Node | None:
        """The value of a key, or None where this is no mapping or has no such key."""
        found: Node | None = self.value.get(key) if isinstance(self.value, dict) else None
        return found

    def entries(self, key: str) -> Iterator[tuple[str, Node, Span]]:
        """Key, value and place of the key, for each entry of the mapping under `key`; none where there is none."""
        node = self.get(key)
        for name, value in node.value.items() if node is not None else ():
            yield name, value, node.keys[name] if node is not None else value.span

    def text(self, key: str) -> str:
        """The string under a key, or an empty one."""
        node = self.get(key)
        return str(node.value) if node is not None else ""


@attrs.frozen
class Document:
    """A file that was read: its source, its root (None where there is none) and what is wrong with it so far."""

    source: Source
    root: Node | None
    findings: list[Finding]


def load(path: str, only: str | None = None) -> Document:
    """Read a file as `read` does. That it cannot be read is a finding too."""
    try:
        with places.open_regular(path) as stream:
            return read(stream.read(MAX_BYTES + 1), path, only)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        finding = Finding("ECM100", path, 0, 0, f"cannot be read: {reason}", "check the path")
        return Document(Source(path, ""), None, [finding])


def read(data: bytes | str, file: str, only: str | None = None) -> Document:
    """Read a YAML document. With `only`, just the value of that top-level key is read strictly and kept.

    Every refusal becomes a finding of the document; after an error of syntax what stands behind it is not seen.
    """
    source, findings = _decode(data, file)
    if findings:
        return Document(source, None, findings)
    reading = _Reading(source, only)
    root = reading.run()
    return Document(source, root, reading.findings)


def _decode(data: bytes | str, file: str) -> tuple[Source, list[Finding]]:
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        source = Source(file, "")
        return source, [
            Finding(
                "ECM101", file, 0, 0, f"found more than {MAX_BYTES} bytes, expected at most 1 MiB", "split the file"
            )
        ]
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        source = Source(file, before)
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"found byte 0x{data[error.start]:02x}, expected UTF-8"
        return source, [source.finding("ECM101", Span(line, column, column + 1), message, "save the file as UTF-8")]
    source = Source(file, text)
    unfit = _UNFIT.search(text)
    if unfit:
        line, column = text.count("\n", 0, unfit.start()) + 1, unfit.start() - text.rfind("\n", 0, unfit.start())
        message = f"found the character `{escape(unfit.group())}`, which versions of YAML refuse or take for a line end"
        return source, [
            source.finding(
                "ECM101",
                Span(line, column, column + 1),
                message,
                "remove it, or write it as an escape in double quotes",
            )
        ]
    return source, []


class _Stop(Exception):
    """Nothing behind this place can be read."""


class _Reading:
    """One pass over the parser's events."""

    def __init__(self, source: Source, only: str | None) -> None:
        self.source = source
        self.only = only
        self.muted = only is not None
        self.findings: list[Finding] = []
        self.events = _LOADER(source.text)

    def run(self) -> Node | None:
        root = None
        try:
            self.next()  # the stream's start
            event = self.next()
            if isinstance(event, yaml.StreamEndEvent):
                if self.only is None:
                    self.report(
                        "ECM108",
                        Span(1, 1, 1),
                        "found no document, expected a mapping",
                        "write the table, or remove the file",
                    )
                return None
            if event.version or event.tags:
                self.report(
                    "ECM104",
                    self.span(event),
                    "found a directive, expected none",
                    "remove the line that begins with `%`",
                )
            root = self.node(self.next(), 1)
            self.next()  # the document's end
            event = self.next()
            if not isinstance(event, yaml.StreamEndEvent):
                self.muted = False
                self.report(
                    "ECM108", self.span(event), "found a second document, expected one", "remove it, with its `---`"
                )
        except yaml.MarkedYAMLError as error:
            span = self.within(error.problem_mark or error.context_mark)
            self.findings.append(
                self.source.finding("ECM101", span, f"not well-formed YAML: {error.problem}", _helpful(error.context))
            )
            return None
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            self.findings.append(self.source.finding("ECM101", Span(1, 1, 1), f"not well-formed YAML: {error}"))
            return None
        except _Stop:
            return None
        finally:
            self.events.dispose()
        if self.only is not None:
            return self.subtree(root)
        return root

    def subtree(self, root: Node) -> Node | None:
        if not isinstance(root.value, dict):
            return None
        return root.value.get(self.only)

    def next(self) -> Any:
        return self.events.get_event()

    def span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        return Span(start.line + 1, start.column + 1, end.column + 1 if end.line == start.line else start.column + 2)

    def within(self, mark: Any) -> Span:
        """The place of a mark, or the end of the text where the mark lies behind it."""
        lines = self.source.lines
        if mark is None or mark.line >= len(lines):
            return Span(len(lines), len(lines[-1]) + 1, len(lines[-1]) + 2)
        return Span(mark.line + 1, mark.column + 1, mark.column + 2)

    def report(self, code: str, span: Span, message: str, help: str) -> None:
        if not self.muted:
            self.findings.append(self.source.finding(code, span, message, help))

    def stop(self, span: Span, message: str, help: str) -> NoReturn:
        self.muted = False
        self.report("ECM101", span, message, help)
        raise _Stop

    def node(self, event: Any, depth: int) -> Node:
        span = self.span(event)
        if depth > (_MAX_MUTED_DEPTH if self.muted else MAX_DEPTH):
            self.stop(span, f"found nesting deeper than {MAX_DEPTH} levels", "flatten the structure")
        if isinstance(event, yaml.AliasEvent):
            self.report("ECM103", span, f"found the alias `*{event.anchor}`, expected a value", "write the value out")
            return Node(None, span, sound=False)
        sound = True
        if event.anchor is not None:
            self.report(
                "ECM103",
                span,
                f"found the anchor `&{event.anchor}`, expected a value",
                "remove it: aliases are not read",
            )
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.report("ECM104", span, f"found the tag `{tag}`, expected a plain value", "remove the tag")
            sound = False
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(span, depth, sound)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(span, depth, sound)
        return self.scalar(event, span, sound)

    def scalar(self, event: Any, span: Span, sound: bool) -> Node:
        if not event.value.isascii() and any("\ud800" <= c <= "\udfff" for c in event.value):
            self.report(
                "ECM101", span, "found half of a character, expected whole ones", "write the code point in full"
            )
            return Node("", span, sound=False)
        if event.style or event.tag is not None:
            return Node(event.value, span, sound=sound)
        try:
            return Node(scalars.resolve(event.value), span, sound=sound)
        except scalars.Refused as refused:
            self.report(refused.code, span, refused.message, refused.help)
            return Node(event.value, span, sound=False)

    def sequence(self, span: Span, depth: int, sound: bool) -> Node:
        items: list[Node] = []
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            if len(items) == MAX_ENTRIES and not self.muted:
                self.stop(self.span(event), f"found more than {MAX_ENTRIES} entries in a list", "split it")
            items.append(self.node(event, depth + 1))
        return Node(items, span, sound=sound)

    def mapping(self, span: Span, depth: int, sound: bool) -> Node:
        values: dict[str, Node] = {}
        keys: dict[str, Span] = {}
        whole = True
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            place = self.span(event)
            if len(keys) == MAX_ENTRIES and not self.muted:
                self.stop(place, f"found more than {MAX_ENTRIES} keys in a mapping", "split it")
            key = self.key(event, depth)
            if depth == 1 and self.only is not None:
                self.muted = key != self.only
            if key in keys and not self.muted:
                first = keys[key]
                message = f"found the key `{escape(key)}` twice, first at line {first.line}, column {first.column}"
                self.report("ECM102", place, message, "remove one of the two")
            value = self.node(self.next(), depth + 1)
            whole = whole and key is not None
            if key is not None and key not in keys:
                keys[key], values[key] = place, value
            if depth == 1:
                self.muted = self.only is not None
        return Node(values, span, keys, sound, whole)

    def key(self, event: Any, depth: int) -> str | None:
        """The key as a string, or None where it was refused; its value is read all the same."""
        place = self.span(event)
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
            self.report("ECM103", place, "found the merge key `<<`, expected a key", "write the merged keys out")
            return None
        node = self.node(event, depth + 1)
        if not node.sound:
            return None
        if not isinstance(node.value, str):
            kind = {dict: "a mapping", list: "a list", type(None): "null"}.get(
                type(node.value), f"`{cast(object, node.value)}`"
            )
            self.report("ECM105", place, f"found {kind} as a key, expected a string", "quote it")
            return None
        return node.value


def _helpful(context: str | None) -> str:
    """What the parser says it was at, where that says more than that it was parsing."""
    return f"the parser was {context}" if context else ""
