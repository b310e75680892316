"""The settings that are installed beside the hooks do in the real clients what they are written for."""

from __future__ import annotations

import json

import pytest

from e2e.harness.runner import SUMMARY
from e2e.harness.terminal import Terminal
from e2e.project import STATE, Project
from e2e.test_hosts import fill

BRACKET = "compaction_bracket"


def _compacted(project: Project) -> bool:
    return any(SUMMARY in request.answer for request in fill(project))


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_compaction_comes_at_the_red_boundary_and_by_default_later(project: Project) -> None:
    assert not _compacted(project)
    project.install()
    assert _compacted(project)


@pytest.mark.parametrize("host", ["gemini-cli"])
def test_compression_comes_at_the_red_boundary_and_by_default_earlier(project: Project) -> None:
    project.install()
    shell = '[[tool run_shell_command {"command": "echo one"}]]'

    def compressed() -> bool:
        project.session.ask("something first")
        requests = project.session.ask(f"go [[usage 650000]] {shell}", further=True)
        requests += project.session.ask("and on", further=True)
        return any(SUMMARY in request.answer for request in requests)

    assert not compressed()
    project.remove()
    assert compressed()


@pytest.mark.parametrize("host", ["claude-code"])
def test_the_status_line_shows_the_gauge_and_feeds_the_meter(project: Project) -> None:
    project.install()
    with Terminal(project.session) as terminal:
        terminal.wait_for("❯|> ")
        terminal.type("go [[usage 150000]]")
        terminal.wait_for("FAKE-FINAL")
        terminal.wait_for(r"▕█*░*▏")
    meter = json.loads((project.folder / STATE / "meter.json").read_text())
    assert (meter["estimate_source"], meter["used_tokens_est"]) == ("host", 150_000)


@pytest.mark.parametrize("host", ["gemini-cli"])
def test_a_compression_by_hand_is_bracketed(project: Project) -> None:
    project.install()
    project.session.ask("something first")
    log = project.folder / STATE / "policy-log.jsonl"

    def lines() -> int:
        return log.read_text().count("\n")

    before = lines()
    with Terminal(project.session, "--resume", "latest", "-m", "gemini-2.5-pro") as terminal:
        terminal.wait_until(lambda: lines() > before)  # its session has started
        terminal.wait_for("Type your message")
        asked, before = len(project.session.requests()), lines()
        terminal.type("something second")
        terminal.wait_until(lambda: len(project.session.requests()) > asked and lines() > before + 1)
        terminal.type("/compress")
        terminal.wait_until(lambda: BRACKET in log.read_text())
    assert log.read_text().count(BRACKET) == 1
