"""The handlers that come with us, by the step that each does. An adapter adds its own: `{**HANDLERS, "step": handler}`.

`file_floor` takes the place of a step that degrades to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ecm_rules.kernel import externals, handoffs, pins
from ecm_rules.kernel.pinned import load_pins
from ecm_rules.kernel.work import NotDone, Work

if TYPE_CHECKING:
    from ecm_rules.kernel.work import Handler


def verify_pins(work: Work) -> dict[str, Any]:
    """Look for every pin in `facts["injected"]`, the text that the window holds after a compaction; what is to be
    injected again is `pin_repair`, empty where every pin arrived. ECM §"Pin set — what survives every lossy operation".
    """
    text = work.facts.get("injected")
    if not isinstance(text, str):
        raise NotDone("nobody said what the window holds")
    known = load_pins(work.project).pins
    states = pins.probe(text, known)
    lost = [pin for pin in known if states[pin["id"]] != pins.PRESENT]
    why = f"to be injected again: {', '.join(pin['id'] for pin in lost)}" if lost else None
    return {"pins": states, "pin_repair": "".join(map(pins.block, lost)), "why": why, "pending": bool(lost)}


HANDLERS: dict[str, Handler] = {
    "plan_checkpoint": externals.plan_checkpoint,
    "commit_identifier_manifest": externals.commit,
    "ingest_envelope_if_present": externals.ingest_envelope,
    "file_floor": externals.file_floor,
    "pin_verify_repair": verify_pins,
    "compose_handoff_brief": handoffs.compose_brief,
    "ecl_envelope": handoffs.compose_envelope,
    "crystalium_ingest_session_handoff": handoffs.ingest,
    "crystalium_session_end": externals.session_end,
}
