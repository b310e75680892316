"""The meter: read from hostile files, composed from readings."""

from __future__ import annotations

import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecm_rules import Policy, load_table, rezone
from ecm_rules.engine import zones
from ecm_rules.engine.program import Unreadable
from ecm_rules.kernel import meter

UNREADABLE = {
    "empty": b"",
    "white space": b" \n\t",
    "truncated": b'{"zone": "critical"',
    "two documents": b'{"zone":"critical"}{"zone":"red"}',
    "an array": b'[{"zone":"critical"}]',
    "null": b"null",
    "a string": b'"critical"',
    "NaN": b'{"utilization": NaN}',
    "Infinity": b'{"utilization": -Infinity}',
    "a comment": b'{"zone":"critical"} # x',
    "latin-1": b'{"session_id":"caf\xe9"}',
    "utf-16": '{"zone":"critical"}'.encode("utf-16"),
    "NUL padding": b'{"zone":"critical"}' + b"\0" * 200,
    "deep nesting": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "over 1 MiB": b'{"pad":"' + b"x" * (1 << 20) + b'"}',
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_not_one_object_continues_and_says_so(data: bytes, policy: Policy) -> None:
    found = meter.parse(data)
    assert isinstance(found, Unreadable)
    verdict = policy.decide(found)
    assert (verdict.rule, [d.path for d in verdict.degraded]) == ("P7", ["meter"])
    assert verdict.degraded[0].reason == found.reason


def test_a_byte_order_mark_and_a_megabyte_are_read(policy: Policy) -> None:
    assert meter.parse(b'\xef\xbb\xbf{"zone":"critical"}') == {"zone": "critical"}
    big = meter.parse(b'{"zone":"critical","pad":"' + b"x" * 1_000_000 + b'"}')
    assert policy.decide(big).rule == "P2"


def test_a_number_of_60000_digits_hides_nothing(policy: Policy) -> None:
    found = meter.parse(b'{"zone":"critical","compaction_count":' + b"9" * 60_000 + b"}")
    verdict = policy.decide(found)
    assert (verdict.rule, [d.path for d in verdict.degraded]) == ("P2", ["compaction_count"])


@pytest.mark.parametrize("kind", ["missing", "dangling link"])
def test_an_absent_meter_is_no_fault(kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "meter.json"
    if kind == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    assert meter.load(str(path)) is None


@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "nul", "no permission"])
def test_what_is_no_readable_file_is_a_fault_and_is_not_waited_for(kind: str, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "meter.json")
    match kind:
        case "directory":
            os.mkdir(path)
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = "/dev/zero"
        case "nul":
            path = "a\0b"
        case "no permission":
            pathlib.Path(path).write_text("{}")
            os.chmod(path, 0)
            if os.access(path, os.R_OK):
                pytest.skip("root reads everything")
    assert isinstance(meter.load(path), Unreadable)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    meter.parse(data)


@pytest.mark.parametrize(
    ("utilization", "zone"),
    [
        (None, "unknown"),
        (0, "green"),
        (0.499999, "green"),
        (0.5, "amber"),
        (0.75, "red"),
        (0.9, "critical"),
        (1, "critical"),
    ],
)
def test_zones_are_inclusive_below(policy: Policy, utilization: float | None, zone: str) -> None:
    assert zones.zone(policy.program["zones"], utilization) == zone


def test_more_than_the_window_holds_is_unknown_never_critical(policy: Policy) -> None:
    made = meter.compose(policy.program, "s", 380_000, 200_000, "host", "client's reading")
    assert (made["zone"], made["utilization"], made["estimate_source"]) == ("unknown", None, "unknown")
    assert made["used_tokens_est"] is None
    assert made["basis"] == "contradiction: 380,000 tokens used, 200,000 tokens in the window"
    assert policy.decide(made).rule == "P7"


def test_an_unknown_window_is_an_unknown_zone(policy: Policy) -> None:
    made = meter.compose(policy.program, "s", 380_000, None, "host", "usage record")
    assert (made["zone"], made["used_tokens_est"]) == ("unknown", 380_000)
    assert made["basis"] == "usage record; window unknown"


def test_a_zone_is_that_of_the_number_that_is_written(policy: Policy) -> None:
    made = meter.compose(policy.program, "s", 4_999_998, 10_000_000, "host", "usage record")
    assert (made["utilization"], made["zone"]) == (0.5, "amber")


@pytest.mark.parametrize(
    ("utilization", "told"),
    [
        (0.5, "amber"),
        (0.49, "green"),
        (1, "critical"),
        (1.2, "unknown"),
        (True, "unknown"),
        (None, "unknown"),
        ("0.5", "unknown"),
    ],
)
def test_a_logged_utilization_has_the_zone_of_a_policys_own_thresholds(
    policy: Policy, utilization: object, told: str
) -> None:
    assert rezone({"utilization": utilization, "zone": "red"}, policy) == told


def test_a_table_without_a_zone_gives_none(policy: Policy) -> None:
    assert rezone({"utilization": 0.99}, load_table("lateral-signals", project=None)) == "unknown"
    assert rezone([], policy) == rezone(None, policy) == rezone({}, policy) == "unknown"
