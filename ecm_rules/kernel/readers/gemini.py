"""Gemini CLI: a log of messages and patches, or one document of messages in older versions. Part of the runtime ring.

A message is written again when it has more to say: the last one of an id counts. The result of a tool stands in the
message that called it and in one of its own: it counts once. A patch that replaces the history is a compression where
messages were said since the log was opened, else the history as it is resumed.
"""

from ecm_rules.kernel.chain import Chain, items, mapping, size, weigh
from ecm_rules.kernel.tally import RECENT, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    memory = tally.memory
    if not memory:
        memory.update({"said": False, "subagent": False, "parts": {}, "owners": {}})
    if "sessionId" in record and "type" not in record:
        if record.get("kind") == "subagent":
            memory["subagent"] = True
        memory["said"] = False
        if record["sessionId"].__class__ is str:
            _chain(tally).session = record["sessionId"]
        messages = list(items(record.get("messages")))
        tally.records += max(0, len(messages) - 1)
        for message in messages:
            _said(tally, message)
    elif "$set" in record:
        patch = mapping(record["$set"])
        if patch.get("messages").__class__ is list:
            _replaced(tally, patch["messages"])
    else:
        _said(tally, record)


def _chain(tally: Tally) -> Chain:
    return tally.side if tally.memory["subagent"] else tally.main


def _said(tally: Tally, message: "dict[str, Any]") -> None:
    kind = message.get("type")
    if kind not in ("user", "gemini"):
        return
    chain = _chain(tally)
    tally.memory["said"] = True
    if kind == "gemini":
        if message.get("model").__class__ is str:
            chain.model = message["model"]
        tokens = mapping(message.get("tokens"))
        used = tally.usage("used", tokens)
        if used:
            chain.used = used
            tally.spend(message.get("id"), tokens)
    elif not any("functionResponse" in part for part in items(message.get("content"))):
        chain.prompted(message.get("timestamp"))
    _weigh(tally, chain, message)


def _replaced(tally: Tally, messages: "list[Any]") -> None:
    memory, chain = tally.memory, _chain(tally)
    if memory["said"]:
        chain.compactions += 1
        chain.clear(None)
    chain.empty()
    memory.update({"said": False, "parts": {}, "owners": {}})
    for message in items(messages):
        if message.get("type") in ("user", "gemini"):
            _weigh(tally, chain, message)


def _weigh(tally: Tally, chain: Chain, message: "dict[str, Any]") -> None:
    """Add what a message holds, in the place of what it held when it was written before."""
    identity = message.get("id")
    scratch = Chain()
    content = message.get("content")
    if content.__class__ is list:
        content = [part for part in content if _owned(tally, part, identity)]
    weigh(scratch, tally.blocks(), content)
    for thought in items(message.get("thoughts")):
        scratch.sizes["thinking"] += size(thought.get("subject")) + size(thought.get("description"))
    for call in items(message.get("toolCalls")):
        part = {"functionCall": {"id": call.get("id"), "args": call.get("args")}}
        results = items(call.get("result"))
        weigh(scratch, tally.blocks(), [p for p in (part, *results) if _owned(tally, p, identity)])
    parts = tally.memory["parts"]
    held = parts.pop(identity, None) if identity.__class__ is str else None
    if held is None:
        chain.messages += 1
        held = {"images": 0, "sizes": {}}
    chain.images += scratch.images - held["images"]
    for kind, bytes in scratch.sizes.items():
        chain.sizes[kind] += bytes - held["sizes"].get(kind, 0)
    if identity.__class__ is str:
        _remember(parts, identity, {"images": scratch.images, "sizes": scratch.sizes})


def _owned(tally: Tally, part: object, message: object) -> bool:
    """Whether a part counts in this message: a call and its result count where they stood first."""
    for kind in ("functionCall", "functionResponse"):
        identity = mapping(mapping(part).get(kind)).get("id")
        if identity.__class__ is str and message.__class__ is str:
            owners = tally.memory["owners"]
            owner = owners.get(f"{kind} {identity}")
            if owner is None:
                _remember(owners, f"{kind} {identity}", message)
            elif owner != message:
                return False
    return True


def _remember(known: "dict[Any, Any]", key: object, value: object) -> None:
    known[key] = value
    if len(known) > RECENT:
        del known[next(iter(known))]
