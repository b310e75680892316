"""The identifier manifest, and JSON as jq prints it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.artifacts import jq, manifest
from ecm_rules.artifacts.manifest import Manifest
from tests.artifacts.texts import anything
from tests.conftest import FIXTURES

NOW = "2026-07-12T02:50:26Z"


def test_entries_split_at_newlines_and_empty_ones_vanish() -> None:
    told = manifest.document(Manifest(NOW, anchors=["", "a\n\nb", "c\r\nd"], session_id=""))
    assert told["anchors"] == ["a", "b", "c\r", "d"]
    assert told["session_id"] is None
    assert list(manifest.document(Manifest(NOW), "why"))[-1] == "file_floor_reason"


@given(anything, st.lists(anything, max_size=3), st.booleans(), anything, anything)
def test_what_is_composed_is_one_document_whatever_the_texts_hold(
    summary: str, entries: list[str], origin: bool, session: str, reason: str
) -> None:
    told = Manifest(NOW, summary, entries, entries, entries, entries, entries, origin, session)
    data = manifest.compose(told, reason)
    assert data == manifest.compose(told, reason)
    assert data.endswith(b"}\n")
    seen = json.loads(data)
    assert seen["contains_tool_origin"] is origin
    assert seen["anchors"] == [jq.clean(entry) for entry in told.anchors]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('"\\/<>&', r'"\"\\/<>&"'),
        ("\b\f\n\r\t", r'"\b\f\n\r\t"'),
        ("\0\x1f\x7f\x80", '"\\u0000\\u001f\\u007f\x80"'),
        ("é\u2028\U0001f600", '"é\u2028\U0001f600"'),
        ("\ud800x\udc00", '"\ufffdx\ufffd"'),
        ("a\udce2\udc82b", '"a\ufffdb"'),
        ("\udce2\udc82\udcac", '"€"'),
        ("\udcff\udcfe", '"\ufffd\ufffd"'),
    ],
)
def test_strings_are_spelled_as_jq_spells_them(text: str, printed: str) -> None:
    assert jq.dumps(text) == printed.encode() + b"\n"


def test_documents_are_laid_out_as_jq_lays_them_out() -> None:
    data = {"b": [], "a": {"x": None, "y": [1, "z"]}, "c": {}, "d": True}
    expected = (FIXTURES / "atomos/parity-manifest/manifest-tool-origin/manifest.json").read_bytes()
    assert jq.dumps(json.loads(expected)) == expected
    assert jq.dumps(data) == (
        b'{\n  "b": [],\n  "a": {\n    "x": null,\n    "y": [\n      1,\n      "z"\n    ]\n  },\n  "c": {},\n  "d": true\n}\n'
    )
    assert jq.line(data) == b'{"b":[],"a":{"x":null,"y":[1,"z"]},"c":{},"d":true}'
