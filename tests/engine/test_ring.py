"""The runtime ring: what a prompt may import, checked in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ecm_rules import Policy
from ecm_rules.engine import program

HEAVY = {
    "yaml", "cerberus", "jmespath", "attr", "attrs", "typer", "click", "rich", "dataclasses", "typing", "pathlib",
    "logging", "tempfile", "hashlib", "inspect", "ast", "random",
}  # fmt: skip
RING = [
    "ecm_rules.tables.domains",
    "ecm_rules.tables.places",
    "ecm_rules.engine.program",
    "ecm_rules.engine.zones",
    "ecm_rules.lifecycle.anthropic",
    "ecm_rules.lifecycle.ecmascript",
    "ecm_rules.lifecycle.gemini",
    "ecm_rules.lifecycle.gemini_text",
    "ecm_rules.lifecycle.grammar",
    "ecm_rules.lifecycle.injection",
    "ecm_rules.lifecycle.openai",
    "ecm_rules.lifecycle.opencode",
    "ecm_rules.lifecycle.pairs",
    "ecm_rules.lifecycle.pi",
    "ecm_rules.lifecycle.providers",
    "ecm_rules.lifecycle.session",
    "ecm_rules.lifecycle.shapes",
    "ecm_rules.lifecycle.trust",
    "ecm_rules.kernel.accounts",
    "ecm_rules.kernel.window_text",
    "ecm_rules.kernel.audit",
    "ecm_rules.kernel.chain",
    "ecm_rules.kernel.compactions",
    "ecm_rules.kernel.earlier",
    "ecm_rules.kernel.entering",
    "ecm_rules.kernel.files",
    "ecm_rules.kernel.kin",
    "ecm_rules.kernel.ledger",
    "ecm_rules.kernel.meter",
    "ecm_rules.kernel.pins",
    "ecm_rules.kernel.ladder",
    "ecm_rules.kernel.locks",
    "ecm_rules.kernel.lookup",
    "ecm_rules.kernel.payloads",
    "ecm_rules.kernel.readers.claude",
    "ecm_rules.kernel.readers.codex",
    "ecm_rules.kernel.readers.copilot",
    "ecm_rules.kernel.readers.gemini",
    "ecm_rules.kernel.readers.opencode",
    "ecm_rules.kernel.readers.pi",
    "ecm_rules.kernel.resume",
    "ecm_rules.kernel.tally",
    "ecm_rules.kernel.steps",
    "ecm_rules.kernel.transcripts",
    "ecm_rules.kernel.work",
    "ecm_rules.hosts.answers",
    "ecm_rules.hosts.apart",
    "ecm_rules.hosts.cache",
    "ecm_rules.hosts.hook",
    "ecm_rules.hosts.measuring",
    "ecm_rules.hosts.memo",
    "ecm_rules.hosts.moments",
    "ecm_rules.hosts.statusline",
    "ecm_rules.hosts.views",
]


def loaded_by(code: str) -> set[str]:
    """Modules that `code` loads on top of a started interpreter with json."""
    show = "import sys, json, os; before = set(sys.modules);" + code + ";print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {show}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split("\n")[-2].split())


def test_importing_the_package_imports_nothing() -> None:
    assert loaded_by("import ecm_rules") == {"ecm_rules"}


@pytest.mark.parametrize("module", RING)
def test_a_module_of_the_ring_imports_the_light_part_alone(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert not loaded & HEAVY
    assert {name for name in loaded if not name.startswith("ecm_rules")} <= {"_blake2"}


def test_a_program_loads_back_and_decides_without_the_authoring_side(policy: Policy) -> None:
    text = program.dumps(policy.program)
    code = (
        "from ecm_rules.engine import program;"
        f"p = program.loads({text!r});"
        "print(json.dumps(program.decide(p, {'zone': 'red', 'compaction_count': 2}, 'subagent')))"
    )
    assert not loaded_by(code) & (HEAVY - {"hashlib"})
    done = subprocess.run([sys.executable, "-c", "import json;" + code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == policy.decide({"zone": "red", "compaction_count": 2}, "subagent").to_dict()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 0}', "nonsense", "null", '{"format": 1}', '{"format": 1, "digest": null}']
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  json's own errors are among them
        program.loads(text)


def test_a_program_that_was_changed_is_refused(policy: Policy) -> None:
    changed = program.dumps({**policy.program, "rows": []})
    with pytest.raises(ValueError, match="digest"):
        program.loads(changed)
