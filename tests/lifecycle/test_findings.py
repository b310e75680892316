"""What Markdown declares in vain: each finding at its place, and the same lines as the grammar's diagnostics."""

from __future__ import annotations

import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules import EcmError, Finding
from ecm_rules.lifecycle import conflicts_of, findings_of, parse, read_markdown
from ecm_rules.tables.findings import render
from tests.conftest import FIXTURES

VECTORS = [v for path in sorted((FIXTURES / "lifecycle").glob("parse-*.json")) for v in json.loads(path.read_text())]


def found(text: str) -> list[Finding]:
    return findings_of(parse(text, "a.md"), text, "a.md")


def told(text: str) -> list[tuple[str, int, int, int]]:
    return [(f.code, f.line, f.column, f.end_column) for f in found(text)]


@pytest.mark.parametrize(
    ("line", "columns", "message", "fix"),
    [
        (" <!--ephemeral-->", (1, 2), "found white space before `<!--ephemeral-->`, expected the tag alone", None),
        ("<!--ephemeral--> \t", (17, 19), "found white space behind `<!--ephemeral-->`, expected the tag alone", ""),
        ("<!--ephemeral-->\u200b", (17, 18), "found white space behind `<!--ephemeral-->`", ""),
        ("<!--ephemeral-->\u2028", (17, 18), "found white space behind `<!--ephemeral-->`", ""),
        ("\ufeff<!--ephemeral-->", (1, 2), "found white space before `<!--ephemeral-->`", None),
        (" <!--ephemeral--> ", (1, 19), "found white space around `<!--ephemeral-->`", None),
        ("> <!--ephemeral-->", (1, 3), "found text before `<!--ephemeral-->`", None),
        ("<!--BLOCK_ID:a-->x", (18, 19), "found text behind `<!--BLOCK_ID:a-->`", None),
        ("<!-- ephemeral -->", (1, 19), "found `<!-- ephemeral -->`, expected `<!--ephemeral-->`", None),
        ("<!--\u200bephemeral-->", (1, 18), "found `<!--\\u{200B}ephemeral-->`, expected `<!--ephemeral-->`", None),
        ("<!--Ephemeral-->", (1, 17), "found `<!--Ephemeral-->`, expected `<!--ephemeral-->`", None),
        ("- <!--/ block_id : a-->", (3, 24), "found `<!--/ block_id : a-->`, expected `<!--/BLOCK_ID:a-->`", None),
        ("<!--BLOCK_ID:Foo-->", (1, 20), "found the id `Foo`, expected a-z, 0-9, `_` and `-` alone", None),
        ("<!--BLOCK_ID:a:b-->", (1, 20), "found the id `a:b`, expected", None),
        ("<!--BLOCK_ID:-->", (1, 17), "found `<!--BLOCK_ID:-->`, expected `:` and an id behind `BLOCK_ID`", None),
        ("<!--DISCARD_BLOCK-->", (1, 21), "found `<!--DISCARD_BLOCK-->`, expected `:` and an id", None),
        ("<!--/DISCARD_BLOCK:a-->", (1, 24), "found `<!--/DISCARD_BLOCK:a-->`, expected a tag", None),
        ("<!--ephemeral:1-->", (1, 19), "found `<!--ephemeral:1-->`, expected a tag", None),
        ("<!-- a --> x <!-- an ephemeral one -->", (14, 39), "found `<!-- an ephemeral one -->`, expected a tag", None),
        ("<!-- a --> ephemeral <!-- b -->", (1, 32), "found `<!-- a --> ephemeral <!-- b -->`, expected a tag", None),
    ],
)  # fmt: skip
def test_a_near_miss_is_told_where_it_is_one(
    line: str, columns: tuple[int, int], message: str, fix: str | None
) -> None:
    (finding,) = found(f"text\r\n{line}\r\n")
    assert (finding.code, finding.line, finding.severity) == ("ECM801", 2, "warning")
    assert (finding.column, finding.end_column) == columns
    assert finding.message.startswith(message)
    assert (finding.fix.text if finding.fix else None) == fix
    assert finding.help


