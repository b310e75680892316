"""That what a project appends fires, and promotes nothing but the sources that it names: proven, not read."""

from __future__ import annotations

import pathlib

import attrs
import pytest

from ecm_rules import Policy, load_table
from ecm_rules.analysis import check, compare
from ecm_rules.analysis.files import check_file
from ecm_rules.tables.findings import ERROR, NOTE, Finding
from tests.conftest import ROOT
from tests.marked import located, told, unmark

SHIPPED = ROOT / "roster/trust-sources.yaml"
HEAD = "trust_sources:\n"
NOTES = (
    "  - {id: NOTES, when: {declaration: block, origin: repository_file, source_id: docs/NOTES.md}, operation: allow}\n"
)


def write(project: pathlib.Path, rows: str) -> pathlib.Path:
    path = project / ".eidolons/ecm.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD + rows)
    return path


def lax(project: pathlib.Path, rows: str) -> Policy:
    """The trust table with rows that were read by a section to which `allow` is no promotion, to be judged by its own."""
    path = project / "table.yaml"
    path.write_text(SHIPPED.read_text().replace("promotes: allow", "promotes: deny"))
    write(project, rows)
    table = load_table(path, project=project).table
    assert table.extension is not None
    return Policy.of(attrs.evolve(table, extension=attrs.evolve(table.extension, promotes="allow")))


def widened(policy: Policy) -> list[Finding]:
    return [finding for finding in check(policy) if finding.code == "ECM613"]


WIDE = {
    "no name": "{origin: web_page}",
    "two names": "{source_id: [a, b]}",
    "all names but one": "{source_id_ne: a}",
    "any name": "{source_id_missing: false}",
    "no name at all": "{source_id_missing: true}",
    "the empty name": "{source_id: ''}",
    "a class": "{source_id: 'message:tool'}",
    "two classes": "{source_id_in: ['message:tool', 'message:user']}",
}


@pytest.mark.parametrize("when", WIDE.values(), ids=WIDE.keys())
def test_a_row_that_widens_more_than_a_name_is_found_with_a_source_that_it_lets_in(
    when: str, project: pathlib.Path
) -> None:
    policy = lax(project, NOTES + f"  - {{id: WIDE, when: {when}, operation: allow}}\n")
    (finding,) = widened(policy)
    assert (finding.line, finding.column, finding.severity) == (3, 10, ERROR)
    assert finding.file == str(project / ".eidolons/ecm.yaml")
    assert finding.witness is not None
    assert finding.witness.role == "orchestrator"
    source = dict(finding.witness.snapshot)
    assert policy.rule_for(source) == "WIDE"
    assert load_table("trust-sources", project=None).decide(source).operation == "deny"
    assert source.get("source_id") != "docs/NOTES.md"


TIGHT = {
    "a name": "{source_id: a}",
    "a name and more": "{source_id: a, origin_ne: web_page, message_class_missing: true}",
    "a name within a list": "{source_id: a, source_id_in: [a, b]}",
    "a name that another row has": "{source_id_in: [docs/NOTES.md]}",
    "what is allowed already": "{origin: plugin, declaration: discard}",
}


@pytest.mark.parametrize("when", TIGHT.values(), ids=TIGHT.keys())
def test_a_row_that_widens_nothing_but_a_name_is_not(when: str, project: pathlib.Path) -> None:
    assert widened(lax(project, NOTES + f"  - {{id: ROW, when: {when}, operation: allow}}\n")) == []


def test_a_denied_name_is_no_name_that_is_promoted(project: pathlib.Path) -> None:
    rows = "  - {id: NONE, when: {declaration: block, source_id: a}, operation: deny}\n"
    rows += "  - {id: WIDE, when: {source_id_in: [a]}, operation: allow}\n"
    (finding,) = widened(lax(project, rows))
    assert finding.witness is not None
    assert (finding.witness.snapshot["source_id"], finding.witness.snapshot["declaration"]) == ("a", "discard")


def test_a_row_that_is_never_reached_widens_nothing(project: pathlib.Path) -> None:
    rows = "  - {id: NONE, when: {origin: user, source_id: a}, operation: deny}\n"
    rows += "  - {id: ROW, when: {origin: user, source_id_in: [a]}, operation: allow}\n"
    policy = lax(project, rows)
    assert widened(policy) == []
    assert [finding.code for finding in check(policy) if finding.severity == ERROR] == ["ECM603"]


