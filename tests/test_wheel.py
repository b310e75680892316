"""The wheel, installed outside of the checkout, finds its tables."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import venv

from tests.conftest import FIXTURES, ROOT
from tests.tables.test_jsonschema import modeline


def test_the_wheel_works_in_an_empty_environment(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(
        ROOT,
        source,
        ignore=shutil.ignore_patterns(
            ".git", ".venv", "fixtures", "tests", "bench", ".*cache", "__pycache__", "dist", "build"
        ),
    )
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("ecm_rules-*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    binaries = tmp_path / "empty/bin"
    subprocess.run([binaries / "python", *pip[1:], "install", str(wheel)], check=True, capture_output=True)
    shutil.rmtree(source)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [binaries / arguments[0], *arguments[1:]], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    code = "import ecm_rules, sys; p = ecm_rules.load_policy(); print(ecm_rules.__file__); print(p.decide({'zone': 'red'}).rule)"
    where, rule = run("python", "-c", code).split()
    assert where.startswith(str(tmp_path / "empty"))
    assert rule == "P3"
    session = str(FIXTURES / "transcripts/01_claude_small.jsonl")
    assert json.loads(run("ecm-rules", "run", session, "--json"))["verdict"]["rule"] == "P7"
    assert json.loads(run("ecm-rules", "schema", "pins"))["title"] == "pins"
    (data,) = (tmp_path / "empty").rglob("ecm_rules/_data")
    assert modeline(data / "roster/pins.yaml").is_file()
    assert modeline(data / "rules/signals.yaml").is_file()
    assert run("python", "-c", "from ecm_rules.hosts import shims; print(*map(len, map(shims.source, shims.FILES)))")
    assert "recover_fresh" in run("ecm-rules", "table", "lateral-signals")
    assert "4 files written" in run("ecm-rules", "install", "--host", "opencode", "--host", "agents-md")
    assert json.loads(run("ecm-rules", "doctor", "--json"))["hosts"][0]["hook"]["exit"] == 0
    assert "py.typed" in [path.name for path in (tmp_path / "empty").rglob("ecm_rules/py.typed")]
