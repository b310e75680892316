"""Lifetimes of messages and blocks: the Agent Context Lifecycle Protocol V1. docs/lifecycle.md.

```python
from ecm_rules.lifecycle import Session, load_trust
session = Session(load_trust())
session.load_source("<!--BLOCK_ID:plan-->\\nFirst the tests.\\n<!--/BLOCK_ID:plan-->\\n", "plan.md")
session.view(messages).messages
```

Names are resolved when they are first used: a hook imports the runtime's part alone.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ecm_rules.lifecycle.facade import load_trust
    from ecm_rules.lifecycle.findings import conflicts_of, findings_of
    from ecm_rules.lifecycle.grammar import Block, Document, parse
    from ecm_rules.lifecycle.oracle import check_pairs
    from ecm_rules.lifecycle.providers import SHAPES
    from ecm_rules.lifecycle.session import Session, View
    from ecm_rules.lifecycle.shapes import NEUTRAL, Shape
    from ecm_rules.lifecycle.sources import read_markdown
    from ecm_rules.lifecycle.trust import Source, Trust

__all__ = [
    "NEUTRAL",
    "SHAPES",
    "Block",
    "Document",
    "Session",
    "Shape",
    "Source",
    "Trust",
    "View",
    "check_pairs",
    "conflicts_of",
    "findings_of",
    "load_trust",
    "parse",
    "read_markdown",
]

_HOMES = {
    "NEUTRAL": "shapes",
    "SHAPES": "providers",
    "Block": "grammar",
    "Document": "grammar",
    "Session": "session",
    "Shape": "shapes",
    "Source": "trust",
    "Trust": "trust",
    "View": "session",
    "check_pairs": "oracle",
    "conflicts_of": "findings",
    "findings_of": "findings",
    "load_trust": "facade",
    "parse": "grammar",
    "read_markdown": "sources",
}


# Hidden from type checkers, which would otherwise take any name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
