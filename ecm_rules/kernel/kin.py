"""Subagents that are sessions of their own: whose each of them is. ECM §"Subagent economics (D3)".

Part of the runtime ring. Only what tells of such a session's beginning names its parent. From then on the subagent's
own meter tells, which has its id in its name and its parent's in it.
"""

import os

from ecm_rules.kernel import audit, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ecm_rules.kernel.payloads import Told


def resolve(project: str, paths: "Mapping[str, str]", told: "Told") -> None:
    """Make of a session that is a subagent's what it is: `told.agent`, and in `told.session` that of its parent, or of
    the first of its line. Never raises.

    paths: the policy's `audit`.
    """
    session = told.session
    if session is None or not told.nests:
        return
    known = meter.load(os.path.join(project, audit.meter_of(paths, session)))
    parent = known.get("session_id") if isinstance(known, dict) else None
    if parent.__class__ is not str or not parent or parent == session:
        return
    told.session = parent
    if told.agent is None:
        told.agent = session
