"""What a plain YAML scalar means, and whether everybody agrees on it.

YAML 1.1 (what PyYAML and most editors read) and YAML 1.2 (the core schema) differ on `no`, `010`, `1e3`, `1:30`,
`2001-01-01`, `1_000` and more. A table must mean one thing, so a scalar on which they differ is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Scalar = str | int | float | bool | None

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_TRUE = re.compile(r"(?:true|True|TRUE)\Z")
_FALSE = re.compile(r"(?:false|False|FALSE)\Z")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")

# What only one of the two takes for something other than a string, and how to write what was meant.
_SURPRISES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)\Z"),
        "a boolean in YAML 1.1 and a string in YAML 1.2",
        "write `true` or `false`, or quote it",
    ),
    (
        re.compile(r"[-+]?0[0-9_]+\Z|0o[0-7]+\Z"),
        "octal in one version of YAML and not in the other",
        "write the number without a leading zero, or quote it",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"),
        "a number to base 60 in YAML 1.1 and a string in YAML 1.2",
        "quote it, or write the number in full",
    ),
    (
        re.compile(r"[-+]?(?:\.?[0-9]+|[0-9]+\.[0-9]*)[eE][-+]?[0-9]+\Z"),
        "a string in YAML 1.1 and a number in YAML 1.2",
        "write a point and a signed exponent, as in `1.0e+3`, or quote it",
    ),
    (
        re.compile(
            r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)\Z"
        ),
        "a number in YAML 1.1 and a string in YAML 1.2",
        "write the number in plain decimal digits, or quote it",
    ),
    (
        re.compile(
            r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::?\d\d)?))?)?\Z"
        ),
        "a timestamp in YAML 1.1 and a string in YAML 1.2",
        "quote it",
    ),
    (re.compile(r"=\Z"), "a special value in YAML 1.1 and a string in YAML 1.2", "quote it"),
)

_RESOLVERS: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (_NULL, lambda _: None),
    (_TRUE, lambda _: True),
    (_FALSE, lambda _: False),
    (_INTEGER, int),
    (_HEX, lambda text: int(text, 16)),
    (_FLOAT, float),
)


class Refused(Exception):
    """The scalar has no one meaning: code, message, help."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(code, message, help)
        self.code, self.message, self.help = code, message, help


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Raises Refused where there is no one finite value."""
    # Nothing that is no string is longer than this; and a longer match would only cost time.
    if len(text) > 400:
        return _long(text)
    for pattern, convert in _RESOLVERS:
        if pattern.match(text):
            return _finite(convert(text))
    if _NOT_FINITE.match(text):
        raise Refused("ECM107", f"found `{text}`, expected a finite number", "write a number, or quote it")
    for pattern, why, help in _SURPRISES:
        if pattern.match(text):
            raise Refused("ECM106", f"found `{text}`, which is {why}", help)
    return text


def _finite(value: Scalar) -> Scalar:
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise Refused(
            "ECM107", "found a number too large for a double, expected a finite number", "write a smaller number"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Refused("ECM107", "found an integer that does not fit 64 bits", "write a smaller number, or quote it")
    return value


def _long(text: str) -> Scalar:
    if not set(text) - set("0123456789_.:eE+-"):
        raise Refused("ECM107", "found a number of hundreds of digits", "write a smaller number, or quote it")
    return text
