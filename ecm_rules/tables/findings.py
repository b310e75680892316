"""What is wrong with a file, as data; and its plain rendering. docs/findings/."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from ecm_rules.tables.domains import ROLES

# An error fails a check, a warning fails a strict one, a note fails none.
ERROR = "error"
WARNING = "warning"
NOTE = "note"

# The title of each code's page in docs/findings/; a test keeps them equal and runs their examples.
CODES = {
    "ECM100": "the file cannot be read",
    "ECM101": "the text is not well-formed YAML, UTF-8, or within the limits of size and depth",
    "ECM102": "a key stands twice in one mapping",
    "ECM103": "an alias, an anchor or a merge key",
    "ECM104": "a tag or a directive",
    "ECM105": "a key that is not a string",
    "ECM106": "a plain scalar that YAML 1.1 and YAML 1.2 read differently",
    "ECM107": "a number that is not finite or out of range",
    "ECM108": "not exactly one document",
    "ECM109": "a text that cannot be laid out without loss",
    "ECM201": "an unknown key",
    "ECM202": "a missing key",
    "ECM203": "a value of the wrong type",
    "ECM204": "a value outside what is allowed",
    "ECM205": "an id that is not plain ASCII",
    "ECM206": "an id that stands twice in a file",
    "ECM301": "an unknown signal in a row",
    "ECM302": "an unknown suffix of a signal",
    "ECM303": "a suffix that does not fit the signal's type",
    "ECM304": "a value outside the signal's domain",
    "ECM305": "an empty list, which nothing can match",
    "ECM306": "a `ref` that does not resolve",
    "ECM307": "an unknown operation or step",
    "ECM308": "a catch-all row that is not the last",
    "ECM309": "an expression that is not valid",
    "ECM310": "steps that lead back to themselves, or are too many",
    "ECM401": "a project raises what it may only lower",
    "ECM402": "zone thresholds that are out of order or too close",
    "ECM403": "a project defines a pin or a row that is there already",
    "ECM404": "a project promotes what it does not name",
    "ECM405": "a project promotes a class where it may promote a source",
    "ECM406": "a pin of content that came from a tool",
    "ECM407": "a pin whose text holds a declaration",
    "ECM501": "what a policy embeds differs from the shipped vocabulary, which holds",
    "ECM601": "signals that no row holds for",
    "ECM602": "a row whose tests contradict each other",
    "ECM603": "a row that the rows before it cover",
    "ECM604": "a row without which the table decides the same",
    "ECM605": "a test that changes nothing",
    "ECM606": "rows whose order decides",
    "ECM607": "a threshold that repeats a limit instead of referring to it",
    "ECM608": "a worse signal that leads to a milder operation",
    "ECM609": "an operation that no row leads to",
    "ECM610": "an analysis that was not finished",
    "ECM611": "an invariant that does not hold",
    "ECM612": "an invariant whose assumption nothing can meet",
    "ECM613": "a project's row that promotes more than the sources that rows name",
    "ECM701": "a step that loses content before `externalize` is done",
    "ECM702": "a step without what must follow it",
    "ECM703": "a subagent that reaches an operation that starts a successor",
    "ECM801": "a comment that is nearly a tag",
    "ECM802": "a block that opens inside another",
    "ECM803": "a closing line with the id of another block",
    "ECM804": "a closing line without an opening line",
    "ECM805": "a block that opens twice in one file",
    "ECM806": "a block that is never closed",
    "ECM807": "a block that another source defines",
    "ECM811": "a tool call without a result",
    "ECM812": "a tool result without a call",
    "ECM813": "a tool call or a result that stands twice",
    "ECM814": "a tool result that does not stand where its call demands it",
    "ECM815": "a history that has another shape than it is read in",
    "ECM901": "a client's file, or one of the nexus, that is not well-formed",
    "ECM902": "a value of another kind where an entry of ours belongs",
    "ECM903": "a file that is not to be written",
    "ECM911": "what an installation should have and has not",
    "ECM912": "a hook that does not answer as its client expects",
    "ECM913": "a setting that somebody else holds",
    "ECM914": "a project that is not switched on",
}


@attrs.frozen
class Span:
    """A place in a file: 1-based line and column, and the column behind the last character on that line."""

    line: int
    column: int
    end_column: int


@attrs.frozen
class Witness:
    """A snapshot that shows what a finding says, as JSON, and the role in which it does."""

    snapshot: Mapping[str, Any]
    role: str

    def __str__(self) -> str:
        """The snapshot alone, so that it can be pasted."""
        return json.dumps(self.snapshot)

    @property
    def label(self) -> str:
        """`witness`, with the option that asks for its role."""
        return "witness" if self.role == ROLES[0] else f"witness (--{self.role})"


@attrs.frozen
class Fix:
    """A repair that is certain: `text` in the place of what stands at `span`."""

    span: Span
    text: str


@attrs.frozen
class Finding:
    """One finding. `line` and `column` are 1-based; 0 where the file as a whole is meant."""

    code: str
    file: str
    line: int
    column: int
    message: str
    help: str = ""
    severity: str = ERROR
    end_column: int = 0
    excerpt: str = ""
    witness: Witness | None = None
    fix: Fix | None = None

    @property
    def docs(self) -> str:
        """The page about its code."""
        return f"docs/findings/{self.code}.md"


class EcmError(ValueError):
    """Root of all that this package raises. `findings` says what is wrong, in file order."""

    findings: tuple[Finding, ...]

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        return render(self.findings)


@attrs.frozen
class Source:
    """A text and the name it goes by in findings."""

    file: str
    text: str
    lines: list[str] = attrs.field(init=False, repr=False, eq=False)

    @lines.default
    def _split(self) -> list[str]:
        return self.text.split("\n")

    def text_at(self, span: Span) -> str:
        """What stands at a place."""
        return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]

    def finding(
        self,
        code: str,
        span: Span,
        message: str,
        help: str = "",
        severity: str = ERROR,
        witness: Witness | None = None,
        fix: Fix | None = None,
    ) -> Finding:
        excerpt = self.lines[span.line - 1].rstrip("\r") if 0 < span.line <= len(self.lines) else ""
        place = span.line, span.column
        return Finding(code, self.file, *place, message, help, severity, span.end_column, excerpt, witness, fix)


def in_order(findings: Iterable[Finding], first: str = "") -> list[Finding]:
    """In file order, the file `first` before the others; each finding once."""
    unique = {(f.file, f.line, f.column, f.code, f.message): f for f in findings}
    files = list(dict.fromkeys([first, *(f.file for f in unique.values())]))
    return sorted(unique.values(), key=lambda f: (files.index(f.file), f.line, f.column, f.code))


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The one known name that is nearest to `name`, or none."""
    return difflib.get_close_matches(name[:100], list(known), n=1, cutoff=0.6)


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean …` for the nearest known name, else the list of the known ones."""
    names = [escape(k) for k in known]
    near = nearest(name, names)
    if near:
        return f"did you mean `{near[0]}`?"
    return "known: " + ", ".join(f"`{n}`" for n in names) if names else ""


def an(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def as_role(roles: Sequence[str]) -> str:
    """A clause that says in which role something is so; empty where it is so in every one."""
    return f", as {an(roles[0])}" if len(roles) < len(ROLES) else ""


def listed(names: Sequence[str], most: int = 5, word: str = "and") -> str:
    """`A`, `B` and 3 more."""
    marked = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(marked)} {word} {len(names) - most} more"
    return f" {word} ".join([", ".join(marked[:-1]), marked[-1]] if len(marked) > 1 else marked)


def shown(value: object) -> str:
    """A value of a table in words, short and printable."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str() if not value[:1].isalpha():
            return f'`"{clip(escape(value), 60)}"`'
        case _:
            return f"`{clip(escape(str(value)), 60)}`"


def escape(text: str) -> str:
    """Everything that is not printable ASCII as its code point, so that look-alikes and controls are seen."""
    return "".join(c if 32 <= ord(c) < 127 else f"\\u{{{ord(c):04X}}}" for c in text)


def printable(text: str) -> str:
    """Text of somebody else's, safe to show: controls and what reorders a line become code points."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):04X}}}" for c in text)


def clip(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def render(findings: Iterable[Finding]) -> str:
    """Plain text: one paragraph a finding, with the line and a caret under the offending text."""
    return "\n".join(_render(f) for f in findings)


def _render(finding: Finding) -> str:
    file = printable(finding.file)
    place = f"{file}:{finding.line}:{finding.column}" if finding.line else file
    lines = [f"{place}: {finding.severity} {finding.code}: {finding.message}"]
    if finding.excerpt:
        # A long line is shown around the place; what cannot be printed becomes one mark each, so that the caret fits.
        start = max(0, finding.column - 1 - 80)
        window = finding.excerpt[start : start + 160].replace("\t", " ")
        text = "".join(c if c.isprintable() else "�" for c in window)
        if start:
            text = "…" + text[1:]
        width = max(1, min(finding.end_column - finding.column, len(window) - (finding.column - 1 - start)))
        number = str(finding.line)
        lines.append(f"  {number} | {text}")
        lines.append(f"  {' ' * len(number)} | {' ' * (finding.column - 1 - start)}{'^' * width}")
    if finding.help:
        lines.append(f"  help: {finding.help}")
    if finding.witness:
        lines.append(f"  {finding.witness.label}: {finding.witness}")
    lines.append(f"  docs: {finding.docs}")
    return "\n".join(lines)
