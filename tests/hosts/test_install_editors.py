"""The editors of files that belong to others: what is put in can be taken out to the byte, whatever stands around it."""

from __future__ import annotations

import json
import string
import tomllib
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules import EcmError
from ecm_rules.hosts.installing import blocks, install, jsonc, lock, texts, toml_lines, yaml_lines
from ecm_rules.hosts.installing import settings as client_settings
from ecm_rules.hosts.installing.jobs import Change, Held, Job, Record

COMMAND = "'/opt/my tools/ecm-hook' claude-code"
ENTRY = {"hooks": [{"type": "command", "command": COMMAND, "timeout": 30}]}
CHANGES = (
    Change("append", "s.json", ("hooks", "Stop"), ENTRY),
    Change("append", "s.json", ("hooks", "PreCompact"), {"matcher": "manual", **ENTRY}),
    Change("set", "s.json", ("statusLine",), {"type": "command", "command": COMMAND}),
    Change("set", "s.json", ("compactThreshold",), 75),
    Change("set", "s.json", ("env", "PCT"), "84"),
)
JSON_JOB = Job("claude-code", "s.json", COMMAND, CHANGES)
TOML_JOB = Job(
    "codex", "c.toml", COMMAND, (Change("set", "c.toml", ("limit",), 150000), Change("set", "c.toml", ("word",), "a b"))
)
BLOCK_JOB = Job("agents-md", "A.md", "", (Change("block", "A.md", value="## Window\n\ntext\n"),))
FRONT_JOB = Job("cursor", "r.mdc", "", (Change("block", "r.mdc", value="---\nalwaysApply: true\n---\n\n## Window\n"),))


def round_trip(job: Job, text: str | None) -> tuple[str, Job]:
    """The text with what is ours in it, and a job that knows how to undo that; all promises of an edit are held."""
    editor = install.editor_of(job)
    made, record = editor.plan(job, text)
    known = attrs.evolve(job, record=record)
    assert editor.strip(known, made) == text
    assert editor.verify(known, made, text)
    again, same_record = editor.plan(known, made)
    assert (again, same_record) == (made, attrs.evolve(record, created=same_record.created))
    return made, known


