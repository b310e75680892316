"""Expressions that the program evaluates itself give what the JMESPath library gives."""

from __future__ import annotations

from typing import Any

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.engine import program
from ecm_rules.tables import expressions

TYPES = {"n": "number", "i": "integer", "b": "boolean", "e": "enum", "t": "string"}
ATOMS = ["n", "i", "b", "e", "t", "`null`", "`true`", "`false`", "`0`", "`1`", "`1.0`", "`2.5`", "'a'", "''", '`"a"`']
NUMBERS = ["n", "i", "`0`", "`1`", "`2.5`"]


def texts() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(ATOMS)
    ordered = st.builds(
        "{} {} {}".format, st.sampled_from(NUMBERS), st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(NUMBERS)
    )
    equal = st.builds("{} {} {}".format, atoms, st.sampled_from(["==", "!="]), atoms)
    return st.recursive(
        atoms | ordered | equal,
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner)
            | st.builds("!({})".format, inner)
        ),
        max_leaves=6,
    )


DOCUMENTS = st.fixed_dictionaries(
    {
        "n": st.none() | st.sampled_from([0, 1, 1.0, 2.5, -1]),
        "i": st.none() | st.integers(0, 3),
        "b": st.none() | st.booleans(),
        "e": st.none() | st.sampled_from(["a", "b"]),
        "t": st.none() | st.sampled_from(["", "a"]),
    }
)


@settings(max_examples=500, deadline=None)
@given(texts(), DOCUMENTS)
def test_the_program_agrees_with_the_library(text: str, document: dict[str, Any]) -> None:
    expression = expressions.translate(text, TYPES)
    assert expression[0] != "search"
    ours, theirs = program.evaluate(expression, document), jmespath.search(text, document)
    assert ours == theirs
    assert type(ours) is type(theirs)


def test_what_is_more_than_that_stays_with_the_library() -> None:
    everything = list(TYPES)
    for text, needed in {
        "length(t)": ["t"],
        "[n, i]": ["n", "i"],
        "not_null(i, n) > `1`": ["n", "i"],
        "n | @": ["n"],
        "{a: n}": ["n"],
        "`[1]` == n": ["n"],
        "@": everything,
        "@.n": ["n"],
        "@[0:1]": everything,
        "@[::2]": everything,
        "length(@)": everything,
        "map(&a, [{a: n}])[0]": ["n"],
        "max_by([{v: n}], &v).v": ["n"],
        "[n][?@ > `1`] | [0]": ["n"],
    }.items():
        assert expressions.translate(text, TYPES) == ["search", text, needed]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("*", "order"),
        ("keys(@)[0]", "order"),
        ("values(@)", "order"),
        ("*|[0]", "order"),
        ("n|" + "|".join(["[@,@,@,@][]"] * 14), "multiplies"),
        ("m", "unknown field"),
        ("@.m", "unknown field"),
        ("a \x00 b", r"\\u\{0000\}"),
    ],
)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    with pytest.raises(expressions.Invalid, match=why):
        expressions.translate(text, TYPES)


def test_a_path_does_not_depend_on_the_order_of_keys() -> None:
    for text in ("*|[0]", "to_string(b)", "keys(b)"):
        with pytest.raises(expressions.Invalid, match="order"):
            expressions.path(text)
