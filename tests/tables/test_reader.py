"""Strict reading: everything that YAML lets pass and a table must not."""

from __future__ import annotations

import os
import pathlib

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.tables import reader
from tests.marked import located, told, unmark

REFUSED = {
    "a key that stands twice": ("a: 1\nb: 2\n«a»: 3\n", ["ECM102"]),
    "a key that stands twice in a flow mapping": ("when: {zone: red, «zone»: amber}\n", ["ECM102"]),
    "quoted and plain spelling of one key": ("a: 1\n«'a'»: 2\n", ["ECM102"]),
    "an alias": ("a: «*base»\n", ["ECM103"]),
    "an anchor": ("a: «&base» 1\n", ["ECM103"]),
    "a merge key": ("a: {«<<»: {b: 1}}\n", ["ECM103"]),
    "a merge of an alias": ("«<<»: «*base»\n", ["ECM103", "ECM103"]),
    "a local tag": ("a: «!thing» 1\n", ["ECM104"]),
    "a standard tag": ("a: «!!python/object:os.system» x\n", ["ECM104"]),
    "a tag on a mapping": ("a: «!!map» {b: 1}\n", ["ECM104"]),
    "a directive": ("«%YAML 1.1»\n---\na: 1\n", ["ECM104"]),
    "an integer as a key": ("«1»: a\n", ["ECM105"]),
    "a boolean as a key": ("«true»: a\n", ["ECM105"]),
    "null as a key": ("«~»: a\n", ["ECM105"]),
    "a list as a key": ("? «[a]»\n: b\n", ["ECM105"]),
    "on as a key": ("«on»: a\n", ["ECM106"]),
    "no": ("a: «no»\n", ["ECM106"]),
    "YES in a list": ("a: [«YES», b]\n", ["ECM106"]),
    "y": ("a: «y»\n", ["ECM106"]),
    "octal of YAML 1.1": ("a: «010»\n", ["ECM106"]),
    "octal of YAML 1.2": ("a: «0o10»\n", ["ECM106"]),
    "leading zero": ("a: «09»\n", ["ECM106"]),
    "base 60": ("a: «1:30»\n", ["ECM106"]),
    "base 60 with a fraction": ("a: «1:30.5»\n", ["ECM106"]),
    "exponent without a point": ("a: «1e3»\n", ["ECM106"]),
    "exponent without a sign": ("a: «1.5e3»\n", ["ECM106"]),
    "digits in groups": ("a: «1_000»\n", ["ECM106"]),
    "binary": ("a: «0b11»\n", ["ECM106"]),
    "a date": ("a: «2001-01-01»\n", ["ECM106"]),
    "a time stamp": ("a: «2001-12-14t21:59:43.10-05:00»\n", ["ECM106"]),
    "the value key": ("a: «=»\n", ["ECM106"]),
    "not a number": ("a: «.nan»\n", ["ECM107"]),
    "infinity": ("a: «-.inf»\n", ["ECM107"]),
    "a float beyond a double": ("a: «1.0e+400»\n", ["ECM107"]),
    "an integer beyond 64 bits": ("a: «9223372036854775808»\n", ["ECM107"]),
    "an integer of 5,000 digits": ("a: «" + "9" * 5000 + "»\n", ["ECM107"]),
    "nothing at all": ("«»", ["ECM108"]),
    "comments alone": ("«»# nothing here\n", ["ECM108"]),
    "a second document": ("a: 1\n«---»\nb: 2\n", ["ECM108"]),
    "a tab for indentation": ("a:\n«\t»b: 1\n", ["ECM101"]),
    "an open bracket at the very end": ("a: [1«»", ["ECM101"]),
    "a word for a pair at the very end": ("a: b\nfoo«»", ["ECM101"]),
    "hundreds of digits in groups": ("a: «1_" + "0" * 401 + "»\n", ["ECM107"]),
    "an open bracket": ("a: [1\n«»", ["ECM101"]),
    "a value within a value": ("a: b«:» c\n", ["ECM101"]),
    "nesting of 33 levels": ("a: " + "[" * 31 + "«[»" + "]" * 32 + "\n", ["ECM101"]),
    "a line separator": ("a: b«\u2028»c\n", ["ECM101"]),
    "a next line": ("a: b«\x85»c\n", ["ECM101"]),
    "a bell": ("a: b«\x07»\n", ["ECM101"]),
    "a byte order mark inside": ("a: «\ufeff»b\n", ["ECM101"]),
}