# JSON as people write it: any value, with space, comments and trailing commas between its tokens.
SPACES = st.sampled_from(
    ["", " ", "  ", "\t", "\n", "\n  ", "\n\n", " // note\n", "/* a, {b} */", " /* c\n */ ", "// http://x\n\t"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.text(alphabet='ab"\\/é🎉 ,{}[]:\n', max_size=6),
    st.just("http://x//y"),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abé", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _tail(draw: st.DrawFn, parts: list[str]) -> str:
    """A trailing comma, or the space within an empty container."""
    comma: bool = draw(st.booleans())
    return draw(SPACES) if not parts else "," + draw(SPACES) if comma else ""


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict | list) and draw(st.booleans()) and draw(st.booleans()):
        return json.dumps(value, ensure_ascii=False, indent=draw(st.sampled_from([None, 2, 4, "\t"])))
    if isinstance(value, dict):
        parts = [
            draw(SPACES)
            + json.dumps(key, ensure_ascii=False)
            + draw(SPACES)
            + ":"
            + draw(SPACES)
            + draw(laid_out(inner))
            + draw(SPACES)
            for key, inner in value.items()
        ]
        return "{" + ",".join(parts) + _tail(draw, parts) + "}"
    if isinstance(value, list):
        parts = [draw(SPACES) + draw(laid_out(inner)) + draw(SPACES) for inner in value]
        return "[" + ",".join(parts) + _tail(draw, parts) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Settings, some with containers of ours already there."""
    root: dict[str, Any] = draw(st.dictionaries(st.text(alphabet="abé", max_size=3), VALUES, max_size=3))
    lists = st.lists(VALUES, max_size=2)
    if draw(st.booleans()):
        keys = st.sampled_from(["Stop", "PreCompact", "Other"])
        root["hooks"] = draw(st.dictionaries(keys, lists, max_size=3))
    if draw(st.booleans()):
        root["env"] = draw(st.dictionaries(st.sampled_from(["PCT", "HOME"]), SCALARS, max_size=2))
    if draw(st.booleans()):
        root["compactThreshold"] = draw(VALUES)
    root = dict(draw(st.permutations(list(root.items()))))
    bom, end = draw(st.sampled_from(["", texts.BOM])), draw(st.sampled_from(["", "\n", "\n\n"]))
    text = bom + draw(SPACES) + draw(laid_out(root)) + draw(SPACES) + end
    return text.replace("\n", "\r\n") if draw(st.booleans()) and '"\\n' not in text else text


def foreign(job: Job, text: str) -> Any:
    root = jsonc.parse("s.json", text)
    return root.plain() if root else None


@settings(deadline=None, max_examples=300)
@given(documents())
def test_any_json_is_restored_to_the_byte(text: str) -> None:
    made, _ = round_trip(JSON_JOB, text)
    before, after = foreign(JSON_JOB, text), foreign(JSON_JOB, made)
    for key, value in before.items():
        if key not in ("hooks", "env"):
            assert after[key] == value
    for event in ("Stop", "PreCompact"):
        there = before.get("hooks", {}).get(event, [])
        assert after["hooks"][event][: len(there)] == there
        assert [item for item in after["hooks"][event] if COMMAND in json.dumps(item)].__len__() == 1
    assert after["compactThreshold"] == before.get("compactThreshold", 75)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "\n", "  \n", texts.BOM, "{}", "{ }", "{\n}", "{\n}\n", "{\t}\n", "// only\n", "// only", "/* a */ {}", "{ // a\n}",
        "{ /* a */ }", '{"hooks": {}}', '{"hooks": { }, "env": {\n}}', '{"hooks": {"Stop": [\n\n]}}\n', '{"a":1}', '{\n"a": 1,\n}',
        '{\n\t"a": {\n\t\t"b": 1\n\t}\n}', '{"a": 1 // c\n}', '{\r\n  "a": 1\r\n}\r\n', '{"a": 1, /* x */ }',
    ],
)  # fmt: skip
def test_odd_beginnings_are_restored_too(text: str | None) -> None:
    made, _ = round_trip(JSON_JOB, text)
    assert ("\r" in made) == ("\r" in (text or ""))
    assert foreign(JSON_JOB, made)["hooks"]["Stop"] == [ENTRY]


def test_what_is_inserted_looks_like_its_neighbours() -> None:
    made, _ = round_trip(JSON_JOB, '{\n\t"a": 1, // why\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n')
    assert '\t"a": 1, // why\n' in made
    assert made.count("  ") == 0
    assert '\n\t"compactThreshold": 75,\n\t"env": {\n\t\t"PCT": "84"\n\t}\n}\n' in made


@settings(deadline=None)
@given(documents(), st.sampled_from(["before", "behind"]))
def test_what_a_user_adds_later_survives(text: str, where: str) -> None:
    made, known = round_trip(JSON_JOB, text)
    root = jsonc.parse("s.json", made)
    assert root is not None
    added = jsonc.insert(made, root, (), "zz", {"mine": [1]})
    if where == "before":
        at = root.start + 1
        added = made[:at] + '"zz": {"mine": [1]}, ' + made[at:]
    left = client_settings.strip(known, added)
    assert left is not None
    before, after = foreign(known, text), foreign(known, left)
    assert after.pop("zz") == {"mine": [1]}
    assert after == before
    assert foreign(known, client_settings.put(known, added)[0]) == foreign(known, added)


def test_a_hook_that_was_added_to_our_group_stays() -> None:
    made, known = round_trip(JSON_JOB, "{}")
    root = jsonc.parse("s.json", made)
    assert root is not None
    made = jsonc.insert(made, root, ("hooks", "Stop", 0, "hooks"), None, {"type": "command", "command": "echo mine"})
    assert foreign(known, client_settings.strip(known, made) or "") == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo mine"}]}]}
    }


def test_a_hook_of_an_older_place_is_replaced_and_one_that_stands_twice_is_one() -> None:
    made, known = round_trip(JSON_JOB, '{"hooks": {"Stop": [{"x": 1}]}}')
    moved = attrs.evolve(known, command="/new/ecm-hook claude-code",
                         changes=tuple(attrs.evolve(c, value=json.loads(json.dumps(c.value).replace(COMMAND, "/new/ecm-hook claude-code"))) for c in CHANGES))  # fmt: skip
    text, _ = client_settings.put(moved, made)
    assert COMMAND not in text
    assert text.count("/new/ecm-hook claude-code") == 3
    stop = foreign(known, made)["hooks"]["Stop"]
    doubled = made.replace(json.dumps(stop[1]), json.dumps(stop[1]) + ", " + json.dumps(stop[1]))
    assert doubled != made
    assert client_settings.put(known, doubled)[0].count(COMMAND) == 3


def test_a_value_that_the_user_changed_is_the_users() -> None:
    made, known = round_trip(JSON_JOB, "{}")
    changed = made.replace("75", "80")
    again, record = client_settings.plan(known, changed)
    assert again == changed
    assert record.values["compactThreshold"].managed is False
    left = foreign(known, client_settings.strip(known, changed) or "")
    assert left == {"compactThreshold": 80}


def test_our_value_follows_the_tables() -> None:
    made, known = round_trip(JSON_JOB, '{"a": 1}')
    lower = attrs.evolve(known, changes=(*CHANGES[:3], attrs.evolve(CHANGES[3], value=60), CHANGES[4]))
    text, record = client_settings.plan(lower, made)
    assert foreign(known, text)["compactThreshold"] == 60
    assert client_settings.strip(attrs.evolve(lower, record=record), text) == '{"a": 1}'


def test_a_value_that_is_wanted_no_more_is_taken_back() -> None:
    made, known = round_trip(JSON_JOB, '{"a": 1}')
    none = attrs.evolve(known, changes=(*CHANGES[:4], attrs.evolve(CHANGES[4], wanted=False)))
    text, record = client_settings.plan(none, made)
    assert "env" not in foreign(known, text)
    assert "env.PCT" not in record.values


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a": 1', (1, 8), "found the end of the file, expected `,` or `}`"),
        ('{\n  "a" 1}', (2, 7), "found `1}`, expected `:`"),
        ("{'a': 1}", (1, 2), "found `'a': 1}`, expected a key in double quotes, or `}`"),
        ('{"a": nul}', (1, 7), "found `nul}`, expected a value"),
        ('{"a": 01}', (1, 7), "expected a value"),
        ('{"a": "x\n"}', (1, 7), "expected a string that ends on its line"),
        ('{"a": 1} x', (1, 10), "found `x`, expected the end of the file"),
        ("{/* a", (1, 2), "expected a comment that ends"),
        (texts.BOM + '{"a" 1}', (1, 6), "expected `:`"),
        ("[" * 200, (1, 101), "found nesting over 100 levels"),
        ("[]", (1, 1), "found a list as the whole, expected an object"),
        ("null", (1, 1), "found null as the whole, expected an object"),
        ('{"hooks": []}', (1, 11), "found a list at `hooks`, expected an object"),
        ('{"hooks": null}', (1, 11), "found null at `hooks`, expected an object"),
        ('{"hooks": {"Stop": {}}}', (1, 20), "found an object at `hooks.Stop`, expected a list"),
        ('{"hooks": {"Stop": "x"}}', (1, 20), 'found `"x"` at `hooks.Stop`, expected a list'),
        ('{"env": 3}', (1, 9), "found `3` at `env`, expected an object"),
        ('{"hooks": {},\n "hooks": {}}', (2, 2), "found the key `hooks` twice, first at line 1, expected it once"),
        ('{"env": {"PCT": 1, "PCT": 2}}', (1, 20), "found the key `PCT` twice"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_edited_is_refused_at_its_place(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(EcmError) as caught:
        client_settings.plan(JSON_JOB, text)
    (finding,) = caught.value.findings
    assert (finding.line, finding.column) == place
    assert message in finding.message
    assert finding.help


TOML_VALUES = st.sampled_from([
    "1", '"a # b"', "'x'", "[\n  1, # one\n  [2],\n]", '"""\n[not.a.table]\n"""', "'''\n# no\nlimit = 3'''", "{ a = 1, b = [1] }", "true",
    '"""a""\\" b"""', '"\\\\"', "1979-05-27", "nan",
])  # fmt: skip
TOML_BETWEEN = st.sampled_from(["", "\n", "# a comment\n", "  # another = [\n\n"])


