"""The envelope in its two profiles: the nexus' own to the byte, and a valid one whatever the texts hold."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import re
import uuid
from typing import Any

import jsonschema
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules.artifacts import brief, envelope, jq
from ecm_rules.artifacts.brief import Brief
from tests.artifacts.texts import anything, briefs
from tests.conftest import FIXTURES

NOW = "2026-07-07T00:00:00Z"
STAMP = "20260707T000000Z"
MESSAGE = "01926e3a-2c8a-7b04-b3a1-1cf0a7a6d5e1"
PERFORMATIVES = json.loads((FIXTURES / "ecl/performative.v1.json").read_text())["$defs"]["performative"]["enum"]

CHECKER = jsonschema.FormatChecker(["uuid"])


@CHECKER.checks("date-time", ValueError)
def _date_time(text: object) -> bool:
    return not isinstance(text, str) or datetime.datetime.fromisoformat(text).tzinfo is not None


def validator(name: str) -> jsonschema.Draft202012Validator:
    """The standard's own schema; it refers to its neighbours by their names."""
    schemas = [json.loads(path.read_text()) for path in (FIXTURES / "ecl").glob("*.json")]
    resources = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas]
    neighbours = [
        (re.sub("[^/]+$", path.name, schema["$id"]), referencing.Resource.from_contents(json.loads(path.read_text())))
        for schema in schemas
        for path in (FIXTURES / "ecl").glob("*.json")
    ]
    registry: referencing.Registry[Any] = referencing.Registry().with_resources([*neighbours, *resources])
    schema = json.loads((FIXTURES / "ecl" / name).read_text())
    return jsonschema.Draft202012Validator(schema, registry=registry, format_checker=CHECKER)


V2 = validator("envelope.v2.json")
V21 = validator("envelope.v2.1.json")


def sent(told: Brief, **more: Any) -> dict[str, Any]:
    given_ = {"stamp": STAMP, "now": NOW, "thread_id": "sess-1", "message_id": MESSAGE, **more}
    return envelope.ecl(told, brief.compose(told), **given_)


@given(briefs(), anything, anything, anything, st.none() | anything, anything, anything)
def test_the_profile_ecl_is_valid_whatever_the_texts_hold(
    told: Brief, thread: str, message: str, version: str, parent: str | None, host: str, model: str
) -> None:
    made = sent(told, thread_id=thread, message_id=message, version=version, parent_id=parent, host=host, model=model)
    written = json.loads(jq.dumps(made))
    V2.validate(written)
    V21.validate(written)
    assert jq.dumps(made) == jq.dumps(
        sent(told, thread_id=thread, message_id=message, version=version, parent_id=parent, host=host, model=model)
    )
    assert written["performative"] in PERFORMATIVES
    assert written["x_ecm_contains_tool_origin"] is told.contains_tool_origin
    assert written["x_ecm_thread_id"] == jq.clean(thread)


def test_what_the_profile_ecl_says() -> None:
    told = Brief("Wire the hook\nsecond line")
    payload = brief.compose(told)
    digest = hashlib.sha256(payload).hexdigest()
    assert sent(told, version="0.1.0", host="claude-code", model="m") == {
        "envelope_version": "2.0",
        "message_id": MESSAGE,
        "thread_id": envelope.as_uuid("sess-1"),
        "parent_id": None,
        "from": {"eidolon": "eidolons-context-kernel", "version": "0.1.0"},
        "to": {"eidolon": "session-successor", "version": "n/a"},
        "performative": "INFORM",
        "edge_origin": "implicit",
        "objective": "Session handoff brief for context-lifecycle succession (ECM P1): Wire the hook",
        "artifact": {
            "kind": "ecm-handoff-brief",
            "schema_version": "0.1",
            "path": f"handoff-{STAMP}.md",
            "sha256": digest,
            "size_bytes": len(payload),
        },
        "integrity": {"method": "sha256", "value": digest},
        "trace": {"ts": NOW, "host": "claude-code", "model": "m", "tier": "standard"},
        "x_ecm_artifact_type": "ecm/handoff-brief@0.1",
        "x_ecm_thread_id": "sess-1",
        "x_ecm_topic_key": "session_handoff",
        "x_ecm_contains_tool_origin": False,
    }


def test_the_profile_kernel_is_invalid_by_the_standard_in_the_known_ways() -> None:
    told = Brief("t")
    made = envelope.kernel(told, brief.compose(told), stamp=STAMP, now=NOW, thread_id="t")
    places = [".".join(map(str, error.absolute_path)) for error in V2.iter_errors(made)]
    assert sorted(places) == ["", "artifact.kind", "message_id", "thread_id", "to.eidolon"]


