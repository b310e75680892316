"""Whether what was read before still stands, where nothing is read now. ECM §"The meter + zone ladder"; RULINGS ECM 3.

Part of the runtime ring. A client tells of its window at some of its events and not at others: between them the window
is what it was. That holds for the same session, as long as nothing has happened that makes another window of it, and
for `limits.earlier_reading_max_s` from when it was read, however often it is taken over.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ecm_rules.kernel.chain import Chain
    from ecm_rules.kernel.payloads import Told
    from ecm_rules.kernel.tally import Tally

    Meter = Mapping[str, Any]

_SOURCES = ("host", "transcript_heuristic")
_ISO = "%Y-%m-%dT%H:%M:%SZ"


class Reading:
    """used: tokens; utilization: 0 to 1; of the two one may be None. source: as it was. at: ISO 8601 in UTC."""

    __slots__ = ("at", "source", "used", "utilization")

    def __init__(self, used: "float | None", utilization: "float | None", source: str, at: str) -> None:
        self.used = used
        self.utilization = utilization
        self.source = source
        self.at = at


def reading(
    limits: "Mapping[str, float]",
    before: "Meter",
    told: "Told",
    tally: "Tally | None",
    chain: "Chain | None",
    window: "float | None",
) -> "Reading | str | None":
    """The reading of a meter, where it stands; why it does not; None where there is none, or no need of one.

    before: the meter so far. told, tally, chain: what there is now, in which there is no reading. window: tokens.
    """
    used, utilization = positive(before.get("used_tokens_est")), positive(before.get("utilization"))
    if used is None and utilization is None:
        return None
    if told.unread:
        return "what has happened since could not be read"
    if told.session is None or before.get("session_id") != told.session:
        return "nobody says whose the earlier one is"
    if told.about:
        return "the client itself has none now"
    if told.emptied or _compacted(before, tally, chain):
        return "a compaction came after the earlier one"
    if tally is not None and not tally.partial and tally.unread is None:
        return None  # the whole transcript says what there is
    at = before.get("read_at", before.get("updated_at"))
    now, most = time.time(), limits["earlier_reading_max_s"]
    if at.__class__ is not str or not at <= _iso(now):
        return "nobody knows when the earlier one was"
    if at < _iso(now - most):
        return f"the earlier one is over {most:g} seconds old"
    old = positive(before.get("window_tokens"))
    if window and old and window != old:
        if used is None:
            return "the earlier one was of another window"
        utilization = None
    source = before.get("estimate_source")
    return Reading(used, utilization, source if source in _SOURCES else _SOURCES[0], at)


def positive(value: object) -> "float | None":
    """A number above zero and below any that is no measure of anything, None for what is none."""
    return value if value.__class__ in (int, float) and 0 < value < 1e15 else None


def _compacted(before: "Meter", tally: "Tally | None", chain: "Chain | None") -> bool:
    """Whether the transcript has a boundary that the earlier reading may not have seen: one that the meter did not
    count, or one in the part that was read, behind which nothing is known yet.
    """
    if tally is None or chain is None or not chain.compactions:
        return False
    counted = before.get("compaction_count")
    return tally.partial or counted.__class__ is not int or chain.compactions > counted


def _iso(seconds: float) -> str:
    return time.strftime(_ISO, time.gmtime(seconds))
