"""What a host's own transcript says about its window. ECM §"The meter + zone ladder".

Part of the runtime ring. Bytes in, line by line, split on LF alone; what cannot be read is counted and passed over.
"""

import json

from ecm_rules.kernel import meter
from ecm_rules.tables import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SYNTHETIC = "<synthetic>"
_MANY = 10**12  # no window and no bill is larger


class Chain:
    """One chain of messages: the session's own, or its subagents'. Sizes are bytes of UTF-8 since the last boundary."""

    __slots__ = ("compactions", "images", "messages", "model", "post_tokens", "session", "sizes", "used")

    def __init__(self) -> None:
        self.session: "str | None" = None
        self.messages = 0
        self.compactions = 0
        self.model: "str | None" = None
        self.clear(None)

    def clear(self, post_tokens: "int | None") -> None:
        """A compaction boundary: whatever was measured before it says nothing about the window now."""
        self.used: "int | None" = None
        self.post_tokens = post_tokens
        self.images = 0
        self.sizes = {"text": 0, "thinking": 0, "tool_call": 0, "tool_result": 0}

    def share(self) -> "float | None":
        """Tool results as a part of all content, None where there is no content."""
        whole = sum(self.sizes.values())
        return self.sizes["tool_result"] / whole if whole else None


class Transcript:
    """The tally of a Claude Code transcript. `usage` is the host's `usage` in rules/hosts.yaml."""

    __slots__ = ("_spent", "bad_lines", "main", "partial", "records", "side", "size", "usage")

    def __init__(self, usage: "dict[str, list[str]]") -> None:
        self.usage = usage
        self.main = Chain()
        self.side = Chain()
        self.size = 0
        self.records = 0
        self.bad_lines = 0
        self.partial = False
        self._spent: "dict[str | int, tuple[int, int]]" = {}

    def feed(self, line: bytes) -> None:
        """Count one line, with or without its LF."""
        self.size += len(line)
        if not line.strip():
            return
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self.bad_lines += 1
            return
        self.records += 1
        if record.__class__ is not dict:
            return
        chain = self.side if record.get("isSidechain") is True else self.main
        session = record.get("sessionId")
        if session.__class__ is str:
            chain.session = session
        kind = record.get("type")
        if kind == "system" and record.get("subtype") == "compact_boundary":
            details = _mapping(record.get("compactMetadata"))
            chain.compactions += 1
            chain.clear(_count(details.get("postTokens")) or None)
        elif kind in ("user", "assistant"):
            self._message(chain, record, kind == "assistant")

    def subagent(self) -> bool:
        """Whether this is a subagent's own transcript: no message of it is on the main chain."""
        return self.side.messages > 0 and self.main.messages == 0

    def chain(self) -> Chain:
        """The chain that the reader of this transcript works in."""
        return self.side if self.subagent() else self.main

    def spent(self, cache_read_weight: float = 0) -> float:
        """Tokens newly consumed by all messages, each counted once however many records it has."""
        return sum(new + cached * cache_read_weight for new, cached in self._spent.values())

    def _message(self, chain: Chain, record: "dict[str, Any]", assistant: bool) -> None:
        message = record.get("message")
        if message.__class__ is not dict:
            return
        chain.messages += 1
        model = message.get("model")
        if assistant:
            if model == SYNTHETIC or record.get("isApiErrorMessage") is True:
                return
            if model.__class__ is str:
                chain.model = model
            self._usage(chain, message)
        _content(chain, message.get("content"))

    def _usage(self, chain: Chain, message: "dict[str, Any]") -> None:
        usage = message.get("usage")
        if usage.__class__ is not dict:
            return
        used = _sum(usage, self.usage["used"])
        if not used:
            return
        chain.used = used
        identity = message.get("id")
        key = identity if identity.__class__ is str else self.records
        self._spent[key] = (_sum(usage, self.usage["spent"]), _sum(usage, self.usage["cached"]))


