"""What the benchmarks share: interleaved rounds, medians, one JSON document or a table.

These machines are noisy: contenders take turns within a run, and what counts is the ratio of their medians in that run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping

Figure = dict[str, object]


def arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at most 30 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser.parse_args()


def rounds(contenders: Mapping[str, Callable[[], object]], count: int) -> dict[str, float]:
    """Median seconds of each contender; all take a turn in every round, the first of each is for warming up."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(count):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            seen[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seen.items()}


def figures(
    medians: dict[str, float], yardsticks: dict[str, str], unit: str, scale: float, per: int = 1
) -> list[Figure]:
    """A figure for each contender: its median in `unit`, and its ratio to the yardstick that ran beside it."""
    return [
        {
            "name": name,
            "median": round(median * scale / per, 4),
            "unit": unit,
            "beside": yardsticks.get(name),
            "ratio": round(median / medians[yardsticks[name]], 3) if name in yardsticks else None,
        }
        for name, median in medians.items()
    ]


def report(subject: str, found: list[Figure], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"subject": subject, "figures": found}))
        return
    print(subject)
    width = max(len(str(figure["name"])) for figure in found)
    for figure in found:
        ratio = f"{figure['ratio']:>8.2f} × {figure['beside']}" if figure["ratio"] is not None else ""
        print(f"  {figure['name']:<{width}}  {figure['median']:>10.2f} {figure['unit']}  {ratio}")
