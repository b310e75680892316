"""The public API as a type checker sees it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

GOOD = """
import pathlib

from ecm_rules import Degraded, EcmError, Finding, Policy, RowTrace, Verdict, load_policy, load_table

policy: Policy = load_policy(pathlib.Path("policy.yaml"), project=None)
verdict: Verdict = policy.decide({"zone": "red"}, role="subagent")
rule: str | None = verdict.rule
operation: str = verdict.operation
steps: tuple[str, ...] = verdict.steps
degraded: tuple[Degraded, ...] = verdict.degraded
missing: tuple[str, ...] = verdict.missing
text: str = Verdict.from_json(verdict.to_json()).to_json()
row: str | None = policy.rule_for(None)
seen: tuple[RowTrace, ...] = policy.trace({})
held: bool = seen[0].tests[0].held
try:
    load_table("lateral-signals")
except EcmError as error:
    findings: tuple[Finding, ...] = error.findings
    place: tuple[str, int, int] = (findings[0].file, findings[0].line, findings[0].column)
"""
LIFETIMES = """
from ecm_rules import Finding
from ecm_rules.lifecycle import SHAPES, Document, Session, Source, View, conflicts_of, findings_of, load_trust, parse
from ecm_rules.lifecycle import read_markdown

text: str = read_markdown("phase.md")
document: Document = parse(text, "phase.md")
findings: list[Finding] = findings_of(document, text, "phase.md") + conflicts_of([document])
session = Session(load_trust(), shape=SHAPES["neutral"])
session.load_source(text, "phase.md")
session.control("", Source("workflow", "host_workflow", trigger="done"))
view: View = session.view([{"role": "user", "content": "go"}])
system: str = view.system
active: list[str] = view.active
"""
WRONG = [
    "from ecm_rules import load_policy\nload_policy().decide({}).rule.upper()\n",
    "from ecm_rules import load_policy\nload_policy().decide({}).operations\n",
    "from ecm_rules import load_policy\nload_policy().decide({}, 3)\n",
    "from ecm_rules import load_policy\nload_policy().decide({}).rule = 'P1'\n",
    "from ecm_rules import no_such_name\n",
]


def check(path: pathlib.Path, text: str) -> subprocess.CompletedProcess[str]:
    path.write_text(text)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(path.parent / "cache"),
        str(path),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", [GOOD, LIFETIMES])
def test_the_public_api_is_typed(text: str, tmp_path: pathlib.Path) -> None:
    done = check(tmp_path / "good.py", text)
    assert done.returncode == 0, done.stdout


def test_misuse_is_seen(tmp_path: pathlib.Path) -> None:
    for number, text in enumerate(WRONG):
        assert check(tmp_path / f"wrong{number}.py", text).returncode == 1, text
