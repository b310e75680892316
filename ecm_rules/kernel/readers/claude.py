"""Claude Code: a record for each content block, all of a message with its id and usage. Part of the runtime ring.

Subagents of older versions stand in the session's own file as sidechains; now each has a file, all of it a sidechain.
"""

from ecm_rules.kernel.chain import Chain, count, items, mapping, weigh
from ecm_rules.kernel.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SYNTHETIC = "<synthetic>"


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    chain = tally.side if record.get("isSidechain") is True else tally.main
    session = record.get("sessionId")
    if session.__class__ is str:
        chain.session = session
    kind = record.get("type")
    if kind == "system" and record.get("subtype") == "compact_boundary":
        chain.compactions += 1
        chain.clear(count(mapping(record.get("compactMetadata")).get("postTokens")) or None)
    elif kind in ("user", "assistant"):
        message = record.get("message")
        if message.__class__ is dict:
            chain.messages += 1
            _message(tally, chain, record, message)


def _message(tally: Tally, chain: Chain, record: "dict[str, Any]", message: "dict[str, Any]") -> None:
    content = message.get("content")
    if record["type"] == "assistant":
        model = message.get("model")
        if model == SYNTHETIC or record.get("isApiErrorMessage") is True:
            return
        if model.__class__ is str:
            chain.model = model
        usage = message.get("usage")
        if usage.__class__ is dict:
            used = tally.usage("used", usage)
            if used:
                chain.used = used
                tally.spend(message.get("id"), usage)
    elif not _answers(record, content):
        chain.prompted(record.get("timestamp"))
    weigh(chain, tally.blocks(), content)


def _answers(record: "dict[str, Any]", content: object) -> bool:
    """Whether what stands as the user's is a tool's result, or the client's own."""
    own = record.get("isMeta") is True or record.get("isCompactSummary") is True
    return own or any(block.get("type") == "tool_result" for block in items(content))
