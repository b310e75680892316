"""Bytes of list content, as JSON.stringify counts them."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.lifecycle.ecmascript import number, stringify, utf8, utf8_of_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_printed_is_the_value(value: object) -> None:
    printed = stringify(value)
    back = json.loads(printed)
    assert json.loads(json.dumps(back), parse_int=float) == json.loads(json.dumps(value), parse_int=float)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e-7, "1e-7"),
        (1.5e-6, "0.0000015"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123456789012345680000, "123456789012345680000"),
        (2**53 + 1, "9007199254740992"),
        (10**400, "null"),
        (float("inf"), "null"),
        (float("nan"), "null"),
        (5e-324, "5e-324"),
        (-12.5, "-12.5"),
        (1.2345e25, "1.2345e+25"),
    ],
)
def test_numbers_are_in_ecmascript_notation(value: float, printed: str) -> None:
    assert number(value) == printed


@pytest.mark.skipif(shutil.which("node") is None, reason="no ECMAScript engine here")
def test_an_ecmascript_engine_prints_the_same() -> None:
    odd = [0.1, 1e-6, 123.456, 1e300, 2.0**70, 1 / 3, 5e-324, -1e-9, 1e22, 4.35, 2**31, "a\u2028\x7f\x00é\ud83d\ude00"]
    value = [*odd, {"k\n": [None, True, {}], "é": "\ud800"}]
    told = "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8'))))"
    done = subprocess.run(["node", "-e", told], input=json.dumps(value), capture_output=True, text=True, check=True)
    assert utf8_of_json(value) == len(done.stdout.rstrip("\n").encode())


@pytest.mark.parametrize(
    ("text", "size"), [("abc", 3), ("é", 2), ("\U0001f600", 4), ("\ud83d\ude00", 4), ("\ud83d", 3), ("\ude00\ud83d", 6)]
)
def test_strings_are_counted_in_utf8(text: str, size: int) -> None:
    assert utf8(text) == size


@pytest.mark.parametrize("value", [{1: "x"}, {"x": b""}, object(), [set()]])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        stringify(value)


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(RecursionError):
        stringify(value)