@st.composite
def toml_documents(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(["a", "b-c", '"q r"', "x.y", "x.z"]), unique=True, max_size=4))
    text = draw(TOML_BETWEEN)
    for name in names:
        text += (
            draw(st.sampled_from(["", "  "]))
            + f"{name} = {draw(TOML_VALUES)}"
            + draw(st.sampled_from(["", " # why"]))
            + "\n"
        )
        text += draw(TOML_BETWEEN)
    for table in draw(st.lists(st.sampled_from(["[t]", "[[arr]]", "  [u.v]"]), unique=True, max_size=2)):
        text += f"{table}\nlimit = {draw(TOML_VALUES)}\n" + draw(TOML_BETWEEN)
    text = text if draw(st.booleans()) else text.removesuffix("\n")
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return draw(st.sampled_from(["", texts.BOM])) + text


@settings(deadline=None, max_examples=300)
@given(toml_documents())
def test_any_toml_is_restored_to_the_byte(text: str) -> None:
    made, _ = round_trip(TOML_JOB, text)
    said = tomllib.loads(made.removeprefix(texts.BOM))
    assert (said.pop("limit"), said.pop("word")) == (150000, "a b")
    assert repr(said) == repr(tomllib.loads(text.removeprefix(texts.BOM)))


@pytest.mark.parametrize("text", [None, "", "\n", "# c", "a = 1", "[t]", "a = 1\r\n[t]\r\n"])
def test_odd_beginnings_of_toml(text: str | None) -> None:
    round_trip(TOML_JOB, text)


