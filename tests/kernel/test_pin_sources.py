"""Where the texts of pins come from: real places, and hostile ones, none of which raises or leads out of the project."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.engine.program import Unreadable
from ecm_rules.kernel import excerpts, pin_sources, project_files
from ecm_rules.kernel.pinned import load_pins
from ecm_rules.tables.models import Pin
from tests.conftest import FIXTURES
from tests.tables.test_pins import DEFAULTS
from tests.tables.test_project import write

SAMPLE = FIXTURES / "project"


def resolve(folder: pathlib.Path, *sources: dict[str, Any], meter: Any = None, id: str = "p") -> dict[str, Any]:
    return pin_sources.resolve(Pin(id, "w", id, "test", sources), str(folder), meter)


def text(folder: pathlib.Path, source: dict[str, Any], meter: Any = None) -> str:
    found = resolve(folder, source, meter=meter)
    assert found["reason"] == ""
    assert isinstance(found["text"], str)
    return found["text"]


def reason(folder: pathlib.Path, *sources: dict[str, Any], meter: Any = None) -> str:
    found = resolve(folder, *sources, meter=meter)
    assert (found["text"], found["from"]) == (None, None)
    return str(found["reason"])


def put(folder: pathlib.Path, path: str, content: str | bytes) -> pathlib.Path:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def test_the_shipped_pins_find_what_the_nexus_leaves() -> None:
    pinned = load_pins(str(SAMPLE))
    found = {pin["id"]: pin["text"] for pin in pinned.pins}
    assert list(found) == [*DEFAULTS, "release_freeze", "house_style"]
    assert pinned.unresolved == ()
    assert found["cortex_routing_digest"].startswith("## Roster Index\n")
    assert found["active_eidolon_refusal_table"].split("\n")[2] == "| **ATLAS** | implement, edit, commit |"
    assert found["esl_enforcement_mode"] == "ESL enforcement mode: block"
    assert "T3" in found["crystalium_trust_tier_map"]
    assert "Append-only" not in found["crystalium_trust_tier_map"]
    assert found["active_plan_step_and_criteria_sha256"].startswith(
        "plan import-limits: step A, frozen criteria SHA-256 b13b4c"
    )
    assert found["session_budget_and_compaction_count"].endswith("spent: 84000, compactions: 1")
    assert found["release_freeze"] == "Nothing but fixes is merged until 2.4 is out."


def test_an_empty_project_resolves_nothing_and_says_why(project: pathlib.Path) -> None:
    pinned = load_pins(str(project))
    assert [pin["id"] for pin in pinned.unresolved] == DEFAULTS
    assert all(pin["reason"] for pin in pinned.pins)
    assert load_pins(None).unresolved == load_pins(None).pins


@pytest.mark.parametrize(
    ("lock", "mode"),
    [
        ("mcps:\n  - name: tonberry\n    enforcement: advisory\n", "advisory"),
        ("mcps:\n  - name: tonberry\n    version: 0.5.2\n", "advisory"),
        ("mcps:\n  - {name: tonberry, enforcement: block, installed_at: 2026-07-08, on: no}\n", "block"),
        ("enforcement: block\n", "block"),
        ("mcps:\n  - name: crystalium\n", None),
        ("mcps:\n  - name: tonberry\n    enforcement: block\n    enforcement: advisory\n", None),
        ("a: &a block\nmcps: [{name: tonberry, enforcement: *a}]\n", None),
        ("[", None),
        ("", None),
    ],
)
def test_the_mode_is_read_as_the_nexus_reads_it(lock: str, mode: str | None, project: pathlib.Path) -> None:
    put(project, "eidolons.mcp.lock", lock)
    found = load_pins(str(project)).pins[2]
    assert found["id"] == "esl_enforcement_mode"
    assert found["text"] == (mode and f"ESL enforcement mode: {mode}")


def plan(name: str, phase: str) -> str:
    return json.dumps({"plan": name, "phase": phase, "criteria_sha256": name * 4})


def test_every_active_plan_has_its_line(project: pathlib.Path) -> None:
    for name, phase in (("b", "T"), ("a", "A"), ("c", "DONE")):
        put(project, f".spectra/changes/{name}/plan-state.json", plan(name, phase))
    put(project, ".spectra/changes/archive/2026-01-01-d/plan-state.json", plan("d", "A"))
    put(project, ".spectra/plans/e.state.json", plan("e", "A"))
    told = load_pins(str(project)).pins[4]["text"]
    assert told == ("plan a: step A, frozen criteria SHA-256 aaaa\nplan b: step T, frozen criteria SHA-256 bbbb")


def test_a_change_without_a_plan_has_the_hash_of_its_checks(project: pathlib.Path) -> None:
    checks = ["limits hold", {"id": "AC-1"}]
    change = {"change_id": "limits", "status": "in_progress", "tier": "lite", "acceptance_checks": checks}
    put(project, ".spectra/changes/limits/change.json", json.dumps(change))
    put(project, ".spectra/changes/old/change.json", json.dumps({**change, "status": "archived"}))
    digest = hashlib.sha256(b'["limits hold",{"id":"AC-1"}]').hexdigest()
    told = load_pins(str(project)).pins[4]["text"]
    assert told == f"change limits: in_progress, tier lite, acceptance checks SHA-256 {digest}"


def test_criteria_alone_have_their_hash(project: pathlib.Path) -> None:
    put(project, ".spectra/changes/x/acceptance-criteria.md", b"a\r\nb\n")
    digest = hashlib.sha256(b"a\r\nb\n").hexdigest()
    assert (
        load_pins(str(project)).pins[4]["text"]
        == f"criteria .spectra/changes/x/acceptance-criteria.md: SHA-256 {digest}"
    )


def test_the_first_source_that_gives_something_is_taken(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "empty.md", " \n")
    found = resolve(tmp_path, {"file": ["no.md", "empty.md"]}, {"meter": "{zone}"}, {"literal": "x"}, {"literal": "y"})
    assert (found["text"], found["from"]) == ("x", "literal")
    assert reason(tmp_path, {"file": ["no.md", "empty.md"]}, {"meter": "{zone}"}) == (
        "no.md: no such file; empty.md: there is nothing in it; there is no meter"
    )
    assert reason(tmp_path) == "it has no source"


METER = {
    "zone": "red",
    "budget": {"spent_tokens_est": 5, "ceiling_tokens": None},
    "list": [1],
    "deep": {"a": {"b": "c\n d"}},
}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("zone {zone}, {budget.ceiling_tokens} of {budget.spent_tokens_est}", "zone red, unset of 5"),
        ("{deep.a.b} {list} {deep.a}", 'c d [1] {"b": "c\\n d"}'),
        ("{zone.a}{ zone }{{zone}}{}{0}", "unset{ zone }{red}{}{0}"),
    ],
)
def test_values_of_the_meter_within_a_text(template: str, told: str, tmp_path: pathlib.Path) -> None:
    assert text(tmp_path, {"meter": template}, METER) == told


def test_a_meter_that_cannot_be_read_resolves_nothing(tmp_path: pathlib.Path) -> None:
    assert reason(tmp_path, {"meter": "{zone}"}, meter=Unreadable("found nothing")) == "the meter: found nothing"
    assert reason(tmp_path, {"meter": "{nothing}"}, meter=METER) == "the meter has none of these values"
    assert reason(tmp_path, {"meter": "{zone}"}, meter={"zone": "\ud800"}) == "the text holds half of a character"


MARKDOWN = """# One

