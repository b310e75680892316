"""Transcripts as files: read whole, from near their end, or from where they were left. Part of the runtime ring.

Bytes in, line by line, split on LF alone; what cannot be read is counted and passed over. A last line without its LF
counts for what it says, and is read again when it is complete. A file that is one JSON document over many lines is one
record.
"""

import json
import os

from ecm_rules.kernel import resume
from ecm_rules.kernel.tally import Rewound, Tally
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from typing import Any

MAX_LINE = 8 << 20
"""Bytes of a line, or of a document, that are read: more of them would not be in any window as text."""
_CHUNK = 1 << 20


def read(
    path: str, known: "dict[str, Any]", limit: "int | None" = None, state: "tuple[str, str] | None" = None
) -> Tally:
    """The tally of the transcript at `path`. Raises OSError where it cannot be read.

    known: what `tables.hosts.load_hosts` gives. limit: bytes to read at most; where more are new, the last of them are
    read and the tally is partial. state: a project and the path of its meter, beside which it is remembered how far the
    file was read; a state that cannot be kept is done without.
    """
    with places.open_regular(path) as stream:
        found = os.fstat(stream.fileno())
        reading = _Reading(stream, found.st_size, known["formats"], limit)
        if state is None:
            return reading.follow(None)
        memory = resume.Memory(*state, path, known["key"])
        tally = reading.follow(memory.load(stream, found, partial=limit is not None))
        memory.save(stream, found, reading.left)
    return tally


class _Reading:
    """One pass over an open file, as far as it reached when it was opened."""

    __slots__ = ("end", "formats", "left", "limit", "stream")

    def __init__(self, stream: "BufferedReader", end: int, formats: "dict[str, Any]", limit: "int | None") -> None:
        self.stream = stream
        self.end = end
        self.formats = formats
        self.limit = limit
        self.left: "dict[str, Any] | None" = None
        """Where to go on the next time: `offset`, `document` and `tally`; None where nothing is new."""

    def follow(self, kept: "dict[str, Any] | None") -> Tally:
        tally, offset = Tally(self.formats), 0
        if kept is not None and kept["offset"]:
            tally.restore(kept["tally"])
            if kept["document"]:
                return tally
            offset = kept["offset"]
        elif is_document(self.stream):
            return self._document(tally)
        if self.limit is not None and self.end - offset > self.limit:
            tally, offset = self._near_the_end(self.limit)
        try:
            offset, tail = self._lines(tally, offset)
        except Rewound as rewound:
            tally, offset = self._anew(rewound, with_tail=False)
            offset, tail = self._lines(tally, offset)
        tally.branch = None
        # Written out now: what the tail says is only for the moment.
        self.left = {"offset": offset, "document": False, "tally": json.dumps(tally.state())}
        try:
            tally.end(tail)
        except Rewound as rewound:
            tally, offset = self._anew(rewound, with_tail=True)
            tally.end(self._lines(tally, offset)[1])
        return tally

    def _anew(self, rewound: Rewound, with_tail: bool) -> "tuple[Tally, int]":
        if self.limit is not None and self.end > self.limit:
            return self._near_the_end(self.limit)
        tally = Tally(self.formats)
        tally.branch = rewound.lineage(self._records(with_tail))
        return tally, 0

    def _near_the_end(self, limit: int) -> "tuple[Tally, int]":
        tally = Tally(self.formats)
        tally.partial = True
        self.stream.seek(self.end - limit)
        begun = self.stream.readline(limit)  # the rest of a line that began before
        return tally, self.end - limit + len(begun)

    def _lines(self, tally: Tally, offset: int) -> "tuple[int, bytes]":
        """Count the complete lines from `offset` on. How far they reach, and what stands behind the last LF."""
        stream, end, feed = self.stream, self.end, tally.feed
        stream.seek(offset)
        while offset < end:
            line = stream.readline(min(end - offset, MAX_LINE))
            if line.endswith(b"\n"):
                feed(line)
                offset += len(line)
            elif len(line) < MAX_LINE:
                return offset, line  # the end, or the file was cut while it was read
            else:
                length = self._rest(offset + len(line))
                if length is None:
                    tally.main.cut = True
                    return offset, b""
                tally.skip(len(line) + length)
                offset += len(line) + length
        return offset, b""

    def _rest(self, offset: int) -> "int | None":
        """The length of the rest of a long line with its LF, None where that is not written yet."""
        length = 0
        while True:
            part = self.stream.readline(min(self.end - offset - length, _CHUNK))
            length += len(part)
            if part.endswith(b"\n"):
                return length
            if not part:
                return None

    def _records(self, with_tail: bool) -> "Iterator[dict[str, Any]]":
        """Every record once more, for who needs to know where it all leads."""
        self.stream.seek(0)
        offset = 0
        while offset < self.end:
            line = self.stream.readline(min(self.end - offset, MAX_LINE))
            offset += len(line)
            if not line or not (with_tail or line.endswith(b"\n")):
                return
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if record.__class__ is dict:
                yield record

    def _document(self, tally: Tally) -> Tally:
        tally.size = self.end
        if self.end > min(self.limit or MAX_LINE, MAX_LINE):
            tally.unread = f"a document of {self.end:,} bytes"
            return tally
        self.stream.seek(0)
        try:
            tally.take(json.loads(self.stream.read(self.end)))
        except (ValueError, RecursionError):
            tally.unread = "a document that is not complete"
            return tally
        self.left = {"offset": self.end, "document": True, "tally": json.dumps(tally.state())}
        return tally


def is_document(stream: "BufferedReader") -> bool:
    """Whether the first line opens an object and says nothing yet, and the second one is not a record."""
    stream.seek(0)
    if stream.readline(16).removeprefix(b"\xef\xbb\xbf").strip() != b"{":
        return False
    try:
        return json.loads(stream.readline(_CHUNK)).__class__ is not dict
    except (ValueError, RecursionError):
        return True
