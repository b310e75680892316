"""README says what is so: its tables are generated, its commands run, its Python gives what it says."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys

import pytest
import yaml

from tests.commands import examples, piped, run, unprinted
from tests.conftest import ROOT

# Pages whose Python and commands are run as they stand.
RUN = ["README.md", "docs/lifecycle.md"]


def test_the_tables_of_the_readme_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/render_readme.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", RUN)
def test_the_python_of_a_page_gives_what_it_says(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, {}, page, page, 0)
        assert test.examples
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_print_what_it_says(page: str) -> None:
    for block in re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        for command, shown in examples(block):
            done = run(*command.split(), cwd=ROOT)
            assert done.returncode == 0, (command, done.stderr)
            assert unprinted(shown, done.stdout) == []


def test_what_the_pages_show_is_printed() -> None:
    shown_by = {}
    for page in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            for given, command, shown in piped(block):
                if shown:
                    done = run(*command.split(), cwd=ROOT, stdin=given)
                    assert done.returncode == 0, (command, done.stderr)
                    assert unprinted(shown, done.stdout) == []
                    shown_by[page.name] = command
    assert shown_by


def test_the_hooks_for_pre_commit_are_clean_on_the_shipped_tables() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    files = [str(p.relative_to(ROOT)) for folder in ("roster", "rules", "fixtures") for p in (ROOT / folder).rglob("*")]
    for hook in hooks:
        script, *command = hook["entry"].split()
        matching = [file for file in files if re.search(hook["files"], file)]
        assert "roster/context-policy.yaml" in matching
        assert not any("schemas" in file for file in matching)
        given = matching if hook.get("pass_filenames", True) else []
        done = run(*command, *given, cwd=ROOT, script=script)
        assert done.returncode == 0, (hook["id"], done.stdout, done.stderr)


def test_every_link_within_the_project_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
