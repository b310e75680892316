"""The canonical layout: what it changes, what it never loses, and what it refuses."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.emitter import RoundTripEmitter

from ecm_rules import EcmError
from ecm_rules.tables import layout, reader, trivia
from tests.conftest import FIXTURES, ROOT

SHIPPED = sorted((ROOT / "roster").glob("*.yaml")) + sorted((ROOT / "rules").rglob("*.yaml"))
LONG = "a reason of many words " * 6


def canonical(text: str | bytes) -> str:
    """The layout of a text, which must be its own."""
    laid_out = layout.canonical(text, "t.yaml")
    assert layout.canonical(laid_out, "t.yaml") == laid_out
    return laid_out


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_shipped_tables_have_the_layout(path: pathlib.Path) -> None:
    assert layout.canonical(path.read_bytes(), path.name) == path.read_bytes().decode()


CHANGED = {
    "indentation": ("a:\n    b:\n        c: 1\n", "a:\n  b:\n    c: 1\n"),
    "a list below its key": ("a:\n- b: 1\n  c: 2\n", "a:\n  - b: 1\n    c: 2\n"),
    "a list within a list": ("a:\n  - [[x], [z, {q: 1}]]\n", "a:\n  - [[x], [z, {q: 1}]]\n"),
    "items behind an empty one": ("a:\n- {}\n\n- b\n- c\n", "a:\n  - {}\n\n  - b\n  - c\n"),
    "items behind an empty one in a row": (
        "rules:\n- when: # c\n  - {}\n\n  - b\n  - c\n",
        "rules:\n  - when: # c\n      - {}\n\n      - b\n      - c\n",
    ),
    "lists within lists": ("a: [ [ [ [x] ] ] ]\n", "a: [[[[x]]]]\n"),
    "blank lines above a comment": ("\n\n# c\na: 1\n", "# c\na: 1\n"),
    "space around values": ("a:   1\nb :  { c: 1 ,d: [ 2,3 ] }\n", "a: 1\nb: {c: 1, d: [2, 3]}\n"),
    "space at the end of a line": ("a: 1  \n\nb: 2\t\n", "a: 1\n\nb: 2\n"),
    "blank lines": ("\n\na: 1\n\n\n\nb: 2\n\n\n", "a: 1\n\nb: 2\n"),
    "no line end at the end": ("a: 1", "a: 1\n"),
    "crlf": ("a: 1\r\n# c\r\nb: 2\r\n", "a: 1\n# c\nb: 2\n"),
    "a byte order mark": ("\ufeffa: 1\n", "a: 1\n"),
    "marks of a document": ("# c\n---\na: 1\n...\n# d\n", "# c\na: 1\n# d\n"),
    "a comment beside a mark": ("--- # c\na: 1\n", "# c\na: 1\n"),
    "a flow mapping on more than a line": ("a: {b: 1,\n\n    c: 2}\n", "a: {b: 1, c: 2}\n"),
    "a pair in a list": ("a: [b: 1, c]\n", "a: [{b: 1}, c]\n"),
    "when as a block": (
        "rules:\n  - id: P1\n    when:\n      zone: red\n",
        "rules:\n  - id: P1\n    when: {zone: red}\n",
    ),
    "when with lists": (
        "rules:\n- when:\n    zone:\n    - red\n    - amber\n\n  why: x\n",
        "rules:\n  - when: {zone: [red, amber]}\n\n    why: x\n",
    ),
    "when with what flow would misread": (
        "rules:\n- when:\n    a: x, z\n    b: '[c'\n",
        "rules:\n  - when: {a: 'x, z', b: '[c'}\n",
    ),
    "when with a text of lines": ("rules:\n  - when:\n      a: |\n        b\n",) * 2,
    "when elsewhere": ("when:\n  zone: red\n", "when:\n  zone: red\n"),
    "rows": (
        "rules:\n- why: x\n  more: 1\n  operation: compact\n  id: P1\n\n# about P2\n- id: P2\n",
        "rules:\n  - id: P1\n    operation: compact\n    why: x\n    more: 1\n\n  # about P2\n  - id: P2\n",
    ),
    "a row whose first key a blank line preceded": (
        "rules:\n  - when: {}\n\n    id: P1\n",
        "rules:\n  - id: P1\n    when: {}\n",
    ),
    "a row with a comment": (
        "rules:\n- why: x # why x\n  id: P1\n- why: z\n  # the name\n  id: P2\n",
        "rules:\n  - why: x # why x\n    id: P1\n  - why: z\n    # the name\n    id: P2\n",
    ),
    "keys elsewhere": ("pins:\n- why: x\n  id: p\n", "pins:\n  - why: x\n    id: p\n"),
    "a plain scalar over some lines": ("a: b\n   c\n\n   d\n", 'a: "b c\\nd"\n'),
    "escapes over some lines": ('a: "b \\u202e\n   c\n\n   d\\\\"\n', 'a: "b \\u202e c\\nd\\\\"\n'),
    "an escaped line end": ('a: "b\\\n   c"\n', 'a: "bc"\n'),
    "a comment in the first column": ("a:\n  b: 1\n# c\n  d: 2\n", "a:\n  b: 1\n  # c\n  d: 2\n"),
    "a comment too deep": ("a:\n  b: 1\n       # c\n  d: 2\ne: 1\n", "a:\n  b: 1\n  # c\n  d: 2\ne: 1\n"),
    "a comment between two depths": ("a:\n  b:\n    c: 1\n   # c\nd: 1\n", "a:\n  b:\n    c: 1\n  # c\nd: 1\n"),
    "a comment at a block's end": ("a:\n  b:\n    c: 1\n    # c\n  # b\n# a\nd: 1\n",) * 2,
    "space before a comment": ("a: 1     # c\nb: [1]\t# d\n", "a: 1 # c\nb: [1] # d\n"),
    "null in flow": ("a: {b: , c}\nd:\n", "a: {b: null, c: null}\nd:\n"),
}


@pytest.mark.parametrize(("text", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_what_is_laid_out(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_flow_stays_where_it_fits_and_becomes_a_block_where_not() -> None:
    fits = "steps: [" + ", ".join(["x" * 8] * 11) + ", v]\n"
    assert len(fits) == 121
    assert canonical(fits) == fits
    assert canonical(fits.replace("v", "vv")) == "steps:\n" + "  - xxxxxxxx\n" * 11 + "  - vv\n"
    row = "rules:\n  - id: P1\n    when: {" + ", ".join(f"s{n}: value" for n in range(100, 107)) + ", z: VALUE}\n"
    filled = row.replace("VALUE", "v" * (120 - len(row.split("\n")[2]) + 5))
    assert max(map(len, filled.split("\n"))) == 120
    assert canonical(filled) == filled
    over = canonical(filled.replace("vvv", "vvvv", 1))
    assert over.startswith("rules:\n  - id: P1\n    when:\n      s100: value\n")


def test_the_depth_of_a_line_counts_for_what_fits() -> None:
    list_of = "  - {a: " + "x" * 111 + "}\n"
    assert len(list_of) == 121
    assert canonical("a:\n" + list_of) == "a:\n" + list_of
    assert "{" not in canonical("a:\n" + list_of.replace("xx", "xxx", 1))


def test_a_blank_line_behind_a_flow_list_stays_behind_its_block() -> None:
    text = "a: [" + "some_step, " * 20 + "last] # all of them\n\n# about b\nb: 1\n"
    assert canonical(text) == "a: # all of them\n" + "  - some_step\n" * 20 + "  - last\n\n# about b\nb: 1\n"


def test_long_words_and_texts() -> None:
    laid_out = canonical(f"why: {LONG}\nb: '{LONG}x'\nc: {'x' * 200}\n")
    why, quoted, word = laid_out.replace("\nb:", "\n\nb:").replace("\nc:", "\n\nc:").split("\n\n")
    assert max(map(len, why.split("\n"))) <= 120
    assert why.count("\n") == 1
    assert quoted == f"b: '{LONG}x'"
    assert canonical(f"{'word ' * 24}x: 1\n") == f"{'word ' * 24}x:\n  1\n"
    assert word == f"c:\n  {'x' * 200}\n"
    assert not re.search(" $", laid_out, re.MULTILINE)


SPELT = """\
a: 0.50
b: 1.0e+3
c: 0x1F
d: 9007199254740993
e: +1
f: .5
g: TRUE
h: ~
i: -0.0
j: "no"
k: '0.1'
l: "010"
m: 'null'
o: "\\u2028 \\x07 \\u202e \\u00e9 \\\\ \\""
p: http://x#y
r: café 🚦
"q r": 1
"""


def test_every_scalar_keeps_its_spelling() -> None:
    assert canonical(SPELT) == SPELT


BLOCKS = """\
a: | # beside a mark
  text  # with two spaces behind it: \x20


  more
