"""A memory that is a folder: whole documents, once each, and an answer whatever happens."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
from typing import Any

import pytest

from ecm_rules.artifacts import envelope
from ecm_rules.artifacts.brief import Brief, compose
from ecm_rules.kernel.stores import Directory, Result, Store

PAYLOAD = compose(Brief("Fix it"))
ENVELOPE = envelope.kernel(Brief("Fix it"), PAYLOAD, stamp="s", now="n", thread_id="t")


def test_the_same_document_is_kept_once(tmp_path: pathlib.Path) -> None:
    store: Store = Directory(str(tmp_path / "memory"))
    manifest = {"summary": "s", "created_at": "1"}
    first, again = store.commit(manifest), store.commit({**manifest, "created_at": "2"})
    assert (first.ok, again.ok, first.id == again.id, again.reason) == (True, True, True, "kept before")
    assert store.commit({"summary": "t"}).id != first.id
    assert store.plan_checkpoint("p", "1", {}).id != store.plan_checkpoint("p", "2", {}).id
    assert store.session_end("s1", "over").ok
    assert store.ingest(ENVELOPE, PAYLOAD).ok
    kept = [json.loads(path.read_bytes()) for path in (tmp_path / "memory").iterdir()]
    assert sorted(document["kind"] for document in kept) == [
        "envelope",
        "episodic",
        "episodic",
        "plan",
        "plan",
        "session",
    ]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "memory").iterdir())


def test_another_payload_than_the_envelopes_is_refused(tmp_path: pathlib.Path) -> None:
    store = Directory(str(tmp_path))
    assert store.ingest(ENVELOPE, PAYLOAD + b"!") == Result(False, reason="INGEST_PAYLOAD_HASH_MISMATCH")
    assert store.ingest({}, b"").ok is False
    assert os.listdir(tmp_path) == []


def test_many_at_once_keep_it_once(tmp_path: pathlib.Path) -> None:
    store = Directory(str(tmp_path))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        told = list(pool.map(lambda _: store.commit({"summary": "s"}), range(64)))
    assert {result.ok for result in told} == {True}
    assert [result.reason for result in told].count("") == 1
    assert len(os.listdir(tmp_path)) == 1


def a_file(path: pathlib.Path) -> None:
    path.write_text("a file")


def something_else(path: pathlib.Path) -> None:
    id = Directory(str(path)).commit({"summary": "s"}).id
    (path / f"{id}.json").write_text('{"kind": "episodic", "summary": "t"}')


def torn(path: pathlib.Path) -> None:
    id = Directory(str(path)).commit({"summary": "s"}).id
    (path / f"{id}.json").write_text('{"kind"')


@pytest.mark.parametrize("damage", [a_file, something_else, torn])
def test_what_cannot_be_kept_is_said(damage: Any, tmp_path: pathlib.Path) -> None:
    damage(tmp_path / "memory")
    told = Directory(str(tmp_path / "memory")).commit({"summary": "s"})
    assert (told.ok, told.id) == (False, None)
    assert told.reason


def test_what_is_no_json_is_refused(tmp_path: pathlib.Path) -> None:
    assert Directory(str(tmp_path)).commit({"summary": object()}).ok is False
