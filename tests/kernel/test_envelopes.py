"""A payload that somebody changes while it is verified, and the key in a file."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Callable
from io import BufferedReader

import pytest

from ecm_rules.kernel import envelopes
from ecm_rules.tables import places

PAYLOAD = b"x" * (3 << 20)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    sha = hashlib.sha256(PAYLOAD).hexdigest()
    made = {
        "envelope_version": "2.0",
        "from": {"eidolon": "a"},
        "to": {"eidolon": "b"},
        "performative": "INFORM",
        "artifact": {"path": "payload.md", "sha256": sha},
        "integrity": {"method": "sha256", "value": sha},
    }
    (tmp_path / "payload.md").write_bytes(PAYLOAD)
    (tmp_path / "e.json").write_text(json.dumps(made))
    return tmp_path / "e.json"


def test_the_bytes_are_read_in_pieces(path: pathlib.Path) -> None:
    assert envelopes.verify_file(str(path)).verdict == "pass"


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: os.truncate(payload, 100),
        lambda payload: os.truncate(payload, len(PAYLOAD) + 1),
        lambda payload: os.utime(payload, ns=(0, 0)),
    ],
)
def test_a_payload_that_changes_while_it_is_read_is_tamper(
    path: pathlib.Path, change: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = str(path.parent / "payload.md")
    real = envelopes._pieces

    def pieces(stream: BufferedReader) -> object:
        for number, piece in enumerate(real(stream)):
            if number == 0:
                change(payload)
            yield piece

    monkeypatch.setattr(envelopes, "_pieces", pieces)
    report = envelopes.verify_file(str(path))
    assert (report.verdict, report.blocked("block")) == ("tamper", True)


def test_a_path_that_is_another_file_once_it_is_open_is_refused(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = path.parent.parent / "secret.md"
    secret.write_bytes(PAYLOAD)
    real = places.open_regular

    def swapped(name: str) -> BufferedReader:
        return real(str(secret) if name.endswith("payload.md") else name)

    monkeypatch.setattr(places, "open_regular", swapped)
    report = envelopes.verify_file(str(path))
    assert (report.verdict, report.actual_sha) == ("missing_payload", "")


@pytest.mark.parametrize(
    ("data", "key"),
    [(b"k", b"k"), (b"k\n", b"k"), (b"k\r\n", b"k"), (b"k\r", b"k\r"), (b"k\n\n", b"k\n"), (b"\0\xff", b"\0\xff")],
)
def test_a_key_is_the_file_without_the_newline_at_its_end(data: bytes, key: bytes, tmp_path: pathlib.Path) -> None:
    (tmp_path / "key").write_bytes(data)
    assert envelopes.read_key(str(tmp_path / "key")) == key


@pytest.mark.parametrize("data", [b"", b"\n", b"x" * (1 << 17)])
def test_a_file_without_a_key_is_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    (tmp_path / "key").write_bytes(data)
    with pytest.raises(OSError, match=r"expected a key|more than"):
        envelopes.read_key(str(tmp_path / "key"))
