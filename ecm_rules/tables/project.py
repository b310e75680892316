"""A project's layer: `context:` in eidolons.yaml, and .eidolons/ecm.yaml. It lowers and appends, nothing else."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.tables import pins as pin_tables
from ecm_rules.tables import reader, schemas
from ecm_rules.tables.findings import Finding, Source, Span
from ecm_rules.tables.models import Pin
from ecm_rules.tables.reader import Node

FILES = ("eidolons.yaml", ".eidolons/ecm.yaml")
SHIPPED = "shipped"
# Bands narrower than this could be crossed by the error of an estimate.
NARROWEST = 0.10
_SLACK = 1e-9


@attrs.frozen
class Project:
    """What a project says, or nothing. `context` is None where it has no `context:` block."""

    context: Node | None = None
    source: Source | None = None
    extra: Node | None = None
    extra_source: Source | None = None
    broken: frozenset[str] = frozenset()
    """Keys of the `context:` block in which something was refused."""

    @property
    def enabled(self) -> bool:
        """Whether the project opted in."""
        return self.context is not None and self.setting("enabled") is not False

    @property
    def budget_tokens(self) -> int | None:
        """The budget in tokens; zero or less is none."""
        budget = self.setting("budget_tokens") if self.enabled else None
        return budget if budget is not None and budget > 0 else None

    @property
    def window_tokens(self) -> int | None:
        """The window in tokens, where the project says it."""
        node = self.extra.get("window_tokens") if self.extra is not None else None
        return node.plain() if node is not None else None

    @property
    def context_sources(self) -> tuple[str, ...]:
        """Files, relative to the project, whose blocks every request is to keep. ACLP V1 §"Named blocks"."""
        node = self.extra.get("context_sources") if self.extra is not None else None
        return tuple(node.plain()) if node is not None else ()

    def setting(self, key: str) -> Any:
        node = self.context.get(key) if self.context is not None else None
        return node.plain() if node is not None else None


def read(folder: str | None) -> tuple[Project, list[Finding]]:
    """The project in `folder` (None: no project) and what is wrong with its files."""
    if folder is None:
        return Project(), []
    path = os.path.join(folder, FILES[0])
    if not os.path.lexists(path):
        return Project(), []
    document = reader.load(path, only="context")
    shape = schemas.validate("project-context", document)
    findings = document.findings + shape.findings
    project = Project(shape.root, document.source, broken=shape.broken)
    path = os.path.join(folder, FILES[1])
    if project.enabled and os.path.lexists(path):
        document = reader.load(path)
        shape = schemas.validate("project-ecm", document)
        findings += document.findings + shape.findings + _outside(shape.root, document.source)
        project = attrs.evolve(project, extra=shape.root, extra_source=document.source)
    return project, findings


def _outside(root: Node | None, source: Source) -> list[Finding]:
    listed = root.get("context_sources") if root is not None else None
    message = "found a path that leaves the project, expected one relative to it"
    outside = (node for node in (listed.value if listed is not None else ()) if not pin_tables.is_below(node.value))
    return [source.finding("ECM204", node.span, message) for node in outside]


def lower(
    project: Project, document: Mapping[str, Any], check_bands: bool = True
) -> tuple[dict[str, Any], list[Finding]]:
    """The table's document with the project's thresholds and cap in it, and what was raised or misplaced."""
    findings: list[Finding] = []
    merged = {**document, "zones": dict(document["zones"]), "limits": dict(document["limits"])}
    if not project.enabled or project.context is None or project.source is None:
        return merged, findings
    given = project.context.value
    if "thresholds" in given:
        thresholds = given["thresholds"]
        for zone, node in thresholds.value.items():
            _lower(project.source, zone, node, merged["zones"], findings)
        if check_bands and not findings and "thresholds" not in project.broken:
            findings += bands(project.source, thresholds.span, merged["zones"], thresholds)
    if "compaction_depth_cap" in given:
        _lower(project.source, "compaction_depth_cap", given["compaction_depth_cap"], merged["limits"], findings)
    return merged, findings


def bands(
    source: Source, place: Span, zones: Mapping[str, float], node: Node | None = None, own: bool = False
) -> list[Finding]:
    """Findings where the zones are out of order, or a band is narrower than the error of an estimate. own: the zones
    are a policy's, which may raise them, not a project's.
    """
    findings = []
    for below, zone in itertools.pairwise(schemas.schema("context-policy")["zones"]["schema"]):
        if zones[zone] - zones[below] < NARROWEST - _SLACK:
            at = next((node.value[z].span for z in (zone, below) if node is not None and z in node.value), place)
            message = f"found {below} at {zones[below]} and {zone} at {zones[zone]}, expected {NARROWEST} between them"
            help = f"lower `{below}`, or raise `{zone}`" if own else f"lower `{below}`, or leave `{zone}` as it is"
            findings.append(source.finding("ECM402", at, message, help))
    return findings


def pins(project: Project, shipped: tuple[Pin, ...], rules: pin_tables.Rules) -> tuple[tuple[Pin, ...], list[Finding]]:
    """The shipped pins with the project's behind them; a pin that is there already cannot be defined anew."""
    findings: list[Finding] = []
    merged = {pin.id: pin for pin in shipped}

    def append(source: Source, place: Span, pin: Pin) -> None:
        if pin.id in merged:
            known = "is shipped" if merged[pin.id].origin == SHIPPED else f"{merged[pin.id].origin} has"
            message = f"found the pin `{pin.id}`, which {known} already"
            findings.append(source.finding("ECM403", place, message, "remove it, or give it an id of its own"))
        merged.setdefault(pin.id, pin)

    extra = project.context.get("pins_extra") if project.enabled and project.context is not None else None
    if extra is not None and project.source is not None:
        for node in extra.value:
            # An id alone redefines nothing: to name a pin again is no harm.
            merged.setdefault(node.value, rules.named(node.value, "a pin of this project", FILES[0]))
    if project.extra is not None and project.extra_source is not None and "pins" in project.extra.value:
        listed, wrong = pin_tables.read(project.extra_source, project.extra, FILES[1], rules)
        findings += wrong
        for pin, node in listed:
            append(project.extra_source, node.value["id"].span, pin)
    return tuple(merged.values()), findings


def _lower(source: Source, key: str, node: Node, target: dict[str, Any], findings: list[Finding]) -> None:
    if node.value > target[key]:
        message = f"found {key} at {node.value}, expected at most {target[key]}, what the policy says"
        findings.append(
            source.finding(
                "ECM401",
                node.span,
                message,
                "a project lowers and never raises; remove the line to keep what the policy says",
            )
        )
    else:
        target[key] = node.value