text
## The Routing table ##
```
# no heading
```
| a | b \\| c | d |
|---|:-:|---|
| 1 | 2 | 3 |
| 4 |

### Below
more
## Next
<!--BLOCK_ID:p-->
block
<!--/BLOCK_ID:p-->
"""


def test_parts_of_a_text(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "a.md", MARKDOWN.replace("\n", "\r\n"))
    section = text(tmp_path, {"file": "a.md", "section": "the *table"})
    assert section.startswith("## The Routing table ##\n```\n# no heading")
    assert section.endswith("### Below\nmore")
    assert "declaration" in reason(tmp_path, {"file": "a.md", "section": "ONE"})  # all of it is below this heading
    assert text(tmp_path, {"file": "a.md", "between": ["```", "```"]}) == "# no heading"
    assert text(tmp_path, {"file": "a.md", "block": True}) == "block"
    assert (
        text(tmp_path, {"file": "a.md", "columns": ["d", "b \\| c"]})
        == "| d | b \\| c |\n| --- | --- |\n| 3 | 2 |\n|  |  |"
    )
    assert (
        text(tmp_path, {"file": "a.md", "section": "Below", "template": "in {file}: {text}"})
        == "in a.md: ### Below more"
    )
    digest = hashlib.sha256(b"### Below\nmore").hexdigest()
    assert text(tmp_path, {"file": "a.md", "section": "Below", "sha256": True}) == f"a.md: SHA-256 {digest}"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"section": "no heading"}, "no section `no heading`"),
        ({"section": "Missing"}, "no section `Missing`"),
        ({"between": ["```", "no such"]}, "no lines `"),
        ({"columns": ["z"]}, "no table with z"),
    ],
)
def test_a_part_that_is_not_there(source: dict[str, Any], why: str, tmp_path: pathlib.Path) -> None:
    put(tmp_path, "a.md", MARKDOWN)
    assert reason(tmp_path, {"file": "a.md", **source}).startswith(f"a.md: {why}")


def test_a_heading_without_content_gives_way_to_the_next(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "a.md", "## Refusals\n\n## Refused\nedit\n")
    assert text(tmp_path, {"file": "a.md", "section": "*refus*"}) == "## Refused\nedit"


DOCUMENTS = {
    "a.json": '{"plan": {"step": 3, "open": true, "name": "x"}}',
    "a.yaml": "plan: {step: 3, open: true, name: x}\n",
    "a.toml": 'plan = {step = 3, open = true, name = "x"}\n',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_values_of_a_document(name: str, tmp_path: pathlib.Path) -> None:
    put(tmp_path, name, DOCUMENTS[name])
    assert text(tmp_path, {"file": name, "value": "plan.name"}) == "x"
    assert text(tmp_path, {"file": name, "value": "plan.step"}) == "3"
    assert json.loads(text(tmp_path, {"file": name, "value": "plan"})) == {"step": 3, "open": True, "name": "x"}
    assert text(tmp_path, {"file": name, "template": "step {plan.step} of {file}"}) == f"step 3 of {name}"
    assert text(tmp_path, {"file": name, "value": "plan", "template": "{step} {gone}"}) == "3 unset"
    digest = hashlib.sha256(b'{"name":"x","open":true,"step":3}').hexdigest()
    assert text(tmp_path, {"file": name, "sha256": "plan"}) == f"{name}: SHA-256 {digest}"
    assert reason(tmp_path, {"file": name, "value": "plan.gone"}) == f"{name}: no value `plan.gone`"
    assert "failed" in reason(tmp_path, {"file": name, "value": "abs(plan)"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "{"), ("a.json", '{"a": 1, "a": 2}'), ("a.json", "[" * 100_000), ("a.json", "1" * 5000), ("a.json", ""),
        ("a.yaml", "a: *b"), ("a.yaml", "a: 1\na: 2"), ("a.yaml", "a: !!python/x 1"), ("a.toml", "a = "), ("a.yaml", "\t"),
        ("a.json", '{"a": {"b": "\\ud800"}}'), ("a.json", "null"), ("a.json", '{"contains_tool_origin": true, "a": {"b": "x"}}'),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_trusted_resolves_nothing(name: str, content: str, tmp_path: pathlib.Path) -> None:
    put(tmp_path, name, content)
    assert reason(tmp_path, {"file": name, "value": "a.b"})
    assert reason(tmp_path, {"file": name, "template": "{a.b}"})


@pytest.mark.parametrize(
    "tag", ["<!--ephemeral-->", "<!--BLOCK_ID:x-->", "<!--/BLOCK_ID:x-->", "<!--DISCARD_BLOCK:x-->"]
)
def test_a_text_with_a_declaration_is_no_pin(tag: str, tmp_path: pathlib.Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        put(tmp_path, "a.md", f"# A{end}```{end}{tag}{end}```{end}")
        assert "declaration" in reason(tmp_path, {"file": "a.md"})
    put(tmp_path, "a.md", f"# A\n    {tag}\n{tag} \n{tag}\u2028\n")
    assert tag in text(tmp_path, {"file": "a.md"})


def test_no_path_leads_out_of_the_project(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    put(tmp_path, "secret.md", "secret")
    put(tmp_path, "outside/secret.md", "secret")
    os.symlink(tmp_path / "secret.md", folder / "link.md")
    os.symlink(tmp_path / "outside", folder / "linked")
    os.symlink("loop.md", folder / "loop.md")
    os.symlink("gone.md", folder / "dangling.md")
    for path in ("link.md", "linked/secret.md", "linked/*.md", "*k.md"):
        assert reason(folder, {"file": path}) == f"{path}: leads out of the project"
    for path in ("../secret.md", "/etc/passwd", "a/../../secret.md", str(tmp_path / "secret.md"), "", ".", "a\0b"):
        assert reason(folder, {"file": path}) == f"{path}: leads out of the project"
    assert "symbolic links" in reason(folder, {"file": "loop.md"})
    assert reason(folder, {"file": "dangling.md"}) == "dangling.md: no such file"


def test_a_link_within_the_project_is_followed(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "docs/AGENTS.md", "rules")
    os.symlink("docs/AGENTS.md", tmp_path / "CLAUDE.md")
    assert text(tmp_path, {"file": "CLAUDE.md"}) == "rules"
    linked = tmp_path.parent / f"{tmp_path.name}-link"
    os.symlink(tmp_path, linked)
    assert text(linked, {"file": "CLAUDE.md"}) == "rules"


def test_what_sessions_write_is_not_read_through_a_link_either(tmp_path: pathlib.Path) -> None:
    put(tmp_path, ".eidolons/.context/handoff.md", "what a tool said")
    os.symlink(".eidolons/.context/handoff.md", tmp_path / "a.md")
    os.symlink(".eidolons/.context", tmp_path / "state")
    for path in ("a.md", "state/handoff.md", ".eidolons/.context/handoff.md", ".eidolons/.c*/*"):
        assert "tools have their say" in reason(tmp_path, {"file": path})


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    put(tmp_path, "binary.md", b"\xff\xfe\0")
    put(tmp_path, "large.md", b"x" * ((1 << 20) + 1))
    started = time.perf_counter()
    assert reason(tmp_path, {"file": "pipe.md"}) == "pipe.md: no regular file"
    assert reason(tmp_path, {"file": "folder.md"}) == "folder.md: no regular file"
    assert reason(tmp_path, {"file": "binary.md"}) == "binary.md: no UTF-8"
    assert reason(tmp_path, {"file": "large.md"}) == "large.md: more than 1048576 bytes"
    assert reason(tmp_path, {"file": "pipe.md/x"}) == "pipe.md/x: not a directory"
    assert time.perf_counter() - started < 5


def test_a_file_of_a_mebibyte_is_a_text(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "a.md", b"x" * (1 << 20))
    assert len(text(tmp_path, {"file": "a.md"})) == 1 << 20


def test_patterns_take_all_files_in_order(tmp_path: pathlib.Path) -> None:
    for path in ("b/x.md", "a/x.md", ".hidden/x.md", "a/y.md"):
        put(tmp_path, path, f"of {path}")
    assert text(tmp_path, {"file": "*/x.md"}) == "a/x.md:\n\nof a/x.md\n\nb/x.md:\n\nof b/x.md"
    assert text(tmp_path, {"file": "?/y.*"}) == "a/y.md:\n\nof a/y.md"
    assert resolve(tmp_path, {"file": "*/x.md"})["from"] == "a/x.md, b/x.md"
    assert reason(tmp_path, {"file": "*/z.md"}) == "*/z.md: no such file"
    put(tmp_path, "[a]/x.md", "brackets")
    assert text(tmp_path, {"file": "[a]/*.md"}).endswith("brackets")


def test_too_many_files_are_none(tmp_path: pathlib.Path) -> None:
    for n in range(project_files.MOST_FILES + 1):
        put(tmp_path, f"f{n}.md", "x")
    assert reason(tmp_path, {"file": "*.md"}) == "*.md: more than 50 files"
    for n in range(2):
        put(tmp_path, f"f{n}.md", "x" * (1 << 20))
        os.remove(tmp_path / f"f{n + 10}.md")
    assert reason(tmp_path, {"file": "*.md"}) == "*.md: more than 1048576 bytes together"


def test_a_file_that_changes_while_it_is_read_is_read_again_or_not_at_all(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "a.md", "one")
    real = os.fstat
    writes = iter([b"two", b"three"])

    def fstat(handle: int) -> os.stat_result:
        status = real(handle)
        if (data := next(writes, None)) is not None:
            path.write_bytes(data)
            os.utime(path, ns=(0, int.from_bytes(data, "big") * 1000))
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    assert text(tmp_path, {"file": "a.md"}) == "three"
    writes = iter(str(n).encode() for n in range(100, 10**6))
    assert reason(tmp_path, {"file": "a.md"}) == "a.md: was changed while it was read"


def test_a_file_that_is_swapped_for_a_link_is_not_followed(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "project"
    put(folder, "docs/a.md", "ours")
    put(tmp_path, "secret/a.md", "secret")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(folder / "docs", folder / "docs.away")
            os.symlink(tmp_path / "secret", folder / "docs")
            os.unlink(folder / "docs")
            os.rename(folder / "docs.away", folder / "docs")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = {resolve(folder, {"file": "docs/a.md"})["text"] for _ in range(2000)}
    finally:
        stop.set()
        thread.join()
    assert seen <= {"ours", None}


def test_a_projects_pins_resolve_beside_the_shipped_ones(tmp_path: pathlib.Path) -> None:
    ecm = 'pins:\n  - {id: style, why: w, source: {literal: "Short.\\nNames."}}\n  - {id: bare, why: w}\n'
    folder = write(tmp_path, "context: {pins_extra: [freeze]}\n", ecm)
    put(tmp_path, "CLAUDE.md", "<!--BLOCK_ID:freeze-->\nfrozen\n<!--/BLOCK_ID:freeze-->\n")
    freeze, style, bare = load_pins(folder).pins[6:]
    assert (freeze["text"], freeze["from"], freeze["origin"]) == ("frozen", "CLAUDE.md", "eidolons.yaml")
    assert (style["text"], style["origin"]) == ("Short.\nNames.", ".eidolons/ecm.yaml")
    assert "no block `bare`" in bare["reason"]


SOURCES = st.fixed_dictionaries(
    {"file": st.one_of(st.text(max_size=8), st.sampled_from(["a.md", "a.json", "*", "*/*", "d", "?.md"]))},
    optional={
        "section": st.text(max_size=5), "between": st.tuples(st.text(max_size=3), st.text(max_size=3)).map(list),
        "columns": st.lists(st.text(max_size=3), min_size=1, max_size=2), "value": st.text(max_size=5),
        "template": st.text(max_size=8), "sha256": st.one_of(st.booleans(), st.text(max_size=4)), "block": st.just(True),
        "format": st.sampled_from(["json", "yaml", "toml"]),
    },
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(SOURCES, st.binary(max_size=30))
def test_no_source_raises(source: dict[str, Any], content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        put(folder, "a.md", content)
        put(folder, "a.json", content)
        put(folder, "d/b.md", content)
        found = resolve(folder, source)
        assert (found["text"] is None) == bool(found["reason"])


@given(st.text(alphabet="#`~ \na|-:x", max_size=60))
def test_excerpts_of_any_text(text: str) -> None:
    for part in (excerpts.section(text, "*"), excerpts.between(text, "#", "x"), excerpts.between(text, "", "")):
        assert part is None or part in text
    excerpts.columns(text, ["x"])
