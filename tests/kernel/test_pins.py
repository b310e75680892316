"""Pins as blocks: rendered within a budget, looked for, put back, whatever the artifact is."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.kernel import pins
from ecm_rules.lifecycle import grammar


def pin(id: str, text: str | None = "body", marker: str = "", why: str = "because", reason: str = "") -> dict[str, Any]:
    return {"id": id, "why": why, "marker": marker or id, "text": text, "reason": reason}


A, B = pin("a_1", "alpha\nbeta"), pin("b-2", "gamma", "House style")
WHOLE_A = "<!--BLOCK_ID:a_1-->\nalpha\nbeta\n<!--/BLOCK_ID:a_1-->\n"
WHOLE_B = "<!--BLOCK_ID:b-2-->\nHouse style\ngamma\n<!--/BLOCK_ID:b-2-->\n"


def test_a_block_holds_its_marker() -> None:
    assert pins.block(A) == WHOLE_A
    assert pins.block(B) == WHOLE_B
    assert pins.block(pin("b", "the House style", "House style")) == (
        "<!--BLOCK_ID:b-->\nthe House style\n<!--/BLOCK_ID:b-->\n"
    )


def test_rendered_pins_are_definitions_to_the_grammar() -> None:
    parsed = grammar.parse(pins.render([A, B]).text, "pins")
    assert [(b.id, b.content) for b in parsed.blocks] == [("a_1", "alpha\nbeta\n"), ("b-2", "House style\ngamma\n")]
    assert parsed.diagnostics == []


@pytest.mark.parametrize("marker", ["", "  ", "\u2003", "a\nb", "a\rb", "<!--ephemeral-->", "<!--BLOCK_ID:x-->"])
def test_what_is_no_marker_is_the_id(marker: str) -> None:
    assert pins.marker({"id": "a", "marker": marker}) == "a"
    assert pins.marker({"id": "a"}) == "a"


@pytest.mark.parametrize("id", ["A", "a.b", "", "a b", "é", "a\n"])
def test_an_id_that_no_block_can_have_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="expected one of a-z"):
        pins.block(pin(id))


@pytest.mark.parametrize(
    "text", [None, "", "\n\n", "a\n<!--ephemeral-->\nb", "x\r<!--/BLOCK_ID:a-->\ry", "<!--DISCARD_BLOCK:b-->"]
)
def test_a_pin_without_a_text_says_so_in_its_block(text: str | None) -> None:
    made = pins.block(pin("a", text, why="the <!--ephemeral-->\n<!--ephemeral-->", reason="AGENTS.md: no such file\n"))
    parsed = grammar.parse(made, "pins")
    assert [b.id for b in parsed.blocks] == ["a"]
    assert not parsed.ephemeral
    assert parsed.blocks[0].content.endswith(" (not resolved: AGENTS.md: no such file)\n")


def test_what_does_not_fit_is_left_out_whole_and_named() -> None:
    large = pin("large", "x" * 1_000_000)
    made = pins.render([A, large, B], budget=30)
    assert (made.text, made.ids, made.left_out) == (WHOLE_A + WHOLE_B, ["a_1", "b-2"], ["large"])
    assert made.size == len(made.text)
    assert pins.render([A, B], budget=0).left_out == ["a_1", "b-2"]
    assert pins.render([A, large]).left_out == []


def test_a_budget_is_kept_to_the_byte() -> None:
    exact = len(WHOLE_A) / 4
    assert pins.render([A], exact).left_out == []
    assert pins.render([A], exact - 0.25).left_out == ["a_1"]
    assert pins.render([A], 10, bytes_per_token=len(WHOLE_A) / 10).left_out == []
    wide = pin("w", "é" * 10)
    assert pins.render([wide]).size == len(pins.block(wide).encode())


MISSING = ["", "text", "text without an end", "alpha\nbeta\n", "<!--BLOCK_ID:other-->\nx\n"]
DAMAGED = {
    "the end cut off": "x\n<!--BLOCK_ID:a_1-->\nalpha\nbe",
    "the tag alone": "<!--BLOCK_ID:a_1-->",
    "its end alone": "beta\n<!--/BLOCK_ID:a_1-->\ny\n",
    "another's tag within": "<!--BLOCK_ID:a_1-->\n<!--BLOCK_ID:zz-->\n<!--/BLOCK_ID:a_1-->\n",
}


@pytest.mark.parametrize("text", MISSING)
def test_a_missing_pin_is_appended(text: str) -> None:
    assert pins.probe(text, [A]) == {"a_1": "missing"}
    repaired, replaced, appended = pins.repair(text, [A])
    assert (replaced, appended) == ([], ["a_1"])
    assert repaired == text + ("\n" if text and not text.endswith("\n") else "") + WHOLE_A
    assert pins.probe(repaired, [A]) == {"a_1": "present"}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_block_is_replaced_where_it_stands(text: str) -> None:
    assert pins.probe(text, [A]) == {"a_1": "damaged"}
    repaired, replaced, appended = pins.repair(text, [A])
    assert (replaced, appended) == (["a_1"], [])
    assert WHOLE_A in repaired
    assert pins.repair(repaired, [A])[0] == repaired


def test_only_the_damage_is_replaced() -> None:
    cut = "before\n<!--BLOCK_ID:a_1-->\nalpha\n\nafter, of somebody else\n"
    assert pins.repair(cut, [A])[0] == f"before\n{WHOLE_A}\nafter, of somebody else\n"
    assert pins.repair("x\n<!--BLOCK_ID:a_1-->\nalpha\nbe", [A])[0] == f"x\n{WHOLE_A}"
    emptied = "x\n<!--BLOCK_ID:b-2-->\nsomething\n<!--/BLOCK_ID:b-2-->\ny"
    assert pins.repair(emptied, [B])[0] == f"x\n{WHOLE_B}y"


def test_a_mention_in_the_block_of_another_pin_is_no_pin() -> None:
    other = pin("other", "see a_1")
    text = pins.block(other)
    assert pins.probe(text, [A, other]) == {"a_1": "missing", "other": "present"}
    assert pins.probe("see a_1\n", [A, other])["a_1"] == "present"
    assert pins.repair(text, [A, other])[2] == ["a_1"]


def test_a_marker_that_stood_in_the_damage_of_another_is_looked_for_again() -> None:
    holder = pin("holder", "see a_1")
    text = "<!--BLOCK_ID:holder-->\nsee a_1\n"
    assert pins.probe(text, [A, holder]) == {"a_1": "present", "holder": "damaged"}
    repaired, replaced, appended = pins.repair(text, [A, holder])
    assert (replaced, appended) == (["holder"], ["a_1"])
    assert set(pins.probe(repaired, [A, holder]).values()) == {"present"}


def test_a_block_of_the_same_id_is_the_pins() -> None:
    own = "<!--BLOCK_ID:a_1-->\nsomebody's own words\n<!--/BLOCK_ID:a_1-->\n"
    assert pins.repair(own, [A]) == (own, [], [])


def test_pins_that_were_put_in_twice_are_present() -> None:
    assert pins.repair(WHOLE_A + "x\n" + WHOLE_A, [A])[1:] == ([], [])


@pytest.mark.parametrize(
    "tag", [" <!--BLOCK_ID:zz-->", "<!--BLOCK_ID:zz-->\u2028", "x<!--BLOCK_ID:zz-->", "<!--BLOCK_ID:ZZ-->"]
)
def test_what_is_no_exact_tag_ends_no_block(tag: str) -> None:
    text = f"<!--BLOCK_ID:a_1-->\n{tag}\n<!--/BLOCK_ID:a_1-->"
    assert pins.probe(text, [A]) == {"a_1": "present"}


@pytest.mark.parametrize(("text", "end"), [("a\r\nb\nc", "\r\n"), ("a\rb", "\r"), ("a\nb\r\n", "\n"), ("a", "\n")])
def test_new_lines_end_as_the_first_one_does(text: str, end: str) -> None:
    repaired = pins.repair(text, [A])[0]
    assert repaired.removeprefix(text).removeprefix(end) == WHOLE_A.replace("\n", end)
    assert pins.repair(repaired, [A])[0] == repaired


def test_a_thousand_tags_take_no_longer_than_their_size() -> None:
    text = "<!--BLOCK_ID:zz-->\n" * 100_000
    started = time.perf_counter()
    assert set(pins.probe(text, [A, B]).values()) == {"missing"}
    pins.repair(text.replace("zz", "a_1") + "\r", [A, B])
    assert time.perf_counter() - started < 10


IDS = ["a", "b", "c"]
LINES = [
    *(f"<!--{slash}BLOCK_ID:{id}-->" for id in (*IDS, "other") for slash in ("", "/")),
    "<!--ephemeral-->", "<!--DISCARD_BLOCK:a-->", " <!--BLOCK_ID:a-->", "<!--BLOCK_ID:a--> ", "one", "two", "two and", "m1",
    "m2", "x m2 y", "", "a", "\u2028", "\x85", "<!--BLOCK_ID:", "-->",
]  # fmt: skip
ENDS = ["\n", "\r\n", "\r", ""]
texts = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=12).map(
    lambda lines: "".join(line + end for line, end in lines)
)
bodies = st.one_of(
    st.none(), texts, st.lists(st.sampled_from(["one", "two", "two and", "m1", "b", ""]), max_size=4).map("\n".join)
)
sets = st.builds(
    lambda made: [pin(id, text, marker) for id, (text, marker) in zip(IDS, made, strict=False)],
    st.lists(
        st.tuples(bodies, st.sampled_from(["", " ", "m1", "m2", "m\n", "<!--ephemeral-->", "b", "BLOCK", "-->"])),
        max_size=3,
    ),
)


@settings(max_examples=500, deadline=None)
@given(texts, sets)
def test_after_a_repair_every_pin_is_there_and_nothing_is_left_to_do(text: str, listed: list[dict[str, Any]]) -> None:
    repaired, replaced, appended = pins.repair(text, listed)
    assert set(pins.probe(repaired, listed).values()) <= {"present"}
    assert pins.repair(repaired, listed) == (repaired, [], [])
    assert (repaired == text) == (not replaced and not appended)
    if not replaced:
        assert repaired.startswith(text)


@settings(max_examples=500, deadline=None)
@given(texts, sets)
def test_a_repair_keeps_what_is_no_damaged_block(text: str, listed: list[dict[str, Any]]) -> None:
    repaired, replaced, _ = pins.repair(text, listed)
    # Without the tags of the replaced pins and their own lines, what was there is still there, in order.
    own = {line for p in listed if p["id"] in replaced for line in pins.block(p).split("\n")}
    kept = [line for line in text.replace("\r", "\n").split("\n") if not any(o.startswith(line) for o in own)]
    damaged = [p for p in listed if p["id"] in replaced]
    if any(f"<!--BLOCK_ID:{p['id']}-->" in text and f"<!--/BLOCK_ID:{p['id']}-->" in text for p in damaged):
        return  # a whole block without its marker goes as a whole
    left = iter(repaired.replace("\r", "\n").split("\n"))
    assert all(line in left for line in kept)


@settings(max_examples=300, deadline=None)
@given(sets, st.integers(0, 120))
def test_rendered_pins_stay_within_their_budget_and_in_order(listed: list[dict[str, Any]], budget: int) -> None:
    made = pins.render(listed, budget)
    assert len(made.text.encode()) <= budget * 4
    assert sorted(made.ids + made.left_out) == [p["id"] for p in listed]
    assert made.ids == sorted(made.ids)
    assert [b.id for b in grammar.parse(made.text, "").blocks] == made.ids
    assert set(pins.probe(made.text, [p for p in listed if p["id"] in made.ids]).values()) <= {"present"}
