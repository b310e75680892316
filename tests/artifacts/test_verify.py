"""Verifying: composed is passed, changed is tampered with, and no input raises."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.artifacts import brief, envelope, jq, verify
from ecm_rules.artifacts.brief import Brief
from tests.artifacts.texts import anything, briefs

NOW = "2026-07-07T00:00:00Z"
STAMP = "20260707T000000Z"
KEY = b"a shared secret"
PAYLOAD = b"What the next session must know.\n"
SHA = hashlib.sha256(PAYLOAD).hexdigest()


def sealed(told: Brief, profile: str, key: bytes | None = None) -> tuple[bytes, bytes]:
    """(envelope, payload)."""
    payload = brief.compose(told)
    if profile == "kernel":
        made = envelope.kernel(told, payload, stamp=STAMP, now=NOW, thread_id="t")
    else:
        made = envelope.ecl(told, payload, stamp=STAMP, now=NOW, thread_id="t", message_id="m", key=key)
    return jq.dumps(made), payload


PROFILES = st.sampled_from([("kernel", None), ("ecl", None), ("ecl", KEY)])


@given(briefs(), PROFILES)
def test_what_was_composed_passes(told: Brief, profile: tuple[str, bytes | None]) -> None:
    report = verify.verify(*sealed(told, *profile), profile[1])
    assert report.verdict == verify.PASS
    assert bool(report.warnings) == (profile[0] == "kernel")
    assert report.failure is None
    assert not report.blocked("block")


@given(briefs(), PROFILES, st.data())
def test_one_flipped_bit_of_the_payload_is_tamper(
    told: Brief, profile: tuple[str, bytes | None], data: st.DataObject
) -> None:
    made, payload = sealed(told, *profile)
    at, bit = data.draw(st.integers(0, len(payload) - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(payload)
    changed[at] ^= 1 << bit
    report = verify.verify(made, bytes(changed), profile[1])
    assert (report.verdict, report.failure) == (verify.TAMPER, "INTEGRITY_MISMATCH")
    assert report.blocked("block")
    assert not report.blocked("warn")


@given(briefs(), PROFILES, st.integers(0, 9))
def test_a_payload_that_is_longer_or_shorter_is_tamper(
    told: Brief, profile: tuple[str, bytes | None], cut: int
) -> None:
    made, payload = sealed(told, *profile)
    for changed in (payload + b"\n", payload[cut + 1 :], payload[: -cut - 1]):
        assert verify.verify(made, changed, profile[1]).verdict == verify.TAMPER


@given(briefs(), st.binary(min_size=1))
def test_another_key_is_tamper(told: Brief, key: bytes) -> None:
    made, payload = sealed(told, "ecl", KEY)
    report = verify.verify(made, payload, key)
    # HMAC pads a key with zeros: such a key is the same one.
    assert (report.verdict == verify.PASS) == (key.rstrip(b"\0") == KEY and len(key) <= 64)


def test_a_keyed_digest_of_a_foreign_payload_is_not_told() -> None:
    made, _ = sealed(Brief("t"), "ecl", KEY)
    forged = b"another payload"
    report = verify.verify(made, forged, KEY)
    signature = json.loads(sealed(Brief("t"), "ecl", KEY)[0])["integrity"]["value"]
    assert signature not in json.dumps(report.told("warn", "e"))
    assert report.actual_sha == hashlib.sha256(forged).hexdigest()
    assert hmac.new(KEY, forged, hashlib.sha256).hexdigest() not in json.dumps(report.told("warn", "e"))
    assert "secret" not in repr(report)
    assert "secret" not in repr(verify.read(made, KEY))


@given(st.binary(max_size=200) | anything.map(lambda text: jq.clean(text).encode()), st.none() | st.binary())
def test_no_bytes_raise(data: bytes, payload: bytes | None) -> None:
    report = verify.verify(data, payload, KEY)
    assert report.verdict == verify.MALFORMED
    json.dumps(report.told("block", "e"), allow_nan=False)


MADE: dict[str, Any] = {
    "envelope_version": "2.0",
    "from": {"eidolon": "a"},
    "to": {"eidolon": "b"},
    "performative": "INFORM",
    "artifact": {"path": "payload.md", "sha256": SHA, "size_bytes": len(PAYLOAD)},
    "integrity": {"method": "sha256", "value": SHA},
}
LEAVES = [
    ("envelope_version",), ("from",), ("from", "eidolon"), ("to",), ("to", "eidolon"), ("performative",), ("artifact",),
    ("artifact", "path"), ("artifact", "sha256"), ("artifact", "size_bytes"), ("integrity",), ("integrity", "method"), ("integrity", "value"),
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything
    | st.sampled_from(["sha256", "hmac-sha256", SHA, SHA.upper()]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(anything, inner, max_size=2), max_leaves=4,
)  # fmt: skip


def changed(path: tuple[str, ...], value: Any) -> bytes:
    made = copy.deepcopy(MADE)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(made).encode()


@given(st.sampled_from(LEAVES), VALUES, st.none() | st.just(KEY))
def test_no_value_in_the_place_of_another_raises_or_passes_unseen(
    path: tuple[str, ...], value: Any, key: bytes | None
) -> None:
    data = changed(path, value)
    report = verify.verify(data, PAYLOAD, key)
    json.dumps(report.told("block", "e"), allow_nan=False)
    if path[0] == "integrity":
        assert (report.verdict == verify.PASS) == (json.loads(data)["integrity"] == MADE["integrity"])


@pytest.mark.parametrize(
    ("path", "value", "verdict", "says"),
    [
        (("integrity", "method"), "md5", "unsupported_algo", "`md5`"),
        (("integrity", "method"), "SHA256", "unsupported_algo", "`SHA256`"),
        (("integrity", "method"), "hmac-sha256", "unsupported_algo", "no key"),
        (("integrity", "value"), "", "unverifiable", "placeholder"),
        (("integrity", "value"), "null", "unverifiable", "placeholder"),
        (("integrity", "value"), "PARENT_FILLS_SHA", "unverifiable", "placeholder"),
        (("integrity", "value"), "<sha256>", "unverifiable", "placeholder"),
        (("integrity", "value"), "TODO: fill", "unverifiable", "placeholder"),
        (("integrity", "value"), "nullify", "inconsistent", "one digest"),
        (("integrity", "value"), SHA.upper(), "inconsistent", "one digest"),
        (("integrity", "value"), None, "malformed", "integrity.value"),
        (("integrity", "value"), 5, "malformed", "integrity.value"),
        (("integrity",), "x", "malformed", "integrity.method, integrity.value"),
        (("artifact", "sha256"), None, "pass", "made for"),
        (("artifact", "sha256"), "", "pass", "made for"),
        (("artifact", "sha256"), SHA.upper(), "inconsistent", "one digest"),
        (("artifact", "sha256"), [SHA], "inconsistent", "one digest"),
        (("artifact", "size_bytes"), 1, "pass", "made for"),
        (("envelope_version",), 2.0, "pass", "made for"),
        (("performative",), ["INFORM"], "malformed", "performative"),
    ],
)  # fmt: skip
def test_verdicts(path: tuple[str, ...], value: Any, verdict: str, says: str) -> None:
    report = verify.verify(changed(path, value), PAYLOAD)
    assert report.verdict == verdict
    assert says in report.message


@pytest.mark.parametrize("value", [SHA.upper(), SHA[:-1], SHA + "0", "é" * 64, "\ud800", SHA + "\n"])
def test_a_digest_of_another_shape_is_tamper_and_said(value: str) -> None:
    made = copy.deepcopy(MADE)
    made["artifact"]["sha256"] = made["integrity"]["value"] = value
    report = verify.verify(json.dumps(made).encode(), PAYLOAD)
    assert report.verdict == verify.TAMPER
    assert "64 lower-case hexadecimal digits" in report.message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no JSON"),
        (b"[]", "no object"),
        (b"{}{}", "no JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": {"b": 1, "b": 2}}', "`b` more than once"),
        (b"[" * 500_000, "nesting too deep"),
        (b'{"a":' * 200_000, "nesting too deep"),
        (b" " * (1 << 20) + b"{}", "more than 1048576 bytes"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "no JSON"),
        (b"{" + b",".join(b'"%d":0' % n for n in range(60_000)) + b',"0":1}', "`0` more than once"),
    ],
)
def test_what_is_no_envelope_is_malformed(data: bytes, says: str) -> None:
    report = verify.verify(data, PAYLOAD)
    assert (report.verdict, report.failure) == (verify.MALFORMED, "SCHEMA_INVALID")
    assert says in report.message


def test_a_byte_order_mark_is_no_fault() -> None:
    assert verify.verify(b"\xef\xbb\xbf" + json.dumps(MADE).encode(), PAYLOAD).verdict == verify.PASS


def test_an_envelope_that_does_not_use_the_key_proves_no_sender() -> None:
    data = json.dumps(MADE).encode()
    report = verify.verify(data, PAYLOAD, KEY)
    assert report.verdict == verify.PASS
    assert [warning[-19:] for warning in report.warnings] == ["no sender is proven"]
    assert verify.verify(data, PAYLOAD).warnings == ()


def test_a_payload_in_pieces_is_the_same() -> None:
    claim = verify.read(json.dumps(MADE).encode())
    assert isinstance(claim, verify.Claim)
    assert verify.settle(claim, (bytes([byte]) for byte in PAYLOAD)).verdict == verify.PASS


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("payload.md", True), ("a/b.md", True), ("a..b", True), ("...", True), ("", False), ("/etc/passwd", False), ("..", False),
        ("../x", False), ("a/../b", False), ("a/..", False), ("a\0b", False),
    ],
)  # fmt: skip
def test_paths(path: str, inside: bool) -> None:
    assert verify.inside(path) == inside


@pytest.mark.parametrize(
    ("name", "payload"),
    [("a/x.md.envelope.json", "a/x.md"), ("x.envelope.json", "x"), ("envelope.json", None), ("a/.envelope.json", None), (".envelope.json", None)],
)  # fmt: skip
def test_the_payload_that_a_name_tells(name: str, payload: str | None) -> None:
    assert verify.sibling(name) == payload
