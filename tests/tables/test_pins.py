"""Pins and their sources as files say them: every mistake is located, and nothing of a tool's is taken."""

from __future__ import annotations

import itertools
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules import EcmError, load_policy
from ecm_rules.analysis.files import check_file
from ecm_rules.kernel import pins as ring
from ecm_rules.lifecycle import grammar
from ecm_rules.tables import pins, reader, schemas
from tests.conftest import FIXTURES, ROOT
from tests.marked import located, told, unmark
from tests.tables.test_project import write

DEFAULTS = [
    "cortex_routing_digest", "active_eidolon_refusal_table", "esl_enforcement_mode", "crystalium_trust_tier_map",
    "active_plan_step_and_criteria_sha256", "session_budget_and_compaction_count",
]  # fmt: skip


def test_each_default_says_where_its_text_comes_from() -> None:
    listed = load_policy(project=None).table.pins
    assert [pin.id for pin in listed] == DEFAULTS
    assert all(pin.sources and pin.sources != pins.rules().default for pin in listed)
    assert all(grammar.is_id(pin.id) for pin in listed)


def test_the_file_of_the_nexus_loads_as_it_is() -> None:
    path = FIXTURES / "upstream/pins.yaml"
    assert check_file(str(path)) == []
    document = reader.load(str(path))
    shape = schemas.validate("pins", document)
    assert shape.root is not None
    listed, findings = pins.read(document.source, shape.root, "upstream", pins.rules())
    assert findings == []
    assert [pin.id for pin, _ in listed] == DEFAULTS
    # Names without content are looked for as blocks of these names.
    assert all(pin.sources == pins.rules().default for pin, _ in listed)


def test_no_shipped_pin_restates_what_the_memory_declares() -> None:
    for pin in load_policy(project=None).table.pins:
        assert not any("literal" in source for source in pin.sources)


def test_a_project_says_where_its_own_text_comes_from(tmp_path: pathlib.Path) -> None:
    text = """
pins:
  - {id: a, why: w, source: {literal: Be brief.}}
  - id: b
    why: w
    source: {file: [docs/plan.md, PLAN.md], section: Now}
    otherwise: [{meter: "{zone}"}, {file: .spectra/x.json, value: "a.b", template: "x {value}", tier: T1}]
  - {id: c, why: w}
"""
    a, b, c = load_policy(project=write(tmp_path, "context: {}\n", text)).table.pins[6:]
    assert a.sources == ({"literal": "Be brief."},)
    assert [next(iter(source)) for source in b.sources] == ["file", "meter", "file"]
    assert c.sources == pins.rules().default


