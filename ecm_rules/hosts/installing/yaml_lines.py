"""Keys of a block mapping in somebody's YAML: lines are put in or taken out, and every other byte stays."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import yaml

from ecm_rules.hosts.installing import texts

MAX_DEPTH = 100
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Characters at which versions of YAML end a line and others do not: no place behind one is certain.
_ODD = re.compile("[\x85\u2028\u2029]|\r(?!\n)")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_RESERVED = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_UNFIT = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_HELP = "write it as keys on lines of their own, or remove it"


@attrs.frozen(eq=False)
class Node:
    """A value of a document. `kind` is `mapping`, `list`, `scalar` or `alias`; `block` where it has lines of its own;
    `end` is behind its last character, of a text in block style behind its last line.
    """

    kind: str
    start: int
    end: int
    block: bool = False
    text: str = ""
    quoted: bool = False
    tag: str | None = None
    entries: tuple[tuple[Node, Node], ...] = ()
    items: tuple[Node, ...] = ()

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.entries if name.kind == "scalar" and name.text == key), None)

    def key(self, key: str) -> Node | None:
        return next((name for name, _ in self.entries if name.kind == "scalar" and name.text == key), None)

    def plain(self) -> Any:
        """As dicts, lists and what JSON would make of the scalars; an alias is its own name."""
        if self.kind == "mapping":
            return {str(name.plain()): value.plain() for name, value in self.entries}
        if self.kind == "list":
            return [item.plain() for item in self.items]
        if self.quoted or self.kind == "alias" or self.tag is not None:
            return f"{self.tag or ''}{self.text}"
        try:
            return json.loads(self.text, parse_constant=str) if self.text not in ("", "~") else None
        except ValueError:
            return self.text


def parse(file: str, text: str) -> Node | None:
    """The root of a document, or None where there is none. Raises EcmError where it is not clear what stands where."""
    odd = _ODD.search(text)
    if odd:
        texts.refuse(
            file,
            text,
            odd.start(),
            texts.UNREADABLE,
            f"found the character U+{ord(odd.group()):04X}, expected line feeds",
            "end lines with line feeds",
        )
    return _Reading(file, text).document()


class _Reading:
    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.bom = len(texts.BOM) * text.startswith(texts.BOM)
        self.starts = [self.bom, *(match.end() for match in re.finditer("\n", text))]

    def document(self) -> Node | None:
        try:
            self.events = _LOADER(self.text[self.bom :])
            return self.run()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = self.offset(mark) if mark is not None else len(self.text)
            texts.refuse(
                self.file, self.text, at, texts.UNREADABLE, f"found no YAML: {error.problem}", "repair the file"
            )
        except (yaml.YAMLError, ValueError) as error:
            reason = " ".join(str(error).split())
            texts.refuse(self.file, self.text, 0, texts.UNREADABLE, f"found no YAML: {reason}", "repair the file")

    def run(self) -> Node | None:
        self.events.get_event()
        event = self.events.get_event()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        root = self.node(self.events.get_event(), 1)
        self.events.get_event()
        event = self.events.get_event()
        if not isinstance(event, yaml.StreamEndEvent):
            texts.refuse(
                self.file,
                self.text,
                self.offset(event.start_mark),
                texts.UNREADABLE,
                "found a second document, expected one",
                "remove it",
            )
        return None if root.kind == "scalar" and not root.text and not root.quoted else root

    def offset(self, mark: Any) -> int:
        line: int = min(mark.line, len(self.starts) - 1)
        column: int = mark.column
        return min(self.starts[line] + column, len(self.text))

    def node(self, event: Any, depth: int) -> Node:
        start, end = self.offset(event.start_mark), self.offset(event.end_mark)
        if depth > MAX_DEPTH:
            texts.refuse(
                self.file,
                self.text,
                start,
                texts.UNREADABLE,
                f"found nesting over {MAX_DEPTH} levels, expected less",
                "flatten the file",
            )
        if isinstance(event, yaml.AliasEvent):
            return Node("alias", start, end, text=f"*{event.anchor}")
        tag = event.tag or (f"&{event.anchor}" if event.anchor else None)
        if isinstance(event, yaml.ScalarEvent):
            block = event.style in ("|", ">")
            return Node("scalar", start, end, block, event.value, event.style not in (None, ""), tag)
        mapping, found = isinstance(event, yaml.MappingStartEvent), []
        while not isinstance(inner := self.events.get_event(), yaml.MappingEndEvent | yaml.SequenceEndEvent):
            found.append(self.node(inner, depth + 1))
        end = self.offset(inner.end_mark) if event.flow_style or not found else found[-1].end
        if mapping:
            pairs = tuple(zip(found[::2], found[1::2], strict=True))
            return Node("mapping", start, end, not event.flow_style, tag=tag, entries=pairs)
        return Node("list", start, end, not event.flow_style, tag=tag, items=tuple(found))


def at(root: Node | None, path: tuple[str, ...]) -> Node | None:
    """The value at a path of keys, or None."""
    for step in path:
        root = root.get(step) if root is not None else None
    return root


def insert(file: str, text: str, path: tuple[str, ...], key: str, value: Any) -> str:
    """The text with one more key, the last one, in the mapping at `path`. Raises EcmError where that is not written as
    keys on lines of their own, or where the text would then say anything else.
    """
    root = parse(file, text)
    mapping = at(root, path)
    if root is None and not path:
        made = texts.appended(text, rendered(key, value, "", texts.newline(text)))
    else:
        if mapping is None or mapping.kind != "mapping" or not mapping.block:
            place = f" at `{'.'.join(path)}`" if path else ""
            start = mapping.start if mapping is not None else 0
            kind = {"mapping": "keys within braces", "list": "a list"}.get(mapping.kind if mapping else "", "a value")
            kind = "nothing" if mapping is not None and mapping.plain() is None else kind
            texts.refuse(
                file, text, start, texts.OTHER_KIND, f"found {kind}{place}, expected keys on lines of their own", _HELP
            )
        _once(file, text, mapping)
        first = mapping.entries[0][0].start
        indent = text[text.rfind("\n", 0, first) + 1 : first].removeprefix(texts.BOM)
        if indent.strip(" "):
            texts.refuse(
                file,
                text,
                first,
                texts.OTHER_KIND,
                "found a key behind something else on its line, expected it to begin one",
                _HELP,
            )
        stop = _line_end(text, mapping) if path or _ends(text, mapping) else len(text)
        block = rendered(key, value, indent, texts.newline(text))
        made = texts.appended(text[:stop], block) + text[stop:]
    again, before = parse(file, made), root.plain() if root is not None else {}
    if again is None or not _differs_by(again.plain(), before, (*path, key)):
        texts.refuse(
            file,
            text,
            len(text),
            texts.OTHER_KIND,
            "found an end behind which nothing can be added, expected a line end",
            f"add `{key}:` yourself, or end the file with a line end",
        )
    return made


def delete(file: str, text: str, path: tuple[str, ...]) -> str:
    """The text without the lines of a key. Raises EcmError where they hold anything else."""
    root = parse(file, text)
    above = at(root, path[:-1])
    key, value = (above.key(path[-1]), above.get(path[-1])) if above is not None else (None, None)
    if root is None or key is None or value is None:
        return text
    start = text.rfind("\n", 0, key.start) + 1
    start += len(texts.BOM) * (start == 0 and text.startswith(texts.BOM))
    stop = text.find("\n", max(value.end, key.end))
    stop = len(text) if stop < 0 else stop - (text[stop - 1] == "\r")
    made = texts.without(text, start, stop)
    again, before = parse(file, made), root.plain()
    if not _differs_by(before, again.plain() if again is not None else {}, path):
        texts.refuse(
            file,
            text,
            key.start,
            texts.OTHER_KIND,
            f"found `{path[-1]}` among others on its line, expected lines of its own",
            "remove it yourself",
        )
    return made


def rendered(key: str, value: Any, indent: str, end: str) -> str:
    """A key with its value as lines: mappings of mappings and lists in block style, all else as JSON."""
    head = f"{indent}{key}:"
    if isinstance(value, dict) and (not indent or any(isinstance(inner, dict | list) for inner in value.values())):
        return end.join([head, *(rendered(name, inner, indent + "  ", end) for name, inner in value.items())])
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return end.join([head, *(f"{indent}  - {_json(item)}" for item in value)])
    return f"{head} {_json(value)}"


def _json(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _RESERVED:
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict) and value and not any(isinstance(inner, dict | list) for inner in value.values()):
        return f"{{{', '.join(f'{_json(key)}: {_json(inner)}' for key, inner in value.items())}}}"
    text = json.dumps(value, ensure_ascii=False)
    return _UNFIT.sub(lambda odd: f"\\u{ord(odd.group()):04x}", text)


def _once(file: str, text: str, mapping: Node) -> None:
    """Raise where a key stands twice: nobody knows which one counts."""
    seen: dict[str, int] = {}
    for name, _ in mapping.entries:
        if name.text in seen:
            line = text.count("\n", 0, seen[name.text]) + 1
            message = f"found the key `{name.text}` twice, first at line {line}, expected it once"
            texts.refuse(file, text, name.start, texts.UNREADABLE, message, "remove one of the two", len(name.text))
        seen[name.text] = name.start


def _line_end(text: str, node: Node) -> int:
    """Behind the last line of a node."""
    if node.end and text[node.end - 1] == "\n":
        return node.end
    stop = text.find("\n", node.end)
    return len(text) if stop < 0 else stop + 1


def _ends(text: str, root: Node) -> bool:
    """Whether the document is ended by a marker of its own."""
    return re.search(r"^\.\.\.", text[root.end :], re.MULTILINE) is not None


def _differs_by(more: Any, less: Any, path: tuple[str, ...]) -> bool:
    """Whether what the one says more than the other is the key at a path."""
    if not isinstance(more, dict) or not isinstance(less, dict | None):
        return False
    less = less or {}
    if len(path) == 1:
        return path[0] not in less and {k: v for k, v in more.items() if k != path[0]} == less and path[0] in more
    others = {key: value for key, value in more.items() if key != path[0]}
    same = others == {key: value for key, value in less.items() if key != path[0]}
    return same and _differs_by(more.get(path[0]), less.get(path[0]), path[1:])
