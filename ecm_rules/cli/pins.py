"""`ecm-rules pins`: what must survive every lossy step, whether it did, and putting it back. docs/pins.md."""

from __future__ import annotations

import os
import stat
import sys
from typing import Annotated, Any, NoReturn

import attrs
import typer

from ecm_rules.cli import output
from ecm_rules.kernel import files, window_text
from ecm_rules.tables import places
from ecm_rules.tables.findings import clip, printable

_STDIN = "-"
_MOST = 10**12
_PROJECT = Annotated[str, typer.Option("--project", metavar="DIR", help="The project's folder.")]
_JSON = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_ARTIFACT = Annotated[str, typer.Argument(metavar="ARTIFACT", help="A text, or a transcript; - reads stdin.")]

app = typer.Typer(help="What survives every lossy step: list, render, verify, repair.", no_args_is_help=True)


@app.command("list")
def list_pins(project: _PROJECT = ".", as_json: _JSON = False) -> None:
    """List the pins with where their texts come from, and what could not be resolved."""
    from ecm_rules.kernel import pins

    pinned = _pinned(project)
    sizes = {pin["id"]: pins.render([pin]).size / pinned.bytes_per_token for pin in pinned.pins}
    if as_json:
        told = [{**pin, "resolved": pin["text"] is not None, "tokens": _up(sizes[pin["id"]])} for pin in pinned.pins]
        output.document({"pins": told, "unresolved": [pin["id"] for pin in pinned.unresolved]})
        return
    width = max(len(pin["id"]) for pin in pinned.pins)
    for pin in pinned.pins:
        where = pin["from"] if pin["text"] is not None else f"not resolved: {pin['reason']}"
        print(f"{pin['id']:{width}}  {_up(sizes[pin['id']]):>6,} tokens  {_short(where)}")


@app.command()
def render(
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=0, max=_MOST, metavar="TOKENS", help="What the blocks may take. Default: the table's limit."
        ),
    ] = None,
    project: _PROJECT = ".",
    as_json: _JSON = False,
) -> None:
    """Print the pins as blocks, each whole or left out, within a budget."""
    from ecm_rules.kernel import pins

    pinned = _pinned(project)
    most = pinned.budget if budget is None else budget
    made = pins.render(pinned.pins, most, pinned.bytes_per_token)
    if as_json:
        output.document(
            {
                "text": made.text,
                "tokens": _up(made.size / pinned.bytes_per_token),
                "budget": most,
                "rendered": made.ids,
                "left_out": made.left_out,
                "unresolved": _reasons(pinned),
            }
        )
        return
    output.raw(made.text.encode("utf-8"))
    if made.left_out:
        output.say(f"left out, for want of room in {most:g} tokens: {', '.join(made.left_out)}")
    _say_unresolved(pinned)


@app.command()
def verify(artifact: _ARTIFACT, project: _PROJECT = ".", as_json: _JSON = False) -> None:
    """Look for the marker of each pin. Exit 1 where one is missing or its block damaged, 2 on what cannot be read."""
    from ecm_rules.kernel import pins

    pinned = _pinned(project)
    states = pins.probe(_read(artifact).artifact.text, pinned.pins)
    missing = [pin for pin, state in states.items() if state != pins.PRESENT]
    if as_json:
        told = [
            {
                "id": pin["id"],
                "marker": pins.marker(pin),
                "present": pin["id"] not in missing,
                "state": states[pin["id"]],
            }
            for pin in pinned.pins
        ]
        output.document({"survived": not missing, "pins": told, "missing": missing})
    else:
        for pin in missing:
            print(f"{pin}: {states[pin]}")
        print(f"{len(states) - len(missing)} of {len(states)} pins present")
    if missing:
        raise typer.Exit(output.FINDINGS)


@app.command()
def repair(artifact: _ARTIFACT, project: _PROJECT = ".", as_json: _JSON = False) -> None:
    """Put back what is missing: a damaged block in its place, the others at the end. Exit 2 on what cannot be read."""
    from ecm_rules.kernel import pins

    pinned = _pinned(project)
    file = _read(artifact)
    if file.artifact.transcript:
        _refuse(artifact, "a transcript, which belongs to its client; inject what `ecm-rules pins render` prints")
    text, replaced, appended = pins.repair(file.artifact.text, pinned.pins)
    data = file.artifact.bytes(text)
    written = data != file.data and file.status is not None
    if written and file.status is not None:
        try:
            # Whoever wrote to it meanwhile is not to lose that.
            if _version(os.stat(artifact)) != _version(file.status):
                _refuse(artifact, "changed while it was repaired; run it again")
            files.replace(artifact, data, stat.S_IMODE(file.status.st_mode))
        except OSError as error:
            _refuse(artifact, _said(error))
    if as_json:
        told = {"replaced": replaced, "appended": appended, "written": written, "unresolved": _reasons(pinned)}
        output.document({**told, "text": text} if artifact == _STDIN else told)
        return
    if artifact == _STDIN:
        output.raw(data)
    else:
        for word, ids in (("replaced", replaced), ("appended", appended)):
            for pin in ids:
                print(f"{pin}: {word}")
    _say_unresolved(pinned)


@attrs.frozen
class _File:
    """What was read. `status` is None where there is no file to write to."""

    data: bytes
    artifact: window_text.Artifact
    status: os.stat_result | None = None


def _read(path: str) -> _File:
    try:
        if path == _STDIN:
            data, status = sys.stdin.buffer.read(window_text.MAX_BYTES + 1) if sys.stdin is not None else b"", None
        else:
            with places.open_regular(path) as stream:
                status = os.fstat(stream.fileno())
                data = stream.read(window_text.MAX_BYTES + 1)
        if len(data) > window_text.MAX_BYTES:
            _refuse(path, f"more than {window_text.MAX_BYTES} bytes")
        return _File(data, window_text.read(data), status)
    except OSError as error:
        _refuse(path, _said(error))
    except window_text.NoText as error:
        _refuse(path, str(error))


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _pinned(project: str) -> Any:
    from ecm_rules.kernel.pinned import load_pins

    with output.refusals(project):
        return load_pins(project)


def _refuse(path: str, reason: str) -> NoReturn:
    output.say(f"{printable(path)}: {reason}")
    raise typer.Exit(output.UNREADABLE)


def _reasons(pinned: Any) -> list[dict[str, str]]:
    return [{"id": pin["id"], "reason": pin["reason"]} for pin in pinned.unresolved]


def _say_unresolved(pinned: Any) -> None:
    for pin in pinned.unresolved:
        output.say(f"{pin['id']}: not resolved: {_short(pin['reason'])}")


def _short(text: str) -> str:
    return clip(printable(text), 200)


def _said(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _up(tokens: float) -> int:
    return int(-(-tokens // 1))
