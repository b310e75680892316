"""The kinds of conformance vectors: against what each is run, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ecm_rules.engine.policy import load_policy
from ecm_rules.kernel import conformance, golden
from ecm_rules.kernel.conformance import Result
from ecm_rules.lifecycle.facade import load_trust


@attrs.frozen
class Kind:
    """`load` gives the table that vectors are run against, `run` runs those of a path. `ending`: how the names of the
    files in a folder end; empty where the folder itself is a vector, or holds such.
    """

    load: Callable[[], Any]
    run: Callable[[Any, str], Iterator[Result]]
    ending: str = ""


def _golden(run: Callable[[str], Iterator[Result]]) -> Kind:
    return Kind(lambda: None, lambda _, path: run(path))


KINDS = {
    "policy": Kind(lambda: load_policy(project=None), conformance.run_policy, ".jsonl"),
    "lifecycle": Kind(lambda: load_trust(project=None), conformance.run_lifecycle, ".json"),
    "handoff": _golden(golden.run_handoff),
    "manifest": _golden(golden.run_manifest),
    "envelope": _golden(golden.run_envelope),
}
