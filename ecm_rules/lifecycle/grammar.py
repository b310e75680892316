"""Declarations of lifetimes in Markdown: exact lines, and nothing but exact lines. ACLP V1 §"Grammar".

A line ends at LF, CRLF or a lone CR, at nothing else. Nothing is trimmed, normalised or repaired, and code fences
exempt nothing. Part of the runtime ring: it reads every message of every request, so what has no `<!--` costs one
search, and what nobody asks for (line numbers, the Markdown without its blocks) is not worked out.
"""

from itertools import compress

EPHEMERAL = "<!--ephemeral-->"
OPENING = "<!--BLOCK_ID:"
CLOSING = "<!--/BLOCK_ID:"
DISCARD = "<!--DISCARD_BLOCK:"
_COMMENT = "<!--"
_END = "-->"
_TAGS = {tag[:-1]: tag for tag in (OPENING, CLOSING, DISCARD)}
_ID = "abcdefghijklmnopqrstuvwxyz0123456789_-"

# What is no declaration and yet looks like one; the codes of the diagnostics.
INVALID_TAG = "invalid-lifecycle-tag"
NESTED = "nested-block"
MISMATCHED = "mismatched-block-end"
UNEXPECTED = "unexpected-block-end"
DUPLICATE = "duplicate-block-id"
UNCLOSED = "unclosed-block"
_NEARLY = (b"ephemeral", b"block_id", b"discard_block")


class Block:
    """A valid definition: its id, its body as it stands, and the lines (from 1) of its two tags."""

    __slots__ = ("_end", "_lines", "_start", "content", "id")

    def __init__(self, id: str, content: str, start: int, end: int, lines: "_Lines") -> None:
        self.id = id
        self.content = content
        self._start = start
        self._end = end
        self._lines = lines

    @property
    def start_line(self) -> int:
        return self._lines.number(self._start)

    @property
    def end_line(self) -> int:
        return self._lines.number(self._end)


class Discard:
    """A discard line: which block, and the line (from 1)."""

    __slots__ = ("_lines", "_start", "block_id")

    def __init__(self, block_id: str, start: int, lines: "_Lines") -> None:
        self.block_id = block_id
        self._start = start
        self._lines = lines

    @property
    def line(self) -> int:
        return self._lines.number(self._start)


class Diagnostic:
    """A line that declares nothing though it looks as if: a code, and the line (from 1)."""

    __slots__ = ("_lines", "_start", "code")

    def __init__(self, code: str, start: int, lines: "_Lines") -> None:
        self.code = code
        self._start = start
        self._lines = lines

    @property
    def line(self) -> int:
        return self._lines.number(self._start)


class Document:
    """What a text declares, in the order of its lines.

    ephemeral: whether the message that consists of it is consumed once. blocks: the valid definitions. discards: every
    discard line, also of a block's body. diagnostics: near misses and invalid blocks, which are ordinary Markdown.
    """

    __slots__ = ("_cuts", "_text", "blocks", "diagnostics", "discards", "ephemeral", "source")

    def __init__(
        self,
        source: str,
        text: str,
        ephemeral: bool,
        blocks: "list[Block]",
        discards: "list[Discard]",
        diagnostics: "list[Diagnostic]",
        cuts: "list[tuple[int, int]]",
    ) -> None:
        self.source = source
        self.ephemeral = ephemeral
        self.blocks = blocks
        self.discards = discards
        self.diagnostics = diagnostics
        self._text = text
        self._cuts = cuts

    @property
    def ordinary_markdown(self) -> str:
        """The text without its valid blocks, tags and line ends included."""
        kept, at = [], 0
        for start, end in self._cuts:
            kept.append(self._text[at:start])
            at = end
        kept.append(self._text[at:])
        return "".join(kept)

    @property
    def removed(self) -> "list[tuple[int, str]]":
        """What `ordinary_markdown` is without: (offset in the text, the block with its tags)."""
        return [(start, self._text[start:end]) for start, end in self._cuts]


def parse(markdown: str, source: str) -> Document:
    """What a text declares; `source` is its name. Takes time in proportion to the text, whatever it says.

    A byte-order mark is a character: who reads a file drops one. Raises TypeError for a text that is no string.
    """
    if not isinstance(markdown, str):
        raise TypeError(f"a text is a string, found {markdown.__class__.__name__}")
    at = markdown.find(_COMMENT)
    return Document(source, markdown, False, [], [], [], []) if at < 0 else _read(source, markdown, at)


def declares(text: str) -> bool:
    """Whether a text may hold a line that concerns its own message: `ephemeral`, or a discard. Cheap, and true for
    some that hold none.
    """
    return EPHEMERAL in text or DISCARD in text


def opening(block_id: str) -> str:
    return f"{OPENING}{block_id}{_END}"


def closing(block_id: str) -> str:
    return f"{CLOSING}{block_id}{_END}"


def is_id(text: str) -> bool:
    """Whether a text is the id of a block: `[a-z0-9_-]+`."""
    return text != "" and not text.strip(_ID)


