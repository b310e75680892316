"""The line below the prompt: a gauge, the zone, what the policy says, the budget. Part of the runtime ring."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH = 80
_CELLS = 10
_COLOURS = {"green": "32", "amber": "33", "red": "31", "critical": "1;31"}


def render(meter: "dict[str, Any]", verdict: "dict[str, Any]", width: "int | None" = None) -> str:
    """One line of at most `width` columns (default: COLUMNS, else 80); in colour unless NO_COLOR is set."""
    share, zone = meter["utilization"], meter["zone"]
    full = 0 if share is None else min(_CELLS, int(share * _CELLS + 0.5))
    parts = [
        "▕" + "█" * full + "░" * (_CELLS - full) + "▏" + ("  ?" if share is None else f"{share:3.0%}"),
        zone,
        verdict["operation"] + (f" ({verdict['rule']})" if verdict["rule"] else ""),
    ]
    budget = meter["budget"]
    if budget["ceiling_tokens"]:
        spent = budget["spent_tokens_est"]
        parts.append(f"{'?' if spent is None else _short(spent)} of {_short(budget['ceiling_tokens'])} tokens")
    width = _columns() if width is None else width
    while len(" ".join(parts)) > width and len(parts) > 1:
        parts.pop()  # the least important is the last
    parts[0] = parts[0][:width]
    colour = _COLOURS.get(zone)
    if colour and not os.environ.get("NO_COLOR"):
        parts[0] = f"\x1b[{colour}m{parts[0]}\x1b[0m"
    return " ".join(parts)


def _columns() -> int:
    told = os.environ.get("COLUMNS", "")
    return (int(told[:6]) or WIDTH) if told.isascii() and told.isdigit() else WIDTH


def _short(tokens: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{letter}"
    return f"{tokens:.0f}"
