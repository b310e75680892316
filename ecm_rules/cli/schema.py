"""`ecm-rules schema NAME`: the shape of a file as JSON Schema, for editors."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables import places
from ecm_rules.tables.findings import shown, suggest

# `parts` is what the others share, not the shape of a file.
NAMES = [stem for stem in places.stems("rules/schemas") if stem != "parts"]


def schema(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"What the file is: {', '.join(NAMES)}.")],
) -> None:
    """Print the JSON Schema (draft 7) of a kind of file, with which an editor completes and checks it."""
    from ecm_rules.tables import jsonschema

    if name not in NAMES:
        raise typer.BadParameter(f"found {shown(name)}, {suggest(name, NAMES)}", param_hint="NAME")
    with output.refusals():
        made = jsonschema.derive(name)
    print(json.dumps(made, allow_nan=False, indent=2, sort_keys=True))
