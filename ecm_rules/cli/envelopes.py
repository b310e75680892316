"""`ecm-rules verify-envelope`: the drop-in for `eidolons verify-envelope`, with its own exit codes: 0, 2 and 3."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ecm_rules.cli import output
from ecm_rules.tables.findings import clip, printable

BLOCKED = 3
MODES = ("warn", "block")
MODE_VARIABLE = "EIDOLONS_ECL_VERIFY_MODE"
KEY_VARIABLE = "ECL_HMAC_KEY"


def verify_envelope(
    envelope: Annotated[str, typer.Argument(metavar="ENVELOPE", help="The envelope's file.")],
    mode: Annotated[
        str | None,
        typer.Option("--mode", metavar="warn|block", help=f"Default: {MODE_VARIABLE}, else warn."),
    ] = None,
    block: Annotated[bool, typer.Option("--block", help="The same as --mode block.")] = False,
    key_file: Annotated[
        str | None,
        typer.Option("--key-file", metavar="FILE", help=f"The key of hmac-sha256. Default: {KEY_VARIABLE}."),
    ] = None,
    trace: Annotated[str | None, typer.Option("--trace", metavar="FILE", help="Append an event to this log.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Verify an envelope against its payload. Exit 2 where it is malformed, 3 where block mode refuses."""
    from ecm_rules.artifacts import verify
    from ecm_rules.kernel import envelopes

    chosen = MODES[1] if block else mode or _usual_mode()
    if chosen not in MODES:
        raise typer.BadParameter(f"found {chosen!r}, expected {' or '.join(MODES)}", param_hint="--mode")
    report = envelopes.verify_file(envelope, _key(key_file))
    if trace is not None:
        try:
            envelopes.trace(trace, report, chosen, envelope)
        except (OSError, ValueError) as error:
            output.say(f"not traced: {getattr(error, 'strerror', None) or error}")
    told = report.told(chosen, envelope)
    try:
        if as_json:
            output.document(told)
        else:
            for warning in report.warnings:
                output.say(f"ecl verify: {printable(warning)}")
            edge = f"{told['from']} → {told['to']} ({told['performative']})"
            output.say(f"ecl verify [{report.verdict}] {printable(clip(edge, 200))}: {printable(report.message)}")
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # the exit code is a verdict, too
        output.broken_output(error)
    if report.verdict == verify.MALFORMED:
        raise typer.Exit(output.UNREADABLE)
    if report.blocked(chosen):
        raise typer.Exit(BLOCKED)


def _usual_mode() -> str:
    """The mode of the environment. Whoever meant to set one may have meant to block: what is none blocks."""
    usual = os.environ.get(MODE_VARIABLE) or MODES[0]
    if usual in MODES:
        return usual
    told = printable(clip(usual, 100))
    output.say(f"{MODE_VARIABLE}: found {told!r}, expected {' or '.join(MODES)}; taken for {MODES[1]}")
    return MODES[1]


def _key(path: str | None) -> bytes | None:
    """The key, which never stands on the command line, where every process could read it."""
    from ecm_rules.kernel import envelopes

    if path is None:
        return os.environb.get(KEY_VARIABLE.encode("ascii")) or None
    try:
        return envelopes.read_key(path)
    except OSError as error:
        output.say(f"{printable(path)}: {error.strerror or error}")
        raise typer.Exit(output.UNREADABLE) from None
