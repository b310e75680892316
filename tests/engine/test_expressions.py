"""Expressions that the program evaluates itself give what the JMESPath library gives."""

from __future__ import annotations

from typing import Any

import jmespath
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
    for text in ("length(t)", "[n, i]", "not_null(n, i) > `1`", "n | @", "{a: n}", "`[1]` == n"):
        assert expressions.translate(text, TYPES) == ["search", text]
