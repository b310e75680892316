"""Trust sources: what is allowed as shipped, what a project may append, and what it is refused."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import pytest

from ecm_rules import EcmError, Policy, load_policy, load_table
from tests.conftest import ROOT
from tests.marked import located, told, unmark

SHIPPED = ROOT / "roster/trust-sources.yaml"
ORIGINS = [
    "context_source", "plugin", "host_workflow", "command", "system", "user", "assistant", "tool_result",
    "repository_file", "web_page", "custom",
]  # fmt: skip
NOTES = "  - {id: NOTES, when: {declaration: block, origin: repository_file, source_id: docs/NOTES.md}, operation: allow, why: mine}\n"
RUNNER = "  - {id: RUNNER, when: {declaration: discard, message_class: phase, source_id: runner}, operation: allow}\n"
ABOUT_THE_POLICY = "pins:\n  - {id: house_style, why: w}\ninvariants:\n  - {id: I, assume: {zone: green}, assert: {operation: continue}}\n"


@pytest.fixture(scope="module")
def trust() -> Policy:
    return load_table("trust-sources", project=None)


def appended(project: pathlib.Path, rows: str, table: str | pathlib.Path = "trust-sources") -> Policy:
    """A table with the rows that the project appends to it."""
    (project / ".eidolons").mkdir(exist_ok=True)
    (project / ".eidolons/ecm.yaml").write_text("schema_version: 1\ntrust_sources:\n" + rows)
    return load_table(table, project=project)


def test_a_block_of_a_loaded_source_and_a_discard_of_a_plugin_or_workflow_are_all_that_is_allowed(
    trust: Policy,
) -> None:
    allowed = set()
    for declaration, origin, loaded in itertools.product(["block", "discard"], ORIGINS, [True, False]):
        snapshot = {
            "declaration": declaration,
            "origin": origin,
            "explicitly_loaded": loaded,
            "source_id": "x",
            "message_class": "control",
        }
        if trust.decide(snapshot).operation == "allow":
            allowed.add((declaration, origin, loaded))
    assert allowed == {
        ("block", "context_source", True),
        *itertools.product(["discard"], ["plugin", "host_workflow"], [True, False]),
    }


@pytest.mark.parametrize(
    "snapshot",
    [
        {},
        None,
        {"declaration": "block", "origin": "context_source"},
        {"declaration": "block", "origin": "context_source", "explicitly_loaded": "true"},
        {"declaration": "block", "origin": "context_source", "explicitly_loaded": 1},
        {"declaration": ["discard"], "origin": "plugin"},
        {"declaration": "discard", "origin": "Plugin"},
        {"declaration": "discard", "origin": ["plugin"]},
        {"declaration": "DISCARD", "origin": "plugin"},
        {"origin": "plugin", "explicitly_loaded": True},
    ],
)
def test_what_is_missing_or_mistyped_is_denied(snapshot: Any, trust: Policy) -> None:
    assert (trust.decide(snapshot).operation, trust.decide(snapshot).rule) == ("deny", "T3")


def test_a_projects_rows_stand_in_front_of_the_last_one_in_file_order(project: pathlib.Path, trust: Policy) -> None:
    policy = appended(project, NOTES + RUNNER)
    assert [row.id for row in policy.table.rows] == ["T1", "T2", "NOTES", "RUNNER", "T3"]
    assert [row.id for row in policy.table.appended] == ["NOTES", "RUNNER"]
    source = {"declaration": "block", "origin": "repository_file", "source_id": "docs/NOTES.md"}
    assert (policy.decide(source).operation, policy.decide(source).rule) == ("allow", "NOTES")
    assert policy.decide({**source, "source_id": "docs/NOTES.md "}).operation == "deny"
    assert policy.decide({**source, "declaration": "discard"}).operation == "deny"
    assert trust.decide(source).operation == "deny"


def test_the_digest_is_that_of_the_resolved_table(project: pathlib.Path, trust: Policy) -> None:
    one, other = appended(project, NOTES), appended(project, RUNNER)
    assert len({trust.digest, one.digest, other.digest}) == 3
    assert appended(project, NOTES).digest == one.digest
    assert appended(project, "  []\n").digest == trust.digest


@pytest.mark.parametrize("text", ["version: 1\n", "context: {enabled: false}\n", None])
def test_a_project_that_did_not_opt_in_appends_nothing(text: str | None, project: pathlib.Path, trust: Policy) -> None:
    (project / "eidolons.yaml").unlink()
    if text is not None:
        (project / "eidolons.yaml").write_text(text)
    assert appended(project, NOTES).digest == trust.digest


def test_a_project_may_deny_before_it_allows(project: pathlib.Path) -> None:
    policy = appended(project, "  - {id: NONE, when: {origin: web_page}, operation: deny}\n" + RUNNER)
    runner = {"declaration": "discard", "message_class": "phase", "source_id": "runner"}
    assert policy.decide({**runner, "origin": "custom"}).rule == "RUNNER"
    assert policy.decide({**runner, "origin": "web_page"}).rule == "NONE"


def test_only_a_table_that_says_so_takes_rows(project: pathlib.Path) -> None:
    text = SHIPPED.read_text()
    begin, end = text.index("project:\n"), text.index("fields:\n")
    closed, candidate = project / "closed.yaml", project / "candidate.yaml"
    closed.write_text(text[:begin] + text[end:])
    candidate.write_text(text.replace("- id: T1", "- id: FIRST"))
    assert [row.id for row in appended(project, NOTES, closed).table.rows] == ["T1", "T2", "T3"]
    assert [row.id for row in appended(project, NOTES, candidate).table.rows] == ["FIRST", "T2", "NOTES", "T3"]
    lateral = load_table("lateral-signals", project=None)
    assert appended(project, NOTES, "lateral-signals").digest == lateral.digest


def test_the_policy_and_the_trust_table_take_each_their_own_of_one_file(project: pathlib.Path, policy: Policy) -> None:
    trust = appended(project, NOTES + ABOUT_THE_POLICY)
    assert (trust.table.pins, trust.table.invariants) == ((), ())
    layered = load_policy(project=project)
    assert layered.digest == policy.digest
    assert [pin.id for pin in layered.table.pins[-1:]] == ["house_style"]
    assert "I" in [invariant.id for invariant in layered.table.invariants]


HEAD = "schema_version: 1\ntrust_sources:\n"
REFUSED = {
    "no test of the source": ("  - {id: A, when: {origin: web_page}, operation: «allow»}\n", ["ECM404"]),
    "two sources": ("  - {id: A, when: {«source_id»: [a, b]}, operation: allow}\n", ["ECM404"]),
    "one source in a list": ("  - {id: A, when: {«source_id_in»: [a]}, operation: allow}\n", ["ECM404"]),
    "all sources but one": ("  - {id: A, when: {«source_id_ne»: a}, operation: allow}\n", ["ECM404"]),
    "all sources but some": ("  - {id: A, when: {«source_id_not_in»: [a]}, operation: allow}\n", ["ECM404"]),
    "any source with a name": ("  - {id: A, when: {«source_id_missing»: false}, operation: allow}\n", ["ECM404"]),
    "what has no name": ("  - {id: A, when: {«source_id_missing»: true}, operation: allow}\n", ["ECM404"]),
    "the empty name": ("  - {id: A, when: {«source_id»: ''}, operation: allow}\n", ["ECM404"]),
    "a name behind another field": ("  - {id: A, when: {message_class: a}, operation: «allow»}\n", ["ECM404"]),
    "everything": ("  - {id: A, when: «{}», operation: «allow»}\n", ["ECM308", "ECM404"]),
    "nothing at all": ("  - {id: A, when: «{}», operation: deny}\n", ["ECM308"]),
    "tool results": ("  - {id: A, when: {source_id: «'message:tool'»}, operation: allow}\n", ["ECM405"]),
    "assistant text": ("  - {id: A, when: {source_id: «'message:assistant'»}, operation: allow}\n", ["ECM405"]),
    "a role nobody knows": ("  - {id: A, when: {source_id: «'message:'»}, operation: allow}\n", ["ECM405"]),
    "a class by reference": (
        "  - {id: A, when: {source_id: «{ref: 'project.classes[0]'}»}, operation: allow}\n",
        ["ECM405"],
    ),
    "a shipped id": ("  - {id: «T3», when: {source_id: a}, operation: deny}\n", ["ECM403"]),
    "an id twice": (
        "  - {id: A, when: {source_id: a}, operation: allow}\n  - {id: «A», when: {source_id: b}, operation: allow}\n",
        ["ECM206"],
    ),
    "a misspelt signal, told once": ("  - {id: A, when: {«source»: a}, operation: allow}\n", ["ECM301"]),
    "a name that is no string, told once": ("  - {id: A, when: {source_id: «5»}, operation: allow}\n", ["ECM304"]),
    "an origin nobody has": ("  - {id: A, when: {source_id: a, origin: «mars»}, operation: allow}\n", ["ECM304"]),
    "an operation of another table": ("  - {id: A, when: {source_id: a}, operation: «compact»}\n", ["ECM307"]),
    "a signal of another table": ("  - {id: A, when: {source_id: a, «zone»: red}, operation: allow}\n", ["ECM301"]),
    "an unknown key": ("  - {id: A, when: {source_id: a}, operation: allow, «trust»: full}\n", ["ECM201"]),
    "no id": ("  - «{when: {source_id: a}, operation: allow}»\n", ["ECM202"]),
    "an id with a space": ("  - {id: «a b», when: {source_id: a}, operation: allow}\n", ["ECM205"]),
    "an id that is not ASCII": ("  - {id: «Ａ», when: {source_id: a}, operation: allow}\n", ["ECM205"]),
    "no tests": ("  - «{id: A, operation: allow}»\n", ["ECM202"]),
    "tests that are a list": ("  - {id: A, when: «[source_id, a]», operation: allow}\n", ["ECM203"]),
    "a row that is a string": ("  - «allow»\n", ["ECM203"]),
    "a name twice in a row": ("  - {id: A, when: {source_id: a, «source_id»: b}, operation: allow}\n", ["ECM102"]),
    "a name that YAML 1.1 takes for a boolean": ("  - {id: A, when: {source_id: «yes»}, operation: allow}\n", ["ECM106"]),
    "an alias of another row": ("  - «&a» {id: A, when: {source_id: a}, operation: allow}\n  - «*a»\n", ["ECM103", "ECM103"]),
    "mistakes of every kind together": (
        "  - {id: «T1», when: {origin: user}, operation: «allow»}\n  - {id: B, when: {source_id: «'message:user'»}, operation: allow}\n  - {id: C, when: {«sourceid»: a}, operation: «alow»}\n",
        ["ECM403", "ECM404", "ECM405", "ECM301", "ECM307"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_each_refusal_is_located_in_the_projects_file(rows: str, codes: list[str], project: pathlib.Path) -> None:
    clean, places = unmark(HEAD + rows)
    with pytest.raises(EcmError) as caught:
        appended(project, clean.removeprefix(HEAD))
    assert told(caught.value.findings) == located(places, codes)
    assert {finding.file for finding in caught.value.findings} == {str(project / ".eidolons/ecm.yaml")}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("trust_sources: «allow»\n", "ECM203"),
        ("trust_sources: «{id: A}»\n", "ECM203"),
        ("trust_sources:«»\n", "ECM203"),
        ("trust_sources: []\n«trust_sources»: []\n", "ECM102"),
        ("«trust_source»: []\n", "ECM201"),
    ],
)
def test_what_is_no_list_of_rows_is_refused_by_whatever_reads_the_file(
    text: str, code: str, project: pathlib.Path
) -> None:
    clean, places = unmark(text)
    (project / ".eidolons").mkdir()
    (project / ".eidolons/ecm.yaml").write_text(clean)
    for table in ("context-policy", "trust-sources"):
        with pytest.raises(EcmError) as caught:
            load_table(table, project=project)
        assert told(caught.value.findings) == located(places, [code])


def test_a_thousand_rows_are_read_and_not_one_more(project: pathlib.Path) -> None:
    rows = [f"  - {{id: R{n}, when: {{source_id: s{n}}}, operation: allow}}\n" for n in range(1001)]
    assert len(appended(project, "".join(rows[:1000])).table.appended) == 1000
    with pytest.raises(EcmError, match="found more than 1000 entries in a list") as caught:
        appended(project, "".join(rows))
    assert told(caught.value.findings) == [(1003, 5, "ECM101")]


TABLE = """\
schema_version: 1
project: {appends: trust_sources, promotes: allow, names: source}
fields:
  source: {path: source, type: string}
  kind: {path: kind, type: enum, values: [a, b]}
  known: {path: known, type: string, missing: nobody}
  first: {path: "names[0]", type: string}
