"""Lifetimes beside the cheapest that could be done with the same text: counting, splitting, one pass over a history.

Exit 1 where a ratio is above its bound.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import timing

from ecm_rules.lifecycle import Session, load_trust, parse

SIZE = 5_000_000
PARAGRAPH = ("word " * 15 + "\n") * 26  # about 2 kB
BLOCK = "<!--BLOCK_ID:a-->\nA\n<!--/BLOCK_ID:a-->\n"
MESSAGES = 10_000
BOUNDS = {"comments: parse": 3.0, "blocks: parse": 1.5, "a request": 2.0, "a request, 1 in 100 ephemeral": 2.0}


def comments() -> str:
    return ((PARAGRAPH + "<!-- an ordinary comment -->\n") * (SIZE // len(PARAGRAPH) + 1))[:SIZE]


def blocks() -> str:
    count = SIZE // len(PARAGRAPH) + 1
    found = (f"{PARAGRAPH}<!--BLOCK_ID:b{n}-->\none rule\n<!--/BLOCK_ID:b{n}-->\n" for n in range(count))
    return "".join(found)[:SIZE]


def history(count: int, every: int = 0) -> list[dict[str, Any]]:
    """Messages of 1 kB, each text a string of its own; one of so many is ephemeral."""
    found = []
    for n in range(count):
        mark = "<!--ephemeral-->\n" if every and n % every == 1 else ""
        text = (f"{mark}message {n} " + "lorem ipsum " * 90)[:1000]
        role = ("user", "assistant", "tool")[n % 3]
        found.append({"role": role, "content": text, **({"tool_call_id": f"c{n}"} if role == "tool" else {})})
    return found


def one_pass(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        "<!--" in message["content"]  # noqa: B015  the pass itself is what is timed


def session(messages: list[dict[str, Any]]) -> Session:
    """A session with a block, after its first request."""
    found = Session(load_trust(project=None))
    found.load_source(BLOCK, "rules.md")
    found.view(messages)
    return found


def held_by_session(count: int) -> int:
    """Bytes that a session holds beyond its history, after some requests."""
    messages = history(count)
    tracemalloc.start()
    kept = session(messages)
    kept.view(messages)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size


def main() -> int:
    options = timing.arguments(__doc__)
    plain, many, long, marked = comments(), blocks(), history(MESSAGES), history(MESSAGES, 100)
    known, consumed = session(long), session(marked)
    contenders = {
        "comments: count": lambda: plain.count("<!--"),
        "comments: parse": lambda: parse(plain, "doc.md"),
        "blocks: split": lambda: many.split("\n"),
        "blocks: parse": lambda: parse(many, "doc.md"),
        "one pass": lambda: one_pass(long),
        "a request": lambda: known.view(long),
        "a request, 1 in 100 ephemeral": lambda: consumed.view(marked),
    }
    yardsticks = {
        "comments: parse": "comments: count",
        "blocks: parse": "blocks: split",
        "a request": "one pass",
        "a request, 1 in 100 ephemeral": "one pass",
    }
    medians = timing.rounds(contenders, 9 if options.quick else 51)
    found = timing.figures(medians, yardsticks, "ms", 1e3)
    small, large = held_by_session(1_000), held_by_session(20_000)
    for name, size, beside in (("held, 1,000 messages", small, None), ("held, 20,000 messages", large, small)):
        ratio = round(size / beside, 3) if beside else None
        found.append(
            {"name": name, "median": size / 1e3, "unit": "kB", "beside": beside and "1,000 messages", "ratio": ratio}
        )
    timing.report("lifetimes", found, options.json)
    over = [name for name, bound in BOUNDS.items() if medians[name] > bound * medians[yardsticks[name]]]
    for name in over:
        print(f"{name} is above its bound of {BOUNDS[name]}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
