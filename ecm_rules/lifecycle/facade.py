"""What embeds the lifetimes and is no part of the runtime: the resolved trust table."""

from __future__ import annotations

from ecm_rules.engine.policy import load_table
from ecm_rules.lifecycle.trust import Trust

TABLE = "trust-sources"


def load_trust(project: str | None = ".") -> Trust:
    """The shipped trust table with the rows of the project in the folder `project` (None: without).

    Raises EcmError with every finding where a file does not load.
    """
    return Trust(load_table(TABLE, project=project).program)
