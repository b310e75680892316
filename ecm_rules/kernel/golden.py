"""Golden files: folders of language-neutral data that say, to the byte, what must be composed or found.

Each vector is a folder, as docs/conformance.md tells.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ecm_rules.artifacts import brief, envelope, jq, manifest
from ecm_rules.kernel import envelopes, files
from ecm_rules.kernel.conformance import Result

_INPUT = "input.json"
_EXPECTED = "expected.json"
_ENVELOPE = "envelope.json"
_BRIEF_FILE = "brief.md"
_MANIFEST_FILE = "manifest.json"
_LISTS: dict[str, type] = dict.fromkeys(("anchors", "symbols", "decisions", "failed_approaches", "open_vars"), list)
_BRIEF = {**_LISTS, "task_state": str, "narrative": str, "next_steps": list, "contains_tool_origin": bool}
_HANDOFF = {**_BRIEF, **dict.fromkeys(("thread_id", "session_id", "from_version", "ts", "iso_ts"), str)}
_MANIFEST = {**_LISTS, "summary": str, "contains_tool_origin": bool, "session_id": str, "created_at": str}
_BESIDE = {"file_floor_reason": str, "ts": str}
_TOLD = {"verdict": str, "mode": str, "blocked": bool, "expected_sha": str, "actual_sha": str, "missing_fields": list}
_ASKED = {"envelope_file": str, "expect_warning": bool, "hmac_key": str}
_SHOWN = 60
_LIMIT = 1 << 24


def run_handoff(path: str) -> Iterator[Result]:
    """Compose brief and envelope, profile `kernel`. Raises OSError or ValueError where a vector cannot be read."""
    return _run(path, _BRIEF_FILE, _INPUT, _HANDOFF, _handoff)


def run_manifest(path: str) -> Iterator[Result]:
    """Compose the manifest with and without its reason. Raises OSError or ValueError where a vector cannot be read."""
    return _run(path, _MANIFEST_FILE, _INPUT, {**_MANIFEST, **_BESIDE}, _manifest)


def run_envelope(path: str) -> Iterator[Result]:
    """Verify envelopes beside their payloads. Raises OSError or ValueError where a vector cannot be read."""
    return _run(path, _EXPECTED, _EXPECTED, {**_TOLD, **_ASKED}, _verified)


def _run(
    path: str,
    sign: str,
    file: str,
    known: Mapping[str, type],
    judge: Callable[[str, str, dict[str, Any]], Result],
) -> Iterator[Result]:
    """Judge every folder at and below a path that holds the file by which a vector of this kind is known."""
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder")
    for folder, _, names in sorted(os.walk(path)):
        if sign in names:
            name = os.path.basename(os.path.abspath(folder))
            yield judge(name, folder, _given(name, folder, file, known))


def _given(name: str, folder: str, file: str, known: Mapping[str, type]) -> dict[str, Any]:
    data = _read(name, folder, file)
    try:
        found = json.loads(data)
    except ValueError as error:
        raise ValueError(f"{name}: found no JSON in {file}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name}: found no object in {file}, expected one")
    if file == _EXPECTED and "verdict" not in found:
        raise ValueError(f"{name}: found no `verdict`, expected one")
    for key, value in found.items():
        if key not in known:
            raise ValueError(f"{name}: found `{key}`, expected one of {', '.join(known)}")
        members = value if isinstance(value, list) else []
        if not isinstance(value, known[key]) or not all(isinstance(member, str) for member in members):
            raise ValueError(f"{name}: found another kind of value at `{key}`")
    return found


def _handoff(name: str, folder: str, given: dict[str, Any]) -> Result:
    told = brief.Brief(**{key: given[key] for key in _BRIEF if key in given})
    payload, stamp, now = brief.compose(told), given.get("ts", ""), given.get("iso_ts", "")
    thread = envelope.thread(given.get("thread_id", ""), given.get("session_id", ""), stamp)
    version = given.get("from_version", "")
    sent = envelope.kernel(told, payload, stamp=stamp, now=now, thread_id=thread, version=version)
    tokens = brief.tokens(payload)
    advisory = {"tokens_est": tokens, "oversize": brief.oversize(envelope.brief_name(stamp), tokens, now) is not None}
    return _compared(
        name,
        folder,
        {_BRIEF_FILE: payload, "sha256": _sum(payload), _ENVELOPE: jq.dumps(sent), "advisory.json": jq.dumps(advisory)},
    )


def _manifest(name: str, folder: str, given: dict[str, Any]) -> Result:
    reason = given.get("file_floor_reason", "")
    told = manifest.Manifest(**{"created_at": "", **{key: given[key] for key in _MANIFEST if key in given}})
    core, full = manifest.compose(told), manifest.compose(told, reason)
    composed = {"core.json": core, "core.sha256": _sum(core), _MANIFEST_FILE: full, "sha256": _sum(full)}
    return _compared(name, folder, composed)


def _verified(name: str, folder: str, given: dict[str, Any]) -> Result:
    file = given.get("envelope_file", _ENVELOPE)
    key = given["hmac_key"].encode("utf-8") if "hmac_key" in given else None
    report = envelopes.verify_file(os.path.join(folder, file), key)
    told = {**report.told(given.get("mode", "warn"), file), "expect_warning": bool(report.warnings)}
    wanted = {key: given[key] for key in given if key in told}
    shown = {key: told[key] for key in wanted}
    return Result(name, shown == wanted, False, f"{name}/{file}", json.dumps(wanted), json.dumps(shown))


def _compared(name: str, folder: str, composed: dict[str, bytes]) -> Result:
    """The result of a vector; where it failed, the first file that differs and where it does."""
    for file, seen in composed.items():
        expected = _read(name, folder, file)
        if seen != expected:
            pairs = enumerate(zip(seen, expected, strict=False))
            at = next((n for n, (one, other) in pairs if one != other), min(len(seen), len(expected)))
            here = (f"{text[at : at + _SHOWN]!r}" for text in (expected, seen))
            return Result(name, False, False, f"{name}/{file} at byte {at}", *here)
    return Result(name, True, False, name, "", "")


def _read(name: str, folder: str, file: str) -> bytes:
    try:
        return files.read(os.path.join(folder, file), _LIMIT)
    except OSError as error:
        raise ValueError(f"{name}: {file} cannot be read: {error.strerror or error}") from None


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode("ascii") + b"\n"
