"""Codex: a rollout. Its running totals are a bill; the window is what the last request took. Part of the runtime ring.

A forked rollout begins with a replay of its parent, usage and all: nothing before its last turn counts there.
"""

from ecm_rules.kernel.chain import Chain, count, items, mapping, size, weigh
from ecm_rules.kernel.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROLES = ("user", "assistant")


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    payload = mapping(record.get("payload"))
    kind = record.get("type")
    if kind == "session_meta":
        _opened(tally, payload)
        return
    chain = tally.side if tally.memory.get("subagent") else tally.main
    if kind == "turn_context":
        if payload.get("model").__class__ is str:
            chain.model = payload["model"]
    elif kind == "event_msg":
        _event(tally, chain, record, payload)
    elif kind == "token_usage_record":
        _usage_record(tally, chain, payload)
    elif kind == "compacted":
        chain.compactions += 1
        chain.clear(None)
        chain.carried = _carried(tally, payload)
    elif kind == "response_item" and (payload.get("type") != "message" or payload.get("role") in _ROLES):
        chain.messages += 1
        weigh(chain, tally.blocks(), [payload])


def _opened(tally: Tally, payload: "dict[str, Any]") -> None:
    memory = tally.memory
    if payload.get("forked_from_id").__class__ is str:
        memory["forked"] = True
    if "thread" in memory:
        return  # that of a parent, replayed
    thread, session = payload.get("id"), payload.get("session_id")
    memory["thread"] = thread if thread.__class__ is str else None
    memory["subagent"] = "subagent" in mapping(payload.get("source"))
    chain = tally.side if memory["subagent"] else tally.main
    if (session or thread).__class__ is str:
        chain.session = session or thread


def _event(tally: Tally, chain: Chain, record: "dict[str, Any]", payload: "dict[str, Any]") -> None:
    kind = payload.get("type")
    if kind == "task_started":
        chain.window = count(payload.get("model_context_window")) or chain.window
        if tally.memory.get("forked"):
            chain.used, chain.turns, chain.prompts = None, 0, []
            tally.unspend()
        chain.prompted(record.get("timestamp"))
    elif kind == "token_count":
        info = mapping(payload.get("info"))
        chain.window = count(info.get("model_context_window")) or chain.window
        last = mapping(info.get("last_token_usage"))
        used = tally.usage("used", last)
        if used:
            chain.used = used
            if not tally.memory.get("records"):  # each request has a record of its own besides
                total = mapping(info.get("total_token_usage")).get("total_tokens")
                tally.spend(str(total) if count(total) else None, last)
        elif chain.used is None and chain.compactions:
            # After a compaction: nothing was used yet, but the client says how much it has kept.
            chain.post_tokens = count(last.get("total_tokens")) or chain.post_tokens


def _usage_record(tally: Tally, chain: Chain, payload: "dict[str, Any]") -> None:
    thread, own = payload.get("thread_id"), tally.memory.get("thread")
    if own is not None and thread.__class__ is str and thread != own:
        return
    usage = mapping(payload.get("usage"))
    used = tally.usage("used", usage)
    if used:
        tally.memory["records"] = True
        chain.used = used
        tally.spend(payload.get("response_id"), usage)


def _carried(tally: Tally, payload: "dict[str, Any]") -> int:
    """Bytes of the history that a compaction puts in the place of the old one."""
    history = list(items(payload.get("replacement_history")))
    if not history:
        return size(payload.get("message"))
    scratch = Chain()
    weigh(scratch, tally.blocks(), history)
    return sum(scratch.sizes.values()) - scratch.sizes["thinking"]