# behind
b: >-
  folded
  text

  another paragraph

    as it is
c: |2
   a space first
d:
  e: |
    text

  # of e
  f: >
    text
  # of f
g: |+
  kept


"""


def test_texts_of_lines_keep_their_lines() -> None:
    assert canonical(BLOCKS) == BLOCKS
    found = trivia.comments(reader.read(BLOCKS, "t.yaml"))
    assert [comment.text for comment in found] == ["# beside a mark", "# behind", "# of e", "# of f"]


def test_a_comment_behind_a_text_never_becomes_text() -> None:
    text = "a:\n        b: |\n          text\n\n        # comment\n        c: 1\n"
    assert canonical(text) == "a:\n  b: |\n    text\n\n  # comment\n  c: 1\n"
    text = "a:\n    -   |\n            text\n\n        # comment\n    - c\n"
    assert canonical(text) == "a:\n  - |\n    text\n\n  # comment\n  - c\n"


COMMENTED = """\
# yaml-language-server: $schema=x
# at the top

# before a
a: # beside a
  # within a
  b: 1 # beside b

  # before c
  c: {d: 1} # beside c
  e: [] # beside e
# before f
f: # beside f
  # before the first item
  - 1 # beside an item
  # between items, ünd 🚦
  - b: 2
    # within an item
    c: 3
  # behind the last item