signals:
  joined: {from: "source", type: string}
operations: {allow: {}, deny: {}}
rules: [{id: REST, when: {}, operation: deny}]
"""
SECTIONS = {
    "an unknown operation": ("promotes: allow", "promotes: «alow»", "ECM307"),
    "an unknown field": ("names: source", "names: «sorce»", "ECM301"),
    "an enum": ("names: source", "names: «kind»", "ECM204"),
    "a field that something stands in for": ("names: source", "names: «known»", "ECM204"),
    "a field that is computed": ("names: source", "names: «first»", "ECM204"),
    "a signal": ("names: source", "names: «joined»", "ECM204"),
    "a key that is no list of rows": ("appends: trust_sources", "appends: «pins»", "ECM204"),
    "no name": (", names: source", "", "ECM202"),
    "a class of everything": ("names: source", "names: source, classes: [«''»]", "ECM204"),
    "an unknown key": ("names: source", "names: source, «removes»: a", "ECM201"),
}


@pytest.mark.parametrize(("old", "new", "code"), SECTIONS.values(), ids=SECTIONS.keys())
def test_a_section_says_what_can_be_held_to(old: str, new: str, code: str, project: pathlib.Path) -> None:
    clean, places = unmark(TABLE.replace(old, new))
    path = project / "table.yaml"
    path.write_text(clean)
    with pytest.raises(EcmError) as caught:
        appended(project, "  - {id: A, when: {source: a}, operation: allow}\n" + ABOUT_THE_POLICY, path)
    assert [finding.code for finding in caught.value.findings] == [code]
    if places:
        assert told(caught.value.findings) == located(places, [code])


def test_other_words_serve_as_well(project: pathlib.Path) -> None:
    path = project / "table.yaml"
    path.write_text(TABLE.replace("names: source}", "names: source, classes: ['all-', 'any-']}"))
    assert (
        appended(project, "  - {id: A, when: {source: a}, operation: allow}\n", path).rule_for({"source": "a"}) == "A"
    )
    with pytest.raises(EcmError, match="many are named by what begins with `all-` or `any-`"):
        appended(project, "  - {id: A, when: {source: any-tool}, operation: allow}\n", path)
