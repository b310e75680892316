"""ecm-rules: decides from observable signals what a coding session does with its context window.

```python
from ecm_rules import load_policy
policy = load_policy()
policy.decide({"zone": "amber", "tool_result_share_est": 0.41}).operation
```

Names are resolved when they are first used: importing the package imports nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ecm_rules.engine.policy import Policy, RowTrace, TestTrace, load_policy, load_table, rezone
    from ecm_rules.engine.verdict import Degraded, Verdict
    from ecm_rules.tables.findings import EcmError, Finding

__version__ = "0.1.0"
__all__ = [
    "Degraded",
    "EcmError",
    "Finding",
    "Policy",
    "RowTrace",
    "TestTrace",
    "Verdict",
    "load_policy",
    "load_table",
    "rezone",
]

_HOMES = {
    "Degraded": "engine.verdict",
    "EcmError": "tables.findings",
    "Finding": "tables.findings",
    "Policy": "engine.policy",
    "RowTrace": "engine.policy",
    "TestTrace": "engine.policy",
    "Verdict": "engine.verdict",
    "load_policy": "engine.policy",
    "load_table": "engine.policy",
    "rezone": "engine.policy",
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
