"""What commands about lifetimes read: Markdown, histories and states, each refused in one line where it is none."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ecm_rules.cli import output
from ecm_rules.engine.program import kind
from ecm_rules.kernel import files
from ecm_rules.tables.findings import EcmError, Finding, clip, escape

STDIN = "-"
MAX_BYTES = 64 << 20
# Far above what a message nests, and far below what takes the stack of whoever reads it.
MAX_DEPTH = 200
_TOO_DEEP = f"found nesting over {MAX_DEPTH} levels"
_BOM = b"\xef\xbb\xbf"


def read(path: str) -> bytes:
    """The bytes of a file, or of stdin. Raises EcmError with one ECM100 where there is nothing to read."""
    try:
        data = output.standard_input(MAX_BYTES) if path == STDIN else files.read(path, MAX_BYTES)
    except OSError as error:
        raise unreadable(path, f"cannot be read: {(error.strerror or str(error)).lower()}", "check the path") from None
    if len(data) > MAX_BYTES:
        raise unreadable(path, f"found more than {MAX_BYTES} bytes, expected at most 64 MiB", "split the file")
    return data


def history(path: str) -> list[Any]:
    """The messages in a JSON file. Raises EcmError with one ECM100 for what is not exactly one list of JSON values."""
    found = _json(read(path), path)
    if not isinstance(found, list):
        raise unreadable(path, f"found {kind(found)}, expected a list of messages")
    for index, message in enumerate(found):
        try:
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            told = f"found half of a surrogate pair in message {index}, expected characters"
            raise unreadable(path, told, "write a character beyond U+FFFF as both of its escapes") from None
    return found


def state(path: str) -> Any:
    """The value in a state file. Raises FileNotFoundError where there is none yet, EcmError where it is no JSON."""
    try:
        return _json(files.read(path, MAX_BYTES), path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, f"cannot be read: {(error.strerror or str(error)).lower()}", "check the path") from None


def unreadable(path: str, message: str, help: str = "") -> EcmError:
    """A refusal of a whole file."""
    return EcmError([Finding("ECM100", name(path), 0, 0, message, help)])


def markdown(path: str) -> str:
    """The text of a Markdown file, or of stdin. Raises EcmError as `lifecycle.read_markdown` does."""
    from ecm_rules.lifecycle.sources import decode, read_markdown

    return decode(read(path), name(path)) if path == STDIN else read_markdown(path)


def name(path: str) -> str:
    """What a path is called in findings."""
    return "stdin" if path == STDIN else path


def _json(data: bytes, path: str) -> Any:
    """The one JSON value in some bytes: no key twice, no number without a finite value, no bottomless nesting."""
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
        found = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
        _shallow(found)
    except UnicodeDecodeError as error:
        told = f"found byte 0x{error.object[error.start]:02x}, expected UTF-8"
        raise unreadable(path, told, "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        told = f"found no JSON at line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        raise unreadable(path, told if data.strip() else "found nothing, expected JSON") from None
    except RecursionError:
        raise unreadable(path, _TOO_DEEP) from None
    except ValueError as error:
        raise unreadable(path, str(error)) from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"found the key `{clip(escape(clip(key, 60)), 60)}` twice in one object")
            seen.add(key)
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"found {text}, expected a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"found {clip(text, 60)}, expected a number that a double can hold")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found a number of {len(text)} digits") from None


def _shallow(value: Any) -> None:
    """Refuse what is nested too deeply, level by level."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [inner for item in containers for inner in (item.values() if isinstance(item, dict) else item)]