def test_a_foreign_value_in_toml_stays() -> None:
    text = "limit = 9 # mine\n[t]\n"
    made, record = toml_lines.plan(TOML_JOB, text)
    assert made == 'limit = 9 # mine\nword = "a b"\n[t]\n'
    assert (record.values["limit"].managed, record.values["word"].managed) == (False, True)


@pytest.mark.parametrize(
    ("text", "place"), [("a = \n", (1, 5)), ("a = 1\na = 2\n", (2, 6)), ("[t\n", (1, 3)), ('a = "\n', (1, 6))]
)
def test_toml_that_cannot_be_edited_is_refused(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(EcmError) as caught:
        toml_lines.plan(TOML_JOB, text)
    (finding,) = caught.value.findings
    assert (finding.line, finding.column) == place


LINES = st.lists(st.text(alphabet=string.ascii_letters + " #-`<>é\t", max_size=8), max_size=6)


@settings(deadline=None)
@given(
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", texts.BOM]),
    st.sampled_from([BLOCK_JOB, FRONT_JOB]),
)
def test_any_markdown_is_restored_to_the_byte(lines: list[str], end: str, ended: bool, bom: str, job: Job) -> None:
    text = bom + end.join(lines) + (end if ended else "")
    made, known = round_trip(job, text)
    assert made.startswith(text)
    more = made + ("" if made.endswith("\n") else end) + "more" + end
    left = blocks.strip(known, more)
    assert left is not None
    assert left.replace(texts.BOM, "").split() == [*text.replace(texts.BOM, "").split(), "more"]


@pytest.mark.parametrize("job", [BLOCK_JOB, FRONT_JOB])
def test_a_new_file_of_markdown_goes_again(job: Job) -> None:
    made, _ = round_trip(job, None)
    assert made.startswith("---\nalwaysApply: true\n---\n\n<!-- " if job is FRONT_JOB else "<!-- ")


@pytest.mark.parametrize(
    "text",
    [
        "<!-- ecm-rules end agents-md -->\n",
        "<!-- ecm-rules begin agents-md: x -->\n",
        "<!-- ecm-rules begin agents-md -->\n" * 2,
    ],
)
def test_markers_without_a_pair_are_refused(text: str) -> None:
    with pytest.raises(EcmError) as caught:
        blocks.plan(BLOCK_JOB, text)
    assert "expected one pair" in caught.value.findings[0].message


def test_a_block_of_another_host_is_not_ours() -> None:
    other, _ = blocks.put(FRONT_JOB, "text\n")
    round_trip(BLOCK_JOB, other)


YAML_VALUES = st.sampled_from([
    "1", "", "text", "'q'", "{a: 1}", "[1, 2]", "\n  b: 1\n  c:\n    - x\n    - y", "\n- a\n- b", "|\n  line\n  more", ">-\n  fold\n", "*x",
    "!t 3", "no", "2001-01-01", "1e3",
])  # fmt: skip


@st.composite
def yaml_documents(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["", "# head\n", "---\n", "%YAML 1.1\n---\n"]))
    text += draw(st.sampled_from(["anchor: &x 1\n", ""]))
    anchored = "&x" in text
    for name in draw(st.lists(st.sampled_from(["a", "'b c'", "d"]), unique=True, max_size=3)):
        value = draw(YAML_VALUES.filter(lambda v: anchored or v != "*x"))
        text += f"{name}:{'' if value.startswith(chr(10)) else ' '}{value}\n" + draw(
            st.sampled_from(["", "\n", "# c\n"])
        )
    text = text if draw(st.booleans()) or not text.rstrip("\n") else text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@settings(deadline=None, max_examples=300)
