"""`ecm-rules verify-envelope`, the drop-in: verdicts, JSON keys, exit codes and variables, on files that may be anything."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest

from ecm_rules.artifacts import brief, envelope, jq
from ecm_rules.artifacts.brief import Brief
from tests.commands import BIN, run
from tests.conftest import FIXTURES

KEYS = ["verdict", "mode", "blocked", "envelope", "from", "to", "performative", "expected_sha", "actual_sha", "message"]
VECTORS = [path.parent for path in sorted((FIXTURES / "atomos").glob("*/*/expected.json"))]
BLOCKED = {"tamper", "inconsistent", "missing_payload", "unsupported_algo"}
KEY = "a shared secret"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a payload and its envelope, `e.json`."""
    path = tmp_path / "folder"
    shutil.copytree(FIXTURES / "envelopes/hmac-pass", path)
    seal(path)
    return path


def seal(folder: pathlib.Path, key: bytes | None = None, **artifact: Any) -> None:
    told = Brief("Hand over")
    made = envelope.ecl(
        told, brief.compose(told), stamp="s", now="2026-07-07T00:00:00Z", thread_id="t", message_id="m", key=key
    )
    made["artifact"] = {**made["artifact"], "path": "payload.md", **artifact}
    (folder / "payload.md").write_bytes(brief.compose(told))
    (folder / "e.json").write_bytes(jq.dumps(made))