WRONG = {
    "no kind": ("{id: a, why: w, source: «{section: Now}»}", ["ECM202"]),
    "two kinds": ("{id: a, why: w, source: {literal: x, «meter»: '{zone}'}}", ["ECM204"]),
    "two parts": ("{id: a, why: w, source: {file: a.md, section: x, «between»: [a, b]}}", ["ECM204"]),
    "columns of a value": ("{id: a, why: w, source: {file: a.json, value: x, «columns»: [a]}}", ["ECM204"]),
    "a part of no file": ("{id: a, why: w, source: {literal: x, «section»: Now}}", ["ECM204"]),
    "one line of two": ("{id: a, why: w, source: {file: a.md, between: «[a]»}}", ["ECM204"]),
    "an unknown key": ("{id: a, why: w, source: {«flie»: a.md}}", ["ECM201"]),
    "a path that leaves": ("{id: a, why: w, source: {file: «../a.md»}}", ["ECM204"]),
    "a path from the root": ("{id: a, why: w, source: {file: «/etc/passwd»}}", ["ECM204"]),
    "a path from home": ("{id: a, why: w, source: {file: «~/a.md»}}", ["ECM204"]),
    "a path with a drive": ("{id: a, why: w, source: {file: «'C:/a.md'»}}", ["ECM204"]),
    "a path with backslashes": ("{id: a, why: w, source: {file: «'..\\a.md'»}}", ["ECM204"]),
    "a path with a NUL": ('{id: a, why: w, source: {file: «"a\\0b"»}}', ["ECM204"]),
    "a bad path among good ones": ("{id: a, why: w, source: {file: [a.md, «b/../../c.md»]}}", ["ECM204"]),
    "a value of a text": ("{id: a, why: w, source: {file: «a.lock», value: x}}", ["ECM204"]),
    "no JMESPath": ("{id: a, why: w, source: {file: a.json, value: «'a['»}}", ["ECM309"]),
    "no JMESPath to hash": ("{id: a, why: w, source: {file: a.json, sha256: «'a['»}}", ["ECM309"]),
    "a meter without a value": ("{id: a, why: w, source: {meter: «spent»}}", ["ECM204"]),
    "a blank literal": ("{id: a, why: w, source: {literal: «' '»}}", ["ECM204"]),
    "an empty literal": ("{id: a, why: w, source: {literal: «''»}}", ["ECM204"]),
    "an empty marker": ("{id: a, why: w, marker: «''»}", ["ECM204"]),
    "a blank marker": ("{id: a, why: w, marker: «'  '»}", ["ECM204"]),
    "a marker of two lines": ('{id: a, why: w, marker: «"a\\nb"»}', ["ECM204"]),
    "a marker that is a declaration": ("{id: a, why: w, marker: «'<!--ephemeral-->'»}", ["ECM407"]),
    "a literal with a declaration": ('{id: a, why: w, source: {literal: «"x\\r<!--/BLOCK_ID:a-->\\r"»}}', ["ECM407"]),
    "a result of a tool": ("{id: a, why: w, source: {«tool_result»: toolu_1}}", ["ECM406"]),
    "a tier of tools": ("{id: a, why: w, source: {file: a.md, tier: «T3»}}", ["ECM406"]),
    "the same in small": ("{id: a, why: w, source: {file: a.md, tier: «t3-quarantined»}}", ["ECM406"]),
    "a tool by origin": ("{id: a, why: w, source: {file: a.md, origin: «tool»}}", ["ECM406"]),
    "its result by origin": ("{id: a, why: w, source: {file: a.md, origin: «Tool-Result»}}", ["ECM406"]),
    "a tier of the pin": ("{id: a, why: w, tier: «T3»}", ["ECM406"]),
    "an origin of the pin": ("{id: a, why: w, origin: «mcp», source: {literal: x}}", ["ECM406"]),
    "a page of the web": ("{id: a, why: w, source: {literal: x, origin: «web_fetch»}}", ["ECM406"]),
    "what sessions write": ("{id: a, why: w, source: {file: «.eidolons/.context/handoff-1.md»}}", ["ECM406"]),
    "all of it": ("{id: a, why: w, source: {file: «.eidolons/.context»}}", ["ECM406"]),
    "a tool's as a last resort": (
        "{id: a, why: w, source: {file: a.md}, otherwise: [{literal: x}, {«tool_result»: x}]}",
        ["ECM406"],
    ),
    "an id in capitals": ("{id: «Release», why: w}", ["ECM205"]),
    "an id with a dot": ("{id: «release.freeze», why: w}", ["ECM205"]),
    "a shipped pin with another source": ("{id: «esl_enforcement_mode», why: w, source: {literal: advisory}}", ["ECM403"]),
}  # fmt: skip


@pytest.mark.parametrize(("pin", "codes"), WRONG.values(), ids=WRONG.keys())
def test_each_mistake_is_found_at_its_place(pin: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(f"pins:\n  - {pin}\n")
    with pytest.raises(EcmError) as caught:
        load_policy(project=write(tmp_path, "context: {}\n", clean))
    assert told(caught.value.findings) == located(places, codes)


def test_a_shipped_file_with_such_a_mistake_is_found_by_check(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pins.yaml"
    path.write_text("schema_version: 1\npins: [{id: a, why: w, source: {tool_result: x}}]\nnamed: [{file: ../x}]\n")
    assert [finding.code for finding in check_file(str(path))] == ["ECM406", "ECM204"]


def test_no_file_of_a_checkout_allows_what_the_shipped_one_never_does(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pins.yaml"
    path.write_text("schema_version: 1\npins: [{id: a, why: w, source: {file: a, tier: T3}}]\nnever: {tier: []}\n")
    assert [finding.code for finding in check_file(str(path))] == ["ECM406"]


@pytest.mark.parametrize("removal", ["pins_remove: [a]", "pins: [{id: esl_enforcement_mode, remove: true, why: w}]"])
def test_nothing_takes_a_pin_away(removal: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(EcmError) as caught:
        load_policy(project=write(tmp_path, "context: {}\n", removal + "\n"))
    assert {"ECM201"} <= {finding.code for finding in caught.value.findings}


PIECES = ["<!--ephemeral-->", "<!--BLOCK_ID:a-->", "<!--/BLOCK_ID:a-->", "<!--DISCARD_BLOCK:b_-1-->", "<!--BLOCK_ID:A-->",
          "<!--block_id:a-->", "\n", "\r", "\r\n", "\u2028", "\x85", " ", "x", "```\n", "<!--", "-->", "\ufeff"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_authoring_sees_the_declarations_that_the_grammar_sees(text: str) -> None:
    assert pins.declares(text) == ring.declares(text)


def test_every_tag_is_a_declaration_to_both() -> None:
    for before, tag, after in itertools.product(("", "x\n", "x\r"), PIECES[:4], ("", "\nx", "\rx")):
        assert pins.declares(before + tag + after)
        assert ring.declares(before + tag + after)


def test_the_guesses_are_told_apart_on_the_page() -> None:
    page = (ROOT / "docs/pins.md").read_text()
    assert all(f"`{pin}`" in page for pin in DEFAULTS)
