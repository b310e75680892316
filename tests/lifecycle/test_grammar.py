"""Declarations: exact lines and nothing else, whatever a text holds."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.lifecycle import Document, parse
from ecm_rules.lifecycle.grammar import declares, is_id

TAGS = [
    "<!--ephemeral-->",
    "<!--BLOCK_ID:a-->",
    "<!--/BLOCK_ID:a-->",
    "<!--BLOCK_ID:b-->",
    "<!--/BLOCK_ID:b-->",
    "<!--DISCARD_BLOCK:a-->",
    "<!-- ephemeral -->",
    "<!--BLOCK_ID:A-->",
    "<!--",
    "-->",
    "text",
    " ",
]
ENDS = ["\n", "\r\n", "\r", "\u2028", "\x0b", "\x0c", "\x85", "\x00", ""]
texts = st.lists(st.sampled_from([*TAGS, *ENDS, "\n", "\n", "é", "\ud800"]), max_size=40).map("".join)


def lines_by_hand(text: str) -> list[str]:
    lines, line, at = [], "", 0
    while at < len(text):
        if text[at] in "\r\n":
            at += 2 if text[at : at + 2] == "\r\n" else 1
            lines.append(line)
            line = ""
        else:
            line += text[at]
            at += 1
    return [*lines, line]


def told(document: Document) -> tuple[object, ...]:
    return (
        document.ephemeral,
        [(b.id, b.content, b.start_line, b.end_line) for b in document.blocks],
        [(d.block_id, d.line) for d in document.discards],
        [(d.code, d.line) for d in document.diagnostics],
    )


@given(texts)
def test_only_exact_lines_declare(text: str) -> None:
    lines = lines_by_hand(text)
    found = parse(text, "doc.md")
    assert found.ephemeral is ("<!--ephemeral-->" in lines)
    assert [(d.block_id, d.line) for d in found.discards] == [
        ("a", number) for number, line in enumerate(lines, 1) if line == "<!--DISCARD_BLOCK:a-->"
    ]
    for block in found.blocks:
        assert lines[block.start_line - 1] == f"<!--BLOCK_ID:{block.id}-->"
        assert lines[block.end_line - 1] == f"<!--/BLOCK_ID:{block.id}-->"
        assert lines_by_hand(block.content)[:-1] == lines[block.start_line : block.end_line - 1]
        assert lines.count(f"<!--BLOCK_ID:{block.id}-->") == 1
        assert not any(line.startswith("<!--BLOCK_ID:") and is_id(line[13:-3]) for line in lines_by_hand(block.content))


@given(texts)
def test_ordinary_markdown_and_the_removed_blocks_are_the_text(text: str) -> None:
    found = parse(text, "doc.md")
    rest, whole = found.ordinary_markdown, ""
    for start, removed in found.removed:
        kept = start - len(whole)
        whole, rest = whole + rest[:kept] + removed, rest[kept:]
    assert whole + rest == text
    assert len(found.removed) == len(found.blocks)


@given(texts)
def test_a_text_that_declares_nothing_for_its_message_is_told_at_a_glance(text: str) -> None:
    found = parse(text, "doc.md")
    if found.ephemeral or found.discards:
        assert declares(text)


@given(texts, texts)
def test_a_text_without_an_open_block_means_the_same_before_another(first: str, second: str) -> None:
    alone, both = parse(first + "\n", ""), parse(first + "\n" + second, "")
    assert both.ephemeral == (alone.ephemeral or parse(second, "").ephemeral)
    if not any("BLOCK_ID" in line for line in lines_by_hand(first)):
        shift = len(lines_by_hand(first))
        moved = [(b.id, b.content, b.start_line + shift) for b in parse(second, "").blocks]
        assert [(b.id, b.content, b.start_line) for b in both.blocks] == moved


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_block_is_taken_out_with_its_line_ends(end: str) -> None:
    lines = ["p", "<!--BLOCK_ID:a-->", "x", "<!--/BLOCK_ID:a-->", "q", ""]
    found = parse(end.join(lines), "")
    assert (found.blocks[0].content, found.ordinary_markdown) == (f"x{end}", f"p{end}q{end}")


def test_lines_are_numbered_in_whatever_order_they_are_asked_for() -> None:
    text = "x\r\n" * 3 + "<!--BLOCK_ID:a-->\r\ry\n<!--/BLOCK_ID:a-->\n<!--BLOCK_ID:b-->\n<!--/BLOCK_ID:b-->"
    first, second = parse(text, "").blocks
    assert (second.end_line, first.start_line, second.start_line, first.end_line) == (9, 4, 8, 7)


@pytest.mark.parametrize(
    "text",
    [
        "<!--" * 1_000_000,
        "<!--ephemeral" * 500_000,
        "<!--BLOCK_ID:" * 500_000 + "-->",
        "<!--BLOCK_ID:a-->\n" * 500_000,
        "<!--/BLOCK_ID:a-->\r" * 500_000,
        "<!--BLOCK_ID:" + "a" * 10_000_000 + "-->",
        "-->" * 1_000_000 + "<!--",
        "<!-- block_id\r" * 500_000 + "\n",
        "".join(f"<!--BLOCK_ID:{n}-->\n" for n in range(200_000)),
        "<!--" + "block_id" * 1_000_000,
    ],
    ids=lambda text: f"{text[:18]!r} {len(text)}",
)
def test_hostile_texts_are_read_to_their_end(text: str) -> None:
    found = parse(text, "doc.md")
    assert found.blocks == []
    assert found.ordinary_markdown == text
    assert len(found.diagnostics) <= text.count("\n") + text.count("\r") + 2
    for diagnostic in found.diagnostics[:3]:
        assert diagnostic.line >= 1


def test_an_id_of_a_megabyte_is_an_id() -> None:
    block_id = "a-b_" * 250_000
    (block,) = parse(f"<!--BLOCK_ID:{block_id}-->\nx\n<!--/BLOCK_ID:{block_id}-->", "").blocks
    assert (block.id, block.content) == (block_id, "x\n")


def test_a_text_without_comments_is_not_copied() -> None:
    text = "word " * 1_000_000
    tracemalloc.start()
    try:
        parse(text, "doc.md")
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", [None, b"<!--ephemeral-->", 5, ["<!--ephemeral-->"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(TypeError, match="a text is a string"):
        parse(text, "doc.md")  # type: ignore[arg-type]


@given(texts)
def test_reading_twice_says_the_same(text: str) -> None:
    assert told(parse(text, "a")) == told(parse(text, "b"))
