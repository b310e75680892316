"""`ecm-rules fmt` as a maintainer runs it: what it writes, what it shows, and what it leaves alone."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.cli.test_streams import shell
from tests.commands import run
from tests.conftest import ROOT

UNTIDY = "a:   {b: 1 ,c: 2}   # ünd\r\n"
TIDY = "a: {b: 1, c: 2} # ünd\n"
REFUSED = "a: no\n"
LOSSY = "a: {# c\n  b: 1}\n"


@pytest.fixture
def table(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "t.yaml"
    path.write_bytes(UNTIDY.encode())
    return path


def test_the_checkout_is_clean() -> None:
    for arguments in ([], ["roster", "rules", "rules/schemas"]):
        done = run("fmt", "--check", *arguments, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_file_is_written_once_and_named(table: pathlib.Path) -> None:
    done = run("fmt", str(table))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{table}\n", "")
    assert table.read_bytes() == TIDY.encode()
    before = table.stat()
    done = run("fmt", str(table))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (table.stat().st_ino, table.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert os.listdir(table.parent) == ["t.yaml"]


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o664, 0o755])
def test_the_mode_of_a_file_stays(mode: int, table: pathlib.Path) -> None:
    table.chmod(mode)
    assert run("fmt", str(table)).returncode == 0
    assert table.read_bytes() == TIDY.encode()
    assert table.stat().st_mode & 0o777 == mode


def test_check_shows_what_would_change_and_writes_nothing(table: pathlib.Path) -> None:
    done = run("fmt", "--check", str(table))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        f"--- {table}\n+++ {table}\n@@ -1,2 +1,2 @@\n"
        "-a:   {b: 1 ,c: 2}   # ünd\\u{000D}\n+a: {b: 1, c: 2} # ünd\n \n"
    )
    assert table.read_bytes() == UNTIDY.encode()


def test_check_shows_a_byte_order_mark(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    done = run("fmt", "--check", "t.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "-\\u{FEFF}a: 1\n+a: 1\n" in done.stdout


def test_the_default_is_what_a_checkout_or_a_project_holds(tmp_path: pathlib.Path) -> None:
    names = ["roster/a.yaml", "rules/b.yaml", ".eidolons/ecm.yaml"]
    others = ["eidolons.yaml", "other.yaml", "rules/schemas/c.yaml", "rules/d.yml", ".eidolons/other.yaml"]
    for name in names + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(UNTIDY.encode())
    done = run("fmt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "".join(f"{name}\n" for name in names))
    assert all((tmp_path / name).read_bytes() == UNTIDY.encode() for name in others)


def test_a_folder_stands_for_its_tables(tmp_path: pathlib.Path) -> None:
    for name in ("b.yaml", "a.yaml", "c.txt", "eidolons.yaml", ".hidden.yaml"):
        (tmp_path / name).write_bytes(UNTIDY.encode())
    done = run("fmt", ".", "./a.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "./a.yaml\n./b.yaml\n")


@pytest.mark.parametrize("arguments", [[], ["."], ["--check"]])
def test_nothing_to_format_exits_2(arguments: list[str], tmp_path: pathlib.Path) -> None:
    done = run("fmt", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("found no table in ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("flags", [[], ["--check"]])
@pytest.mark.parametrize(("text", "told"), [(REFUSED, ":1:4: error ECM106: "), (LOSSY, ":1:5: error ECM109: ")])
def test_findings_leave_a_file_alone_and_the_others_are_done(
    flags: list[str], text: str, told: str, table: pathlib.Path
) -> None:
    bad = table.with_name("bad.yaml")
    bad.write_text(text)
    done = run("fmt", *flags, str(bad), str(table))
    assert done.returncode == 1
    assert f"{bad}{told}" in done.stderr
    assert bad.read_text() == text
    assert str(table) in done.stdout


def test_what_cannot_be_read_exits_2_and_the_others_are_done(table: pathlib.Path) -> None:
    os.mkfifo(table.parent / "pipe")
    done = run("fmt", "nope.yaml", "pipe", "a\x1bb", "t.yaml", cwd=table.parent)
    assert (done.returncode, done.stdout) == (2, "t.yaml\n")
    assert done.stderr == (
        "nope.yaml: no such file or directory\npipe: no regular file\na\\u{001B}b: no such file or directory\n"
    )
    assert table.read_bytes() == TIDY.encode()


def test_what_cannot_be_written_exits_2_and_leaves_nothing_behind(table: pathlib.Path) -> None:
    done = shell(f"cd {table.parent} && ulimit -f 0 && trap '' XFSZ && ecm-rules fmt t.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "t.yaml: file too large\n"
    assert table.read_bytes() == UNTIDY.encode()
    assert os.listdir(table.parent) == ["t.yaml"]


def test_a_file_of_the_nexus_is_not_ours(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "eidolons.yaml"
    path.write_text("context:   {}\n")
    done = run("fmt", str(path))
    assert (done.returncode, path.read_text()) == (2, "context:   {}\n")
    assert "belongs to the nexus" in done.stderr


def test_a_symbolic_link_is_refused(table: pathlib.Path) -> None:
    folder = table.parent / "folder"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(table)
    for path in ("folder/link.yaml", "folder"):
        done = run("fmt", path, cwd=table.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "folder/link.yaml: a symbolic link; name the file that it leads to\n"
    assert table.read_bytes() == UNTIDY.encode()


def test_stdin_goes_to_stdout() -> None:
    assert run("fmt", "-", stdin=UNTIDY).stdout == TIDY
    assert run("fmt", "-", stdin=TIDY, PYTHONIOENCODING="ascii").stdout == TIDY
    done = run("fmt", "--check", "-", stdin=UNTIDY)
    assert (done.returncode, done.stdout.startswith("--- stdin\n")) == (1, True)
    done = run("fmt", "-", stdin=REFUSED)
    assert (done.returncode, done.stdout, "stdin:1:4: error ECM106" in done.stderr) == (1, "", True)


def test_a_file_over_1_mib_is_a_finding(table: pathlib.Path) -> None:
    table.write_text("a: " + "x" * (1 << 20))
    done = run("fmt", str(table))
    assert (done.returncode, "at most 1 MiB" in done.stderr) == (1, True)


def test_without_ruamel_it_says_how_to_get_it(table: pathlib.Path) -> None:
    (table.parent / "shadow/ruamel").mkdir(parents=True)
    (table.parent / "shadow/ruamel/__init__.py").touch()
    done = run("fmt", str(table), PYTHONPATH=str(table.parent / "shadow"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fmt needs ruamel.yaml, which is not installed: pip install 'ecm-rules[authoring]'\n"
    shutil.copy(ROOT / "rules/lateral-signals.yaml", table)
    assert run("table", str(table), PYTHONPATH=str(table.parent / "shadow")).returncode == 0


def test_no_other_command_imports_it() -> None:
    code = "import sys, ecm_rules.cli, ecm_rules; ecm_rules.load_policy(); print('ruamel.yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_output_that_nobody_takes() -> None:
    assert shell(f"cd {ROOT} && printf 'a:  1' | ecm-rules fmt - >/dev/full").returncode == 2
    assert shell(f"cd {ROOT} && printf 'a:  1' | ecm-rules fmt - >&-").returncode == 0
