"""Reading transcripts: a refresh after one turn on a long one beside a short one, a first reading beside json.loads."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import timing

from ecm_rules.kernel import transcripts
from ecm_rules.tables.hosts import load_hosts

ROOT = pathlib.Path(__file__).parent.parent
RECORDED = ROOT / "fixtures/transcripts/01_claude_small.jsonl"
METER = ".eidolons/.context/meter.json"
SIZES = {"100 kB": 10**5, "100 MB": 10**8}
TURN = 2  # records
# The kernel's own high-water mark: getrusage remembers that of the process which started this one.
PEAK = """
import json, re, sys
from ecm_rules.kernel import transcripts
known = json.load(sys.stdin)
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
before = peak()
assert transcripts.read(sys.argv[1], known).main.used
print((peak() - before) / 1024)
"""
KNOWN = load_hosts()


def grown(path: pathlib.Path, size: int) -> list[bytes]:
    """Write a recorded session again and again, each time under new ids, until it has `size` bytes. The last turn."""
    lines = [line + b"\n" for line in RECORDED.read_bytes().split(b"\n") if line]
    written, turn = 0, lines[-TURN:]
    with path.open("wb") as stream:
        number = 0
        while written < size:
            for line in lines:
                turn = [*turn[1 - TURN :], line.replace(b"msg_0", b"msg_%d_" % number)]
                stream.write(turn[-1])
                written += len(turn[-1])
                if written >= size:
                    break
            number += 1
    return turn


def refresh(path: pathlib.Path, folder: str, turn: list[bytes]) -> Callable[[], object]:
    def run() -> object:
        with path.open("ab") as stream:
            stream.writelines(turn)
        tally = transcripts.read(str(path), KNOWN, None, (folder, METER))
        assert not tally.partial
        return tally

    return run


def parsed(path: pathlib.Path) -> Callable[[], object]:
    def run() -> None:
        with path.open("rb") as lines:
            for line in lines:
                json.loads(line)

    return run


def memory(path: pathlib.Path) -> float:
    """Megabytes that a first reading takes at its peak, above the interpreter with its modules."""
    command = [sys.executable, "-c", PEAK, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, input=json.dumps(KNOWN))
    return float(done.stdout)


def main() -> int:
    options = timing.arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: pathlib.Path(folder) / f"{size}.jsonl" for name, size in SIZES.items()}
        turns = {name: grown(path, SIZES[name]) for name, path in paths.items()}
        short, long = (f"a refresh after one turn on {name}" for name in SIZES)
        contenders = {
            f"a refresh after one turn on {name}": refresh(path, folder, turns[name]) for name, path in paths.items()
        }
        found = timing.figures(timing.rounds(contenders, 50 if options.quick else 500), {long: short}, "ms", 1e3)
        once, loads = "a first reading of 100 MB", "json.loads over its lines"
        whole = {loads: parsed(paths["100 MB"]), once: lambda: transcripts.read(str(paths["100 MB"]), KNOWN)}
        found += timing.figures(timing.rounds(whole, 2 if options.quick else 7), {once: loads}, "ms", 1e3)
        found.append(
            {
                "name": "memory of a first reading of 100 MB, above the interpreter",
                "median": round(memory(paths["100 MB"]), 2),
                "unit": "MB",
                "beside": None,
                "ratio": None,
            }
        )
    timing.report("the meter", found, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
