"""What a table says, as immutable values. Built by `tables.load`, compiled by `engine.compile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ecm_rules.tables.findings import Finding, Source, Span

Constant = bool | int | float | str | tuple[int | float | str, ...]


@attrs.frozen
class Declared:
    """A field or a signal. `spec` is the program's form of it; the rest is what is known of it beside."""

    name: str
    spec: Mapping[str, Any]
    why: str = ""
    worse: str | tuple[str, ...] = ""
    """Which way it gets worse: `more`, `less`, or an enum's values from mild to bad. Empty: neither."""
    limit: str = ""
    """The limit that rows compare it with."""

    @property
    def type(self) -> str:
        return str(self.spec["type"])


@attrs.frozen
class Test:
    """One conjunct: `signal operator constant`, the places of its key and of its value. `ref` is the expression that
    the constant was folded from.
    """

    signal: str
    operator: str
    constant: Constant
    span: Span
    value_span: Span
    ref: str = ""

    __test__ = False  # not a test case of pytest's

    @property
    def condition(self) -> tuple[str, str, Constant]:
        """Signal, operator and constant, without its places."""
        return self.signal, self.operator, self.constant


@attrs.frozen
class Row:
    """A row: the conjunction of its tests leads to an operation. No tests: a catch-all."""

    id: str
    tests: tuple[Test, ...]
    operation: str
    span: Span
    """The place of its id."""
    operation_span: Span
    source: Source
    why: str = ""


@attrs.frozen
class Invariant:
    """What a table promises: wherever every test of `assume` holds, every test of `asserts` holds of the outcome."""

    id: str
    assume: tuple[Test, ...]
    asserts: tuple[Test, ...]
    source: Source
    span: Span
    why: str = ""


@attrs.frozen
class Step:
    name: str
    surface: str
    lossy: bool = False
    degrades_to: str = ""
    why: str = ""
    followed_by: tuple[str, ...] = ()
    """Steps that must come later in every operation that has this one."""
    successor: bool = False
    """Whether it prepares a session that succeeds this one."""
    repeats: bool = False
    """Whether it is told again as long as the state lasts that demanded its operation."""
    notice: str = ""
    """What the model or the user is told, where the step is a notice or one takes its place."""


@attrs.frozen
class Operation:
    """An operation. `listed` is as written, `steps` expanded: every entry is a step, none an operation."""

    name: str
    listed: tuple[str, ...]
    steps: tuple[str, ...]
    span: Span
    """The place of its name."""
    why: str = ""
    severity: int | None = None
    """Its place in the order from mild to severe; None where it has none."""
    notice: str = ""
    """What is told where it was carried out."""


@attrs.frozen
class Vocabulary:
    """What the rows of a table may test and order."""

    snapshot: str
    fields: tuple[Declared, ...]
    signals: tuple[Declared, ...]
    steps: tuple[Step, ...]
    operations: tuple[Operation, ...]
    source: Source
    """The file of the operations."""

    def declared(self) -> dict[str, Declared]:
        return {d.name: d for d in (*self.fields, *self.signals)}


@attrs.frozen
class Pin:
    """A text that survives every lossy step, by its id. `marker` is what a probe looks for."""

    id: str
    why: str
    marker: str
    origin: str
    """`shipped`, or the project's file that appended it."""
    sources: tuple[Mapping[str, Any], ...] = ()
    """Where its text comes from, in order, as the file says it. docs/pins.md."""


@attrs.frozen
class Extension:
    """What a project may append to a table: rows under a key of its own file, in front of the table's last one."""

    appends: str
    """The key."""
    promotes: str
    """The operation that widens what the table grants."""
    names: str
    """The field of which a row that promotes tests one value."""
    classes: tuple[str, ...]
    """How values begin that name many at once."""


@attrs.frozen
class Table:
    """A decision table with its project's layer applied: all that `engine.compile` needs, and where it stands."""

    version: str
    source: Source
    span: Span
    """The place of the key `rules`."""
    vocabulary: Vocabulary
    rows: tuple[Row, ...]
    extension: Extension | None
    invariants: tuple[Invariant, ...]
    remap: Mapping[str, Mapping[str, str]]
    zones: Mapping[str, float]
    limits: Mapping[str, int | float]
    unlowered: Mapping[str, int | float]
    """The limits before the project's layer."""
    pins: tuple[Pin, ...]
    audit: Mapping[str, str]
    budget_tokens: int | None
    window_tokens: int | None
    context_sources: tuple[str, ...]
    enabled: bool
    """Whether the project opted in with a `context:` block: its layer is applied, and effects are carried out."""
    notes: tuple[Finding, ...]

    @property
    def appended(self) -> tuple[Row, ...]:
        """The rows that stand in another file than the table's."""
        return tuple(row for row in self.rows if row.source != self.source)
