"""Files that survive crashes, crowds and hostile names."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.kernel import files

APPEND = """
import sys
from ecm_rules.kernel import files
path, writer, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for n in range(count):
    files.append(path, ('{"w": %s, "n": %d, "pad": "%s"}' % (writer, n, "x" * 500)).encode())
"""
REPLACE = """
import sys
from ecm_rules.kernel import files
path, writer, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for n in range(count):
    files.replace(path, ('{"w": %s, "n": %d, "pad": "%s"}' % (writer, n, "x" * 50_000)).encode())
"""


def crowd(code: str, path: pathlib.Path, writers: int, count: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen([sys.executable, "-c", code, str(path), str(w), str(count)]) for w in range(writers)]


def test_a_crowd_of_writers_tears_and_loses_no_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    assert [p.wait() for p in crowd(APPEND, path, 8, 100)] == [0] * 8
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    assert sorted((x["w"], x["n"]) for x in lines) == [(w, n) for w in range(8) for n in range(100)]


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "meter.json"
    files.replace(str(path), b'{"w": -1}')
    writers = crowd(REPLACE, path, 4, 100)
    seen = 0
    while any(p.poll() is None for p in writers):
        assert "w" in json.loads(path.read_bytes())
        seen += 1
    assert seen > 10
    assert os.listdir(tmp_path) == ["meter.json"]


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "meter.json"
    files.replace(str(path), b'{"w": -1}')
    for _ in range(10):
        (writer,) = crowd(REPLACE, path, 1, 100_000)
        while json.loads(path.read_bytes())["w"] == -1:
            pass
        writer.kill()
        writer.wait()
        json.loads(path.read_bytes())


def test_a_torn_last_line_is_closed_before_the_next(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    files.append(str(path), b'{"c": 3}')
    assert path.read_bytes() == b'{"a": 1}\n{"b": \n{"c": 3}\n'


def test_modes_are_private(tmp_path: pathlib.Path) -> None:
    path = files.state_path(str(tmp_path), ".eidolons/.context/meter.json")
    files.replace(path, b"{}")
    files.append(path + "l", b"{}")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(path + "l").st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "relative",
    [
        "../x",
        ".eidolons/.context/../x",
        "/etc/x",
        ".eidolons/.context/a\\..\\..\\x",
        ".eidolons/.context/a\0b",
        "eidolons.yaml",
    ],
)
def test_a_path_outside_of_the_state_is_refused(relative: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="is not below"):
        files.state_path(str(tmp_path), relative)


def test_links_are_refused_at_every_state_path(tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "victim"
    target.write_text("precious")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".eidolons").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic link"):
        files.state_path(str(project), ".eidolons/.context/meter.json")
    link = project / "meter.json"
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        files.replace(str(link), b"{}")
    with pytest.raises(OSError):  # noqa: PT011  the system's own refusal to follow
        files.append(str(link), b"{}")
    assert target.read_text() == "precious"


LIMITED = """
import resource, sys
from ecm_rules.kernel import files
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
act, path = getattr(files, sys.argv[1]), sys.argv[2]
act(path, b"a" * 600)
try:
    act(path, b"b" * 1600)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize(("act", "left"), [("append", b"a" * 600 + b"\n"), ("replace", b"a" * 600)])
