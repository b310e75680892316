"""Where a transcript was left, so that the next reading costs what was appended. Part of the runtime ring.

A state beside the meter, one a transcript: how far the file was read, what was counted until then, and by what the file
is known again. It holds where the file is the same one (its inode), no shorter, and as it was as far as it was read. Of
a file up to `_WHOLE` bytes all of that is compared; of a longer one as many, in blocks from its beginning to where it
was left. Where it does not hold, or is no state, the file is read anew.
"""

import json
import os

from ecm_rules.kernel import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader
    from typing import Any

_WHOLE = 1 << 17
_BLOCK = 1 << 11
_KEPT = 32
_PREFIX = "reading-"


class Memory:
    """The state of one transcript: `path` of the file, `key` of how it is read, beside `meter` in `project`."""

    __slots__ = ("kept", "key", "project", "relative")

    def __init__(self, project: str, meter: str, path: str, key: str) -> None:
        name = _hash(os.path.abspath(path).encode("utf-8", "surrogateescape"))[:16]
        self.project = project
        self.relative = f"{os.path.dirname(meter)}/{_PREFIX}{name}.json"
        self.key = key
        self.kept: "dict[str, Any] | None" = None

    def load(self, stream: "BufferedReader", found: os.stat_result, partial: bool) -> "dict[str, Any] | None":
        """What was kept of the file that is open: `offset`, `document`, `tally`; None where it is to be read anew.

        partial: whether a tally will do that began near the file's end.
        """
        try:
            kept = json.loads(files.read(os.path.join(self.project, self.relative)))
            if kept["key"] != self.key or kept.pop("checksum") != _checksum(kept):
                return None
        except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return None
        if [found.st_dev, found.st_ino] != kept["file"] or found.st_size < kept["offset"]:
            return None
        written = [found.st_size, found.st_mtime_ns] != kept["written"]
        # Of the same size and yet written to: not appended to.
        if written and (kept["document"] or found.st_size == kept["written"][0]):
            return None
        if _digest(stream.fileno(), kept["offset"]) != kept["digest"]:
            return None
        tally = json.loads(kept["tally"])
        if tally["partial"] and not partial:
            return None
        self.kept = kept
        return {"offset": kept["offset"], "document": kept["document"], "tally": tally}

    def save(self, stream: "BufferedReader", found: os.stat_result, left: "dict[str, Any] | None") -> None:
        """Keep where it was left. What cannot be written is done without: the file is then read anew."""
        kept = self.kept
        written = [found.st_size, found.st_mtime_ns]
        if left is None or (kept is not None and kept["written"] == written):
            return
        offset, handle = left["offset"], stream.fileno()
        same = kept is not None and kept["offset"] == offset
        digest = kept["digest"] if same and kept is not None else _digest(handle, offset)
        if os.fstat(handle).st_size < offset:
            return  # cut while it was read
        made = {"key": self.key, "file": [found.st_dev, found.st_ino], "written": written, "digest": digest, **left}
        try:
            path = files.state_path(self.project, self.relative)
            if kept is None:
                _prune(os.path.dirname(path))
            files.replace(path, json.dumps({**made, "checksum": _checksum(made)}).encode("ascii"))
        except OSError:
            pass


def _digest(handle: int, end: int) -> str:
    """A hash over the first `end` bytes of a file, or over blocks of them."""
    if end <= _WHOLE:
        return _hash(os.pread(handle, end, 0))
    blocks = _WHOLE // _BLOCK
    step = (end - _BLOCK) / (blocks - 1)
    return _hash(b"".join(os.pread(handle, _BLOCK, int(step * number)) for number in range(blocks)))


def _checksum(state: "dict[str, Any]") -> str:
    return _hash(json.dumps(state, sort_keys=True).encode("ascii"))


def _hash(data: bytes) -> str:
    # Python's own BLAKE2, without hashlib and the OpenSSL behind it.
    from _blake2 import blake2b

    return blake2b(data, digest_size=16).hexdigest()


def _prune(folder: str) -> None:
    """Of many states leave the newest: a transcript whose state is gone is read anew."""
    found = [entry for entry in os.scandir(folder) if entry.name.startswith(_PREFIX)]
    if len(found) >= _KEPT:
        found.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime_ns)
        for entry in found[: len(found) - _KEPT + 1]:
            os.unlink(entry.path)
