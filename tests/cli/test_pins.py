"""`ecm-rules pins`, as people and scripts run it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import stat

import pytest

from tests.commands import examples, run, unprinted
from tests.conftest import FIXTURES, ROOT
from tests.tables.test_pins import DEFAULTS

ALL = [*DEFAULTS, "release_freeze", "house_style"]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the project in fixtures/, in which files may be changed."""
    return pathlib.Path(shutil.copytree(FIXTURES / "project", tmp_path / "project"))


def test_the_page_shows_what_happens(folder: pathlib.Path) -> None:
    ran = 0
    for block in re.findall(r"```console\n(.*?)```", (ROOT / "docs/pins.md").read_text(), re.DOTALL):
        for command, shown in examples(block):
            done = run(*command.split(), cwd=folder)
            assert done.returncode == int("damaged" in "".join(shown)), (command, done.stderr)
            assert unprinted(shown, done.stdout) == []
            assert shown or done.stdout == ""
            ran += 1
    assert ran >= 6


def test_list_says_where_texts_come_from(folder: pathlib.Path) -> None:
    (folder / "eidolons.mcp.lock").unlink()
    done = run("pins", "list", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert [pin["id"] for pin in told["pins"]] == ALL
    assert told["unresolved"] == ["esl_enforcement_mode"]
    mode = told["pins"][2]
    assert (mode["resolved"], mode["text"], mode["reason"]) == (False, None, "eidolons.mcp.lock: no such file")
    assert told["pins"][7]["from"] == "CONTRIBUTING.md § House style"
    plain = run("pins", "list", cwd=folder)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert len(plain.stdout.splitlines()) == 8
    assert "not resolved: eidolons.mcp.lock: no such file" in plain.stdout


def test_render_keeps_the_budget_and_names_what_is_left_out(folder: pathlib.Path) -> None:
    done = run("pins", "render", "--budget", "60", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert told["budget"] == 60
    assert told["tokens"] <= 60
    assert sorted(told["rendered"] + told["left_out"]) == sorted(ALL)
    assert told["left_out"][0] == "cortex_routing_digest"
    plain = run("pins", "render", "--budget", "60", cwd=folder)
    assert plain.stdout == told["text"]
    assert plain.stderr == f"left out, for want of room in 60 tokens: {', '.join(told['left_out'])}\n"
    assert json.loads(run("pins", "render", "--json", cwd=folder).stdout)["budget"] == 2000
    assert run("pins", "render", "--budget", "0", cwd=folder).stdout == ""
    for wrong in ("-1", "nan", "1e3", "9" * 20):
        assert run("pins", "render", "--budget", wrong, cwd=folder).returncode == 2


def test_what_is_rendered_is_verified(folder: pathlib.Path) -> None:
    rendered = run("pins", "render", cwd=folder).stdout
    done = run("pins", "verify", "-", "--json", cwd=folder, stdin=rendered)
    assert done.returncode == 0
    assert json.loads(done.stdout)["survived"] is True
    assert json.loads(done.stdout)["missing"] == []


def test_verify_names_what_is_missing(folder: pathlib.Path) -> None:
    done = run("pins", "verify", "summary.md", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert (done.returncode, told["survived"]) == (1, False)
    assert told["missing"] == [pin for pin in ALL if pin != "esl_enforcement_mode"]
    assert told["pins"][6] == {"id": "release_freeze", "marker": "release_freeze", "present": False, "state": "damaged"}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_repair_keeps_mode_and_line_ends(end: bytes, folder: pathlib.Path) -> None:
    path = folder / "a.md"
    before = b"\xef\xbb\xbfone" + (end or b"\n") + b"two" + end
    path.write_bytes(before)
    path.chmod(0o640)
    done = run("pins", "repair", "a.md", "--json", cwd=folder)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"replaced": [], "appended": ALL, "written": True, "unresolved": []}
    after = path.read_bytes()
    assert after.startswith(before)
    assert (b"\r\n" in after) == (end == b"\r\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run("pins", "verify", "a.md", cwd=folder).returncode == 0
    assert run("pins", "repair", "a.md", cwd=folder).stdout == ""
    assert path.read_bytes() == after
    assert sorted(os.listdir(folder)) == sorted([*os.listdir(FIXTURES / "project"), "a.md"])


def test_a_repair_that_has_nothing_to_do_writes_nothing(folder: pathlib.Path) -> None:
    run("pins", "repair", "summary.md", cwd=folder)
    path = folder / "summary.md"
    before = path.stat()
    assert json.loads(run("pins", "repair", "summary.md", "--json", cwd=folder).stdout)["written"] is False
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_repair_from_stdin_to_stdout(folder: pathlib.Path) -> None:
    done = run("pins", "repair", "-", cwd=folder, stdin="a\r\n")
    assert done.returncode == 0
    assert done.stdout.startswith("a\r\n<!--BLOCK_ID:cortex_routing_digest-->\r\n")
    again = run("pins", "repair", "-", cwd=folder, stdin=done.stdout)
    assert again.stdout == done.stdout
    told = json.loads(run("pins", "repair", "-", "--json", cwd=folder, stdin="a\r\n").stdout)
    assert (told["text"], told["written"]) == (done.stdout, False)


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_what_cannot_be_read_is_refused(command: str, folder: pathlib.Path) -> None:
    (folder / "binary").write_bytes(b"\x89PNG\r\n\0\xff")
    os.mkfifo(folder / "pipe")
    for path, reason in (("no.md", "no such file"), ("binary", "found a NUL"), ("pipe", "no regular file"), (".", "is a directory|no regular file")):  # fmt: skip
        done = run("pins", command, path, cwd=folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.match(f"{re.escape(path)}: .*({reason})", done.stderr)
    assert run("pins", command, "-", cwd=folder, stdin=b"\xff").returncode == 2
    assert run("pins", command, cwd=folder).returncode == 2


def test_a_link_is_not_repaired(folder: pathlib.Path) -> None:
    os.symlink("summary.md", folder / "link.md")
    before = (folder / "summary.md").read_bytes()
    done = run("pins", "repair", "link.md", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "symbolic link" in done.stderr
    assert (folder / "summary.md").read_bytes() == before


def record(content: str) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode() + b"\n"


def test_a_transcript_is_verified_and_left_alone(folder: pathlib.Path) -> None:
    rendered = run("pins", "render", cwd=folder).stdout
    path = folder / "session.jsonl"
    path.write_bytes(record("before") + record(rendered))
    assert run("pins", "verify", "session.jsonl", cwd=folder).returncode == 0
    path.write_bytes(record(rendered) + b'{"type": "system", "subtype": "compact_boundary"}\n' + record("after"))
    assert run("pins", "verify", "session.jsonl", cwd=folder).returncode == 1
    before = path.read_bytes()
    done = run("pins", "repair", "session.jsonl", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pins render" in done.stderr
    assert path.read_bytes() == before


def test_a_recorded_session_has_none_of_them(folder: pathlib.Path) -> None:
    session = str(FIXTURES / "transcripts/02_claude_compact_boundary.jsonl")
    told = json.loads(run("pins", "verify", session, "--json", cwd=folder).stdout)
    assert told["missing"] == ALL


def test_a_project_without_anything_has_names_and_reasons(project: pathlib.Path) -> None:
    done = run("pins", "render", cwd=project)
    assert done.returncode == 0
    assert done.stdout.count("(not resolved: ") == 6
    assert len(done.stderr.splitlines()) == 6
    (project / "a.md").write_text("")
    assert run("pins", "verify", "a.md", cwd=project).returncode == 1
    assert run("pins", "repair", "a.md", cwd=project).returncode == 0
    assert run("pins", "verify", "a.md", cwd=project).returncode == 0


@pytest.mark.parametrize("command", [["list"], ["render"], ["verify", "-"], ["repair", "-"]])
def test_findings_exit_1_and_nothing_is_printed(command: list[str], project: pathlib.Path) -> None:
    (project / ".eidolons").mkdir()
    (project / ".eidolons/ecm.yaml").write_text("pins: [{id: a, why: w, source: {tool_result: t}}]\n")
    done = run("pins", *command, cwd=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error ECM406: found the result of a tool" in done.stderr
    assert run("pins", *command, "--project", "nowhere", cwd=project).returncode == 2


def test_hostile_texts_print_in_any_encoding(folder: pathlib.Path) -> None:
    (folder / "CONTRIBUTING.md").write_text("## House style\n\u2028 é \x1b[31m 漢\n")
    done = run("pins", "render", cwd=folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\u2028 é \x1b[31m 漢\n" in done.stdout
    assert "\x1b" not in run("pins", "list", cwd=folder).stdout