def read(path: str, usage: "dict[str, list[str]]", limit: "int | None" = None) -> Transcript:
    """The tally of the transcript at `path`, or of its last `limit` bytes. Raises OSError where it cannot be read."""
    transcript = Transcript(usage)
    with places.open_regular(path) as lines:
        if limit is not None and lines.seek(0, 2) > limit:
            lines.seek(-limit, 2)
            lines.readline()  # the rest of a line that began before
            transcript.partial = True
        else:
            lines.seek(0)
        for line in lines:
            transcript.feed(line)
    return transcript


def measure(
    transcript: Transcript,
    chain: Chain,
    program: "dict[str, Any]",
    host: "dict[str, Any]",
    window: "float | None",
    window_basis: "str | None",
    ceiling: "int | None",
) -> "dict[str, Any]":
    """The meter of one chain of a tally; `host` is its entry in rules/hosts.yaml."""
    used, source, basis = reading(transcript, chain, program, host["overhead_tokens"])
    return meter.compose(
        program,
        chain.session,
        used,
        window,
        source,
        f"{basis}, partial" if transcript.partial else basis,
        window_basis=window_basis,
        share=chain.share(),
        compactions=chain.compactions,
        ceiling=ceiling,
        spent=transcript.spent(program["limits"]["cache_read_weight"]),
    )


def reading(
    transcript: Transcript, chain: Chain, program: "dict[str, Any]", overhead: int
) -> "tuple[int | None, str, str]":
    """(used tokens or None, source, basis): the ladder from the host's own record down to an estimate.

    `overhead` is what the host's system prompt and tools take in tokens, which no transcript shows.
    """
    limits = program["limits"]
    if chain.used is not None:
        return chain.used, "host", "usage record"
    if chain.post_tokens is not None:
        return chain.post_tokens, "host", "compaction boundary"
    if chain.messages:
        content = chain.sizes["text"] + chain.sizes["tool_call"] + chain.sizes["tool_result"]
        tokens = int(content / limits["bytes_per_token"]) + chain.images * limits["image_tokens"]
        return tokens + overhead, "transcript_heuristic", "content bytes"
    if chain.session or not transcript.size:
        return None, "unknown", "no messages yet"
    return int(transcript.size / limits["bytes_per_token"]), "transcript_heuristic", "file bytes"


def window(models: "dict[str, int]", model: object) -> "int | None":
    """The window of a model in tokens, by the longest prefix of its name in the table `models`; None unknown."""
    if model.__class__ is not str:
        return None
    known = [prefix for prefix in models if model.startswith(prefix)]
    return models[max(known, key=len)] if known else None


def _content(chain: Chain, content: object) -> None:
    sizes = chain.sizes
    if content.__class__ is str:
        sizes["text"] += _size(content)
        return
    for block in content if content.__class__ is list else ():
        if block.__class__ is not dict:
            continue
        kind = block.get("type")
        if kind in ("text", "thinking"):
            sizes[kind] += _size(block.get(kind))
        elif kind == "tool_use":
            sizes["tool_call"] += _size(json.dumps(block.get("input"), ensure_ascii=False, separators=(",", ":")))
        elif kind == "tool_result":
            _result(chain, block.get("content"))
        elif kind == "image":
            chain.images += 1


def _result(chain: Chain, content: object) -> None:
    if content.__class__ is str:
        chain.sizes["tool_result"] += _size(content)
        return
    for block in content if content.__class__ is list else ():
        if block.__class__ is dict:
            if block.get("type") == "text":
                chain.sizes["tool_result"] += _size(block.get("text"))
            elif block.get("type") == "image":
                chain.images += 1


def _size(text: object) -> int:
    return len(text.encode("utf-8", "surrogatepass")) if text.__class__ is str else 0


def _sum(usage: "dict[str, Any]", keys: "list[str]") -> int:
    return sum(_count(usage.get(key)) for key in keys)


def _count(value: object) -> int:
    return value if value.__class__ is int and 0 <= value < _MANY else 0


def _mapping(value: object) -> "dict[str, Any]":
    return value if value.__class__ is dict else {}
