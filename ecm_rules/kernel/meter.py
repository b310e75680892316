"""The meter: what is known of a session's window, as the policy reads it. ECM §"The meter + zone ladder".

Part of the runtime ring.
"""

import json
import time

from ecm_rules.engine import zones
from ecm_rules.engine.program import Unreadable, kind
from ecm_rules.kernel import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BOM = b"\xef\xbb\xbf"


def load(path: str) -> "dict[str, Any] | Unreadable | None":
    """The snapshot in a meter's file: a dict, None where there is no file, or Unreadable with the reason."""
    try:
        return parse(files.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return Unreadable(
            f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else "cannot be read"
        )


def parse(data: bytes, limit: int = files.MAX_BYTES) -> "dict[str, Any] | Unreadable":
    """The snapshot in the bytes of a meter: a dict, or Unreadable for what is not exactly one JSON object."""
    if len(data) > limit:
        return Unreadable(f"found more than {limit} bytes, expected one JSON object")
    try:
        # Python's own codec for this would be one more import.
        text = data[3 if data.startswith(_BOM) else 0 :].decode("utf-8")
    except UnicodeDecodeError:
        return Unreadable("found bytes that are not UTF-8, expected one JSON object")
    if not text.strip():
        return Unreadable("found nothing, expected one JSON object")
    try:
        found = _loads(text)
    except RecursionError:
        return Unreadable("found nesting too deep to read, expected one JSON object")
    except ValueError:
        return Unreadable("found no JSON, or more than one document, expected one JSON object")
    if found.__class__ is not dict:
        return Unreadable(f"found {kind(found)}, expected one JSON object")
    return found


def compose(
    program: "dict[str, Any]",
    session: "str | None",
    used: "int | None",
    window: "float | None",
    source: str,
    basis: str,
    *,
    utilization: "float | None" = None,
    window_basis: "str | None" = None,
    share: "float | None" = None,
    compactions: int = 0,
    age: int = 0,
    ceiling: "int | None" = None,
    spent: "float | None" = None,
    read_at: "str | None" = None,
) -> "dict[str, Any]":
    """A meter of the upstream shape, with the additive keys `basis`, `window_basis` and `read_at`.

    used: tokens in the window, None unknown. window: its size in tokens, None unknown. source: `host`,
    `transcript_heuristic` or `unknown`. basis, window_basis: what the two numbers were read from. utilization: where
    it is known without the two, 0 to 1. share: 0 to 1. age: turns since the session was last written down. read_at:
    when the reading was taken, ISO 8601 in UTC; None: now. More tokens than the window holds is a contradiction, and
    makes the reading unknown.
    """
    time = now()
    if utilization is None and used is not None and window:
        utilization = used / window
    utilization = None if utilization is None else round(utilization, 6)
    if utilization is not None and not 0 <= utilization <= 1:
        basis = f"contradiction: {_tokens(used)} used, {_tokens(window)} in the window"
        utilization, used, source = None, None, "unknown"
    elif utilization is None and used is not None:
        basis = f"{basis}; window unknown"
    return {
        "ecm_version": program["version"],
        "session_id": session,
        "window_tokens": window,
        "window_basis": window_basis if window else None,
        "used_tokens_est": used,
        "utilization": utilization,
        "estimate_source": source,
        "basis": basis,
        "zone": zones.zone(program["zones"], utilization),
        "tool_result_share_est": None if share is None else round(share, 6),
        "compaction_count": compactions,
        "externalize_age_turns": age,
        "budget": {"ceiling_tokens": ceiling, "spent_tokens_est": spent},
        "updated_at": time,
        "read_at": None if used is None and utilization is None else read_at or time,
    }


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _tokens(count: "float | None") -> str:
    return "an unknown number of tokens" if count is None else f"{count:,.0f} tokens"


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _loads(text: str) -> "Any":
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer of more digits than Python converts: too large for any field, and no reason to lose the others.
        return json.loads(text, parse_constant=_no_constant, parse_int=lambda digits: int(digits[:400]))