def test_what_does_not_fit_is_said_and_leaves_nothing_behind(act: str, left: bytes, tmp_path: pathlib.Path) -> None:
    # A limit on the size of files cuts a write short as a full disk does.
    path = tmp_path / "state"
    done = subprocess.run([sys.executable, "-c", LIMITED, act, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout
    assert path.read_bytes() == left
    assert os.listdir(tmp_path) == ["state"]


def test_a_line_is_not_written_into_one_that_another_has_begun(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    slow = (
        "import os, sys; h = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND); os.lockf(h, os.F_LOCK, 0);"
        "os.write(h, b'[1,'); print(flush=True); input(); os.write(h, b'2]\\n')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", slow, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            writing = pool.submit(files.append, str(path), b"[3]", patience=60)
            process.stdin.write(b"\n")
            process.stdin.flush()
            writing.result()
    assert path.read_bytes() == b"[1,2]\n[3]\n"


def test_a_writer_that_holds_the_lock_for_ever_stops_nobody(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    holder = "import os, sys; h = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); os.lockf(h, os.F_LOCK, 0); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        files.append(str(path), b"{}")
        assert path.read_bytes() == b"{}\n"
        process.kill()


def test_a_pipe_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "log")
    os.mkfifo(path)
    with pytest.raises(OSError, match="regular"):
        files.append(path, b"{}")
    with pytest.raises(OSError, match="regular"):
        files.read(path)


@given(st.text(max_size=400))
def test_any_session_id_becomes_a_harmless_name(session: str) -> None:
    name = files.session_name(session)
    assert 0 < len(name) <= 128
    assert name.isascii()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@pytest.mark.parametrize("session", ["", "../../x", "a\0b", "a" * 300, "CON ", "é", "\ud800", "."])
def test_hostile_session_ids_are_hashed(session: str) -> None:
    assert files.session_name(session).startswith("h-")
    assert [files.session_name(s) for s in ("-", "__", "a" * 128)] == ["-", "__", "a" * 128]
    assert files.session_name("4be76715-2ae1-4e9c-8952-9d75579ca13e") == "4be76715-2ae1-4e9c-8952-9d75579ca13e"


NAME = """
import sys
from ecm_rules.kernel import files
folder, me = sys.argv[1], sys.argv[2]
print(files.create((f"{folder}/{n}" for n in range(40)), me.encode()))
"""


def test_of_thirty_that_ask_at_once_each_gets_a_name_of_its_own(tmp_path: pathlib.Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", NAME, str(tmp_path), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(30)
    ]
    got = {n: process.communicate()[0].strip() for n, process in enumerate(running)}
    assert sorted(int(os.path.basename(path)) for path in got.values()) == list(range(30))
    assert all(pathlib.Path(path).read_text() == str(n) for n, path in got.items())
    assert len(os.listdir(tmp_path)) == 30


def test_a_new_file_is_put_in_the_place_of_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "0").write_text("there")
    (tmp_path / "1").symlink_to(tmp_path / "elsewhere")
    assert files.create([str(tmp_path / str(n)) for n in range(3)], b"new") == str(tmp_path / "2")
    assert os.stat(tmp_path / "2").st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        files.create([str(tmp_path / "0"), str(tmp_path / "1")], b"new")
    assert (tmp_path / "0").read_text() == "there"
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]


def test_a_file_system_without_links_gets_new_files_all_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*given: object, **more: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "0").write_text("there")
    assert files.create([str(tmp_path / "0"), str(tmp_path / "1")], b"new") == str(tmp_path / "1")
    assert (tmp_path / "1").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


@pytest.mark.parametrize("call", ["create", "replace"])
def test_what_is_durable_is_synced_before_it_has_its_name_and_the_folder_behind_it(
    call: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "brief.md", list[tuple[bool, bool]]()

    def fsync(handle: int) -> None:
        synced.append((os.path.isdir(f"/proc/self/fd/{handle}"), path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    if call == "create":
        files.create([str(path)], b"x")
    else:
        files.replace(str(path), b"x")
        assert synced == []
        path.unlink()
        files.replace(str(path), b"x", durable=True)
    assert synced == [(False, False), (True, True)]


def test_what_cannot_be_synced_is_not_there(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    for write in (lambda path: files.create([path], b"x"), lambda path: files.replace(path, b"x", durable=True)):
        with pytest.raises(OSError, match="Input/output"):
            write(str(tmp_path / "brief.md"))
        assert os.listdir(tmp_path) == []


def test_a_state_path_of_another_folder_stays_in_that_one(tmp_path: pathlib.Path) -> None:
    path = files.state_path(str(tmp_path), ".eidolons/.trace/t.jsonl", below=".eidolons/.trace/")
    assert os.path.isdir(os.path.dirname(path))
    for relative in (".eidolons/.trace/../x", ".eidolons/.context/x", "x"):
        with pytest.raises(OSError, match="is not below"):
            files.state_path(str(tmp_path), relative, below=".eidolons/.trace/")
