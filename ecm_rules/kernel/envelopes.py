"""The files behind `verify-envelope`: an envelope and its payload, which may be anything. ECL 2.0 §6."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from ecm_rules.artifacts import envelope as envelopes
from ecm_rules.artifacts import verify
from ecm_rules.kernel import files, meter
from ecm_rules.tables import places

MAX_PAYLOAD = 1 << 30
MAX_KEY = 1 << 16
_PIECE = 1 << 20


class _Outside(Exception):
    """A payload that is not in the envelope's folder."""


class _Changed(Exception):
    """A payload that somebody wrote to while it was read."""


def verify_file(path: str, key: bytes | None = None) -> verify.Report:
    """The report on an envelope's file. Never raises: a file that cannot be read is malformed.

    The payload is `artifact.path` in the envelope's folder, and where no file is there the envelope's name without
    `.envelope.json`. A path that leads out of the folder, also through a link, is no payload, and nothing stands in
    for it. A payload may have 1 GiB.
    """
    try:
        claim = verify.read(files.read(path, verify.MAX_BYTES), key)
    except OSError as error:
        return verify.Report(verify.MALFORMED, f"found {_why(error)}, expected an envelope")
    if isinstance(claim, verify.Report):
        return claim
    try:
        with _payload(path, claim) as stream:
            return verify.settle(claim, _pieces(stream))
    except _Changed:
        return claim.report(verify.TAMPER, "found a payload that changed while it was read, expected it to stay")
    except _Outside as outside:
        return claim.report(verify.MISSING_PAYLOAD, f"found {outside}, expected a file in the envelope's folder")
    except OSError as error:
        told = f"found {_why(error)} at artifact.path `{claim.path[:80]}`, expected a payload"
        return claim.report(verify.MISSING_PAYLOAD, told)


def load_pair(path: str) -> tuple[dict[str, Any], bytes]:
    """(an envelope, its payload) from their files, for whom the one proves the other.

    Raises ValueError with the verdict where it does not, and OSError.
    """
    claim = verify.read(files.read(path, verify.MAX_BYTES))
    if isinstance(claim, verify.Report):
        raise ValueError(f"{claim.verdict}: {claim.message}")
    try:
        with _payload(path, claim) as stream:
            payload = b"".join(_pieces(stream))
    except (_Outside, _Changed) as error:
        raise ValueError(f"{verify.MISSING_PAYLOAD}: found {error or 'one that changed'}, expected a payload") from None
    report = verify.settle(claim, [payload])
    if report.verdict != verify.PASS:
        raise ValueError(f"{report.verdict}: {report.message}")
    return dict(claim.envelope), payload


def read_key(path: str) -> bytes:
    """The key in a file, without the newline that editors put at its end. Raises OSError, also where it is empty."""
    data = files.read(path, MAX_KEY)
    key = data.removesuffix(b"\r\n" if data.endswith(b"\r\n") else b"\n")
    if not key:
        raise OSError("found nothing, expected a key")
    return key


def trace(path: str, report: verify.Report, mode: str, envelope: str) -> None:
    """Append the event of a verification to a trace: the keys of ECL, and behind them those of the nexus.

    Raises OSError.
    """
    event = "verify_pass" if report.verdict == verify.PASS else "verify_fail"
    told = envelopes.trace_event(report.envelope, event, meter.now(), report.failure)
    told |= {"verdict": report.verdict, "envelope": envelope, "mode": mode, "verifier": "ecm-rules"}
    files.append(path, json.dumps(told, separators=(",", ":")).encode("ascii"))


def _payload(path: str, claim: verify.Claim) -> BufferedReader:
    """A stream of the payload. Raises _Outside or OSError."""
    if not verify.inside(claim.path):
        raise _Outside(f"`{claim.path[:80]}` at artifact.path")
    folder = os.path.dirname(path)
    try:
        return _open(folder, os.path.join(folder, claim.path))
    except OSError:
        beside = verify.sibling(path)
        if beside is None:
            raise
        try:
            return _open(folder, beside)
        except FileNotFoundError:
            pass
        raise


def _open(folder: str, path: str) -> BufferedReader:
    stream = places.open_regular(path)
    try:
        # What was opened is what stands there, and it stands in the folder: no link was followed out of it, not even
        # one that was put there in between.
        top, real = os.path.realpath(folder), os.path.realpath(path)
        if os.path.commonpath([top, real]) != top:
            raise _Outside("a link that leads out")
        if not os.path.samestat(os.fstat(stream.fileno()), os.lstat(real)):
            raise _Outside("a path that changed")
    except BaseException:
        stream.close()
        raise
    return stream


def _pieces(stream: BufferedReader) -> Iterator[bytes]:
    before = os.fstat(stream.fileno())
    if before.st_size > MAX_PAYLOAD:
        raise OSError(f"more than {MAX_PAYLOAD} bytes")
    left = before.st_size
    while piece := stream.read(_PIECE):
        left -= len(piece)
        if left < 0:
            raise _Changed
        yield piece
    after = os.fstat(stream.fileno())
    if left or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise _Changed


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
