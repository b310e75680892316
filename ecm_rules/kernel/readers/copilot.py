"""GitHub Copilot CLI: a log of events; each request has a usage record with its window. Part of the runtime ring."""

from ecm_rules.kernel.chain import Chain, count, items, mapping, size, weigh
from ecm_rules.kernel.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONVERSATION = "conversation-agent"


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    data, kind = mapping(record.get("data")), record.get("type")
    agent = record.get("agentId", data.get("agentId"))
    chain = tally.side if agent.__class__ is str else tally.main
    if kind == "session.start":
        if data.get("sessionId").__class__ is str:
            chain.session = data["sessionId"]
        if data.get("selectedModel").__class__ is str:
            chain.model = data["selectedModel"]
    elif kind == "session.usage_record":
        _usage(tally, chain, mapping(data.get("usage")))
    elif kind == "session.compaction_complete":
        tally.spend(data.get("compactionAttemptId"), mapping(data.get("compactionTokensUsed")))
        if data.get("success") is True and data.get("outcome", "applied") == "applied":
            chain.compactions += 1
            chain.clear(count(data.get("postCompactionTokens")) or None)
            chain.carried = size(data.get("summaryContent"))
    elif kind in ("user.message", "assistant.message", "tool.execution_complete"):
        chain.messages += 1
        if kind == "user.message":
            chain.prompted(record.get("timestamp"))
        weigh(chain, tally.blocks(), [record])
        weigh(chain, tally.blocks(), list(items(data.get("toolRequests"))))


def _usage(tally: Tally, chain: Chain, usage: "dict[str, Any]") -> None:
    used = tally.usage("used", usage)
    if not used:
        return
    tally.spend(usage.get("apiCallId"), usage)
    if usage.get("interactionType", _CONVERSATION) != _CONVERSATION:
        return  # a request beside the conversation
    chain.used = used
    chain.window = count(usage.get("maxPromptTokens")) or chain.window
    if usage.get("model").__class__ is str:
        chain.model = usage["model"]
