"""JSON as `JSON.stringify` prints it, which is what bytes of list content are counted in. Part of the runtime ring."""

from json.encoder import encode_basestring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# From here on not every integer is a double.
_EXACT = 2**53


def stringify(value: "Any") -> str:
    """A JSON value without spaces, characters unescaped, numbers in ECMAScript notation.

    Raises TypeError for what is no JSON value, RecursionError for what is nested too deeply or contains itself.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return f"[{','.join([stringify(item) for item in value])}]"
    if isinstance(value, dict):
        return f"{{{','.join([f'{_key(key)}:{stringify(item)}' for key, item in value.items()])}}}"
    raise TypeError(f"{value.__class__.__name__} is no JSON value")


def number(value: float) -> str:
    """A number as ECMAScript prints it; what is no finite double is null."""
    if isinstance(value, int) and -_EXACT < value < _EXACT:
        return str(value)
    try:
        value = float(value)
    except OverflowError:
        return "null"
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(digits) - len(fraction) + int(power or 0)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def utf8(text: str) -> int:
    """How many bytes a string has as UTF-8; half of a surrogate pair counts three, as what stands in for it."""
    return len(_paired(text).encode("utf-8", "surrogatepass"))


def utf8_of_json(value: "Any") -> int:
    """How many bytes `stringify` prints, half of a surrogate pair as `\\udxxx`. Raises what `stringify` does."""
    return len(_paired(stringify(value)).encode("utf-8", "backslashreplace"))


def _key(key: "Any") -> str:
    if not isinstance(key, str):
        raise TypeError("a key is no string")
    return encode_basestring(key)


def _paired(text: str) -> str:
    """The text with each two halves that stand side by side as the one character that they are."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
