"""OpenCode: an exported session, one document. A summarising answer is the boundary. Part of the runtime ring."""

import time

from ecm_rules.kernel.chain import Chain, items, mapping, weigh
from ecm_rules.kernel.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    info = mapping(record.get("info"))
    chain = tally.side if info.get("parentID").__class__ is str else tally.main
    if info.get("id").__class__ is str:
        chain.session = info["id"]
    messages = list(items(record.get("messages")))
    tally.records += max(0, len(messages) - 1)
    for message in messages:
        _message(tally, chain, mapping(message.get("info")), list(items(message.get("parts"))))


def _message(tally: Tally, chain: Chain, info: "dict[str, Any]", parts: "list[dict[str, Any]]") -> None:
    role = info.get("role")
    if role not in ("user", "assistant"):
        return
    chain.messages += 1
    if role == "assistant":
        if info.get("modelID").__class__ is str:
            chain.model = info["modelID"]
        tokens = mapping(info.get("tokens"))
        used = tally.usage("used", tokens)
        if used:
            tally.spend(info.get("id"), tokens)
        if info.get("summary") is True:  # its usage is that of the history which it replaces
            if not info.get("error"):
                chain.compactions += 1
                chain.clear(None)
        elif used:
            chain.used = used
    elif any(part.get("type") == "text" and part.get("synthetic") is not True for part in parts):
        chain.prompted(iso(mapping(info.get("time")).get("created")))
    weigh(chain, tally.blocks(), parts)


def iso(milliseconds: object) -> "str | None":
    """A time in UTC, to the second; None for what is none."""
    if milliseconds.__class__ is not int or not 0 < milliseconds < 1e14:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds / 1000))
