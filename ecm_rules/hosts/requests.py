"""A request of a client on its way to the model: declared lifetimes, and the pins that it carries. Part of the runtime
ring.

ACLP V1 §"Request processing order". What is put in front stays the same from request to request between two
compactions, so that the provider's cached prefix holds.
"""

import os

from ecm_rules.hosts import memo, moments, views
from ecm_rules.kernel import audit, locks, meter
from ecm_rules.kernel.lookup import first
from ecm_rules.lifecycle import injection
from ecm_rules.lifecycle.providers import SHAPES
from ecm_rules.lifecycle.trust import Trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ecm_rules.hosts.measuring import Turn


def rewritten(turn: "Turn") -> "list[Any] | None":
    """The messages that the request is to send, None where they are to be sent as they came. Never raises for what
    arrived, nor for a state that cannot be kept.
    """
    messages = first(turn.payload, turn.event["messages"])
    if messages.__class__ is not list:
        return None
    shape = turn.event["shape"]
    sources, unread = views.read_sources(turn.project, turn.programs["context_sources"])
    trust = Trust(turn.programs["trust"])
    viewed, complaints = views.view(turn.project, turn.paths, trust, shape, turn.session, turn.agent, messages, sources)
    turn.complaints += unread + complaints
    carried = _carried(turn) if turn.event["carries"] else None
    message = SHAPES[shape].block_message(carried, injection.FIRST) if carried else None
    if message is None:
        return viewed
    core: "list[Any]" = messages if viewed is None else viewed
    at = injection.front(SHAPES[shape], core)
    return [*core[:at], message, *core[at:]]


def _carried(turn: "Turn") -> "str | None":
    """The pins that each request has in front until the next compaction, None where an event has told them."""
    seen = meter.load(os.path.join(turn.project, audit.meter_of(turn.paths, turn.agent)))
    turn.now = seen if isinstance(seen, dict) and seen.get("session_id") == turn.session else {}
    try:
        texts = moments.pins(turn)
        with memo.begin(turn.project, turn.paths, turn.session, turn.agent) as known:
            if texts:
                known.carried = "\n".join(texts)
            return known.carried
    except (OSError, locks.Busy) as error:
        turn.complaints.append(f"not remembered: {getattr(error, 'strerror', None) or error or 'busy'}")
        return None
