"""The identifier manifest: what a lossy operation would lose and nobody can guess again.

ECM §"Externalize-before-compact".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from ecm_rules.artifacts import jq

SUMMARY = "Eidolons context externalize checkpoint: identifier manifest recorded while cheap (ECM P1 policy operation)."
_VERSION = "0.1"


def _lines(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for value in values for part in value.split("\n") if part)


@attrs.frozen
class Manifest:
    """What is to be kept. An entry with newlines becomes several, and empty ones vanish: a brief does neither.

    created_at: ISO 8601, UTC, to the second. An empty summary is read as the standing one, an empty session as none.
    """

    created_at: str
    summary: str = ""
    anchors: tuple[str, ...] = attrs.field(default=(), converter=_lines)
    symbols: tuple[str, ...] = attrs.field(default=(), converter=_lines)
    decisions: tuple[str, ...] = attrs.field(default=(), converter=_lines)
    failed_approaches: tuple[str, ...] = attrs.field(default=(), converter=_lines)
    open_vars: tuple[str, ...] = attrs.field(default=(), converter=_lines)
    contains_tool_origin: bool = False
    session_id: str = ""


def document(manifest: Manifest, file_floor_reason: str = "") -> dict[str, Any]:
    """The manifest as JSON-able data, keys in their order. The reason, last, is why it went to a file."""
    told: dict[str, Any] = {
        "ecm_version": _VERSION,
        "summary": manifest.summary or SUMMARY,
        "anchors": list(manifest.anchors),
        "symbols": list(manifest.symbols),
        "decisions": list(manifest.decisions),
        "failed_approaches": list(manifest.failed_approaches),
        "open_vars": list(manifest.open_vars),
        "contains_tool_origin": manifest.contains_tool_origin,
        "session_id": manifest.session_id or None,
        "created_at": manifest.created_at,
    }
    if file_floor_reason:
        told["file_floor_reason"] = file_floor_reason
    return told


def compose(manifest: Manifest, file_floor_reason: str = "") -> bytes:
    """The document, byte for byte as the nexus' kernel writes it. What is hashed is what is written and returned."""
    return jq.dumps(document(manifest, file_floor_reason))
