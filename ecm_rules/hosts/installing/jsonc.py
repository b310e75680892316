"""JSON as people write it, with comments and trailing commas: read with places, and edited in its text.

An edit touches the text of one entry and the commas beside it. What `insert` put in, `remove` takes out to the byte,
but for the space within a container that was empty: whoever inserts remembers it.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import attrs

from ecm_rules.hosts.installing import texts
from ecm_rules.tables.findings import clip, escape

MAX_DEPTH = 100
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_BESIDE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*.*?\*/)", re.DOTALL)
_COMMENT = re.compile(r"//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z.+-])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"true": True, "false": False, "null": None}
_VALID = "repair the file, or remove it; JSON with comments and trailing commas is fine"


@attrs.frozen(eq=False)
class Value:
    """A value and where it stands. `kind` is `object`, `list` or `scalar`."""

    kind: str
    start: int
    end: int
    scalar: Any = None
    entries: tuple[Entry, ...] = ()

    def plain(self) -> Any:
        """The value alone; of a key that stands twice, the last."""
        if self.kind == "object":
            return {entry.key: entry.value.plain() for entry in self.entries}
        return [entry.value.plain() for entry in self.entries] if self.kind == "list" else self.scalar

    def get(self, key: str) -> Entry | None:
        """The entry of an object under a key, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)


@attrs.frozen(eq=False)
class Entry:
    """A member of an object, or an item of a list, whose `key` is None. `comma`: where one stands behind it, or -1."""

    start: int
    key: str | None
    value: Value
    comma: int


def parse(file: str, text: str) -> Value | None:
    """The root of a text, or None where it holds no value. Raises EcmError at the first place that is no JSON."""
    return _Parser(file, text).root()


class _Parser:
    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    def fail(self, at: int, expected: str) -> NoReturn:
        rest = self.text[at : at + 20].split("\n")[0].rstrip()
        found = (
            "the end of the file" if at >= len(self.text) else f"`{clip(escape(rest), 20)}`" if rest else "a line end"
        )
        texts.refuse(self.file, self.text, at, texts.UNREADABLE, f"found {found}, expected {expected}", _VALID)

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        end = match.end() if match else at
        if self.text.startswith("/*", end):
            self.fail(end, "a comment that ends")
        return end

    def root(self) -> Value | None:
        at = self.skip(len(texts.BOM) if self.text.startswith(texts.BOM) else 0)
        if at == len(self.text):
            return None
        value = self.value(at, 1)
        end = self.skip(value.end)
        if end < len(self.text):
            self.fail(end, "the end of the file")
        return value

    def value(self, at: int, depth: int) -> Value:
        text = self.text
        if depth > MAX_DEPTH:
            texts.refuse(
                self.file,
                text,
                at,
                texts.UNREADABLE,
                f"found nesting over {MAX_DEPTH} levels, expected less",
                "flatten the file",
            )
        letter = text[at : at + 1]
        if letter == "{":
            return self.container(at, depth, "object", "}")
        if letter == "[":
            return self.container(at, depth, "list", "]")
        if letter == '"':
            return self.string(at)
        number = _NUMBER.match(text, at)
        if number:
            return Value("scalar", at, number.end(), json.loads(number.group()))
        word = _WORD.match(text, at)
        if word and word.group() in _WORDS:
            return Value("scalar", at, word.end(), _WORDS[word.group()])
        return self.fail(at, "a value")

    def string(self, at: int) -> Value:
        match = _STRING.match(self.text, at)
        if match is None:
            self.fail(at, "a string that ends on its line")
        return Value("scalar", at, match.end(), json.loads(match.group()))

    def container(self, start: int, depth: int, kind: str, close: str) -> Value:
        text, entries = self.text, []
        at = self.skip(start + 1)
        while not text.startswith(close, at):
            begin, key = at, None
            if kind == "object":
                if text[at : at + 1] != '"':
                    self.fail(at, f"a key in double quotes, or `{close}`")
                name = self.string(at)
                key, at = name.scalar, self.skip(name.end)
                if text[at : at + 1] != ":":
                    self.fail(at, "`:`")
                at = self.skip(at + 1)
            value = self.value(at, depth + 1)
            at = self.skip(value.end)
            comma = at if text.startswith(",", at) else -1
            if comma < 0 and not text.startswith(close, at):
                self.fail(at, f"`,` or `{close}`")
            entries.append(Entry(begin, key, value, comma))
            at = self.skip(comma + 1) if comma >= 0 else at
        return Value(kind, start, at + 1, None, tuple(entries))


