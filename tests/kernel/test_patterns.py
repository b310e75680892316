"""Markers as regular expressions: linear time whatever they are, errors as data."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from ecm_rules.kernel.patterns import verify_pins

pytest.importorskip("re2")


def test_what_is_there_and_what_is_not() -> None:
    told = verify_pins(
        "budget: 42\na.b\n", [{"id": "a.b"}, {"id": "budget", "marker": r"budget: \d+"}, {"id": "x", "marker": "^zz"}]
    )
    assert told == {
        "survived": False,
        "pins": [{"id": "a.b", "present": True}, {"id": "budget", "present": True}, {"id": "x", "present": False}],
        "missing": ["x"],
    }
    assert verify_pins("", []) == {"survived": True, "pins": [], "missing": []}


def test_no_or_an_empty_marker_is_the_literal_id() -> None:
    pins: list[dict[str, str | None]] = [{"id": "a.b"}, {"id": "a.b", "marker": ""}, {"id": "a.b", "marker": None}]
    assert verify_pins("a.b", pins)["survived"]
    assert not verify_pins("axb", pins)["survived"]


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|a)*$", r"(a*)*b", r"(.*a){20}$", r"(a?){50}a{50}$", r"\b(\w+\s?)+!$"]
)
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    started = time.perf_counter()
    verify_pins("a" * 100_000 + "b", [{"id": "x", "marker": pattern}])
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "marker", ["(", "a{2000}", r"(\w)\1", "(?=a)", "[z-a]", "((a{100}){100}){100}", "x" * 1001, 7, ["a"], "\ud800("]
)
def test_what_is_no_pattern_is_an_error_beside_its_pin(marker: object, capfd: pytest.CaptureFixture[str]) -> None:
    told = verify_pins("a", [{"id": "bad", "marker": marker}, {"id": "good", "marker": "a"}])
    assert told["missing"] == ["bad"]
    assert told["pins"][0]["error"]
    assert told["pins"][1] == {"id": "good", "present": True}
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["\ud800a", "\0a", "\u2028a", "é" * 10 + "a"])
def test_any_text_can_be_looked_in(text: str) -> None:
    assert verify_pins(text, [{"id": "x", "marker": "a$"}])["survived"]


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['re2'] = None\n"
        "from ecm_rules.kernel.patterns import verify_pins\n"
        "try: verify_pins('', [])\n"
        "except ModuleNotFoundError as error: print(error.name, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "re2 verify_pins needs google-re2, which is not installed: pip install 'ecm-rules[mcp]'\n"
