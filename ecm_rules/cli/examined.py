"""What `doctor` found, for people and as one document."""

from __future__ import annotations

from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from ecm_rules import __version__
from ecm_rules.cli import output
from ecm_rules.cli.reports import as_data as finding_data
from ecm_rules.hosts.installing.doctor import Diagnosis, Examined
from ecm_rules.tables.findings import printable

_METER = (
    "session_id",
    "zone",
    "utilization",
    "estimate_source",
    "basis",
    "window_tokens",
    "window_basis",
    "updated_at",
)


def as_data(found: Diagnosis) -> dict[str, Any]:
    """One document: version, digest, meter, hosts, findings, notes."""
    measured = {key: found.meter.get(key) for key in _METER} | {"age_seconds": found.age} if found.meter else None
    return {
        "version": __version__,
        "enabled": found.enabled,
        "digest": found.digest,
        "meter": measured,
        "hosts": [_host(host) for host in found.hosts],
        "findings": [finding_data(finding) for finding in found.findings],
        "notes": list(found.notes),
    }


def show(found: Diagnosis) -> None:
    """Print it: in colour on a terminal, plain in a pipe or with NO_COLOR; lines are never wrapped for a pipe."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for host in found.hosts:
        sound = host.wired == host.wanted and not (host.trial and host.trial.faults)
        line = Text("✓ " if sound else "✗ ", "green" if sound else "bold red").append(host.install.title, "bold")
        console.print(line.append(f" ({host.install.tier}, {host.install.channel})  ").append(_facts(host)))
    console.print(f"meter   {_meter(found)}")
    console.print(f"tables  {found.digest or 'do not load'}")
    if found.findings:
        console.print()
        output.show_findings(found.findings)
    for note in found.notes:
        console.print(Text(f"note: {printable(note)}", "dim"))


def _host(host: Examined) -> dict[str, Any]:
    told = host.install
    facts = {
        "host": told.host,
        "title": told.title,
        "tier": told.tier,
        "channel": told.channel,
        "features": told.features,
    }
    return {
        **facts,
        "wired": host.wired,
        "wanted": host.wanted,
        "hook": attrs.asdict(host.trial) if host.trial else None,
    }


def _facts(host: Examined) -> str:
    facts = [f"{host.wired} of {host.wanted} entries"]
    if host.trial:
        ended = "did not end" if host.trial.exit is None else f"exit {host.trial.exit}"
        answer = f", answers {host.trial.answer}" if host.trial.answer else ""
        facts.append(f"hook {host.trial.milliseconds:.0f} ms, {ended}{answer}")
    return " · ".join(facts)


def _meter(found: Diagnosis) -> str:
    if found.meter is None:
        return "none yet"
    share = found.meter.get("utilization")
    used = f" {share:.1%}" if isinstance(share, float | int) else ""
    age = "of unknown age" if found.age is None else f"{_span(found.age)} old"
    rung = printable(f"{found.meter.get('basis')} ({found.meter.get('estimate_source')})")
    return f"{printable(str(found.meter.get('zone')))}{used}, {age}, from the {rung}"


def _span(seconds: float) -> str:
    """A time in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
