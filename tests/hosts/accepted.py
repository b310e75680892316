"""What each client takes from the stdout of its hook: `fixtures/hosts/accepted.json`, and how it is read."""

from __future__ import annotations

import json
import re
from typing import Any

from jsonschema import Draft202012Validator

from tests.conftest import FIXTURES

HOSTS: dict[str, list[dict[str, Any]]] = json.loads((FIXTURES / "hosts/accepted.json").read_text())["hosts"]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def entry(host: str, payload: object) -> dict[str, Any]:
    """The entry that a payload falls under. Where the payload is no object, the last, which is for any other."""
    given = payload if isinstance(payload, dict) else {}
    return next(each for each in HOSTS[host] if Draft202012Validator(each["payload"]).is_valid(given))


def faults(host: str, payload: object, stdout: bytes) -> list[str]:
    """Why a client would not take what its hook printed; nothing where it does."""
    found = entry(host, payload)
    if not stdout:
        return []
    expected = found["stdout"]
    if "nothing" in expected:
        return [f"{found['event']}: found {stdout[:80]!r}, expected nothing: {found.get('why')}"]
    if "line" in expected:
        text = _COLOUR.sub("", stdout.decode())
        one = text.count("\n") == 1 and text.endswith("\n")
        return [] if one and len(text) - 1 <= expected["line"]["columns"] else [f"no line for a statusline: {text!r}"]
    try:
        document = json.loads(stdout)
    except ValueError as error:
        return [f"{found['event']}: not one document of JSON: {error}"]
    told = [
        f"{found['event']}: {error.message}" for error in Draft202012Validator(expected["json"]).iter_errors(document)
    ]
    if not told and "bytes" in expected:
        for key in expected["bytes"]["at"]:
            document = document[key]
        size = len(document.encode("utf-8", "surrogatepass"))
        told += [f"{found['event']}: {size} bytes"] if size > expected["bytes"]["most"] else []
    return told


def check(host: str, payload: object, stdout: bytes) -> None:
    """Fail where a client would not take it."""
    assert not faults(host, payload, stdout)
