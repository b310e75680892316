"""Markdown files as they are read: every line end kept, one byte-order mark dropped, nothing guessed."""

from __future__ import annotations

import re

from ecm_rules.tables import places
from ecm_rules.tables.findings import EcmError, Finding

MAX_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n?|\n")


def read_markdown(path: str) -> str:
    """The text of a Markdown file, as `parse`, `Session.load_source` and `Session.control` take it.

    Raises EcmError with one ECM100 where it is no regular file, longer than 64 MiB, or no UTF-8, which is located.
    """
    try:
        with places.open_regular(path) as stream:
            return decode(stream.read(MAX_BYTES + 1), path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EcmError([Finding("ECM100", path, 0, 0, f"cannot be read: {reason}", "check the path")]) from None


def decode(data: bytes, file: str) -> str:
    """The text of a file's bytes, without the one byte-order mark that may begin it. Raises as `read_markdown` does."""
    if len(data) > MAX_BYTES:
        message = f"found more than {MAX_BYTES} bytes, expected at most 64 MiB"
        raise EcmError([Finding("ECM100", file, 0, 0, message, "split the file")])
    data = data.removeprefix(_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = lines(data[: error.start].decode("utf-8"))
        message = f"found byte 0x{data[error.start]:02x}, expected UTF-8"
        place = len(before), len(before[-1]) + 1
        finding = Finding("ECM100", file, *place, message, "save the file as UTF-8", excerpt=before[-1])
        raise EcmError([finding]) from None


def lines(text: str) -> list[str]:
    """The lines of a text as the grammar counts them, without their ends: LF, CRLF or a lone CR, nothing else."""
    return _LINE_END.split(text)