def test_text_from_tools_is_of_low_trust() -> None:
    assert sent(Brief("t", contains_tool_origin=True))["constraints"] == {"trust_level": "low"}
    assert "constraints" not in sent(Brief("t"))


@pytest.mark.parametrize(("length", "words"), [(1, 300), (300, 1), (7, 40)])
def test_a_long_objective_is_cut_between_words(length: int, words: int) -> None:
    objective = sent(Brief(" ".join(["w" * length] * words)))["objective"]
    assert len(objective) <= 240
    assert objective.endswith(" …")
    told = objective.removeprefix("Session handoff brief for context-lifecycle succession (ECM P1): ").split()[:-1]
    assert told
    assert words == 1 or set(told) == {"w" * length}
    assert sent(Brief("w" * 175))["objective"].endswith("w")


def test_a_key_makes_it_hmac_sha256() -> None:
    told = Brief("t")
    made = sent(told, key=b"secret")
    assert made["integrity"] == {
        "method": "hmac-sha256",
        "value": hmac.new(b"secret", brief.compose(told), hashlib.sha256).hexdigest(),
    }
    assert made["artifact"]["sha256"] == hashlib.sha256(brief.compose(told)).hexdigest()
    V2.validate(made)
    with pytest.raises(ValueError, match="found an empty key"):
        sent(told, key=b"")


@given(anything, anything)
def test_an_id_that_is_no_uuid_gets_one_of_its_own(one: str, other: str) -> None:
    assert envelope.as_uuid(one) == envelope.as_uuid(one) == str(uuid.UUID(envelope.as_uuid(one)))
    assert (envelope.as_uuid(one) == envelope.as_uuid(other)) == (jq.clean(one) == jq.clean(other))
    assert envelope.as_uuid(MESSAGE.upper()) == MESSAGE
    # What threads are known by outlives this version.
    assert envelope.as_uuid("sess-1") == "fe6aa9ae-43b6-5b6d-b835-25aaff61d013"


@given(st.integers(0, 1 << 49), st.binary(min_size=10, max_size=10))
def test_a_new_id_is_a_uuid_of_version_7(milliseconds: int, entropy: bytes) -> None:
    made = uuid.UUID(envelope.uuid7(milliseconds, entropy))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == milliseconds % (1 << 48)
    assert made.int & ((1 << 62) - 1) == int.from_bytes(entropy, "big") & ((1 << 62) - 1)


def test_names_are_unique_within_a_second() -> None:
    stamps = [envelope.stamp(STAMP, nth) for nth in range(3)]
    assert stamps == [STAMP, f"{STAMP}-2", f"{STAMP}-3"]
    assert envelope.brief_name(stamps[1]) == f"handoff-{STAMP}-2.md"
    assert envelope.envelope_name(stamps[1]) == f"handoff-{STAMP}-2.envelope.json"
    made = [envelope.kernel(Brief(), b"", stamp=stamp, now=NOW, thread_id="t")["message_id"] for stamp in stamps]
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    ("thread", "session", "found"), [("t", "s", "t"), ("", "s", "s"), ("", "", f"handoff-{STAMP}")]
)
def test_a_handoff_belongs_to_a_thread(thread: str, session: str, found: str) -> None:
    assert envelope.thread(thread, session, STAMP) == found


# Of ECL 2.0 §5.2; the values that a valid envelope gives.
EVENT = {
    "ts": NOW,
    "event": "emit",
    "message_id": MESSAGE,
    "thread_id": envelope.as_uuid("sess-1"),
    "from": "eidolons-context-kernel@0.1.0",
    "to": "session-successor@n/a",
    "performative": "INFORM",
    "integrity_method": "sha256",
}


def test_the_event_of_a_trace() -> None:
    made = sent(Brief("t"), version="0.1.0")
    assert envelope.trace_event(made, "emit", NOW) == EVENT
    failed = envelope.trace_event(made, "verify_fail", NOW, "INTEGRITY_MISMATCH")
    assert failed == {**EVENT, "event": "verify_fail", "verify_failure_code": "INTEGRITY_MISMATCH"}
    unknown = envelope.trace_event({"from": [], "integrity": {"method": 1}}, "verify_fail", NOW, "SCHEMA_INVALID")
    assert (unknown["from"], unknown["thread_id"], unknown["integrity_method"]) == ("?@n/a", "?", "?")