def at(root: Value, path: tuple[str | int, ...]) -> Value | None:
    """The value at a path of keys and indices, or None."""
    value = root
    for step in path:
        if isinstance(step, int):
            entry = value.entries[step] if value.kind == "list" and step < len(value.entries) else None
        else:
            entry = value.get(step) if value.kind == "object" else None
        if entry is None:
            return None
        value = entry.value
    return value


def interior(text: str, container: Value) -> str:
    """What stands between the brackets of an empty container."""
    return text[container.start + 1 : container.end - 1]


def insert(text: str, root: Value, path: tuple[str | int, ...], key: str | None, value: Any) -> str:
    """The text with one more entry, the last one, in the container at `path`; of a list where `key` is None. It is laid
    out as its neighbours are.
    """
    container = at(root, path)
    assert container is not None
    end = texts.newline(text)
    if not _broken(text, root, path):
        colon = ": " if re.search(r'":[ \t]', text) or '":' not in text else ":"
        comma = ", " if colon == ": " else ","
        body = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
        lead, tail = comma[1:] if container.entries else "", ""
        body = body if key is None else f"{json.dumps(key, ensure_ascii=False)}{colon}{body}"
    else:
        indent, unit = _indents(text, root, container)
        body = json.dumps(value, ensure_ascii=False, indent=unit)
        body = (body if key is None else f"{json.dumps(key, ensure_ascii=False)}: {body}").replace("\n", end + indent)
        lead, tail = end + indent, end + indent.removesuffix(unit)
    if not container.entries:
        place = _beside(text, container.start + 1)
        kept = text[place : container.end - 1]
        return text[:place] + lead + body + ("" if "\n" in kept else tail) + text[place:]
    last = container.entries[-1]
    if last.comma >= 0:
        place = _beside(text, last.comma + 1)
        return text[:place] + lead + body + "," + text[place:]
    place = _beside(text, last.value.end)
    return text[: last.value.end] + "," + text[last.value.end : place] + lead + body + text[place:]


def remove(text: str, container: Value, index: int) -> str:
    """The text without an entry of a container, and without the comma that it needed."""
    entry = container.entries[index]
    stop = entry.comma + 1 if entry.comma >= 0 else entry.value.end
    start = entry.start - len(text[: entry.start]) + len(text[: entry.start].rstrip(" \t\r\n"))
    rest = text[stop:]
    if _in_comment(text, container, index, start) and not re.match(r"[ \t]*(?:\r?\n|\Z)", rest):
        start = entry.start  # what follows on the line must not become a part of the comment before
    before = text[:start]
    if entry.comma < 0 and index:
        comma = container.entries[index - 1].comma
        before = before[:comma] + before[comma + 1 :]
    return before + rest


def _in_comment(text: str, container: Value, index: int, end: int) -> bool:
    """Whether a comment that only its line ends stands before an entry, and ends at `end`."""
    before = container.entries[index - 1] if index else None
    gap = (before.comma + 1) if before else container.start + 1
    comments = list(_COMMENT.finditer(text, gap, end))
    return bool(comments) and comments[-1].group().startswith("//") and comments[-1].end() == end


def _beside(text: str, at: int) -> int:
    """Behind the comment that stands beside a place, on its line."""
    match = _BESIDE.match(text, at)
    return match.end() if match else at


def _broken(text: str, root: Value, path: tuple[str | int, ...]) -> bool:
    """Whether the container at a path has lines of its own, or the nearest one above it that holds something."""
    while True:
        container = at(root, path)
        if container is not None and container.entries:
            return "\n" in text[container.start : container.end]
        if not path:
            return True
        path = path[:-1]


def _indents(text: str, root: Value, container: Value) -> tuple[str, str]:
    """What an entry of a container is indented by, and by what a level is."""
    first = _indent(text, root.entries[0].start) if root.entries else None
    unit = first or "  "
    for entry in reversed(container.entries):
        own = _indent(text, entry.start)
        if own is not None:
            return own, unit
    line = text.rfind("\n", 0, container.start) + 1
    opening = re.match(r"[ \t]*", text[line:])
    return (opening.group() if opening else "") + unit, unit


def _indent(text: str, start: int) -> str | None:
    """The white space before a place, if nothing else stands before it on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start].removeprefix(texts.BOM)
    return before if not before.strip(" \t") and "\n" in text[:start] else None
