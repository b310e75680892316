"""A transcript that is read on from where it was left says what reading it whole says, whatever happened to the file."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecm_rules.kernel import resume, transcripts
from ecm_rules.kernel.tally import Tally
from ecm_rules.tables.hosts import load_hosts
from tests.conftest import FIXTURES
from tests.kernel.test_readers import BACK, TREE, entry

FOLDER = FIXTURES / "transcripts"
KNOWN = load_hosts()
METER = ".eidolons/.context/meter.json"
# A session that goes back, and back again.
BRANCHES = [*TREE, *BACK, entry("h", "e", text="back"), entry("i", "h", "assistant", "x", 50), entry("j", "g")]
DATA = {
    name: (FOLDER / name).read_bytes()
    for name in (
        "01_claude_small.jsonl",
        "05c_claude_api_error_last.jsonl",
        "07_claude_subagent_sidechain.jsonl",
        "11_codex_fork_replay_ccusage.jsonl",
        "codex_autocompact.jsonl",
        "copilot_autocompact.jsonl",
        "gemini_autocompress.jsonl",
        "06_gemini_session.json",
        "opencode_autocompact.json",
        "pi_compaction.jsonl",
    )
} | {"branches": b"".join(json.dumps(record).encode() + b"\n" for record in BRANCHES)}


class File:
    """A transcript beside a project in which its reading is remembered."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "t.jsonl")

    def read(self, limit: int | None = None) -> Tally:
        return transcripts.read(self.path, KNOWN, limit, (self.folder, METER))

    def state(self) -> pathlib.Path:
        (found,) = (pathlib.Path(self.folder) / ".eidolons/.context").glob("reading-*.json")
        return found

    def offset(self) -> int:
        found: int = json.loads(self.state().read_text())["offset"]
        return found

    def write(self, data: bytes) -> None:
        with open(self.path, "wb") as stream:
            stream.write(data)

    def append(self, data: bytes) -> None:
        with open(self.path, "ab") as stream:
            stream.write(data)

    def agrees(self, limit: int | None = None) -> None:
        """Read on, and read whole: the same."""
        assert plain(self.read(limit)) == plain(transcripts.read(self.path, KNOWN, limit))


def plain(tally: Tally) -> str:
    return json.dumps({**tally.state(), "unread": tally.unread})


@pytest.fixture
def file(tmp_path: pathlib.Path) -> File:
    return File(str(tmp_path))


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return (data[a:b] for a, b in itertools.pairwise(places))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(DATA)), st.lists(st.integers(0, 10**6), max_size=6))
def test_any_sequence_of_pieces_reads_as_the_whole(name: str, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder)
        file.write(b"")
        for piece in pieces(DATA[name], cuts):
            file.append(piece)
            file.agrees()
        assert plain(file.read()) == plain(file.read())


def test_an_empty_file_may_become_anything(file: File) -> None:
    for name in ("06_gemini_session.json", "branches"):
        file.write(b"")
        file.agrees()
        file.append(DATA[name])
        file.agrees()


@pytest.mark.parametrize("name", ["branches", "gemini_autocompress.jsonl", "11_codex_fork_replay_ccusage.jsonl"])
def test_record_by_record_reads_as_the_whole(name: str, file: File) -> None:
    for line in DATA[name].splitlines(keepends=True):
        file.append(line[:-5])
        file.agrees()
        file.append(line[-5:])
        file.agrees()


def truncated(file: File, data: bytes, at: int) -> None:
    os.truncate(file.path, at % len(data))


def truncated_and_grown(file: File, data: bytes, at: int) -> None:
    os.truncate(file.path, at % len(data))
    file.append(data)


def rotated(file: File, data: bytes, at: int) -> None:
    os.rename(file.path, file.path + ".1")
    file.write(data[at % len(data) :] + data)


def rewritten_in_its_size(file: File, data: bytes, at: int) -> None:
    changed = bytearray(data)
    changed[at % len(data)] ^= 1
    file.write(bytes(changed))


def rewritten_prefix(file: File, data: bytes, at: int) -> None:
    file.write(b'{"sessionId": "new"}\n' + data[at % len(data) :] + data)


def in_its_place(file: File, data: bytes, at: int) -> None:
    """By a new file of the same content and of another, both at once."""
    file.write(data)
    with open(file.path + ".new", "wb") as stream:
        stream.write(data[: at % len(data)])
    os.replace(file.path + ".new", file.path)