def told(*arguments: str, code: int = 0, cwd: pathlib.Path, **env: str) -> dict[str, Any]:
    done = run("verify-envelope", "--json", *arguments, cwd=cwd, **env)
    assert (done.returncode, done.stderr) == (code, "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert list(found)[: len(KEYS)] == KEYS
    return found


@pytest.mark.parametrize("vector", VECTORS, ids=lambda path: path.name)
@pytest.mark.parametrize("mode", ["warn", "block"])
def test_the_verdict_matrix_in_both_modes(vector: pathlib.Path, mode: str) -> None:
    expected = json.loads((vector / "expected.json").read_text())
    name = expected.get("envelope_file", "envelope.json")
    verdict = expected["verdict"]
    blocked = mode == "block" and verdict in BLOCKED
    code = 2 if verdict == "malformed" else 3 if blocked else 0
    seen = told(name, "--mode", mode, code=code, cwd=vector)
    assert (seen["verdict"], seen["mode"], seen["blocked"]) == (verdict, mode, blocked)
    assert seen["envelope"] == name


def test_the_text_form(folder: pathlib.Path) -> None:
    done = run("verify-envelope", "e.json", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    edge = "eidolons-context-kernel → session-successor (INFORM)"
    assert done.stderr == f"ecl verify [pass] {edge}: the payload is the one that the envelope was made for\n"
    seal(folder, size_bytes=1)
    assert "expected artifact.size_bytes `1`" in run("verify-envelope", "e.json", cwd=folder).stderr


def test_the_mode_comes_from_the_command_line_else_from_the_environment(folder: pathlib.Path) -> None:
    (folder / "payload.md").write_text("another")
    assert told("e.json", cwd=folder)["mode"] == "warn"
    assert told("e.json", cwd=folder, EIDOLONS_ECL_VERIFY_MODE="")["mode"] == "warn"
    assert told("e.json", code=3, cwd=folder, EIDOLONS_ECL_VERIFY_MODE="block")["blocked"] is True
    assert told("e.json", "--mode", "warn", cwd=folder, EIDOLONS_ECL_VERIFY_MODE="block")["blocked"] is False
    assert told("e.json", "--block", "--mode", "warn", code=3, cwd=folder)["blocked"] is True


@pytest.mark.parametrize("value", ["maybe", "Block", " warn", "\x1b[31m", "x" * 10_000, "caf\udce9"])
def test_a_mode_of_the_environment_that_is_none_is_named_and_blocks(value: str, folder: pathlib.Path) -> None:
    environment = {"EIDOLONS_ECL_VERIFY_MODE": value}
    done = run("verify-envelope", "e.json", "--json", cwd=folder, **environment)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "pass")
    assert done.stderr.startswith("EIDOLONS_ECL_VERIFY_MODE: found ")
    assert done.stderr.endswith("expected warn or block; taken for block\n")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 300
    assert "\x1b" not in done.stderr
    (folder / "payload.md").write_text("another")
    done = run("verify-envelope", "e.json", "--json", cwd=folder, **environment)
    assert (done.returncode, json.loads(done.stdout)["mode"]) == (3, "block")
    # Whoever says what is wanted is not asked what the environment says.
    for arguments, code in ((["--mode", "warn"], 0), (["--block"], 3)):
        done = run("verify-envelope", "e.json", "--json", *arguments, cwd=folder, **environment)
        assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        ([], {}),
        (["e.json", "--no-such-option"], {}),
        (["e.json", "stray"], {}),
        (["e.json", "--mode", "maybe"], {}),
        (["e.json", "--key-file", "nowhere"], {}),
        (["e.json", "--key-file", "."], {}),
        (["e.json", "--key-file", "empty"], {}),
    ],
)
def test_bad_usage_exits_2(arguments: list[str], env: dict[str, str], folder: pathlib.Path) -> None:
    (folder / "empty").write_text("\n")
    done = run("verify-envelope", *arguments, cwd=folder, **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_key_comes_from_a_file_or_the_environment(folder: pathlib.Path) -> None:
    seal(folder, KEY.encode())
    (folder / "key").write_text(KEY + "\n")
    (folder / "wrong").write_text("swordfish")
    assert told("e.json", "--block", code=3, cwd=folder)["verdict"] == "unsupported_algo"
    assert told("e.json", "--block", code=3, cwd=folder, ECL_HMAC_KEY="")["verdict"] == "unsupported_algo"
    assert told("e.json", "--block", cwd=folder, ECL_HMAC_KEY=KEY)["verdict"] == "pass"
    assert told("e.json", "--block", "--key-file", "key", cwd=folder)["verdict"] == "pass"
    assert told("e.json", "--block", "--key-file", "key", cwd=folder, ECL_HMAC_KEY="swordfish")["verdict"] == "pass"
    wrong = told("e.json", "--block", "--key-file", "wrong", "--trace", "log", code=3, cwd=folder)
    assert wrong["verdict"] == "tamper"
    event = json.loads((folder / "log").read_text())
    assert event["verify_failure_code"] == "INTEGRITY_MISMATCH"
    assert "swordfish" not in json.dumps([wrong, event])


def test_a_trace_gets_a_line_for_each_verification(folder: pathlib.Path) -> None:
    told("e.json", "--trace", "trace.jsonl", cwd=folder)
    (folder / "payload.md").write_text("another")
    told("e.json", "--trace", "trace.jsonl", "--block", code=3, cwd=folder)
    told("payload.md", "--trace", "trace.jsonl", code=2, cwd=folder)
    passed, failed, malformed = map(json.loads, (folder / "trace.jsonl").read_text().splitlines())
    assert {
        key: passed[key] for key in ("event", "from", "to", "performative", "integrity_method", "verdict", "mode")
    } == {
        "event": "verify_pass",
        "from": "eidolons-context-kernel@n/a",
        "to": "session-successor@n/a",
        "performative": "INFORM",
        "integrity_method": "sha256",
        "verdict": "pass",
        "mode": "warn",
    }
    assert passed["thread_id"] == envelope.as_uuid("t")
    assert "verify_failure_code" not in passed
    assert (failed["event"], failed["mode"], failed["verify_failure_code"]) == (
        "verify_fail",
        "block",
        "INTEGRITY_MISMATCH",
    )
    assert (malformed["verdict"], malformed["verify_failure_code"], malformed["thread_id"]) == (
        "malformed",
        "SCHEMA_INVALID",
        "?",
    )


def test_a_trace_that_cannot_be_written_is_said_and_changes_no_verdict(folder: pathlib.Path) -> None:
    (folder / "link").symlink_to("elsewhere")
    for target in ("nowhere/log", ".", "/dev/full", "link"):
        done = run("verify-envelope", "e.json", "--json", "--trace", target, cwd=folder)
        assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "pass")
        assert done.stderr.startswith("not traced: ")
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize(
    "kind", ["missing", "directory", "fifo", "device", "huge", "dangling", "name too long", "deep"]
)
def test_an_envelope_that_cannot_be_read_is_malformed(kind: str, folder: pathlib.Path) -> None:
    path = folder / "x.json"
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path = pathlib.Path("/dev/zero")
        case "huge":
            path.touch()
            os.truncate(path, 1 << 33)
        case "dangling":
            path.symlink_to("nowhere")
        case "name too long":
            path = folder / ("x" * 5000)
        case "deep":
            path.write_text("[" * 1_000_000)
    seen = told(str(path), code=2, cwd=folder)
    assert (seen["verdict"], seen["from"], seen["to"]) == ("malformed", "?", "?")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "a/../../secret.md",
        "sub/../payload.md",
        "/etc/hostname",
        "",
        "out.md",
        "outer/secret.md",
        "outer/../secret.md",
    ],
)
@pytest.mark.parametrize("name", ["e.json", "payload.md.envelope.json"])
def test_a_payload_outside_of_the_folder_is_refused_and_nothing_stands_in_for_it(
    path: str, name: str, folder: pathlib.Path
) -> None:
    seal(folder, path=path)
    (folder / "e.json").rename(folder / name)
    outside = folder.parent / "secret.md"
    outside.write_bytes((folder / "payload.md").read_bytes())
    (folder / "out.md").symlink_to("../secret.md")
    (folder / "outer").symlink_to("..")
    (folder / "sub").mkdir()
    seen = told(name, "--block", code=3, cwd=folder)
    assert (seen["verdict"], seen["actual_sha"]) == ("missing_payload", "")
    assert "expected a file in the envelope's folder" in seen["message"]