def test_a_fix_makes_the_line_a_declaration() -> None:
    (finding,) = found("<!--ephemeral--> \u00a0\n")
    assert finding.fix is not None
    span = finding.fix.span
    line = finding.excerpt[: span.column - 1] + finding.fix.text + finding.excerpt[span.end_column - 1 :]
    assert parse(line, "").ephemeral


NESTED = """\
<!--BLOCK_ID:a-->
<!--BLOCK_ID:b-->
<!--/BLOCK_ID:c-->
<!--/BLOCK_ID:a-->
<!--/BLOCK_ID:b-->
<!--BLOCK_ID:a-->
"""


def test_what_blocks_are_at_fault_names_the_other_line() -> None:
    shown = [(f.code, f.line, f.message) for f in found(NESTED)]
    assert shown == [
        (
            "ECM802",
            2,
            "found the opening line of `b` inside of `a`, which line 1 opens; expected `<!--/BLOCK_ID:a-->` before it",
        ),
        ("ECM803", 3, "found the closing line of `c`, expected that of `a`, which line 1 opens"),
        ("ECM804", 5, "found the closing line of `b`, expected an opening line before it"),
        ("ECM805", 6, "found a second opening line of `a`, expected the one on line 1 alone"),
        ("ECM806", 6, "found no closing line of `a`, expected `<!--/BLOCK_ID:a-->` behind it"),
    ]
    assert all(f.severity == "error" and f.excerpt == NESTED.split("\n")[f.line - 1] for f in found(NESTED))


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_there_is_a_finding_for_each_diagnostic(vector: dict[str, dict[str, str]]) -> None:
    text = vector["given"]["markdown"]
    document = parse(text, "a.md")
    findings = findings_of(document, text, "a.md")
    assert sorted(f.line for f in findings) == sorted(d.line for d in document.diagnostics)
    assert [f.line for f in findings] == sorted(f.line for f in findings)
    render(findings)


@given(
    st.lists(
        st.sampled_from(
            ["<!--", "-->", "ephemeral", "BLOCK_ID", "/", ":", "a", "b", " ", "\n", "\r", "\u2028", "block_id:"]
        )
    ).map("".join)
)
def test_no_text_is_too_odd(text: str) -> None:
    document = parse(text, "a.md")
    assert len(findings_of(document, text, "a.md")) == len(document.diagnostics)


def test_the_first_of_several_sources_holds() -> None:
    block = "<!--BLOCK_ID:a-->\n{}\n<!--/BLOCK_ID:a-->\n"
    first, second = parse(block.format(1), "1.md"), parse("\n" + block.format(1), "2.md")
    (finding,) = conflicts_of([first, first, second])
    assert (finding.code, finding.file, finding.line, finding.column, finding.end_column) == (
        "ECM807",
        "2.md",
        2,
        1,
        18,
    )
    assert finding.message == "found a definition of `a`, which `1.md` defines; expected an id that is not in use"
    assert conflicts_of([first], {"a": ("1.md", "1\n")}) == []
    assert len(conflicts_of([first], {"a": ("1.md", "2\n")})) == 1


def test_a_file_keeps_its_line_ends_and_loses_one_mark(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf\xef\xbb\xbfa\r\nb\rc\n\x00d")
    assert read_markdown(str(path)) == "\ufeffa\r\nb\rc\n\0d"


@pytest.mark.parametrize(
    ("data", "place"),
    [(b"a\r\nb\rc\xff", (3, 2)), (b"\xef\xbb\xbf\xff", (1, 1)), (b"\xed\xa0\x80", (1, 1)), (b"a\xc3", (1, 2))],
)
def test_what_is_no_utf8_is_located(data: bytes, place: tuple[int, int], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(data)
    with pytest.raises(EcmError, match="expected UTF-8") as caught:
        read_markdown(str(path))
    (finding,) = caught.value.findings
    assert (finding.code, finding.line, finding.column) == ("ECM100", *place)
