"""The pins of a project, resolved: its table, its files and its meter together."""

from __future__ import annotations

import os
from typing import Any

import attrs

from ecm_rules.kernel import audit, meter, pin_sources
from ecm_rules.tables import load


@attrs.frozen
class Pinned:
    """The resolved pins in the order of the table, as `kernel.pins` takes them."""

    pins: tuple[dict[str, Any], ...]
    budget: float
    """Tokens that rendered pins may take together where nobody says another number."""
    bytes_per_token: float

    @property
    def unresolved(self) -> tuple[dict[str, Any], ...]:
        return tuple(pin for pin in self.pins if pin["text"] is None)


def load_pins(project: str | None = ".") -> Pinned:
    """The shipped pins and those of the project in the folder `project` (None: no project, and no file to read).

    Raises EcmError with every finding of the tables. What a source does not give is no error: see `Pinned.unresolved`.
    """
    table = load.load_policy(None, project)
    folder = project if project is not None else os.devnull
    seen = meter.load(os.path.join(folder, audit.meter_of(table.audit, None)))
    resolved = tuple(pin_sources.resolve(pin, folder, seen) for pin in table.pins)
    return Pinned(resolved, table.limits["pins_max_tokens"], table.limits["bytes_per_token"])
