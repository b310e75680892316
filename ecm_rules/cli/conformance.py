"""`ecm-rules conformance KIND PATH…`: language-neutral vectors, for us and for anyone who ports a part."""

from __future__ import annotations

import glob
import os
from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import printable


def conformance(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="policy, lifecycle, handoff, manifest or envelope.")],
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files of vectors, or folders of them.")],
) -> None:
    """Run conformance vectors against the shipped tables. Exit 1 on a failure."""
    from ecm_rules.kernel.kinds import KINDS

    if kind not in KINDS:
        raise typer.BadParameter(f"unknown kind {kind!r}, known: {', '.join(KINDS)}", param_hint="KIND")
    vectors = KINDS[kind]
    passed = failed = 0
    with output.refusals():
        table = vectors.load()
    for path in _files(paths, vectors.ending):
        shown = printable(path)
        try:
            for result in vectors.run(table, path):
                passed += result.passed or result.contested
                failed += not (result.passed or result.contested)
                if not result.passed:
                    word = "contested" if result.contested else "failed"
                    told = f"given {result.given}; expected {result.expected}; seen {result.seen}"
                    print(f"{shown}: {printable(result.name)}: {word}: {told}")
        except (OSError, ValueError, RecursionError) as error:
            output.say(f"{shown}: {getattr(error, 'strerror', None) or error}")
            raise typer.Exit(output.UNREADABLE) from None
    print(f"{passed} passed, {failed} failed")
    if failed or not passed:
        raise typer.Exit(output.FINDINGS)


def _files(paths: list[str], ending: str) -> list[str]:
    """Every file that is meant: of a folder, those in it whose names end so."""
    found = []
    for path in paths:
        if not (ending and os.path.isdir(path)):
            found.append(path)
        elif inside := sorted(glob.glob(f"*{ending}", root_dir=path)):
            found += [os.path.join(path, name) for name in inside]
        else:
            output.say(f"{printable(path)}: found no file of vectors (*{ending})")
            raise typer.Exit(output.UNREADABLE)
    return found
