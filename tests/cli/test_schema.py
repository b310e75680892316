"""`ecm-rules schema` as a maintainer runs it."""

from __future__ import annotations

import json

import pytest

from ecm_rules.cli.schema import NAMES
from tests.commands import run
from tests.conftest import ROOT

COPIES = ROOT / "rules/schemas/json"


@pytest.mark.parametrize("name", NAMES)
def test_the_copy_that_is_shipped_is_what_the_command_prints(name: str) -> None:
    done = run("schema", name, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (COPIES / f"{name}.json").read_text(), "run `make schemas`"
    printed = json.loads(done.stdout)
    assert done.stdout == json.dumps(printed, indent=2, sort_keys=True) + "\n"
    assert printed["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert printed["description"].startswith("Shape of ")


def test_each_schema_but_the_shared_parts_has_a_copy() -> None:
    written = {path.stem for path in (ROOT / "rules/schemas").glob("*.yaml")} - {"parts"}
    assert written == set(NAMES) == {path.stem for path in COPIES.iterdir()}


def test_the_names_are_in_the_help() -> None:
    shown = run("schema", "--help").stdout
    assert all(name in shown for name in NAMES)


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("contxt-policy", "did you mean `context-policy`?"),
        ("parts", "known: `context-policy`, `decision-table`"),
        ("../parts", "known: "),
        ("", "known: "),
    ],
)
def test_an_unknown_name_exits_2_with_a_suggestion(name: str, help: str) -> None:
    done = run("schema", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert help in done.stderr