def test_what_a_remap_makes_of_a_row_counts(project: pathlib.Path) -> None:
    text = SHIPPED.read_text().replace("  deny:\n", "  ask: {severity: 0}\n  deny:\n")
    text += "subagents: {operation_remap: {ask: allow}}\n"
    (project / "table.yaml").write_text(text)
    write(project, "  - {id: ASK, when: {origin: user}, operation: ask}\n")
    findings = [f for f in check_file(str(project / "table.yaml"), str(project)) if f.severity == ERROR]
    assert [(f.code, f.witness and f.witness.role) for f in findings] == [("ECM613", "subagent")]
    assert "turns `deny` into `allow`" in findings[0].message


def test_every_region_that_a_project_widens_lies_within_the_names_of_its_rows(project: pathlib.Path) -> None:
    """The same, from the comparison of the two tables."""
    rows = (
        NOTES + "  - {id: CI, when: {declaration: discard, source_id: ci, message_class_ne: chat}, operation: allow}\n"
    )
    write(project, rows)
    shipped, resolved = load_table("trust-sources", project=None), load_table("trust-sources", project=project)
    regions = compare(shipped, resolved).regions
    assert {(region.old.operation, region.new.operation) for region in regions} == {("deny", "allow")}
    assert {region.new.witness and region.new.witness.snapshot["source_id"] for region in regions} == {
        "docs/NOTES.md",
        "ci",
    }
    assert widened(resolved) == []


SHADOWED = {
    "by a shipped row": "  - {id: «A», when: {declaration: discard, origin: plugin, source_id: a}, operation: allow}\n",
    "by an earlier row": "  - {id: B, when: {source_id: a}, operation: allow}\n  - {id: «A», when: {source_id: a, origin: user}, operation: deny}\n",
    "by two earlier rows": (
        "  - {id: B, when: {source_id: a, origin: user}, operation: allow}\n  - {id: C, when: {source_id: a, origin_ne: user}, operation: allow}\n  - {id: D, when: {source_id: a, origin_missing: true}, operation: allow}\n  - {id: «A», when: {source_id: a}, operation: deny}\n"
    ),
}


@pytest.mark.parametrize("rows", SHADOWED.values(), ids=SHADOWED.keys())
@pytest.mark.parametrize("named", ["eidolons.yaml", ".eidolons/ecm.yaml", "the table"])
def test_a_row_that_nothing_reaches_is_an_error_in_the_projects_file(
    rows: str, named: str, project: pathlib.Path
) -> None:
    clean, places = unmark(HEAD + rows)
    path = write(project, clean.removeprefix(HEAD))
    file = str(SHIPPED) if named == "the table" else str(project / named)
    errors = [finding for finding in check_file(file, str(project)) if finding.severity == ERROR]
    assert told(errors) == located(places, ["ECM603"])
    assert errors[0].file == str(path)


def test_a_row_that_contradicts_itself_is_an_error_too(project: pathlib.Path) -> None:
    path = write(project, "  - {id: A, when: {source_id: a, source_id_missing: true}, operation: allow}\n")
    errors = [f for f in check_file(str(path)) if f.severity == ERROR]
    assert [(f.code, f.file) for f in errors] == [("ECM602", str(path))]


def test_what_a_project_makes_of_the_shipped_rows_is_a_note(project: pathlib.Path) -> None:
    rows = "".join(
        f"  - {{id: N{n}, when: {{origin_missing: {value}}}, operation: deny}}\n"
        for n, value in enumerate(["true", "false"])
    )
    path = write(project, rows)
    found = [f for f in check_file(str(path)) if f.code == "ECM603"]
    assert [(f.file.endswith("trust-sources.yaml"), f.severity) for f in found] == [(True, NOTE)]
    assert found[0].message.endswith("covered by `N0`, `N1`, with the project's layer")


def test_a_table_without_appended_rows_is_not_asked(monkeypatch: pytest.MonkeyPatch, policy: Policy) -> None:
    from ecm_rules.analysis import promotions

    def name_of(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(promotions, "name_of", name_of)
    for other in (policy, load_table("trust-sources", project=None), load_table("lateral-signals", project=None)):
        assert widened(other) == []


def test_hundreds_of_sources_are_proven(project: pathlib.Path) -> None:
    write(project, "".join(f"  - {{id: R{n}, when: {{source_id: s{n}}}, operation: allow}}\n" for n in range(200)))
    assert [f for f in check(load_table("trust-sources", project=project)) if f.severity != NOTE] == []
