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
    if told.__class__ not in (int, float) or not 0 <= told <= 1:
        return UNKNOWN
    return zone(zones, told)


def rezone(meter: "Any", program: "Mapping[str, Any]") -> str:
    """The zone that a program's thresholds give to the utilization that a meter (any JSON value) tells.

    `unknown` where it tells none, or one that contradicts itself, and for a table that has no zone: the zone that the
    meter names is not asked.
    """
    told = meter
    share = next((field["zone_of"] for field in program["fields"] if "zone_of" in field), None)
    if share is None:
        return UNKNOWN
    for key in share:
        told = told.get(key) if told.__class__ is dict else None
    return told_zone(program["zones"], told)
