"""Verifying an envelope against its payload: mechanically, no file opened, nothing trusted. ECL 2.0 §6.

The verdicts and their order are those of `eidolons verify-envelope`. In two steps, so that a payload is opened only for
an envelope that is worth it: `read` gives a report, or what is claimed; `settle` holds a claim to the payload's bytes.
"""

from __future__ import annotations

import collections
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ecm_rules.artifacts.envelope import HMAC_SHA256, SHA256, SUFFIX

PASS = "pass"  # noqa: S105  a verdict
TAMPER = "tamper"
INCONSISTENT = "inconsistent"
UNVERIFIABLE = "unverifiable"
MISSING_PAYLOAD = "missing_payload"
UNSUPPORTED_ALGO = "unsupported_algo"
MALFORMED = "malformed"
# What a receiver refuses in block mode. A placeholder is for the parent to fill, a malformed envelope is none at all.
BLOCKING = frozenset({TAMPER, INCONSISTENT, MISSING_PAYLOAD, UNSUPPORTED_ALGO})

MAX_BYTES = 1 << 20
WIRE_VERSION = "2.0"

_REQUIRED = (
    ("envelope_version",),
    ("from", "eidolon"),
    ("to", "eidolon"),
    ("performative",),
    ("artifact", "path"),
    ("integrity", "method"),
    ("integrity", "value"),
)
_PLACEHOLDER = re.compile(r"(null)?\Z|PARENT_FILLS_|<|TODO")
_DIGEST = re.compile("[0-9a-f]{64}")
_SHAPE = "64 lower-case hexadecimal digits"
_FAILURES = {MALFORMED: "SCHEMA_INVALID", UNVERIFIABLE: "SCHEMA_INVALID", PASS: None}


@attrs.frozen
class Report:
    """What was found. The two digests are SHA-256 in hexadecimal, empty where the verdict needed none.

    envelope: as it was read, empty where it is no JSON object. `missing`: required fields that are not there.
    """

    verdict: str
    message: str
    envelope: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    expected_sha: str = ""
    actual_sha: str = ""
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def blocked(self, mode: str) -> bool:
        """Whether the payload must not be used. mode: `warn` or `block`."""
        return mode == "block" and self.verdict in BLOCKING

    @property
    def failure(self) -> str | None:
        """The code of a trace, ECL 2.0 §5.3, which tells no more than that; None for a pass."""
        return _FAILURES.get(self.verdict, "INTEGRITY_MISMATCH")

    def told(self, mode: str, path: str) -> dict[str, Any]:
        """The JSON of `eidolons verify-envelope`, and behind it `warnings` and `missing_fields`, which are ours."""
        return {
            "verdict": self.verdict,
            "mode": mode,
            "blocked": self.blocked(mode),
            "envelope": path,
            "from": _shown(self.envelope, "from", "eidolon"),
            "to": _shown(self.envelope, "to", "eidolon"),
            "performative": _shown(self.envelope, "performative"),
            "expected_sha": self.expected_sha,
            "actual_sha": self.actual_sha,
            "message": self.message,
            "warnings": list(self.warnings),
            "missing_fields": list(self.missing),
        }


@attrs.frozen
class Claim:
    """A well-formed envelope: the payload at `path`, as it is written there, should have this digest."""

    envelope: Mapping[str, Any] = attrs.field(repr=False)
    path: str
    sha256: str
    value: str
    warnings: tuple[str, ...]
    key: bytes | None = attrs.field(default=None, repr=False)

    def report(self, verdict: str, message: str, **more: Any) -> Report:
        """A report on this envelope."""
        return Report(verdict, message, self.envelope, **{"warnings": self.warnings, **more})


def verify(envelope: bytes, payload: bytes | None, key: bytes | None = None) -> Report:
    """The report on an envelope and the payload that belongs to it; None where there is none. Never raises."""
    claim = read(envelope, key)
    if isinstance(claim, Report):
        return claim
    if payload is None:
        return claim.report(MISSING_PAYLOAD, f"found no payload, expected {_quoted(claim.path)}")
    return settle(claim, [payload])


