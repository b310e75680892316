"""JSON as `jq` prints it, which is what the golden files of the nexus' kernel are made of."""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def clean(text: str) -> str:
    """The text as UTF-8 can hold it: what is no character becomes U+FFFD.

    A lone surrogate, or, as Python hands over arguments that are no UTF-8, a byte (U+DC80 to U+DCFF).
    """
    if _SURROGATE.search(text) is None:
        return text
    return _NO_BYTE.sub("\ufffd", text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def dumps(data: Any) -> bytes:
    """UTF-8: keys as they come, two spaces, an empty array inline, one final newline; DEL escaped, non-ASCII raw."""
    return line(data, indent=2) + b"\n"


def line(data: Any, indent: int | None = None) -> bytes:
    """The same on one line, as `jq -c` prints it, without the newline."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(data, ensure_ascii=False, indent=indent, separators=separators, allow_nan=False)
    return clean(text).replace("\x7f", "\\u007f").encode("utf-8")
