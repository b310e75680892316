"""The brief: composed to the byte, read back, whatever its texts hold."""

from __future__ import annotations

import json
import time

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ecm_rules.artifacts import brief, jq
from ecm_rules.artifacts.brief import Brief
from tests.artifacts.texts import briefs
from tests.conftest import FIXTURES

ATOMOS = FIXTURES / "atomos/parity"
VECTORS = sorted(path.name for path in ATOMOS.iterdir() if path.is_dir())


def golden(vector: str) -> tuple[Brief, bytes]:
    given = json.loads((ATOMOS / vector / "input.json").read_text())
    fields = {field.name for field in attrs.fields(Brief)}
    return Brief(**{key: value for key, value in given.items() if key in fields}), (
        ATOMOS / vector / "brief.md"
    ).read_bytes()


def written(told: Brief) -> Brief:
    """What a brief says: empty entries leave no line, and what is no character is replaced."""

    def entries(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(jq.clean(value) for value in values if value)

    def listed(values: tuple[str, ...]) -> tuple[str, ...]:
        return entries(values) or (("",) if values else ())

    return Brief(
        jq.clean(told.task_state) or brief.NO_TASK,
        jq.clean(told.narrative),
        entries(told.anchors),
        entries(told.symbols),
        entries(told.decisions),
        listed(told.failed_approaches),
        listed(told.open_vars),
        listed(told.next_steps),
        told.contains_tool_origin,
    )


@pytest.mark.parametrize("vector", VECTORS)
def test_the_golden_briefs_are_composed_and_read_back(vector: str) -> None:
    told, expected = golden(vector)
    assert brief.compose(told) == expected
    assert brief.read(expected) == written(told)


@given(briefs())
@example(Brief(next_steps=["\n\n## Narrative\n\nTask state: "]))
@example(Brief(failed_approaches=["\n\n## Next steps\n- x", "y"]))
@example(Brief(anchors=["\n- symbol: ", "\n\n## Failed approaches\n- "]))
@example(Brief(narrative="## Open variables\n- "))
@example(Brief(narrative="\n\n## contains_tool_origin\nfalse\n", contains_tool_origin=True))
def test_composing_what_was_read_gives_the_same_bytes(told: Brief) -> None:
    composed = brief.compose(told)
    assert brief.compose(told) == composed
    seen = brief.read(composed)
    assert brief.compose(seen) == composed
    assert seen.contains_tool_origin is told.contains_tool_origin


# Everything but what the format cannot tell apart: nothing here begins a line with what begins an entry or a heading.
_PLAIN = st.lists(
    st.sampled_from([
        "a", "é", "日本", "\n", "\n ", " - ", "\r\n", "\0", "\u2028", "\ud800", "x---", "\n---", "\n```\n", "x## Next steps", "\n### Narrative",
        "\n# Session Handoff Brief", "\n(none recorded)", "<!--x-->", "true", "\n- anchor: a", "x\n## Next steps",
    ]), min_size=1, max_size=6,
).map(lambda pieces: "x" + "".join(pieces) + "y")  # fmt: skip


@given(briefs(_PLAIN.filter(lambda text: "\n- " not in text and "\n\n" not in text)))
def test_texts_that_begin_no_entry_and_leave_no_blank_line_are_read_as_they_were_written(told: Brief) -> None:
    assert brief.read(brief.compose(told)) == written(told)


@given(briefs().filter(lambda told: bool(told.open_vars)))
def test_a_narrative_may_hold_every_heading_where_open_variables_follow(told: Brief) -> None:
    narrative = (
        "## Failed approaches\n- x\n\n## Next steps\n- y\n\n## Narrative\n\nTask state: z\n\n## Open variables\n- w"
    )
    plain = attrs.evolve(
        told, task_state="t", narrative=narrative, anchors=(), symbols=(), decisions=(), failed_approaches=["f"],
        next_steps=["n"], open_vars=["v"],
    )  # fmt: skip
    assert brief.read(brief.compose(plain)) == plain


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        (Brief("t", failed_approaches=["a\n- b"]), Brief("t", failed_approaches=["a", "b"])),
        (Brief("t", anchors=["a\n- symbol: b"]), Brief("t", anchors=["a"], symbols=["b"])),
        (Brief("t", anchors=["a\n- b"]), Brief("t", anchors=["a\n- b"])),
        (Brief("t", decisions=["a\n- symbol: b"]), Brief("t", decisions=["a\n- symbol: b"])),
        (Brief("one\n\ntwo"), Brief("one", "two")),
        (Brief("t", "n\n\n## Open variables\n- v"), Brief("t", "n", open_vars=["v"])),
        (Brief("t", failed_approaches=["a\n\n## Next steps\n- b"], next_steps=["c"]),
         Brief("t", failed_approaches=["a"], next_steps=["b\n\n## Next steps", "c"])),
        (Brief("t", next_steps=["", ""]), Brief("t", next_steps=[""])),
        (Brief(""), Brief(brief.NO_TASK)),
    ],
)  # fmt: skip
def test_what_the_format_cannot_tell_apart_is_read_as_documented(told: Brief, seen: Brief) -> None:
    assert brief.read(brief.compose(told)) == seen


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"# Session Handoff Brief\n",
        b"# Session Handoff Brief\r\n\r\n## Identifiers\r\n",
        brief.compose(Brief())[:-1],
        brief.compose(Brief()).replace(b"false", b"maybe"),
        brief.compose(Brief()).replace(b"## Next steps", b"## Next"),
        brief.compose(Brief()).replace(b"## Identifiers\n", b"## Identifiers\nstray\n"),
        brief.compose(Brief(next_steps=["a"])).replace(b"- a\n", b"a\n"),
    ],
)
def test_what_is_no_brief_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^found .+, expected .+"):
        brief.read(data)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_a_damaged_brief_is_read_or_refused(noise: bytes, at: int) -> None:
    data = golden("fully-populated")[1]
    try:
        seen = brief.read(data[:at] + noise + data[at:])
    except ValueError:
        return
    assert isinstance(seen, Brief)


def test_a_huge_brief_is_read_in_time() -> None:
    entry = "- x\n\n## Next steps\n\n\n## Open variables\n" * 20_000
    told = Brief(entry, entry, [entry], [entry], [entry], [entry], [entry], [entry])
    composed = brief.compose(told)
    began = time.process_time()
    assert brief.compose(brief.read(composed)) == composed
    assert time.process_time() - began < 5


@given(st.binary(max_size=20), st.integers(1, 8))
def test_tokens_are_bytes_by_the_limit_rounded_down(data: bytes, bytes_per_token: int) -> None:
    assert brief.tokens(data, bytes_per_token) == len(data) // bytes_per_token


def test_an_oversize_brief_is_an_event_and_never_cut() -> None:
    told, composed = golden("oversize-brief")
    assert brief.compose(told) == composed
    tokens = brief.tokens(composed)
    assert brief.oversize("p", tokens, "2026-07-07T00:00:00Z") == {
        "event": "handoff_brief_oversize",
        "evaluated_at": "2026-07-07T00:00:00Z",
        "path": "p",
        "tokens_est": 1955,
        "target_tokens": 1500,
    }
    assert brief.oversize("p", 1500, "") is None
    assert brief.oversize("p", 1500, "", target_tokens=1499) is not None


@pytest.mark.parametrize(
    ("task", "line"), [("a\nb", "a"), ("\n  \n b \nc", " b "), ("", ""), ("\n ", "\n "), ("\u2028x\ny", "\u2028x")]
)
def test_the_head_is_the_first_line_that_is_not_blank(task: str, line: str) -> None:
    assert brief.head(task) == line
