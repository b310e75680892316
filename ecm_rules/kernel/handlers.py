"""The handlers that come with us, by the step that each does. An adapter adds its own: `{**HANDLERS, "step": handler}`.

`file_floor` takes the place of a step that degrades to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecm_rules.kernel import externals, handoffs

if TYPE_CHECKING:
    from ecm_rules.kernel.work import Handler

HANDLERS: dict[str, Handler] = {
    "plan_checkpoint": externals.plan_checkpoint,
    "commit_identifier_manifest": externals.commit,
    "ingest_envelope_if_present": externals.ingest_envelope,
    "file_floor": externals.file_floor,
    "compose_handoff_brief": handoffs.compose_brief,
    "ecl_envelope": handoffs.compose_envelope,
    "crystalium_ingest_session_handoff": handoffs.ingest,
    "crystalium_session_end": externals.session_end,
}
