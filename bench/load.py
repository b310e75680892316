"""The shipped tables from YAML to program, each in a fresh process, beside the bare C safe loader on the same files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import timing

from ecm_rules.tables import places

SCHEMAS = ("parts", "context-policy", "pins", "signals", "operations")
TABLES = ("roster/context-policy.yaml", "roster/pins.yaml", "rules/signals.yaml", "rules/operations.yaml")
FILES = [places.shipped(name) for name in (*TABLES, *(f"rules/schemas/{name}.yaml" for name in SCHEMAS))]
LOADER = f"import yaml\nfor path in {FILES!r}:\n    yaml.load(open(path, encoding='utf-8'), yaml.CSafeLoader)"


def process(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def main() -> int:
    options = timing.arguments(__doc__)
    bare, ours = "yaml.CSafeLoader", "load_policy().program"
    contenders = {
        "import yaml": process("import yaml"),
        bare: process(LOADER),
        "import of what load_policy needs": process("import ecm_rules.engine.policy"),
        ours: process("import ecm_rules; ecm_rules.load_policy(project=None).program"),
    }
    medians = timing.rounds(contenders, 10 if options.quick else 50)
    yardsticks = {name: bare for name in contenders if name != bare}
    timing.report("a cold load of the shipped tables", timing.figures(medians, yardsticks, "ms", 1e3), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
