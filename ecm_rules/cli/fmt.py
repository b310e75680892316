"""`ecm-rules fmt`: tables in their canonical layout, written only where that changes them. docs/fmt.md."""

from __future__ import annotations

import difflib
import glob
import os
import stat
from collections.abc import Iterator
from typing import Annotated, Any

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.kernel import files
from ecm_rules.tables import places
from ecm_rules.tables.findings import EcmError, printable

_DEFAULTS = ("roster/*.yaml", "rules/*.yaml", ".eidolons/ecm.yaml")
_FOREIGN = "eidolons.yaml"
_STDIN = "-"


@attrs.frozen
class _File:
    """What was read, under the name that it goes by. `mode` is None where there is no file to write to."""

    name: str
    data: bytes
    mode: int | None = None


def fmt(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help=f"Tables, or folders of them; - reads stdin. Default: {', '.join(_DEFAULTS)}.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing, show what would change, and exit 1 then.")
    ] = False,
) -> None:
    """Lay tables out as the shipped ones are, comments kept. Exit 1 on findings, 2 where it cannot read or write."""
    layout = _layout()
    outcomes = [_format(layout, path, check) for path in _meant(paths)]
    if not outcomes:
        output.say(f"found no table in {printable(', '.join(paths or _DEFAULTS))}")
        raise typer.Exit(output.UNREADABLE)
    raise typer.Exit(max(outcomes))


def _layout() -> Any:
    try:
        from ecm_rules.tables import layout
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("ruamel"):
            raise
        output.say("fmt needs ruamel.yaml, which is not installed: pip install 'ecm-rules[authoring]'")
        raise typer.Exit(output.UNREADABLE) from None
    return layout


def _meant(paths: list[str] | None) -> list[str]:
    """Every file that is meant, once: of a folder, the tables in it."""
    if not paths:
        return [path for pattern in _DEFAULTS for path in sorted(glob.glob(pattern))]
    found: dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            tables = sorted(glob.glob("*.yaml", root_dir=path))
            found.update((os.path.join(path, name), None) for name in tables if name != _FOREIGN)
        else:
            found[path] = None
    return list(found)


def _format(layout: Any, path: str, check: bool) -> int:
    """Format one file and say so; the exit code that it asks for."""
    try:
        file = _read(path)
        data = layout.canonical(file.data, file.name).encode()
        changed = data != file.data
        if changed and not check and file.mode is not None:
            files.replace(path, data, file.mode)
    except EcmError as error:
        output.say(str(error))
        return output.FINDINGS
    except OSError as error:
        output.say(f"{printable(path)}: {(error.strerror or str(error)).lower()}")
        return output.UNREADABLE
    if check:
        for line in _difference(file, data):
            print(line)
    elif file.mode is None:
        output.raw(data)
    elif changed:
        print(printable(path))
    return output.FINDINGS if check and changed else 0


def _read(path: str) -> _File:
    """Raises OSError where there is nothing that may be formatted."""
    if path == _STDIN:
        return _File("stdin", output.standard_input())
    if os.path.basename(path) == _FOREIGN:
        raise OSError("this file belongs to the nexus; what is not ours to read strictly is not ours to lay out")
    if os.path.islink(path):
        raise OSError("a symbolic link; name the file that it leads to")
    with places.open_regular(path) as stream:
        return _File(path, stream.read(files.MAX_BYTES + 1), stat.S_IMODE(os.fstat(stream.fileno()).st_mode))


def _difference(file: _File, data: bytes) -> Iterator[str]:
    """A unified diff in which what cannot be printed is seen, such as the one of two line ends that goes."""
    was, now = (text.decode().split("\n") for text in (file.data, data))
    name = printable(file.name)
    return map(printable, difflib.unified_diff(was, now, name, name, lineterm=""))
