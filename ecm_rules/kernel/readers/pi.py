"""pi: a tree of entries in the order of writing; what leads to the last one is the session. Part of the runtime ring.

Where an entry does not follow the one before it, the user went back: what was counted since is no longer in the window,
and the file is read again, along the branch that leads to its end. What was consumed on other branches stays consumed.
"""

from ecm_rules.kernel.chain import Chain, mapping, size, weigh
from ecm_rules.kernel.tally import Rewound, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def feed(tally: Tally, record: "dict[str, Any]") -> None:
    chain, kind = tally.main, record.get("type")
    if kind == "session":
        if record.get("id").__class__ is str:
            chain.session = record["id"]
        return
    message = mapping(record.get("message"))
    usage = mapping(message.get("usage", record.get("usage")))
    used = tally.usage("used", usage)
    if used:
        tally.spend(record.get("id"), usage)
    if not _follows(tally, record):
        return
    if kind == "compaction":
        chain.compactions += 1
        chain.clear(None)
        chain.carried = size(record.get("summary"))
    elif kind == "branch_summary":
        chain.carried += size(record.get("summary"))
    elif kind == "model_change":
        _model(chain, record.get("modelId"))
    elif kind == "message":
        _message(tally, chain, record, message, used)


def lineage(records: "Iterable[dict[str, Any]]") -> "set[str]":
    """The ids of the entries that lead to the last one of those that are in the tree."""
    parents: "dict[str, Any]" = {}
    last = None
    for record in records:
        identity = record.get("id")
        if identity.__class__ is str and "parentId" in record:
            parents[identity] = record["parentId"]
            last = identity
    found: "set[str]" = set()
    while last.__class__ is str and last in parents and last not in found:
        found.add(last)
        last = parents[last]
    return found


def _follows(tally: Tally, record: "dict[str, Any]") -> bool:
    """Whether an entry counts: it is on the branch, where that is known. Raises Rewound where it leaves the branch."""
    identity = record.get("id")
    if "parentId" not in record or identity.__class__ is not str:
        return True  # older files are no trees
    if tally.branch is not None and identity not in tally.branch:
        return False
    leaf = tally.memory.get("leaf")
    tally.memory["leaf"] = identity
    if leaf is not None and record["parentId"] != leaf and tally.branch is None:
        if not tally.partial:
            raise Rewound(lineage)
        tally.main.used = None
    return True


def _message(tally: Tally, chain: Chain, record: "dict[str, Any]", message: "dict[str, Any]", used: int) -> None:
    role, content = message.get("role"), message.get("content")
    chain.messages += 1
    if role == "user":
        chain.prompted(record.get("timestamp"))
        weigh(chain, tally.blocks(), content)
    elif role == "assistant":
        _model(chain, message.get("model"))
        if used:
            chain.used = used
        weigh(chain, tally.blocks(), content)
    elif role == "toolResult":
        weigh(chain, tally.blocks(), content, "tool_result")


def _model(chain: Chain, name: object) -> None:
    if name.__class__ is str:
        chain.model = name