def read(data: bytes, key: bytes | None = None) -> Claim | Report:
    """What an envelope's bytes claim, or the report on one that no payload can help. Never raises.

    key: for hmac-sha256; without one that method is not supported, as ECL 2.0 §6.2.3 demands. With one, an envelope
    that does not use it is warned of.
    """
    envelope = _parse(data)
    if isinstance(envelope, str):
        return Report(MALFORMED, envelope)
    missing = tuple(".".join(path) for path in _REQUIRED if _at(envelope, path) is None)
    if missing:
        return Report(MALFORMED, f"missing required fields: {', '.join(missing)}", envelope, missing=missing)
    # A version may be any value, since any other than the one is only warned of.
    wrong = next((path for path in _REQUIRED[1:] if not isinstance(_at(envelope, path), str)), None)
    if wrong:
        return Report(MALFORMED, f"found no string at `{'.'.join(wrong)}`, expected one", envelope)
    version = envelope["envelope_version"]
    warnings: tuple[str, ...] = ()
    if version != WIRE_VERSION:
        warnings = (f"found envelope_version {_quoted(version)}, expected `{WIRE_VERSION}`",)
    method, value = envelope["integrity"]["method"], envelope["integrity"]["value"]
    if key and method == SHA256:
        # Whoever can change the payload can change such an envelope, too.
        warnings += (f"found integrity.method `{SHA256}` and a key, expected `{HMAC_SHA256}`: no sender is proven",)
    sha256 = envelope["artifact"].get("sha256") or ""
    claim = Claim(
        envelope,
        envelope["artifact"]["path"],
        sha256 if isinstance(sha256, str) else json.dumps(sha256)[:100],
        value,
        warnings,
        key if method == HMAC_SHA256 else None,
    )
    if method == HMAC_SHA256 and not key:
        return claim.report(UNSUPPORTED_ALGO, f"found integrity.method `{HMAC_SHA256}` and no key, expected a key")
    if method not in (SHA256, HMAC_SHA256):
        return claim.report(UNSUPPORTED_ALGO, f"found integrity.method {_quoted(method)}, expected `{SHA256}`")
    if _PLACEHOLDER.match(value):
        found = f"found the placeholder {_quoted(value)} at integrity.value"
        return claim.report(UNVERIFIABLE, f"{found}, expected a digest, which the parent fills in")
    if claim.key is None and claim.sha256 and claim.sha256 != value:
        message = "found an artifact.sha256 other than integrity.value, expected one digest"
        return claim.report(INCONSISTENT, message, expected_sha=value, actual_sha=claim.sha256)
    return claim


def settle(claim: Claim, payload: Iterable[bytes]) -> Report:
    """Hold a claim to the payload, which comes in pieces and is read once. Raises what reading a piece raises."""
    sha256, size = hashlib.sha256(), 0
    mac = None if claim.key is None else hmac.new(claim.key, digestmod=hashlib.sha256)
    for piece in payload:
        sha256.update(piece)
        if mac is not None:
            mac.update(piece)
        size += len(piece)
    # What our key makes of a foreign payload is never told: it would be the forger's signature.
    expected, actual = claim.value if mac is None else claim.sha256, sha256.hexdigest()
    warnings, declared = claim.warnings, claim.envelope["artifact"].get("size_bytes")
    if declared is not None and declared != size:
        warnings += (f"found {size} bytes, expected artifact.size_bytes {_quoted(declared)}",)
    told = {"expected_sha": expected, "actual_sha": actual, "warnings": warnings}
    if not _DIGEST.fullmatch(claim.value):
        return claim.report(TAMPER, f"found {_quoted(claim.value)} at integrity.value, expected {_SHAPE}", **told)
    if expected and not _same(actual, expected):
        return claim.report(TAMPER, "found a payload of another digest, expected the envelope's", **told)
    if mac is not None and not _same(mac.hexdigest(), claim.value):
        return claim.report(TAMPER, "found another keyed digest, expected the one of this key and payload", **told)
    return claim.report(PASS, "the payload is the one that the envelope was made for", **told)


def inside(path: str) -> bool:
    """Whether a payload's path is one that may be looked for: relative, and without a step up. ECL 2.0 §1.1.4."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/") and "\0" not in path


def sibling(envelope: str) -> str | None:
    """The payload that an envelope's own name tells, where it tells one."""
    stem = envelope.removesuffix(SUFFIX)
    return stem if stem not in ("", envelope) and not stem.endswith("/") else None


def _parse(data: bytes) -> dict[str, Any] | str:
    """The one object of an envelope, or what is wrong: readers that disagree about a text would verify two of them."""
    if len(data) > MAX_BYTES:
        return f"found more than {MAX_BYTES} bytes, expected an envelope"
    try:
        found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError:
        return "found bytes that are not UTF-8, expected JSON"
    except RecursionError:
        return "found nesting too deep to read, expected an envelope"
    except _Refused as refusal:
        return str(refusal)
    except ValueError:
        return "found no JSON, or more than one document, expected one object"
    return found if isinstance(found, dict) else "found JSON that is no object, expected one object"


class _Refused(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = collections.Counter(key for key, _ in pairs).most_common(1)
        raise _Refused(f"found the key {_quoted(twice)} more than once, expected it once")
    return found


def _no_constant(name: str) -> None:
    raise _Refused(f"found {name}, expected JSON")


def _at(envelope: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        envelope = envelope.get(key) if isinstance(envelope, dict) else None
    return envelope


def _shown(envelope: Mapping[str, Any], *path: str) -> str:
    found = _at(envelope, path)
    return found if isinstance(found, str) else "?"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text if len(text) <= 80 else text[:79] + '…'}`"


def _same(one: str, other: str) -> bool:
    """In the time that their length takes, wherever they differ."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8", "surrogatepass"))