@pytest.mark.parametrize(("text", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_each_refusal_is_located(text: str, codes: list[str]) -> None:
    clean, places = unmark(text)
    findings = reader.read(clean, "t.yaml").findings
    assert told(findings) == located(places, codes)
    assert all(f.message.startswith(("found ", "not well-formed YAML: ")) for f in findings)


def test_a_duplicate_names_both_places() -> None:
    (finding,) = reader.read("when: {zone: red, zone: amber}\n", "t.yaml").findings
    assert (finding.line, finding.column) == (1, 19)
    assert "first at line 1, column 8" in finding.message


def test_all_refusals_come_together_in_file_order() -> None:
    text, places = unmark("a: «no»\n«a»: 1\nb: «*x»\nc: «010»\nd: [«.nan», {e: «1e3»}]\n")
    findings = reader.read(text, "t.yaml").findings
    assert [(f.line, f.column) for f in findings] == places


READ = {
    "null": ("a: null\n", None),
    "tilde": ("a: ~\n", None),
    "nothing": ("a:\n", None),
    "true": ("a: true\n", True),
    "TRUE": ("a: TRUE\n", True),
    "decimal": ("a: -12\n", -12),
    "hexadecimal": ("a: 0x1F\n", 31),
    "exact beyond a double": ("a: 9007199254740993\n", 9007199254740993),
    "float": ("a: .5\n", 0.5),
    "exponent that both versions read": ("a: 1.0e+3\n", 1000.0),
    "quoted no": ("a: 'no'\n", "no"),
    "quoted number": ('a: "010"\n', "010"),
    "a word": ("a: amber\n", "amber"),
    "a word that begins with a digit": ("a: 2nd\n", "2nd"),
    "a block": ("a: |\n  no\n", "no\n"),
    "crlf": ("a: x\r\nb: z\r\n", "x"),
    "a byte order mark at the start": ("\ufeffa: x\n", "x"),
    "an emoji": ("a: 🚦\n", "🚦"),
}


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ.keys())
def test_what_is_read(text: str, value: object) -> None:
    document = reader.read(text, "t.yaml")
    assert document.findings == []
    assert document.root is not None
    read = document.root.plain()["a"]
    assert read == value
    assert type(read) is type(value)


def test_bytes_that_are_not_utf_8_are_located() -> None:
    (finding,) = reader.read(b"a: 1\nb: caf\xe9\n", "t.yaml").findings
    assert (finding.code, finding.line, finding.column) == ("ECM101", 2, 7)


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"\xef\xbb\xbfa: \xff", 1, 4),
        (b"\xef\xbb\xbf\xc3\xa9ab\xff", 1, 4),
        (b"a: 1\rb: \xff", 2, 4),
        (b"a: 1\r\nb: \xff", 2, 4),
    ],
)
def test_the_place_of_a_bad_byte_knows_of_marks_and_line_ends(data: bytes, line: int, column: int) -> None:
    (finding,) = reader.read(data, "t.yaml").findings
    assert (finding.line, finding.column, "0xff" in finding.message) == (line, column, True)


def test_half_of_a_character_is_refused() -> None:
    assert [f.code for f in reader.read('a: "\\ud800"\n', "t.yaml").findings] == ["ECM101"]


@pytest.mark.parametrize(
    "text", ["a: [1", "a: *x\nb: !y 1\nc: no\n1: 2\n", "%FOO\n---\na: b", 'a: "\\ud800"', "a: 010", "<<: *x"]
)
def test_without_libyaml_the_same_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_libyaml = [(f.line, f.code) for f in reader.read(text, "t.yaml").findings]
    monkeypatch.setattr(reader, "_LOADER", yaml.SafeLoader)
    without = [(f.line, f.code) for f in reader.read(text, "t.yaml").findings]
    assert with_libyaml
    assert without == with_libyaml or text.startswith("%FOO")  # a directive of nobody's is read over


def test_a_file_over_1_mib_is_refused() -> None:
    (finding,) = reader.read("a: " + "x" * (1 << 20), "t.yaml").findings
    assert finding.code == "ECM101"
    assert "1 MiB" in finding.message


def test_an_alias_bomb_is_refused_at_once() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))
    findings = reader.read("l0: &l0 lol\n" + levels, "t.yaml").findings
    assert {f.code for f in findings} == {"ECM103"}


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "nul"])
def test_what_is_no_file_is_refused_without_waiting(kind: str, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "t.yaml")
    match kind:
        case "directory":
            path = str(tmp_path)
        case "pipe":
            os.mkfifo(path)
        case "nul":
            path = "a\0b"
    assert [f.code for f in reader.load(path).findings] == ["ECM100"]


def test_only_the_named_subtree_is_read_strictly() -> None:
    theirs = "x: &a {k: no}\n<<: *a\n1: 2\nx: twice\n"
    document = reader.read(theirs + "context: {enabled: true}\nz: !!set {a}\n", "eidolons.yaml", only="context")
    assert document.findings == []
    assert document.root is not None
    assert document.root.plain() == {"enabled": True}


def test_the_named_subtree_is_refused_like_any_table() -> None:
    text, places = unmark("x: no\ncontext: {enabled: «no», thresholds: «*t»}\n«context»: {}\n")
    findings = reader.read(text, "eidolons.yaml", only="context").findings
    assert told(findings) == [(*places[0], "ECM106"), (*places[1], "ECM103"), (*places[2], "ECM102")]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused_and_never_raises(text: str | bytes) -> None:
    document = reader.read(text, "t.yaml")
    assert document.root is not None or document.findings
    for finding in document.findings:
        assert finding.line >= 0
        assert finding.code.startswith("ECM1")


_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
_KEYS = st.text("abcdefg_", min_size=1, max_size=5)
_VALUES = st.recursive(
    _SCALARS | st.text("abcxyz 0123456789:-#'", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5))
def test_what_pyyaml_writes_is_read_as_it_was_meant(value: dict[str, object]) -> None:
    # PyYAML quotes what YAML 1.1 would misread; what only YAML 1.2 would, it writes plain, and we refuse.
    document = reader.read(yaml.safe_dump(value), "t.yaml")
    if not document.findings:
        assert document.root is not None
        assert document.root.plain() == value
    else:
        assert {f.code for f in document.findings} <= {"ECM106"}
