"""The band of the window that is in use, by a table's own thresholds. ECM §"The meter + zone ladder".

Part of the runtime ring.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BELOW = "green"
UNKNOWN = "unknown"


def zone(zones: "Mapping[str, float]", utilization: "float | None") -> str:
    """The zone of a utilization (0 to 1, None unknown): thresholds are inclusive below."""
    if utilization is None:
        return UNKNOWN
    name, at = BELOW, -1.0
    for candidate, threshold in zones.items():
        if at < threshold <= utilization:
            name, at = candidate, threshold
    return name


def told_zone(zones: "Mapping[str, float]", told: "Any") -> str:
    """The zone of what a meter tells as its utilization, any JSON value: `unknown` for what is none."""
    return zone(zones, told) if _is_share(told) else UNKNOWN


def utilization(meter: "Any", program: "Mapping[str, Any]") -> "float | None":
    """The share of a meter (any JSON value) that a program's zone is derived from, 0 to 1; None where it tells none, or
    the table has no zone.
    """
    path = next((field["zone_of"] for field in program["fields"] if "zone_of" in field), None)
    if path is None:
        return None
    for key in path:
        meter = meter.get(key) if meter.__class__ is dict else None
    return meter if _is_share(meter) else None


def rezone(meter: "Any", program: "Mapping[str, Any]") -> str:
    """The zone that a program's thresholds give to the utilization that a meter (any JSON value) tells, `unknown` where
    it tells none: the zone that the meter names is not asked.
    """
    return zone(program["zones"], utilization(meter, program))


def _is_share(told: "Any") -> bool:
    return told.__class__ in (int, float) and 0 <= told <= 1