@given(yaml_documents())
def test_any_project_is_switched_on_and_off_to_the_byte(text: str) -> None:
    try:
        made, new = lock.switch_on(text)
    except EcmError:
        # A text in block style without a line end says another thing with one.
        assert not text.endswith("\n")
        assert any(mark in text for mark in "|>%") or text.rstrip("\r\n").endswith("---")
        return
    assert new
    root = yaml_lines.parse("e.yaml", made)
    assert root is not None
    assert yaml_lines.at(root, ("context", "enabled")) is not None
    assert lock.switch_off(made, lock.Lock({}, switched_on=True)) == text
    assert lock.switch_on(made) == (made, False)
    if "!t" not in text:
        said = yaml.safe_load(made)
        assert said.pop("context") == {"enabled": True}
        assert said == (yaml.safe_load(text) or {})


RECORDS = (Record("s.json", was=" \u2028é🎉", found={"": " \n", "a": None}, values={"x": Held(True, 75)}),)
LOCK = lock.Lock(
    {"claude-code": lock.Entry("T3", "hooks", ("prompt",), RECORDS), "cursor": lock.Entry("T0", "instructions", (), ())}
)
HEAD = {"schema_version": 1, "ecm_version": "0.1", "host_tier": "T3", "thresholds": {"amber": 0.5}}


@settings(deadline=None, max_examples=300)
@given(yaml_documents())
def test_any_lock_is_written_and_restored_to_the_byte(text: str) -> None:
    try:
        made = lock.write(text, LOCK, HEAD, "1")
    except EcmError:
        return
    assert made is not None
    assert lock.strip(made) == text
    assert lock.read(made).hosts == LOCK.hosts
    assert lock.write(made, LOCK, HEAD, "1") == made


THEIRS = """\
version: 2
context: # of another tool
  schema_version: 1
  host_tier: T3
  thresholds: {amber: 0.5, red: 0.75, critical: 0.9} # theirs
  per_host:
    claude-code:
      tier: T3
      channel: additionalContext
    # below
members:
  - name: x
"""


@pytest.mark.parametrize("text", [THEIRS, THEIRS.replace("  per_host:\n    claude-code:\n      tier: T3\n      channel: additionalContext\n    # below\n", ""),
                                  THEIRS.removesuffix("members:\n  - name: x\n"), THEIRS.replace("\n", "\r\n")])  # fmt: skip
def test_a_lock_that_another_tool_wrote_keeps_every_byte(text: str) -> None:
    made = lock.write(text, LOCK, HEAD, "1")
    assert made is not None
    assert lock.strip(made) == text
    assert all(line in made for line in text.splitlines())
    read = lock.read(made)
    assert read.hosts["claude-code"].records == RECORDS
    assert lock.write(made, LOCK, HEAD, "1") == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "found no YAML"), ("a: 1\n\tb: 2\n", "found no YAML"), ("a: 1\n---\nb: 2\n", "found a second document"),
        ("[1]\n", "found a list, expected keys on lines of their own"), ("{a: 1}\n", "found keys within braces"), ("text\n", "found a value"),
        ("a: 1\na: 2\n", "found the key `a` twice"), ("a: \x85 1\n", "found the character U+0085"), ("a: 1\rb: 2", "found the character U+000D"),
        ("? a\n: 1\n", "behind something else on its line"), ("a: " + "[" * 150 + "\n", "found nesting over 100 levels"),
    ],
)  # fmt: skip
def test_yaml_that_cannot_be_edited_is_refused(text: str, message: str) -> None:
    with pytest.raises(EcmError) as caught:
        lock.switch_on(text)
    (finding,) = caught.value.findings
    assert message in finding.message
    assert finding.line
    assert finding.help


def test_a_document_that_is_ended_stays_so() -> None:
    made, _ = lock.switch_on("a: 1\n...\n")
    assert made == "a: 1\ncontext:\n  enabled: true\n...\n"
    assert lock.switch_off(made, lock.Lock({}, switched_on=True)) == "a: 1\n...\n"


def test_a_block_that_was_written_on_stays() -> None:
    made, _ = lock.switch_on("a: 1\n")
    changed = made + "  budget_tokens: 5\n"
    assert lock.switch_off(changed, lock.Lock({}, switched_on=True)) == changed