class _Definitions:
    """The blocks of a text, from its opening and closing lines in their order."""

    __slots__ = ("_blocks", "_cuts", "_diagnostics", "_lines", "_open", "_opened", "_text", "_valid", "_void")

    def __init__(self, text: str, lines: "_Lines", diagnostics: "list[Diagnostic]") -> None:
        self._diagnostics = diagnostics
        self._text = text
        self._lines = lines
        # The block that no closing line has ended yet: its id, where it begins, where its body does.
        self._open: tuple[str, int, int] | None = None
        self._valid = True
        self._opened: set[str] = set()
        self._void: set[str] = set()
        self._blocks: list[Block] = []
        self._cuts: list[tuple[int, int]] = []

    def open(self, block_id: str, start: int, body: int) -> None:
        around = self._open
        if around is None:
            self._open, self._valid = (block_id, start, body), True
        else:
            self._valid = False
            self._report(NESTED, start)
        if block_id in self._opened:
            self._void.add(block_id)
            if around is None or around[0] != block_id:
                self._report(DUPLICATE, start)
        else:
            self._opened.add(block_id)

    def close(self, block_id: str, start: int, after: int) -> None:
        if self._open is None:
            self._report(UNEXPECTED, start)
            return
        opened, begin, body = self._open
        if opened != block_id:
            self._valid = False
            self._report(MISMATCHED, start)
            return
        self._open = None
        if self._valid:
            self._blocks.append(Block(block_id, self._text[body:start], begin, start, self._lines))
            self._cuts.append((begin, after))

    def end(self) -> "tuple[list[Block], list[tuple[int, int]]]":
        """The valid blocks, and where each begins and ends with its tags."""
        if self._open is not None:
            self._report(UNCLOSED, self._open[1])
        if self._void:
            valid = [block.id not in self._void for block in self._blocks]
            return list(compress(self._blocks, valid)), list(compress(self._cuts, valid))
        return self._blocks, self._cuts

    def _report(self, code: str, start: int) -> None:
        self._diagnostics.append(Diagnostic(code, start, self._lines))


def _read(source: str, text: str, at: int) -> Document:
    """A text with a comment; `at` is the place of the first."""
    # A lone CR ends a line as LF does. In a CRLF both do, and the empty line between them holds no tag.
    flat = text.replace("\r", "\n") if "\r" in text else text
    lines = _Lines(text, flat)
    search, size = flat.find, len(flat)
    ephemeral = False
    discards: list[Discard] = []
    diagnostics: list[Diagnostic] = []
    definitions = _Definitions(text, lines, diagnostics)
    while at >= 0:
        end = search("\n", at)
        if end < 0:
            end = size
        line = flat[at:end]
        after = end + 1 if flat is text else _after(text, end)
        tag, block_id = _tag(line) if at == 0 or flat[at - 1] == "\n" else ("", "")
        if tag == OPENING:
            definitions.open(block_id, at, after)
        elif tag == CLOSING:
            definitions.close(block_id, at, after)
        elif tag == DISCARD:
            discards.append(Discard(block_id, at, lines))
        elif tag == EPHEMERAL:
            ephemeral = True
        elif _nearly(line):
            diagnostics.append(Diagnostic(INVALID_TAG, at, lines))
        at = search(_COMMENT, end)
    blocks, cuts = definitions.end()
    return Document(source, text, ephemeral, blocks, discards, diagnostics, cuts)


def _tag(line: str) -> "tuple[str, str]":
    """(which tag a line is, the id in it); the tag is empty for a line that is none."""
    name, colon, rest = line.partition(":")
    if not colon:
        return (EPHEMERAL, "") if line == EPHEMERAL else ("", "")
    tag = _TAGS.get(name)
    if tag and rest.endswith(_END):
        block_id = rest[:-3]
        if block_id and not block_id.strip(_ID):
            return tag, block_id
    return "", ""


def _after(text: str, end: int) -> int:
    """The beginning of the line behind the one that ends at `end`, in a text with a CR."""
    return end + 2 if text.startswith("\r\n", end) else end + 1


def _nearly(line: str) -> bool:
    """Whether a line that is no declaration and begins with a comment looks like one: a comment with the name of a tag
    in it, in any case. ASCII alone has case here: a Kelvin sign is no k.
    """
    lower = line.lower()
    if "ephemeral" not in lower and "block" not in lower:
        return False
    inside = line[4:].encode("utf-8", "surrogatepass").lower()
    last = inside.rfind(b"-->")
    return last >= 0 and any(inside.find(name, 0, last) >= 0 for name in _NEARLY)


class _Lines:
    """The numbers of lines, worked out where somebody asks: from the last one that was asked for, since those that do
    ask from the first to the last.
    """

    __slots__ = ("_flat", "_known", "_text")

    def __init__(self, text: str, flat: str) -> None:
        self._text = text
        self._flat = flat
        self._known = (0, 1)

    def number(self, start: int) -> int:
        """The number of the line in which the place `start` is."""
        at, number = self._known
        if start < at:
            at, number = 0, 1
        number += self._flat.count("\n", at, start)
        if self._flat is not self._text:
            number -= self._text.count("\r\n", at, start)
        self._known = (start, number)
        return number
