"""What is counted of a transcript, record by record, whatever its format. Part of the runtime ring.

Everything that is counted is plain data, so that a count can be laid down and taken up again where it was left.
"""

import json

from ecm_rules.kernel.chain import MANY, Chain
from ecm_rules.kernel.lookup import find, fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ecm_rules.kernel.chain import Blocks

# Records of one message stand close together: one that comes back behind so many others counts anew.
RECENT = 64
_BOM = b"\xef\xbb\xbf"
_PADDING = "\0 \t\r\n"
_decode = json.JSONDecoder().raw_decode


class Rewound(Exception):
    """The session went back to an earlier message: what was counted behind that one is no longer in its window.

    lineage: from all records of the file, the ids of those that lead to the last one.
    """

    def __init__(self, lineage: "Callable[[Iterable[dict[str, Any]]], set[str]]") -> None:
        super().__init__()
        self.lineage = lineage


class Tally:
    """The count of one transcript. `formats` are those of rules/hosts.yaml; its first record that fits one decides."""

    __slots__ = (
        "_read", "bad_lines", "branch", "format", "formats", "main", "memory", "partial", "recent", "records",
        "settled", "side", "size", "unread",
    )  # fmt: skip

    def __init__(self, formats: "dict[str, dict[str, Any]]") -> None:
        self.formats = formats
        self.format: "str | None" = None
        self.main = Chain()
        self.side = Chain()
        self.size = 0
        self.records = 0
        self.bad_lines = 0
        self.partial = False
        self.unread: "str | None" = None
        """Why the file could not be read, though it is there."""
        self.recent: "dict[str, list[int]]" = {}
        self.settled = [0, 0]
        self.memory: "dict[str, Any]" = {}
        """What the reader of the format remembers from one record to the next: plain data."""
        self.branch: "set[str] | None" = None
        """The ids of the records that lead to the last one, where the session went back."""
        self._read: "Callable[[Tally, dict[str, Any]], None] | None" = None

    def feed(self, line: bytes) -> None:
        """Count one line, with or without its LF. Raises Rewound."""
        self.size += len(line)
        records, bad = split(line)
        self.bad_lines += bad
        for record in records:
            self.take(record)

    def take(self, record: object) -> None:
        """Count one record, any JSON value. Raises Rewound."""
        self.records += 1
        if record.__class__ is not dict:
            return
        read = self._read or self._recognise(record)
        if read is not None:
            read(self, record)

    def end(self, tail: bytes) -> None:
        """Count what stands behind the last LF as far as it says something; a part of a record is no fault."""
        bad = self.bad_lines
        self.feed(tail)
        self.bad_lines = bad

    def skip(self, size: int) -> None:
        """A line that is too long to be read: something of the content is not measured."""
        self.size += size
        self.bad_lines += 1
        self.main.cut = self.side.cut = True

    def usage(self, name: str, record: "dict[str, Any]") -> int:
        """One of the format's sums over a usage record."""
        total = 0
        for sign, path in self.formats[self.format or ""]["usage"][name]:
            value = record.get(path[0]) if len(path) == 1 else find(record, path)
            if value.__class__ is int and 0 < value < MANY:
                total += sign * value
        return total

    def blocks(self) -> "Blocks":
        blocks: "Blocks" = self.formats[self.format or ""]["blocks"]
        return blocks

    def spend(self, message: object, record: "dict[str, Any]") -> None:
        """What a message consumed: the last of its records counts, however many it has. Without an id it has one."""
        spent = [max(0, self.usage("spent", record)), self.usage("cached", record)]
        if message.__class__ is not str:
            self._settle(spent)
            return
        self.recent[message] = spent
        if len(self.recent) > RECENT:
            self._settle(self.recent.pop(next(iter(self.recent))))

    def spent(self, cache_read_weight: float = 0) -> float:
        """Tokens newly consumed by all messages, each counted once."""
        counts = [self.settled, *self.recent.values()]
        return sum(new + cached * cache_read_weight for new, cached in counts)

    def unspend(self) -> None:
        """What was consumed so far was another session's."""
        self.settled, self.recent = [0, 0], {}

    def subagent(self) -> bool:
        """Whether this is a subagent's own transcript: no message of it is on the main chain."""
        return self.side.messages > 0 and self.main.messages == 0

    def chain(self) -> Chain:
        """The chain that the reader of this transcript works in."""
        return self.side if self.subagent() else self.main

    def state(self) -> "dict[str, Any]":
        """Plain data from which `restore` goes on."""
        kept = ("format", "size", "records", "bad_lines", "partial", "recent", "settled", "memory")
        return {name: getattr(self, name) for name in kept} | {"main": self.main.state(), "side": self.side.state()}

    def restore(self, state: "dict[str, Any]") -> None:
        """Go on from a state. Raises KeyError or TypeError for what is none."""
        self.main.restore(state["main"])
        self.side.restore(state["side"])
        for name in ("format", "size", "records", "bad_lines", "partial", "recent", "settled", "memory"):
            setattr(self, name, state[name])
        if self.format is not None:
            self._read = _reader(self.formats[self.format]["reader"])

    def _recognise(self, record: "dict[str, Any]") -> "Callable[[Tally, dict[str, Any]], None] | None":
        for name, format in self.formats.items():
            if fits(record, format["known_by"]):
                self.format = name
                self._read = _reader(format["reader"])
                return self._read
        return None

    def _settle(self, spent: "list[int]") -> None:
        self.settled[0] += spent[0]
        self.settled[1] += spent[1]


def split(line: bytes) -> "tuple[list[Any], bool]":
    """The JSON values of a line, and whether something in it is none. Most lines are exactly one; some are padded with
    NULs, or hold several in a row.
    """
    try:
        return [json.loads(line)], False
    except (ValueError, RecursionError):
        line = line.removeprefix(_BOM).strip(_PADDING.encode("ascii"))
    found: "list[Any]" = []
    try:
        text, at = line.decode("utf-8", "surrogatepass"), 0
        while at < len(text):
            record, at = _decode(text, at)
            found.append(record)
            while at < len(text) and text[at] in _PADDING:
                at += 1
    except (ValueError, RecursionError):
        return found, True
    return found, False


def _reader(name: str) -> "Callable[[Tally, dict[str, Any]], None]":
    """The reader of a format, by its name in rules/hosts.yaml. Only that one is imported."""
    module = __import__(f"ecm_rules.kernel.readers.{name}", fromlist=["feed"])
    feed: "Callable[[Tally, dict[str, Any]], None]" = module.feed
    return feed
