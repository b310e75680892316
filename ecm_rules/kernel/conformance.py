"""Vectors: language-neutral data that says what must come out, and the one runner of each kind.

A policy vector is a line of JSON: `{"meter", "subagent", "expect": {"rule", "operation", "raw_operation"}}`, or a
hostile one with the meter as a file (`raw`, `raw_base64`, `gen`), `recommended` (with `degraded`: paths) and
`accept_rules`. Lifecycle vectors are the entries of a JSON list: fixtures/lifecycle/README.md.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import attrs

from ecm_rules.engine import program
from ecm_rules.engine.policy import Policy
from ecm_rules.kernel import meter
from ecm_rules.lifecycle import conformance as lifecycle
from ecm_rules.lifecycle.trust import Trust
from ecm_rules.tables import places

_COMPARED = ("rule", "operation", "raw_operation", "degraded")


@attrs.frozen
class Result:
    """One vector: whether it passed, and otherwise what was given, expected and seen."""

    name: str
    passed: bool
    contested: bool
    given: str
    expected: str
    seen: str


def run_policy(policy: Policy, path: str) -> Iterator[Result]:
    """Run the vectors of a file. Raises OSError or ValueError where it is no file of vectors."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield _run(policy, json.loads(line), f"line {number}")
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number} is no JSON: {error.msg}") from None
                except (AttributeError, KeyError, TypeError) as error:
                    raise ValueError(f"line {number} is no vector: {error!r}") from None


def _run(policy: Policy, vector: dict[str, Any], name: str) -> Result:
    role = program.role_of(vector.get("subagent") is True)
    wanted = vector["expect"] if "expect" in vector else vector["recommended"]
    wanted = {key: sorted(value) if key == "degraded" else value for key, value in wanted.items()}
    unknown = set(wanted) - set(_COMPARED)
    if unknown or not wanted:
        raise ValueError(f"{name} expects {', '.join(sorted(unknown)) or 'nothing'}, known: {', '.join(_COMPARED)}")
    verdict = policy.decide(_snapshot(vector), role).to_dict()
    seen = {**verdict, "degraded": sorted(d["path"] for d in verdict["degraded"])}
    shown = {key: seen[key] for key in wanted}
    # Where another row is as good, what it names as degraded is its own affair.
    as_good = seen["rule"] != wanted.get("rule") and seen["rule"] in vector.get("accept_rules", ())
    given = {key: vector[key] for key in ("meter", "raw", "raw_base64", "gen") if key in vector}
    return Result(
        str(vector.get("name", name)),
        shown == wanted or as_good,
        vector.get("contested") is True,
        f"{json.dumps(given)[:300]} as {role}",
        json.dumps(wanted),
        json.dumps(shown),
    )


def _snapshot(vector: dict[str, Any]) -> Any:
    if "meter" in vector:
        return vector["meter"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "meter.json")
        special = vector.get("gen", {}).get("special")
        if special:
            path = _special(special, path)
        else:
            with open(path, "wb") as file:
                file.write(_content(vector))
        return meter.load(path)


def _content(vector: dict[str, Any]) -> bytes:
    if "raw" in vector:
        return str(vector["raw"]).encode("utf-8", "surrogatepass")
    if "raw_base64" in vector:
        return base64.b64decode(vector["raw_base64"])
    return "".join(text * times for text, times in vector["gen"]["parts"]).encode("utf-8")


def _special(kind: str, path: str) -> str:
    match kind:
        case "missing":
            return path
        case "directory":
            os.mkdir(path)
        case "fifo":
            os.mkfifo(path)
        case "dangling symlink":
            os.symlink(path + ".nowhere", path)
        case "endless device":
            return "/dev/zero"
        case _:
            raise ValueError(f"unknown special file {kind!r}")
    return path


def run_lifecycle(trust: Trust, path: str) -> Iterator[Result]:
    """Run the vectors of a file. Raises OSError or ValueError where it is no file of vectors."""
    with places.open_regular(path) as stream:
        vectors = json.loads(stream.read().decode("utf-8"))
    if not isinstance(vectors, list):
        raise ValueError("found no list of vectors")
    for number, vector in enumerate(vectors, 1):
        try:
            yield _lived(vector, lifecycle.differences(vector, trust))
        except lifecycle.NoVector as error:
            raise ValueError(f"entry {number} is no vector: {error}") from None


def _lived(vector: dict[str, Any], found: list[lifecycle.Difference]) -> Result:
    given = f"{_clipped(vector['given'])} " if "given" in vector else ""
    first = found[0] if found else lifecycle.Difference("", None, None)
    more = f" and {len(found) - 1} more" if found[1:] else ""
    return Result(
        str(vector["name"]),
        not found,
        vector.get("contested") is True,
        f"{given}({first.where}{more})",
        _clipped(first.expected),
        _clipped(first.seen),
    )


def _clipped(value: Any) -> str:
    return json.dumps(value)[:300]
