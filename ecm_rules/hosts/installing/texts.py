"""What the editors of JSON, TOML, YAML and Markdown share: places, line ends, and the refusal to edit."""

from __future__ import annotations

from typing import NoReturn

from ecm_rules.tables.findings import EcmError, Source, Span

UNREADABLE = "ECM901"
OTHER_KIND = "ECM902"
NOT_WRITABLE = "ECM903"

BOM = "\ufeff"


def refuse(file: str, text: str, at: int, code: str, message: str, help: str, length: int = 1) -> NoReturn:
    """Raise EcmError with one finding at the character `at` of a text."""
    line, start = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    column = at - start + 1 - (line == 1 and at > 0 and text.startswith(BOM))
    source = Source(file, text.removeprefix(BOM))
    raise EcmError([source.finding(code, Span(line, column, column + max(1, length)), message, help)])


def newline(text: str) -> str:
    """The line end of a text's first line; a lone line feed where there is none."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def decode(file: str, data: bytes) -> str:
    """UTF-8 as text, a byte order mark included. Raises EcmError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        refuse(
            file,
            before,
            len(before),
            UNREADABLE,
            f"found byte 0x{data[error.start]:02x}, expected UTF-8",
            "save the file as UTF-8",
        )


def appended(text: str, block: str, blank: bool = False) -> str:
    """`block`, which ends with no line end, as the last lines of a text; after a blank line if `blank`. A text without
    a line end at its end gets none, so that `without` knows what to take.
    """
    end = newline(text)
    if not text.removeprefix(BOM):
        return text + block + end
    if text.endswith("\n"):
        return text + (end if blank else "") + block + end
    return text + (end if blank else "") + end + block


def without(text: str, start: int, stop: int, blank: bool = False) -> str:
    """A text without the whole lines from `start` to `stop`, and without the line ends that `appended` adds."""
    before, after = text[:start], text[stop:]
    if after.startswith(("\n", "\r\n")):
        after = after[1 + after.startswith("\r") :]
        if blank and _ends_blank(before):
            before = _chopped(before)
        return before + after
    if blank and _ends_blank(before):
        before = _chopped(before)
    return _chopped(before) + after


def _ends_blank(text: str) -> bool:
    return text.endswith(("\n\n", "\n\r\n"))


def _chopped(text: str) -> str:
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")
