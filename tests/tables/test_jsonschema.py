"""The JSON Schemas take what loads and refuse what does not, as far as JSON Schema can say it."""

from __future__ import annotations

import copy
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import EcmError, load_policy, load_table
from ecm_rules.cli.schema import NAMES
from ecm_rules.tables import jsonschema as derived
from ecm_rules.tables import load, reader, rows, schemas
from tests.conftest import FIXTURES, ROOT

TABLES = sorted([*(ROOT / "roster").glob("*.yaml"), *(ROOT / "rules").glob("*.yaml")])
POLICY = ROOT / "roster/context-policy.yaml"
LATERAL = ROOT / "rules/lateral-signals.yaml"
SPEAKING = {"context-policy", "project-ecm"}  # with the shipped vocabulary
# Whole floats are integers to JSON Schema; here they are not, so that both sides can be held to be equal.
Strict = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator,
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int),
)
SIGNALS = load.shipped_vocabulary().declared()
VALIDATORS = {name: Strict(derived.derive(name)) for name in NAMES}


def plain(path: pathlib.Path) -> Any:
    root = reader.load(str(path)).root
    assert root is not None
    return root.plain()


def shaped(name: str, document: Any) -> bool:
    """Whether Cerberus takes a document, of which it sees what the loader shows it."""
    only = "context" if name == "project-context" else None
    read = reader.read(json.dumps(document), "t.yaml", only)
    return not (read.findings or schemas.validate(name, read).findings)


def loads(name: str, document: Any, folder: pathlib.Path) -> bool:
    """Whether a policy loads, or the shipped tables with a project's file beside them."""
    (folder / ".eidolons").mkdir(exist_ok=True)
    (folder / "eidolons.yaml").write_text("context: {}")
    policy = folder / "policy.yaml" if name == "context-policy" else None
    (policy or folder / ".eidolons/ecm.yaml").write_text(json.dumps(document))
    try:
        load_policy(policy, project=None if policy else folder)
        load_table("trust-sources", project=None if policy else folder)
    except EcmError:
        return False
    return True