# behind everything
"""


def test_comments_stay_where_they_are() -> None:
    assert canonical(COMMENTED) == COMMENTED
    assert canonical(COMMENTED.replace("\n", "\r\n")) == COMMENTED


def test_a_mark_in_a_string_is_no_comment() -> None:
    text = "a: 'x # y'\nb: \"# z\"\nc: x#y\nd: |\n  # text\n"
    assert canonical(text) == text
    assert trivia.comments(reader.read(text, "t.yaml")) == []


def test_comments_within_flow_make_it_a_block() -> None:
    text = "a: {b: 1, # one\n  c: 2, # two\n  # three\n  d: [1, # four\n   2] # five\n  } # six\ne: 1\n"
    expected = "a:\n  b: 1 # one\n  c: 2 # two\n  # three\n  d:\n    - 1 # four\n    - 2 # five\n# six\ne: 1\n"
    assert canonical(text) == expected


LOST = {
    "behind an opening brace": ("a: {«# c»\n  b: 1}\n", "# c"),
    "before a flow list": ("a: # b\n  «# c»\n  [1, 2]\n", "# c"),
}


@pytest.mark.parametrize(("text", "comment"), LOST.values(), ids=LOST.keys())
def test_a_comment_that_would_move_is_named_with_its_place(text: str, comment: str) -> None:
    before = text.partition("«")[0]
    with pytest.raises(EcmError) as caught:
        canonical(text.replace("«", "").replace("»", ""))
    (finding,) = caught.value.findings
    assert (finding.code, finding.line) == ("ECM109", before.count("\n") + 1)
    assert finding.column == len(before) - before.rfind("\n")
    assert finding.message == f"found a text that cannot be formatted without loss: the comment `{comment}` would move"


def test_above_an_entry_is_another_place_than_beside_it() -> None:
    above, beside = (
        trivia.comments(reader.read(text, "t.yaml"))[0] for text in ("a: 1\n# c\nb: 2\n", "a: 1\nb: 2 # c\n")
    )
    assert above.stays(above)
    assert not above.stays(beside)


def broken_layout(monkeypatch: pytest.MonkeyPatch, was: str, becomes: str) -> str:
    """The message where the layout turns one text into another."""
    lay_out = layout._lay_out
    monkeypatch.setattr(layout, "_lay_out", lambda text: lay_out(text).replace(was, becomes))
    with pytest.raises(EcmError) as caught:
        layout.canonical("a: '1' # one\nb: 1 # two\nc: {d: 0, e: true}\nrules: [{id: x, why: 2}]\n", "t.yaml")
    (finding,) = caught.value.findings
    assert finding.code == "ECM109"
    return finding.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("'1'", "1"),
        ("b: 1 ", "b: 1.0 "),
        ("b: 1", "b: '1'"),
        ("d: 0", "d: -0.0"),
        ("true", "1"),
        ("d: 0, e: true", "e: true, d: 0"),
        ("d: 0, ", ""),
        ("why: 2", "why: 3"),
    ],
)
def test_a_value_that_would_change_is_refused(was: str, becomes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_layout(monkeypatch, was, becomes) == "a value would change"


@pytest.mark.parametrize(
    ("was", "becomes", "named"),
    [
        (" # one", "", "# one"),
        ("# one", "# One", "# one"),
        (" # two", "", "# two"),
        ("b: 1 # two\n", "b: 1\nc: {d: 0, e: true} # two\n#", "# two"),
        ("true}\n", "true} # three\n", ""),
    ],
)
def test_a_comment_that_would_change_is_refused(
    was: str, becomes: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broken_layout(monkeypatch, was, becomes).startswith(f"the comment `{named}` would move")


def test_what_the_reader_would_refuse_is_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "would be refused (found `no`" in broken_layout(monkeypatch, "b: 1", "b: no")


def test_a_layout_that_does_not_settle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_lay_out", lambda text: text + "\n")
    with pytest.raises(EcmError, match="each layout leads to another"):
        layout.canonical("a: 1\n", "t.yaml")


def test_an_error_of_ruamels_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("odd\ncomment")

    monkeypatch.setattr(RoundTripEmitter, "write_comment", fail)
    with pytest.raises(EcmError, match=r"ruamel\.yaml cannot write it \(odd\)"):
        layout.canonical("a: 1 # c\n", "t.yaml")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "ECM108"),
        ("# alone\n", "ECM108"),
        ("a: &x 1\n", "ECM103"),
        ("a: *x\n", "ECM103"),
        ("a: !t 1\n", "ECM104"),
        ("%YAML 1.2\n---\na: 1\n", "ECM104"),
        ("a: no\n", "ECM106"),
        ("a: 1\na: 1\n", "ECM102"),
        ("a:\n\tb: 1\n", "ECM101"),
        ("a: 1\n---\nb: 1\n", "ECM108"),
        ("a: x" + "x" * (1 << 20), "ECM101"),
        (b"a: \xff", "ECM101"),
        ("- a\n", "ECM203"),
        ("a\n", "ECM203"),
    ],
)
def test_what_the_reader_refuses_is_not_laid_out(text: str | bytes, code: str) -> None:
    with pytest.raises(EcmError) as caught:
        layout.canonical(text, "t.yaml")
    assert [finding.code for finding in caught.value.findings] == [code]


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 30 + "]" * 30 + "\n",
        "a: " + "{b: " * 30 + "x" * 120 + "}" * 30 + "\n",
        "".join("  " * depth + "a:\n" for depth in range(30)) + "  " * 30 + "a: 1 # deep\n",
        "a:\n  - " + "- " * 28 + "x # deep\n",
        "a: [" + "x, " * 999 + "x]\n",
        "".join(f"k{n}: {n} # {n}\n" for n in range(1000)),
        "a: x" + " word" * 150_000 + "\nb: 'x" + " x" * 20_000 + "'\n",
    ],
    ids=["lists", "mappings", "blocks", "dashes", "items", "keys", "words"],
)
def test_the_readers_limits_are_no_limits_of_the_layout(text: str) -> None:
    assert layout.canonical(text, "t.yaml")


def test_what_the_nexus_ships_is_laid_out() -> None:
    text = (FIXTURES / "upstream/context-policy.yaml").read_text()
    laid_out = canonical(text)
    assert "when: {zone: critical}" in laid_out
    assert max(map(len, laid_out.split("\n"))) <= 120
    assert yaml.safe_load(laid_out) == yaml.safe_load(text)


def test_without_libyaml_the_layout_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trivia, "_LOADER", yaml.SafeLoader)
    for text in (COMMENTED, BLOCKS, SPELT):
        assert canonical(text) == text


_PLAIN = [
    "amber",
    "0.50",
    "1.0e+3",
    "'no'",
    '"010"',
    "~",
    "true",
    "'it''s'",
    '"q\\n"',
    "x" * 70,
    "http://x#y",
    "-1",
    "{}",
]
_BLANK = st.sampled_from(["", "", "", "\n", "\n\n\n"])


@st.composite
def _values(draw: st.DrawFn, indent: int, depth: int) -> str:
    """What stands behind a key: ` value # comment` or lines below it."""
    beside = draw(st.sampled_from(["", "", " # beside", "    # ünd"]))
    kind = draw(st.integers(0, 5 if depth else 2))
    if kind == 0:
        return f" {draw(st.sampled_from(_PLAIN))}{beside}\n"
    if kind == 1:
        items = draw(st.lists(st.sampled_from(_PLAIN), max_size=9))
        comma = draw(st.sampled_from([",", ", ", " ,", ",\n        ", ", # within\n        "]))
        opening, closing = draw(st.sampled_from([("[", "]"), ("{", "}")]))
        key = "k{}: " if opening == "{" else ""
        return f" {opening}{comma.join(key.format(n) + item for n, item in enumerate(items))}{closing}{beside}\n"
    if kind == 2:
        mark = draw(st.sampled_from(["|", ">", "|-", ">-", "|+"]))
        lines = draw(st.lists(st.sampled_from(["text", "more text", "", "# text"]), max_size=4))
        return f" {mark}{beside}\n" + "".join(
            " " * (indent + 2) * bool(line) + line + "\n" for line in ["first", *lines]
        )
    below = indent + draw(st.sampled_from([2, 4]))
    if kind == 5:
        return f"{beside}\n{draw(_sequences(below - draw(st.sampled_from([0, below - indent])), depth - 1))}"
    return f"{beside}\n{draw(_mappings(below, depth - 1))}"


@st.composite
def _above(draw: st.DrawFn, indent: int) -> str:
    column = draw(st.sampled_from([indent, indent, 0, indent + 3]))
    return draw(_BLANK) + draw(st.sampled_from(["", "", " " * column + "# above\n"])) + draw(_BLANK)


@st.composite
def _mappings(draw: st.DrawFn, indent: int, depth: int, names: tuple[str, ...] = ("a", "b", "c")) -> str:
    keys = draw(st.permutations(names))[: draw(st.integers(1, len(names)))]
    return "".join(draw(_above(indent)) + " " * indent + f"{key}:{draw(_values(indent, depth))}" for key in keys)


@st.composite
def _sequences(draw: st.DrawFn, indent: int, depth: int, names: tuple[str, ...] = ("a", "b")) -> str:
    items = draw(st.lists(_mappings(indent + 2, depth, names), min_size=1, max_size=3))
    return "".join(draw(_above(indent)) + " " * indent + "- " + item.lstrip("\n ") for item in items)


@st.composite
def _documents(draw: st.DrawFn) -> str:
    rows = draw(_sequences(2, 1, ("id", "when", "operation", "why")))
    text = f"{draw(_mappings(0, 2))}rules:{draw(st.sampled_from(['', ' # rows']))}\n{rows}{draw(_above(0))}"
    return text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))


@settings(max_examples=250, deadline=None)
@given(_documents())
def test_nothing_is_lost_and_a_layout_is_its_own(text: str) -> None:
    before = reader.read(text, "t.yaml")
    if before.findings or before.root is None:
        return
    try:
        laid_out = layout.canonical(text, "t.yaml")
    except EcmError:  # how seldom, the next test says
        return
    assert layout.canonical(laid_out, "t.yaml") == laid_out
    after = reader.read(laid_out, "t.yaml")
    assert after.root is not None
    was, now = before.root.plain(), after.root.plain()
    assert was == now
    assert repr({**was, "rules": 0}) == repr({**now, "rules": 0})
    assert [c.text for c in trivia.comments(after)] == [c.text for c in trivia.comments(before)]
    assert re.findall("# (?:above|within|beside|ünd|rows)", laid_out) == re.findall(
        "# (?:above|within|beside|ünd|rows)", text
    )
    assert "\r" not in laid_out
    assert laid_out.endswith("\n")


def test_nearly_nothing_is_refused() -> None:
    """Refusing is safe, and so would be to refuse everything."""
    seen = {"laid out": 0, "refused": 0}

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(_documents())
    def count(text: str) -> None:
        if reader.read(text, "t.yaml").findings:
            return
        try:
            layout.canonical(text, "t.yaml")
            seen["laid out"] += 1
        except EcmError:
            seen["refused"] += 1

    count()
    assert seen["laid out"] > 100
    assert seen["refused"] < seen["laid out"] / 20, seen
