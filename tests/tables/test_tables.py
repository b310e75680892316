"""Tables that do not load: each mistake is one finding, at its own line and column, and all of them come together."""

from __future__ import annotations

import concurrent.futures
import pathlib
import re
import sys

import pytest

from ecm_rules import EcmError, load_policy, load_table
from ecm_rules.tables.findings import CODES
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES, ROOT
from tests.marked import located, told, unmark

SHIPPED = (ROOT / "roster/context-policy.yaml").read_text()

HEAD = """\
ecm_version: "0.1"
zones: {amber: 0.5, red: 0.75, critical: 0.9}
limits: {compaction_depth_cap: 2, tool_result_share_prune: 0.4}
"""
LAST = "  - {id: P7, when: {}, operation: continue}\n"


def row(when: str, operation: str = "compact", id: str = "P1") -> str:
    return f"{HEAD}rules:\n  - {{id: {id}, when: {{{when}}}, operation: {operation}}}\n{LAST}"


def refused(path: pathlib.Path, text: str) -> list[tuple[int, int, str]]:
    path.write_text(text)
    with pytest.raises(EcmError) as caught:
        load_table(str(path), project=None)
    return told(caught.value.findings)


MISTAKES = {
    "unknown signal": (row("«zonee»: red"), ["ECM301"]),
    "unknown signal like nothing": (row("«toolname»: delete_file"), ["ECM301"]),
    "unknown suffix": (row("«compaction_count_between»: 3"), ["ECM302"]),
    "ordering of an enum": (row("«zone_lt»: red"), ["ECM303"]),
    "ordering of a boolean": (row("«budget_ceiling_set_gte»: true"), ["ECM303"]),
    "membership of a boolean": (row("«budget_ceiling_set_in»: [true]"), ["ECM303"]),
    "value outside an enum": (row("zone: «orange»"), ["ECM304"]),
    "value in the wrong case": (row("zone: «Red»"), ["ECM304"]),
    "one of a list outside an enum": (row("zone: [red, «orange», amber, «blue»]"), ["ECM304", "ECM304"]),
    "share as a percentage": (row("tool_result_share_gte: «40»"), ["ECM304"]),
    "negative count": (row("compaction_count_lt: «-1»"), ["ECM304"]),
    "half a count": (row("compaction_count_lt: «1.5»"), ["ECM304"]),
    "a count as a float": (row("compaction_count_lt: «2.0»"), ["ECM304"]),
    "quoted number": (row("tool_result_share_gte: «'0.4'»"), ["ECM304"]),
    "boolean for a number": (row("compaction_count: «true»"), ["ECM304"]),
    "number for a boolean": (row("budget_ceiling_set: «1»"), ["ECM304"]),
    "quoted boolean": (row("budget_ceiling_set: «'true'»"), ["ECM304"]),
    "null": (row("zone: «null»"), ["ECM304"]),
    "no for a zone": (row("zone: «no»"), ["ECM106"]),
    "list where one value is compared": (row("tool_result_share_gte: «[0.4]»"), ["ECM304"]),
    "one value where a list belongs": (row("zone_in: «red»"), ["ECM203"]),
    "empty list": (row("zone: «[]»"), ["ECM305"]),
    "empty list of exclusions": (row("zone_not_in: «[]»"), ["ECM305"]),
    "missing asked with a number": (row("zone_missing: «1»"), ["ECM203"]),
    "ref to nothing": (row("compaction_count_lt: {ref: «limits.compaction_depth_cop»}"), ["ECM306"]),
    "ref to a mapping": (row("compaction_count_lt: {ref: «limits»}"), ["ECM306"]),
    "ref to the wrong type": (row("compaction_count_lt: {ref: «limits.tool_result_share_prune»}"), ["ECM306"]),
    "ref that is no expression": (row("compaction_count_lt: {ref: «'limits.['»}"), ["ECM306"]),
    "ref that fails": (row("compaction_count_lt: {ref: «'abs(zones)'»}"), ["ECM306"]),
    "ref that is no string": (row("compaction_count_lt: {ref: «3»}"), ["ECM203"]),
    "ref misspelt": (row("compaction_count_lt: {«reff»: limits.x}"), ["ECM201"]),
    "ref beside another key": (row("compaction_count_lt: {ref: limits.x, «or»: 2}"), ["ECM201"]),
    "an empty mapping for a value": (row("compaction_count_lt: «{}»"), ["ECM202"]),
    "the same signal twice": (row("zone: red, «zone»: amber"), ["ECM102"]),
    "unknown operation": (row("zone: red", operation="«wrapup»"), ["ECM307"]),
    "null operation": (row("zone: red", operation="«null»"), ["ECM203"]),
    "row id twice": (row("zone: red", id="P7").replace("{id: P7, when: {},", "{id: «P7», when: {},"), ["ECM206"]),
    "row id with a Cyrillic letter": (row("zone: red", id="«\u04201»"), ["ECM205"]),
    "row id with a trailing newline": (row("zone: red", id='«"P1\\n"»'), ["ECM205"]),
    "row id that YAML 1.1 reads as false": (row("zone: red", id="«no»"), ["ECM106"]),
    "numeric row id": (row("zone: red", id="«1»"), ["ECM203"]),
    "catch-all before other rows": (
        HEAD + "rules:\n  - {id: P0, when: «{}», operation: continue}\n" + LAST,
        ["ECM308"],
    ),
    "no when": (HEAD + "rules:\n  - «{id: P0, operation: continue}»\n" + LAST, ["ECM202"]),
    "when that is a list": (HEAD + "rules:\n  - {id: P0, when: «[]», operation: continue}\n" + LAST, ["ECM203"]),
    "a merge key in when": (row("«<<»: {zone: red}"), ["ECM103"]),
    "unknown key of the table": ("«defaultAction»: continue\n" + HEAD + "rules:\n" + LAST, ["ECM201"]),
    "misspelt key of a row": (row("zone: red").replace("operation: compact", "«operashun»: compact"), ["ECM201"]),
    "unknown key of the limits": (HEAD.replace("limits: {", "limits: {«depth»: 1, ") + "rules:\n" + LAST, ["ECM201"]),
    "misspelt required key": (HEAD + "«rulez»:\n" + LAST, ["ECM201"]),
    "no rules": ("«»" + HEAD, ["ECM202"]),
    "empty rules": (HEAD + "rules: «[]»\n", ["ECM204"]),
    "rules that are no list": (HEAD + "rules: «{}»\n", ["ECM203"]),
    "a row that is no mapping": (HEAD + "rules:\n  - «P1»\n" + LAST, ["ECM203"]),
    "a table that is a list": ("«-» a\n", ["ECM203"]),
    "boolean for a limit": (HEAD.replace("cap: 2", "cap: «true»") + "rules:\n" + LAST, ["ECM203"]),
    "limit out of range": (HEAD.replace("cap: 2", "cap: «-1»") + "rules:\n" + LAST, ["ECM204"]),
    "zone threshold above one": (HEAD.replace("0.9", "«90»") + "rules:\n" + LAST, ["ECM204"]),
    "zone threshold that is a string": (HEAD.replace("0.5", "«'0.5'»") + "rules:\n" + LAST, ["ECM203"]),
    "zone threshold that is not a number": (HEAD.replace("0.5", "«.nan»") + "rules:\n" + LAST, ["ECM107"]),
    "zones out of order": (HEAD.replace("amber: 0.5, red: 0.75", "amber: 0.75, red: «0.5»") + "rules:\n" + LAST, ["ECM402"]),
    "zones too close": (HEAD.replace("amber: 0.5", "amber: 0.70").replace("red: 0.75", "red: «0.75»") + "rules:\n" + LAST, ["ECM402"]),
    "version as a number": (HEAD.replace('"0.1"', "«0.1»") + "rules:\n" + LAST, ["ECM203"]),
    "audit path that leaves the project": (
        HEAD + "audit: {policy_log: «../log.jsonl», meter: «/tmp/m.json»}\nrules:\n" + LAST,
        ["ECM204", "ECM204"],
    ),
    "remap of an unknown operation": (
        HEAD + "subagents: {operation_remap: {«handoff»: «finish»}}\nrules:\n" + LAST,
        ["ECM307", "ECM307"],
    ),
    "rules that are refused": (HEAD + "rules: «*x»\n", ["ECM103"]),
    "rules that YAML 1.1 reads as a boolean": (HEAD + "rules: «no»\n", ["ECM106"]),
    "embedded operations that are refused": (HEAD + "operations: «*x»\nrules:\n" + LAST, ["ECM103"]),
    "embedded steps that are refused": (HEAD + "operations: {compact: {steps: «*x»}}\nrules:\n" + LAST, ["ECM103"]),
    "audit that is refused": (HEAD + "audit: «no»\nrules:\n" + LAST, ["ECM106"]),
    "pins that are refused": (HEAD + "pins: [a, «*x»]\nrules:\n" + LAST, ["ECM103"]),
    "a remap that is refused": (HEAD + "subagents: {operation_remap: {compact: «no»}}\nrules:\n" + LAST, ["ECM106"]),
    "a table that is refused": ("«!x» {}\n", ["ECM104"]),
    "a key of the table that is refused": (HEAD.replace("zones:", "«no»:") + "rules:\n" + LAST, ["ECM106"]),
    "a ref that is refused": (row("compaction_count_lt: {ref: «1e3»}"), ["ECM106"]),
    "a value whose key is refused": (row("zone: {«1»: x}"), ["ECM105"]),
    "ref with a slice of no step": (row("compaction_count_lt: {ref: «'rules[::0]'»}"), ["ECM306"]),
    "ref to a function of infinity": (row("compaction_count_lt: {ref: «'ceil(`1e309`)'»}"), ["ECM306"]),
    "audit path beside the state": (HEAD + "audit: {meter: «eidolons.yaml»}\nrules:\n" + LAST, ["ECM204"]),
    "1001 keys in a mapping": (HEAD + "".join(f"k{n}: 1\n" for n in range(997)) + "«one»_more: 1\n", ["ECM101"]),
    "1001 entries in a list": (HEAD + "pins: [" + "a, " * 1000 + "«a»]\n", ["ECM101"]),
    "65 tests in a row": (row("@").replace("{@}", "«{" + ", ".join(f"zone_{i}: red" for i in range(65)) + "}»"), ["ECM204"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "codes"), MISTAKES.values(), ids=MISTAKES.keys())
def test_each_mistake_is_one_located_finding(text: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(text)
    assert refused(tmp_path / "t.yaml", clean) == located(places, codes)


def test_all_mistakes_of_a_file_come_together_in_file_order(tmp_path: pathlib.Path) -> None:
    text = """\
ecm_version: «0.1»
zones: {amber: 0.5, red: 0.75, critical: 0.9, «orange»: 0.6}
limits: {compaction_depth_cap: 2, tool_result_share_prune: «no»}
rules:
  - {id: P1, when: {«zonee»: red, zone: «orange»}, operation: «wrapup»}
  - {id: «P1», when: {zone: «010»}, operation: compact, «wen»: 1}
  - {id: P3, when: {compaction_count_lt: {ref: limits.compaction_depth_cap}}, operation: compact}
"""
    clean, places = unmark(text)
    found = refused(tmp_path / "t.yaml", clean)
    assert [(line, column) for line, column, _ in found] == places


def test_a_broken_limit_is_not_blamed_on_the_rows_that_refer_to_it(tmp_path: pathlib.Path) -> None:
    broken = SHIPPED.replace("compaction_depth_cap: 2", "compaction_depth_cap: two")
    assert [code for _, _, code in refused(tmp_path / "t.yaml", broken)] == ["ECM203"]


OWN = """\
schema_version: 1
fields:
  count: {path: count, type: integer, min: 0}
  e: {path: e, type: enum, values: [a, b]}
signals:
  big: {from: "count > `3`", type: boolean}
operations: {continue: {}, stop: {}}
rules:
  - {id: A, when: {big: true}, operation: stop}
"""

OWN_MISTAKES = {
    "enum without values": (OWN.replace("{path: e, type: enum, values: [a, b]}", "«{path: e, type: enum}»"), ["ECM203"]),
    "enum with a value twice": (OWN.replace("[a, b]", "«[a, a]»"), ["ECM203"]),
    "values of a number": (OWN.replace("min: 0", "values: «[a]»"), ["ECM203"]),
    "bounds of an enum": (OWN.replace("values: [a, b]", "values: [a, b], min: «0»"), ["ECM203"]),
    "bounds that cross": (OWN.replace("min: 0", "min: «3», max: 2"), ["ECM203"]),
    "missing value outside the domain": (OWN.replace("min: 0", "min: 0, missing: «-1»"), ["ECM203"]),
    "missing value of another type": (OWN.replace("[a, b]", "[a, b], missing: «true»"), ["ECM203"]),
    "unknown type": (OWN.replace("type: integer", "type: «int»"), ["ECM204"]),
    "unknown field in an expression": (OWN.replace('"count > `3`"', '«"cuont > `3`"»'), ["ECM309"]),
    "ordering of an enum in an expression": (OWN.replace('"count > `3`"', '«"e > `3`"»'), ["ECM309"]),
    "expression with bad syntax": (OWN.replace('"count > `3`"', '«"count >"»'), ["ECM309"]),
    "expression of a thousand levels": (OWN.replace('"count > `3`"', '«"' + "!" * 900 + 'count"»'), ["ECM309"]),
    "expression that no double can hold": (OWN.replace("`3`", "`1e999`").replace('"count > `1e999`"', '«"count > `1e999`"»'), ["ECM309"]),
    "path with bad syntax": (OWN.replace("path: count,", "path: «'count.'»,"), ["ECM309"]),
    "signal that is a field": (OWN.replace("  big:", "  «count»:").replace("big: true", "count: 1"), ["ECM206"]),
    "operation with an unknown step": (OWN.replace("stop: {}", "stop: {steps: [«halt»]}"), ["ECM307"]),
    "operations in a circle": (
        OWN.replace("stop: {}", "stop: {steps: [again]}, again: {steps: [«stop»]}"),
        ["ECM310"],
    ),
    "operations that grow without end": (
        OWN.replace("stop: {}", "stop: {steps: [o9, «o9»]}, " + ", ".join(f"o{n}: {{steps: [o{n - 1}, o{n - 1}]}}" for n in range(9, 5, -1)) + ", o5: {steps: [halt, halt, halt]}").replace("operations:", "steps: {halt: {surface: host}}\noperations:"),
        ["ECM310"],
    ),
    "operations too deep": (
        OWN.replace("stop: {}", "stop: {steps: [d1]}, " + ", ".join(f"d{n}: {{steps: [{'«' if n == 16 else ''}d{n + 1}{'»' if n == 16 else ''}]}}" for n in range(1, 900)) + ", d900: {}").replace("operations: {continue: {},", "operations: {"),
        ["ECM310"] ,
    ),
    "a mistake in a step that others use": (
        OWN.replace("stop: {}", "stop: {steps: [a, b]}, a: {steps: [«bogus»]}, b: {steps: [a, a]}"),
        ["ECM307"],
    ),
    "bounds with nothing between": (OWN.replace("min: 0", "above: «3», below: 3"), ["ECM203"]),
    "bounds with no whole number between": (OWN.replace("min: 0", "above: «0», below: 1"), ["ECM203"]),
    "an expression of a thousand characters": (OWN.replace('"count > `3`"', '«"count > `' + "3" * 1000 + '`"»'), ["ECM309"]),
    "an operation that is a step": (
        OWN.replace("operations:", "steps: {stop: {surface: host}}\noperations:").replace("stop: {}", "«stop»: {}"),
        ["ECM206"],
    ),
    "enum values that steer a terminal": (OWN.replace("values: [a, b]", 'values: [a, «"b\\e[31m"»]'), ["ECM205"]),
    "a key of the fields that is refused": (OWN.replace("  count: {path: count, type: integer, min: 0}\n  e:", "  «1»:").replace("count >", "'a' >").replace("""from: "'a' > `3`\"""", 'from: "`1` > `3`"'), ["ECM105"]),
    "a misspelt version": (OWN.replace("schema_version:", "«shema_version»:"), ["ECM201"]),
    "a result that depends on the order of keys": (OWN.replace('"count > `3`"', '«"keys(@)"»'), ["ECM309"]),
    "an expression that explodes": (OWN.replace('"count > `3`"', '«"e' + "|[@,@,@,@][]" * 14 + '"»'), ["ECM309"]),
    "an unknown function": (OWN.replace('"count > `3`"', '«"lenght(e)"»'), ["ECM309"]),
    "a function without its argument": (OWN.replace('"count > `3`"', '«"length()"»'), ["ECM309"]),
    "an unknown function in a path": (OWN.replace("path: count,", "path: «lenght(e)»,"), ["ECM309"]),
    "an unknown field behind an @": (OWN.replace('"count > `3`"', '«"@.bogus == `1`"»'), ["ECM309"]),
    "a misspelt section": (OWN.replace("fields:", "«feilds»:"), ["ECM201"]),
    "a misspelt section of signals": (OWN.replace("signals:", "«signal»:"), ["ECM201"]),
    "an enum without values and with a default": (
        OWN.replace("{path: e, type: enum, values: [a, b]}", "«{path: e, type: enum, missing: a}»"),
        ["ECM203"],
    ),
    "a section that is refused": (OWN.replace("operations: {continue: {}, stop: {}}", "operations: «*o»"), ["ECM103"]),
    "steps that are refused": (OWN.replace("stop: {}", "stop: {steps: «*x»}"), ["ECM103"]),
    "a field that YAML 1.1 reads as a boolean": (OWN.replace("  e: {path", "  «n»: {path"), ["ECM106"]),
    "unknown surface": (
        OWN.replace("operations:", "steps: {halt: {surface: «moon»}}\noperations:").replace("stop: {}", "stop: {steps: [halt]}"),
        ["ECM204"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "codes"), OWN_MISTAKES.values(), ids=OWN_MISTAKES.keys())
def test_a_vocabulary_of_its_own_is_checked_too(text: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(text)
    assert refused(tmp_path / "t.yaml", clean) == located(places, codes)


def test_help_names_what_was_meant(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(row("zonee: red", operation="wrapup").replace("rules:", "rulez:"))
    with pytest.raises(EcmError, match="did you mean `rules`"):
        load_table(str(path), project=None)
    path.write_text(row("zonee: red", operation="wrapup"))
    with pytest.raises(EcmError, match="did you mean `zone`") as caught:
        load_table(str(path), project=None)
    assert "did you mean `wrap_up`" in str(caught.value)


def test_a_look_alike_is_shown_as_its_code_point(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(row("zone: red", id="\u04201"))
    with pytest.raises(EcmError, match=r"U\+0420"):
        load_table(str(path), project=None)


def test_a_caret_stands_under_the_offending_text(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(row("zone: orange"))
    with pytest.raises(EcmError) as caught:
        load_table(str(path), project=None)
    place, line, caret, *_ = str(caught.value).split("\n")
    assert place.startswith(f"{path}:5:27: error ECM304: found `orange` for `zone`, expected one of green,")
    assert line[caret.index("^") : caret.rindex("^") + 1] == "orange"


def test_what_a_finding_shows_cannot_steer_a_terminal(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(row('"zone\\e[31m\\u202e": red'))
    with pytest.raises(EcmError) as caught:
        load_table(str(path), project=None)
    assert re.search(r"[\x00-\x09\x0b-\x1f\u202e]", str(caught.value)) is None


@pytest.mark.parametrize("name", ["context-policy.yaml", "pins.yaml"])
def test_upstream_tables_load_unmodified(name: str) -> None:
    path = FIXTURES / "upstream" / name
    if name == "pins.yaml":
        from ecm_rules.tables import reader, schemas

        shape = schemas.validate("pins", reader.load(str(path)))
        assert shape.findings == []
        assert shape.root is not None
        assert [p["id"] for p in shape.root.plain()["pins"]] == [p.id for p in load_policy(project=None).table.pins]
        return
    loaded = load_table(str(path), project=None)
    assert [r.id for r in loaded.table.rows] == ["P1", "P2", "P3", "P4", "P5", "P6", "P7"]
    assert loaded.table.notes == ()


def test_an_embedded_operation_that_differs_is_noted_and_ours_holds(tmp_path: pathlib.Path) -> None:
    text = (FIXTURES / "upstream/context-policy.yaml").read_text()
    text = text.replace("steps: [externalize, host_compact, pin_reinject, pin_verify_repair]", "steps: [host_compact]")
    text = text.replace("  - esl_enforcement_mode\n", "").replace("operations:\n", "operations:\n  pause: {}\n")
    path = tmp_path / "t.yaml"
    path.write_text(text)
    loaded = load_table(str(path), project=None)
    assert [(n.code, n.severity) for n in loaded.table.notes] == [("ECM501", "note")] * 3
    assert loaded.decide({"zone": "red"}).steps[0] == "plan_checkpoint"


def test_an_unknown_table_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(EcmError, match="did you mean `lateral-signals`"):
        load_table("lateral-signal", project=None)


@pytest.mark.parametrize("name", ["pins", "operations", "signals", "hosts"])
def test_a_file_that_is_no_decision_table_is_refused(name: str) -> None:
    with pytest.raises(EcmError):
        load_table(name, project=None)


HOSTS = (ROOT / "rules/hosts.yaml").read_text()
HOST_MISTAKES = {
    "an expression that the hook cannot follow": (HOSTS.replace("session: session_id", "session: «sessions[*].id»", 1), ["ECM309"]),
    "an index into the payload itself": (HOSTS.replace("session: session_id", "session: «'[0].id'»", 1), ["ECM309"]),
    "an index where keys are set": (HOSTS.replace("hookSpecificOutput.llm_request.messages:", "«'hookSpecificOutput[0].messages'»:"), ["ECM309"]),
    "a path with bad syntax": (HOSTS.replace("session: session_id", "session: «'a.'»", 1), ["ECM309"]),
    "one of several paths": (HOSTS.replace("[model.id, model]", "[model.id, «'*'»]"), ["ECM309"]),
    "a path in a pattern": (HOSTS.replace("where: {kind:", "where: {«'*'»:"), ["ECM309"]),
    "a term of a sum": (HOSTS.replace("used: [input_tokens]", "used: [«'a b'»]"), ["ECM309"]),
    "a reader that is not there": (HOSTS.replace("reader: pi", "reader: «vim»"), ["ECM204"]),
    "a format that nothing tells": (HOSTS.replace("known_by:\n      - has: [info, messages]", "known_by: «[]»"), ["ECM204"]),
    "an argument of a tool": (HOSTS.replace("exec_command: {command: cmd,", "exec_command: {command: «'cmd.*'»,"), ["ECM309"]),
    "where a result has its exit code": (HOSTS.replace("exit: state.metadata.exit", "exit: «'state.*'»"), ["ECM309"]),
    "an argument that means nothing": (HOSTS.replace("view_image: {file: path}", "view_image: {«fil»: path}"), ["ECM201"]),
    "a model twice": (HOSTS.replace("{model: claude-sonnet-4-5,", "{model: «claude-opus-4-5»,"), ["ECM206"]),
    "an unknown key": (HOSTS.replace("session: session_id", "session: session_id\n      «sesion»: x", 1), ["ECM201"]),
    "a window of nothing": (HOSTS.replace("window: 1000000", "window: «0»"), ["ECM204"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "codes"), HOST_MISTAKES.values(), ids=HOST_MISTAKES.keys())
def test_what_is_said_of_hosts_is_checked(text: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    clean, places = unmark(text)
    path = tmp_path / "hosts.yaml"
    path.write_text(clean)
    with pytest.raises(EcmError) as caught:
        load_hosts(str(path))
    assert told(caught.value.findings) == located(places, codes)


def test_tables_load_side_by_side_in_threads(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(SHIPPED.replace("compaction_depth_cap: 2", "compaction_depth_cap: two"))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def attempt(number: int) -> list[str]:
        try:
            load_table(str(bad) if number % 2 else "context-policy", project=None)
        except EcmError as error:
            return [f.code for f in error.findings]
        return []

    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert list(pool.map(attempt, range(40))) == [[], ["ECM203"]] * 20
    finally:
        sys.setswitchinterval(interval)


def test_a_policy_that_leaves_a_limit_out_has_the_shipped_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(row("compaction_count_lt: {ref: limits.handoff_digest_max_tokens}"))
    loaded = load_table(str(path), project=None)
    assert loaded.program["limits"]["bytes_per_token"] == 4
    assert loaded.rule_for({"compaction_count": 199}) == "P1"


def test_every_code_is_reported_somewhere() -> None:
    used = {
        code for path in (ROOT / "ecm_rules").rglob("*.py") for code in re.findall(r'"(ECM\d{3})"', path.read_text())
    }
    assert used == set(CODES)
