"""The canonical layout of a table: what the shipped tables look like, every comment kept. docs/fmt.md.

ruamel.yaml lays out the tree of nodes, in which each scalar is spelt as it was, and carries the comments. It is not
trusted: the outcome is read again, strictly, and must say what the text said.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML, CommentToken
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.nodes import CollectionNode, MappingNode, ScalarNode, SequenceNode

from ecm_rules.tables import reader, trivia
from ecm_rules.tables.findings import EcmError, Span, clip, escape, shown
from ecm_rules.tables.reader import Document, Node

WIDTH = 120
_ROW = ("id", "when", "operation", "why")
_PASSES = 4
_UNBROKEN = 1 << 30
_MAP = "tag:yaml.org,2002:map"


def canonical(data: bytes | str, file: str) -> str:
    """The text of a table in its canonical layout; of that, itself.

    Raises EcmError with what the strict reader refuses, and where the layout would lose something.
    """
    before = reader.read(data, file)
    root = before.root
    if root is None or before.findings:
        raise EcmError(before.findings)
    if not isinstance(root.value, dict):
        raise EcmError([before.source.finding("ECM203", root.span, f"found {shown(root.value)}, expected a mapping")])
    text = _settled(before)
    _compare(before, reader.read(text, file))
    return text


def _settled(before: Document) -> str:
    """The text laid out again until that changes nothing."""
    text = before.source.text
    for _ in range(_PASSES):
        try:
            following = _lay_out(text)
        except Exception as error:  # whatever a comment in an odd place makes of ruamel's code
            reason = clip(escape(str(error).partition("\n")[0]), 80)
            raise _loss(before, f"ruamel.yaml cannot write it ({reason})") from error
        if following == text:
            return text
        text = following
    raise _loss(before, "each layout leads to another")


def _lay_out(text: str) -> str:
    text = trivia.ease(text)
    root = YAML().compose(text)
    for node in _below(root):
        if isinstance(node, ScalarNode) and node.style == '"':
            node.value = _Spelt.of(node.value, text[node.start_mark.index : node.end_mark.index])
    for row in _rows(root):
        _order(row)
        for key, value in row.value:
            if key.value == "when" and isinstance(value, CollectionNode) and not value.flow_style:
                _flatten(value)
    _fit(root, 0)
    return trivia.tidy(_written(root))


class _Spelt(str):
    """A string with its spelling in double quotes: ruamel would write a character that was hidden behind an escape."""

    spelling: str

    @classmethod
    def of(cls, value: str, spelling: str) -> str:
        if "\\\n" in spelling:
            return value
        spelt = cls(value)
        spelt.spelling = re.sub(r"[ \t]*(\n\s*)", lambda lines: "\\n" * (lines[1].count("\n") - 1) or " ", spelling)
        return spelt


class _Emitter(RoundTripEmitter):
    """Breaks the lines of plain scalars alone: a key cannot be broken, and other styles have lines of their own."""

    def process_scalar(self) -> None:
        width = self.best_width
        if self.event.style or self.simple_key_context:
            self.best_width = _UNBROKEN
        super().process_scalar()
        self.best_width = width

    def write_double_quoted(self, text: Any, split: Any = True) -> None:
        if isinstance(text, _Spelt):
            self.write_indicator(text.spelling, True)
        else:
            super().write_double_quoted(text, split)

    def expect_document_end(self) -> None:
        self.open_ended = False  # nothing follows that would need `...`
        super().expect_document_end()

    def expect_block_sequence_item(self, first: bool = False) -> None:
        if not first:
            self.no_newline = False  # ruamel leaves it set behind an empty flow collection
        super().expect_block_sequence_item(first)

    def write_indicator(self, indicator: Any, *more: Any, **how: Any) -> None:
        bracket = indicator.endswith(("[", "{"))  # which ruamel aligns with the text behind a dash
        super().write_indicator(indicator.lstrip(" ") if bracket else indicator, *more, **how)


def _written(node: Any, width: int = WIDTH) -> str:
    writer = YAML()  # good for one document
    writer.Emitter = _Emitter
    writer.width = width
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.brace_single_entry_mapping_in_flow_sequence = True
    stream = io.StringIO()
    writer.serialize(node, stream)
    return stream.getvalue()


def _rows(root: Any) -> Iterator[Any]:
    for key, value in root.value:
        if key.value == "rules" and isinstance(value, SequenceNode):
            yield from (row for row in value.value if isinstance(row, MappingNode))


def _rank(key: str) -> int:
    return _ROW.index(key) if key in _ROW else len(_ROW)


def _order(row: Any) -> None:
    """The keys of a row in their order, unless a comment stands among them: it would leave its place."""
    tail = _take_tail(row)
    if not _has_comment(row):
        row.value.sort(key=lambda entry: _rank(entry[0].value))
        for key, _ in row.value[:1]:
            key.comment = None  # a blank line: it would part the key from its dash
    _give_tail(_last(row), tail)


def _flatten(node: Any) -> None:
    """A block collection in flow style, where it has no comment and no lines of its own."""
    tail = _take_tail(node)
    below = list(_below(node))
    if _has_comment(node) or any(isinstance(inner, ScalarNode) and inner.style in ("|", ">") for inner in below):
        _give_tail(_last(node), tail)
        return
    for inner in (node, *below):
        inner.comment = None
        if isinstance(inner, CollectionNode):
            inner.flow_style = True
    _give_tail(node, tail)


def _fit(node: Any, column: int, key: Any = None) -> None:
    """Block style for each flow collection that does not fit on its line, or has a comment within.

    `column` is where the node's line begins, `key` the key before it.
    """
    if isinstance(node, ScalarNode):
        if node.style == ">":  # folds that ruamel notes, and then cannot write
            node.value = re.sub(r"\a(?! \S)|(?<=\s)\a", "", node.value)
        if node.style in ("|", ">") and node.comment and node.comment[0]:
            _hang(node.comment[0], column if key else column - 2)
        return
    if node.flow_style and _fits(node, column, key):
        for inner in _below(node):
            inner.comment = None
        return
    if node.flow_style and node.value:
        node.flow_style = False
        _hand_down(node)
    if isinstance(node, SequenceNode):
        for item in node.value:
            _fit(item, column + 4 if key else column + 2)
    else:
        for inner_key, value in node.value:
            _fit(value, column + 2 if key else column, inner_key)


def _hang(token: CommentToken, column: int) -> None:
    """Keep comments behind a block scalar from becoming text of it: none begins right of `column`."""
    token.value = re.sub("^ +(?=#)", lambda found: found.group()[:column], token.value, flags=re.MULTILINE)


def _fits(node: Any, column: int, key: Any) -> bool:
    below = list(itertools.islice(_below(node), WIDTH))
    if len(below) == WIDTH or any(_said(inner).strip() for inner in below):
        return False
    alone = type(node)(node.tag, node.value, flow_style=True)
    if key is not None:
        alone = MappingNode(_MAP, [(ScalarNode(key.tag, key.value, style=key.style), alone)], flow_style=False)
    line = trivia.tidy(_written(alone, _UNBROKEN)).removesuffix("\n")
    return "\n" not in line and column + len(line) <= WIDTH


def _hand_down(node: Any) -> None:
    """Move what stands behind a flow collection that becomes a block to where the block ends.

    What stands beside the bracket of one on a line stays on that line, unless comments within come before it.
    """
    token = node.comment[0] if node.comment else None
    if not token:
        return
    beside, _, behind = token.value.partition("\n")
    if node.start_mark.line < token.start_mark.line or any(_said(inner).strip() for inner in _below(node)):
        node.comment[0], behind = None, token.value
    else:
        node.comment[0], behind = (CommentToken(beside + "\n", token.start_mark) if beside else None), "\n" + behind
    end = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
    said = end.comment[0].value if end.comment and end.comment[0] else ""
    if behind.strip(" ") != "\n":
        end.comment = [CommentToken(said + behind.removeprefix("\n" if said else ""), token.start_mark), None]


def _below(node: Any) -> Iterator[Any]:
    """Every node below a node."""
    for entry in node.value if isinstance(node, CollectionNode) else ():
        for inner in entry if isinstance(entry, tuple) else (entry,):
            yield inner
            yield from _below(inner)


def _last(node: Any) -> Any:
    """The node that ends where this one ends: ruamel hangs on it what follows."""
    while isinstance(node, CollectionNode) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
    return node


def _take_tail(node: Any) -> Any:
    """Take what follows a node on lines of its own, if that is all that hangs there."""
    last = _last(node)
    tail = last.comment
    if not tail or not tail[0] or not tail[0].value.startswith("\n") or any(tail[1:]):
        return None
    last.comment = None
    return tail


def _give_tail(node: Any, tail: Any) -> None:
    if tail:
        node.comment = tail


def _has_comment(node: Any) -> bool:
    return any(_said(inner).strip() for inner in (node, *_below(node)))


def _said(node: Any) -> str:
    """The text of what ruamel hangs on a node, which are tokens, strings, lists of either and None."""

    def text(comment: Any) -> str:
        if isinstance(comment, CommentToken):
            return str(comment.value)
        return comment if isinstance(comment, str) else "".join(map(text, comment or ()))

    return text(node.comment)


def _compare(before: Document, after: Document) -> None:
    """Raise unless both say the same, value for value and type for type, with the same comments at the same entries."""
    if after.findings:
        raise _loss(before, f"its layout would be refused ({after.findings[0].message})")
    if _meaning(before.root) != _meaning(after.root):
        raise _loss(before, "a value would change")
    for was, now in itertools.zip_longest(trivia.comments(before), trivia.comments(after)):
        if was is None or now is None or not was.stays(now):
            text, span = (was.text, was.span) if was else ("", None)
            raise _loss(before, f"the comment `{clip(escape(text), 60)}` would move", span)


def _meaning(root: Node | None) -> str:
    """All that a table says and in which order it says it, but for the order within a row, which means nothing."""
    plain = root.plain() if root else {}
    rows = plain.get("rules")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            ordered = sorted(row.items(), key=lambda entry: _rank(entry[0]))
            row.clear()
            row.update(ordered)
    return repr(plain)


def _loss(before: Document, why: str, span: Span | None = None) -> EcmError:
    finding = before.source.finding(
        "ECM109",
        span or Span(0, 0, 0),
        f"found a text that cannot be formatted without loss: {why}",
        "the file is left as it is; write this place in another way",
    )
    return EcmError([finding])
