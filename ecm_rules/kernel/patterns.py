"""The tool `verify_pins`: markers as regular expressions, in linear time whatever they are, by RE2.

It needs google-re2, which the extra `mcp` brings. The commands look for literal markers and do without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MAX_PATTERN = 1000


def verify_pins(text: str, pins: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Which pins a text holds: `{"survived": bool, "pins": [{"id", "present"}], "missing": [id]}`.

    A pin has an `id` and may have a `marker`, a regular expression of RE2; without one, or with an empty one, its id is
    looked for literally. A marker that is no expression finds nothing and has an `error` beside `present`.

    Raises ModuleNotFoundError, which names the extra, where google-re2 is not installed.
    """
    try:
        import re2
    except ModuleNotFoundError:
        message = "verify_pins needs google-re2, which is not installed: pip install 'ecm-rules[mcp]'"
        raise ModuleNotFoundError(message, name="re2") from None
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    data = text.encode("utf-8", "replace")
    found = []
    for pin in pins:
        marker = pin.get("marker")
        told: dict[str, Any] = {"id": pin["id"], "present": False}
        if marker is None or marker == "":
            told["present"] = str(pin["id"]) in text
        elif not isinstance(marker, str) or len(marker) > _MAX_PATTERN:
            told["error"] = f"found no text of at most {_MAX_PATTERN} characters, expected a regular expression"
        else:
            try:
                told["present"] = re2.compile(marker.encode("utf-8", "replace"), options).search(data) is not None
            except re2.error as error:
                told["error"] = f"not a regular expression of RE2: {_message(error)}"
        found.append(told)
    missing = [told["id"] for told in found if not told["present"]]
    return {"survived": not missing, "pins": found, "missing": missing}


def _message(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