def modeline(path: pathlib.Path) -> pathlib.Path:
    """The schema that the first line of a table leads an editor to."""
    found = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
    assert found, f"{path} does not say its schema in its first line"
    return path.parent / found[1]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_each_shipped_table_says_its_schema_and_fits_it(path: pathlib.Path) -> None:
    schema = json.loads(modeline(path).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(plain(path))
    decides = path.stem in load.shipped_tables() and path != POLICY
    assert schema["title"] == ("decision-table" if decides else path.stem)


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_fixture_that_loads_fits(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    document = plain(path)
    kinds = [
        name for name in NAMES if (loads(name, document, tmp_path) if name in SPEAKING else shaped(name, document))
    ]
    assert kinds
    for name in kinds:
        VALIDATORS[name].validate(document)


PROJECT = {
    "name": "p",
    "context": {
        "enabled": True,
        "thresholds": {"amber": 0.4},
        "compaction_depth_cap": 1,
        "budget_tokens": None,
        "pins_extra": ["freeze"],
    },
}
EXTRA = {
    "schema_version": 1,
    "pins": [
        {"id": "freeze", "why": "w", "marker": "m", "source": {"file": ["a.md", "b.md"], "section": "Now"}},
        {"id": "b", "why": "w", "source": {"literal": "x"}, "otherwise": [{"meter": "{zone}"}]},
    ],
    "invariants": [
        {
            "id": "i1",
            "assume": {"role": "subagent", "zone": ["red"]},
            "assert": {"operation_ne": "wrap_up"},
            "why": "w",
        },
        {"id": "i2", "assume": {}, "assert": {"rule_not_in": ["P1"], "raw_operation_missing": False}},
    ],
    "trust_sources": [
        {"id": "t1", "when": {"source_id": "a", "origin": ["user", "system"]}, "operation": "allow", "why": "w"},
        {"id": "t2", "when": {"explicitly_loaded": False, "declaration_ne": "block"}, "operation": "deny"},
    ],
}
DOCUMENTS = {
    **{path.stem: plain(path) for path in TABLES if path.stem in NAMES},
    "decision-table": plain(LATERAL),
    "project-context": PROJECT,
    "project-ecm": EXTRA,
    "scenarios": plain(FIXTURES / "scenarios/context-policy.yaml"),
}
JUNK = [
    None, True, False, -1, 0, 1, 2, 0.5, 2.0, "", "a", "red", "compact", "a b", "9a", "é", "a" * 65, "own", [], ["a"],
    ["red"], [1], [None], {}, {"a": 1}, {"steps": ["a"]}, {"ref": "limits.compaction_depth_cap"}, {"zone_ne": "red"},
]  # fmt: skip
KEYS = [
    "a",
    "9a",
    "é",
    "",
    "why",
    "zone",
    "zone_in",
    "zone_lt",
    "source_id",
    "origin_in",
    "compaction_count_lt",
    "ceiling_missing",
    "spent",
    "limits",
    "role",
    "rule",
    "operation_in",
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with each of its keys."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


@st.composite
def edited(draw: st.DrawFn, document: Any) -> Any:
    """A document with one or two edits, each anywhere in it."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(document))
        if not found:
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        edit, junk = draw(st.sampled_from(["replace", "replace", "remove", "add"])), draw(st.sampled_from(JUNK))
        if edit == "remove":
            del container[key]
        elif edit == "replace":
            container[key] = copy.deepcopy(junk)
        elif isinstance(container, dict):
            container[draw(st.sampled_from(KEYS))] = copy.deepcopy(junk)
        else:
            container.append(copy.deepcopy(junk))
    return document


@pytest.mark.parametrize("name", sorted(set(NAMES) - SPEAKING))
def test_json_schema_takes_what_cerberus_takes(name: str) -> None:
    assert shaped(name, DOCUMENTS[name])

    @settings(max_examples=300, deadline=None)
    @given(edited(DOCUMENTS[name]))
    def agree(document: Any) -> None:
        assert VALIDATORS[name].is_valid(document) == shaped(name, document)

    agree()


@pytest.mark.parametrize("name", sorted(SPEAKING))
def test_json_schema_takes_what_loads_and_nothing_that_cerberus_refuses(name: str, tmp_path: pathlib.Path) -> None:
    assert loads(name, DOCUMENTS[name], tmp_path)
    seen = set()

    @settings(max_examples=200, deadline=None)
    @given(edited(DOCUMENTS[name]))
    def implied(document: Any) -> None:
        fits, loaded = VALIDATORS[name].is_valid(document), loads(name, document, tmp_path)
        seen.add((fits, loaded))
        assert fits or not loaded
        assert shaped(name, document) or not fits

    implied()
    assert seen >= {(True, True), (False, False)}


def test_each_test_of_a_row_is_taken_or_refused_as_it_is_by_loading(tmp_path: pathlib.Path) -> None:
    """Every signal with every suffix and values of every kind, a row each, in one table."""
    values = [True, 0, 1, 0.5, 7, -1, "red", "1", None, ["red"], [0, 1], [0.5], [True], [], {"a": 1}]
    suffixes = ["", "_is", *(f"_{suffix}" for suffix in rows.SUFFIXES)]
    tests = [(signal + suffix, value) for signal in SIGNALS for suffix in suffixes for value in values]
    refused_by_schema, refused_by_loading = set(), set()
    for start in range(0, len(tests), 900):
        listed = [
            {"id": f"R{start + i}", "when": {key: value}, "operation": "compact"}
            for i, (key, value) in enumerate(tests[start : start + 900])
        ]
        document = {**DOCUMENTS["context-policy"], "rules": listed}
        path = tmp_path / "policy.yaml"
        path.write_text(json.dumps(document).replace('{"id": "R', '\n{"id": "R'))  # a row a line, from the second
        with pytest.raises(EcmError) as caught:
            load_policy(path, project=None)
        refused_by_loading |= {start + finding.line - 2 for finding in caught.value.findings}
        errors = VALIDATORS["context-policy"].iter_errors(document)
        refused_by_schema |= {start + int(error.absolute_path[1]) for error in errors}
    assert 0 < len(refused_by_loading) < len(tests)
    assert [tests[i] for i in refused_by_schema ^ refused_by_loading] == []


def test_a_ref_may_stand_for_any_value() -> None:
    when = {key: {"ref": "limits.a"} for key, _, _ in rows.keys(SIGNALS)}
    assert {"zone", "zone_not_in", "ceiling_missing", "spent_gte", "budget_ceiling_set_ne"} < when.keys()
    row = {"id": "R", "when": when, "operation": "compact"}
    VALIDATORS["context-policy"].validate({**DOCUMENTS["context-policy"], "rules": [row]})


TEXT = POLICY.read_text()
MISTAKES = {
    "unknown signal": ("zone: critical", "zonee: critical", "rules/1/when"),
    "unknown suffix": ("compaction_count_lt", "compaction_count_below", "rules/2/when"),
    "suffix that does not fit": ("zone: critical", "zone_lt: critical", "rules/1/when"),
    "value outside an enum": ("zone: critical", "zone: crit", "rules/1/when/zone"),
    "one of a list outside an enum": ("[green, unknown]", "[green, unknwn]", "rules/6/when/zone"),
    "share as a percentage": ("tool_result_share_gte: {ref: limits.tool_result_share_prune}", "tool_result_share_gte: 40", "rules/4/when/tool_result_share_gte"),
    "misspelt ref": ("{ref: limits", "{reff: limits", "rules/2/when/compaction_count_lt"),
    "unknown operation": ("operation: compact", "operation: compactt", "rules/2/operation"),
    "remap to an unknown operation": ("wrap_up: finish_and_return", "wrap_up: finish", "subagents/operation_remap/wrap_up"),
    "remap of an unknown operation": ("{handoff_fresh: fin", "{handoff: fin", "subagents/operation_remap"),
    "unknown outcome": ("assert: {operation: continue}", "assert: {verdict: continue}", "invariants/0/assert"),
    "outcome that is no operation": ("operation_ne: compact", "operation_ne: compactt", "invariants/1/assert/operation_ne"),
    "unknown signal of an assumption": ("assume: {zone: unknown", "assume: {zones: unknown", "invariants/0/assume"),
    "unknown key": ("audit:", "audits:", ""),
    "no operation": ("    operation: compact\n", "", "rules/2"),
    "boolean for a number": ("compaction_depth_cap: 2", "compaction_depth_cap: true", "limits/compaction_depth_cap"),
    "number for a text": ('"0.1"', "0.1", "ecm_version"),
    "row id with a space": ("id: P1", "id: P 1", "rules/0/id"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_refused_at_its_place(old: str, new: str, place: str) -> None:
    assert old in TEXT
    root = reader.read(TEXT.replace(old, new, 1), "t.yaml").root
    assert root is not None
    (error,) = VALIDATORS["context-policy"].iter_errors(root.plain())
    assert "/".join(map(str, error.absolute_path)) == place


def test_a_row_of_a_projects_file_has_the_words_of_the_table_that_it_goes_into() -> None:
    row = derived.derive("project-ecm")["properties"]["trust_sources"]["items"]["properties"]
    assert row["operation"]["enum"] == ["allow", "deny"]
    assert {"source_id", "origin_in", "explicitly_loaded"} < row["when"]["properties"].keys()
    assert "zone" not in row["when"]["properties"]


def test_the_words_of_the_vocabulary_are_explained() -> None:
    row = derived.derive("context-policy")["properties"]["rules"]["items"]["properties"]
    assert row["when"]["properties"]["zone_in"]["description"] == SIGNALS["zone"].why
    told = dict(zip(row["operation"]["enum"], row["operation"]["enumDescriptions"], strict=True))
    assert told["compact"] == "make room, keep the pins"


def test_a_table_with_its_own_words_may_use_them() -> None:
    own = derived.derive("decision-table")["properties"]["rules"]["items"]["properties"]
    assert own["operation"] == {"type": "string"}
    assert own["when"] == {"type": "object", "maxProperties": 64}


def test_of_a_projects_file_only_the_context_is_ours() -> None:
    project = VALIDATORS["project-context"]
    taken: list[Any] = [{}, {"hosts": {"wire": [1]}}, PROJECT, ["a"]]
    assert all(project.is_valid(document) for document in taken)
    refused: list[Any] = [None, {"threshold": {}}, {"budget_tokens": "many"}, {"pins_extra": ["A"]}]
    assert not any(project.is_valid({"context": context}) for context in refused)


def derive(monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]) -> Any:
    monkeypatch.setattr(schemas, "schema", lambda _: {"key": rule})
    return derived.derive("pins")["properties"]["key"]


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        ({"type": "dict"}, {"type": "object"}),
        ({"type": ["string", "list"], "empty": False}, {"type": ["string", "array"], "minLength": 1, "minItems": 1}),
        ({"type": "string", "empty": False, "minlength": 3}, {"type": "string", "minLength": 3}),
        ({"type": "string", "nullable": True, "allowed": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "regex": r"a|b\Z"}, {"type": "string", "pattern": "^(?:a|b$)"}),
        ({"type": "string", "regex": "a"}, {"type": "string", "pattern": "^a$"}),
        ({"nullable": True}, {"type": ["object", "array", "string", "integer", "number", "boolean", "null"]}),
    ],
)
def test_a_rule_has_its_counterpart(rule: dict[str, Any], made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert derive(monkeypatch, rule) == made


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "string", "forbidden": ["x"]},
        {"type": "dict", "allow_unknown": True},
        {"type": "list", "allowed": ["a"]},
        {"type": "list", "meta": "a-table-nobody-has"},
        {"type": "string", "meta": "colour"},
        {"schema": {"type": "string"}},
        {"type": "dict", "schema": {}, "valuesrules": {"type": "string"}},
        {"type": "list", "schema": {"type": "string", "dependencies": "other"}},
    ],
)
def test_a_rule_without_a_counterpart_is_not_dropped(rule: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="found `"):
        derive(monkeypatch, rule)