FAULTS: list[Callable[[File, bytes, int], None]] = [
    truncated,
    truncated_and_grown,
    rotated,
    rewritten_in_its_size,
    rewritten_prefix,
    in_its_place,
]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(DATA)), st.sampled_from(FAULTS), st.integers(0, 10**6), st.integers(0, 10**6))
def test_whatever_happens_to_the_file_it_is_read_anew(
    name: str, fault: Callable[[File, bytes, int], None], cut: int, at: int
) -> None:
    data = DATA[name]
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder)
        file.write(data[: cut % len(data)])
        file.read()
        file.write(data)
        file.agrees()
        fault(file, data, at)
        file.agrees()
        file.append(data[: at % len(data)])
        file.agrees()


def test_a_byte_is_missed_nowhere_though_size_and_time_are_the_same(file: File) -> None:
    data = DATA["05c_claude_api_error_last.jsonl"]
    file.write(data)
    for at in range(0, len(data), 997):
        file.write(data)
        os.utime(file.path, ns=(1, 1))
        file.read()
        rewritten_in_its_size(file, data, at)
        os.utime(file.path, ns=(1, 1))
        file.agrees()


def test_a_line_more_or_less_in_a_long_file_is_seen(file: File) -> None:
    data = (FOLDER / "02_claude_compact_boundary.jsonl").read_bytes() + b"\n"
    lines = data.splitlines(keepends=True)
    for number in range(0, len(lines), 20):
        file.write(data)
        file.read()
        assert file.offset() == len(data)
        file.write(b"".join(lines[:number] + lines[number + 1 :]) + data)
        file.agrees()
        file.write(b"".join([*lines[:number], b'{"type":"mode"}\n', *lines[number:]]) + data)
        file.agrees()