def test_a_link_within_the_folder_is_followed(folder: pathlib.Path) -> None:
    (folder / "sub").mkdir()
    (folder / "payload.md").rename(folder / "sub/real.md")
    (folder / "payload.md").symlink_to("sub/real.md")
    assert told("e.json", cwd=folder)["verdict"] == "pass"
    seal(folder, path="sub/real.md")
    assert told("e.json", cwd=folder)["verdict"] == "pass"
    (folder.parent / "way").symlink_to(folder)
    assert told("way/e.json", cwd=folder.parent)["verdict"] == "pass"
    assert told("folder/../folder/e.json", cwd=folder.parent)["verdict"] == "pass"


@pytest.mark.parametrize(
    "kind", ["missing", "directory", "fifo", "dangling", "unreadable", "huge", "surrogate", "controls"]
)
def test_a_payload_that_cannot_be_read_is_missing(kind: str, folder: pathlib.Path) -> None:
    path = folder / "payload.md"
    path.unlink()
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "dangling":
            path.symlink_to("nowhere")
        case "unreadable":
            path.symlink_to("payload.md")
        case "huge":
            path.touch()
            os.truncate(path, (1 << 30) + 1)
        case "surrogate" | "controls":
            made = json.loads((folder / "e.json").read_text())
            made["artifact"]["path"] = "\ud800" if kind == "surrogate" else "\x1b[31m\u202e\n"
            (folder / "e.json").write_text(json.dumps(made))
    assert told("e.json", "--block", code=3, cwd=folder)["verdict"] == "missing_payload"
    done = run("verify-envelope", "e.json", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_a_verdict_that_nobody_reads_is_still_an_exit_code(folder: pathlib.Path) -> None:
    (folder / "payload.md").write_text("another")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(BIN / "ecm-rules"), "verify-envelope", "e.json", "--json", "--block"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