def count_feeds(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    fed: list[bytes] = []
    feed = Tally.feed

    def counted(self: Tally, line: bytes) -> None:
        if line:
            fed.append(line)
        feed(self, line)

    monkeypatch.setattr(Tally, "feed", counted)
    return fed


def test_a_refresh_reads_what_was_appended_and_no_more(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (FOLDER / "02_claude_compact_boundary.jsonl").read_bytes() + b"\n"
    lines = data.splitlines(keepends=True)
    file.write(b"".join(lines[:-2]))
    file.read()
    fed = count_feeds(monkeypatch)
    file.append(lines[-2])
    assert file.read().main.used is not None
    assert fed == lines[-2:-1]
    fed.clear()
    file.append(lines[-1][:-10])
    file.read()
    file.append(lines[-1][-10:])
    assert file.read().main.used == 114_039
    assert fed == [lines[-1][:-10], lines[-1]]
    fed.clear()
    written = file.state().stat().st_mtime_ns
    file.read()
    assert fed == []
    assert file.state().stat().st_mtime_ns == written


def test_a_document_is_read_anew_only_when_it_was_written(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write(DATA["06_gemini_session.json"])
    first = plain(file.read())
    took: list[object] = []
    take = Tally.take

    def counted(self: Tally, record: object) -> None:
        took.append(record)
        take(self, record)

    monkeypatch.setattr(Tally, "take", counted)
    assert (plain(file.read()), took) == (first, [])
    file.write(DATA["06_gemini_session.json"])
    os.utime(file.path)
    assert (plain(file.read()), len(took)) == (first, 1)


STATES = {
    "nothing": b"",
    "truncated": b'{"key": ',
    "NULs": b"\0" * 500,
    "an object and a tail": b'{"key": "x"}\n{"offset": 0}',
    "a list": b"[]",
    "another shape": b'{"key": 1, "checksum": 2}',
    "deep": b"[" * 100_000,
    "over 1 MiB": b'{"key": "' + b"x" * (1 << 20) + b'"}',
    "latin-1": b'{"key": "caf\xe9"}',
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_a_state_that_is_none_is_built_anew(state: bytes, file: File) -> None:
    file.write(DATA["01_claude_small.jsonl"])
    file.read()
    path = file.state()
    good = path.read_bytes()
    path.write_bytes(state)
    file.agrees()
    assert path.read_bytes() == good


@pytest.mark.parametrize("key", ["key", "file", "written", "digest", "offset", "document", "tally", "checksum"])
def test_a_state_that_was_changed_is_not_believed(key: str, file: File) -> None:
    file.write(DATA["01_claude_small.jsonl"])
    file.read()
    good: dict[str, Any] = json.loads(file.state().read_text())
    values: list[object] = [None, 0, "x", [], {}]
    for value in values:
        file.state().write_text(json.dumps({**good, key: value}))
        file.agrees()
    file.state().write_text(json.dumps({k: v for k, v in good.items() if k != key}))
    file.agrees()


def test_a_changed_table_of_formats_begins_anew(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write(DATA["01_claude_small.jsonl"])
    file.read()
    monkeypatch.setitem(KNOWN, "key", "another")
    fed = count_feeds(monkeypatch)
    file.read()
    assert len(fed) > 50


def test_a_partial_reading_goes_on_within_its_limit_and_gives_way_without_one(file: File) -> None:
    data = DATA["01_claude_small.jsonl"] + b"\n"
    file.write(data)
    tally = file.read(50_000)
    assert (tally.partial, tally.main.used) == (True, 52_358)
    file.append(data[:1000])
    assert file.read(50_000).partial
    assert file.offset() > len(data)
    whole = file.read()
    assert (whole.partial, whole.main.messages) == (False, transcripts.read(file.path, KNOWN).main.messages)
    assert not file.read(50_000).partial
    file.append(data)
    assert file.read(50_000).partial


def test_a_state_that_cannot_be_written_is_done_without(file: File) -> None:
    file.write(DATA["01_claude_small.jsonl"])
    (pathlib.Path(file.folder) / ".eidolons").write_text("a file")
    file.agrees()


def test_a_file_that_is_cut_while_it_is_read_leaves_no_state(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write(DATA["01_claude_small.jsonl"])
    take = Tally.take

    def cut(self: Tally, record: object) -> None:
        os.truncate(file.path, 1000)
        take(self, record)

    monkeypatch.setattr(Tally, "take", cut)
    file.read()
    monkeypatch.undo()
    assert not (pathlib.Path(file.folder) / ".eidolons").exists()
    file.agrees()


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DATA["01_claude_small.jsonl"]
    half = data.index(b"\n", len(data) // 2) + 1
    file.write(data[:half])
    before = plain(file.read())
    file.state().unlink()
    take = Tally.take
    grown: list[int] = []

    def grow(self: Tally, record: object) -> None:
        if not grown:
            grown.append(1)
            file.append(data[half:])
        take(self, record)

    monkeypatch.setattr(Tally, "take", grow)
    assert plain(file.read()) == before
    monkeypatch.undo()
    assert file.offset() == half
    file.agrees()


def test_many_readers_at_once_agree(file: File) -> None:
    data = DATA["01_claude_small.jsonl"]
    file.write(data[:50_000])
    file.read()
    file.write(data)
    whole = plain(transcripts.read(file.path, KNOWN))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert {plain(tally) for tally in pool.map(lambda _: file.read(), range(64))} == {whole}
    file.agrees()


def test_of_many_states_the_newest_are_kept(file: File) -> None:
    for number in range(40):
        file.path = os.path.join(file.folder, f"{number}.jsonl")
        file.write(DATA["branches"])
        file.read()
    states = list((pathlib.Path(file.folder) / ".eidolons/.context").iterdir())
    assert len(states) == resume._KEPT
    assert {path.stat().st_mode & 0o777 for path in states} == {0o600}
    assert max(path.stat().st_size for path in states) < 4000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 9)), min_size=1, max_size=25))
def test_of_any_tree_the_branch_to_its_last_entry_counts(drawn: list[tuple[int, bool, int]]) -> None:
    """Each entry follows one of those before it, or the last one; it is a compaction, or an answer of some size."""
    records = [TREE[0], entry("n0", None, text="first")]
    parents = {"n0": ""}
    for number, (behind, goes_back, what) in enumerate(drawn, 1):
        parent = f"n{behind % number if goes_back else number - 1}"
        made = entry(f"n{number}", parent, "assistant", "x" * what, what)
        if what == 9:
            made = {"type": "compaction", "id": f"n{number}", "parentId": parent, "summary": ""}
        parents[made["id"]] = parent
        records.append(made)
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder)
        for count in range(1, len(records)):
            file.append(json.dumps(records[count - 1]).encode() + b"\n" + json.dumps(records[count]).encode()[:7])
            file.agrees()
            file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records[: count + 1]))
            tally = file.read()
            path = [records[count]["id"]]
            while parents[path[-1]]:
                path.append(parents[path[-1]])
            branch = [record for record in records[1 : count + 1] if record["id"] in path]
            boundaries = [number for number, record in enumerate(branch) if record["type"] == "compaction"]
            since = branch[boundaries[-1] + 1 :] if boundaries else branch
            answers = [r["message"]["usage"]["input"] for r in since if r["message"].get("usage")]
            assert tally.main.compactions == len(boundaries)
            assert tally.main.used == (answers[-1] if answers else None)
            assert tally.main.sizes["text"] == sum(len(r["message"]["content"][0]["text"]) for r in since)
            file.agrees()
