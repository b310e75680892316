"""What a pin says, from where its table says it comes. ECM §"Pin set — what survives every lossy operation".

Nothing is raised: a source that gives nothing has a reason. No text of a tool comes through here: a file of the state
is not read, a document that says of itself that it has such content neither, and a text with a declaration is no pin.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from typing import Any

from ecm_rules.engine.program import Unreadable
from ecm_rules.kernel import excerpts, pins, project_files
from ecm_rules.kernel.files import MAX_BYTES
from ecm_rules.tables import expressions, reader
from ecm_rules.tables.models import Pin
from ecm_rules.tables.pins import PARTS, format_of, is_below

Source = Mapping[str, Any]
Meter = dict[str, Any] | Unreadable | None


class Unresolved(Exception):
    """A source gives nothing: the reason."""


def resolve(pin: Pin, project: str, meter: Meter) -> dict[str, Any]:
    """A pin as `kernel.pins` takes it: `id`, `why`, `marker`, `origin`, the `text` and what it comes `from`.

    project: the folder that files are below. meter: as `kernel.meter.load` gives it. Where no source gives a text,
    `text` and `from` are None and `reason` says why.
    """
    found: dict[str, Any] = {"id": pin.id, "why": pin.why, "marker": pin.marker, "origin": pin.origin}
    reasons: list[str] = []
    for source in pin.sources:
        try:
            text, where = _read(source, pin.id, project, meter)
            return {**found, "text": _checked(text), "from": where, "reason": ""}
        except Unresolved as reason:
            reasons.append(str(reason))
        except RecursionError:
            reasons.append("nesting too deep to read")
    told = "; ".join(dict.fromkeys(reasons)) or "it has no source"
    return {**found, "text": None, "from": None, "reason": told}


def _read(source: Source, pin_id: str, project: str, meter: Meter) -> tuple[str, str]:
    if "literal" in source:
        return source["literal"], "literal"
    if "meter" in source:
        return _measured(source["meter"], meter), "meter"
    paths = source.get("file", [])
    reasons: list[str] = []
    for path in [paths] if isinstance(paths, str) else paths:
        try:
            return _of_pattern(source, pin_id, project, path)
        except Unresolved as reason:
            reasons.append(f"{path}: {reason}")
    raise Unresolved("; ".join(reasons) or "it names no file")


def _measured(template: str, meter: Meter) -> str:
    if isinstance(meter, Unreadable):
        raise Unresolved(f"the meter: {meter.reason}")
    if meter is None:
        raise Unresolved("there is no meter")
    text = excerpts.fill(template, meter)
    if text is None:
        raise Unresolved("the meter has none of these values")
    return text


def _of_pattern(source: Source, pin_id: str, project: str, pattern: str) -> tuple[str, str]:
    """The parts of all files that a pattern names, each behind its name where there are several; and where they are."""
    if not is_below(pattern):
        raise Unresolved("leads out of the project")
    try:
        paths = project_files.matches(project, pattern)
    except OSError as error:
        raise Unresolved(_said(error)) from None
    parts: list[tuple[str, str]] = []
    reasons: list[str] = []
    for path in paths:
        try:
            parts.append((path, _of_file(source, pin_id, project, path)))
        except Unresolved as reason:
            reasons.append(str(reason))
    if not parts:
        raise Unresolved(reasons[0] if reasons else "no such file")
    named = pattern != parts[0][0] and "template" not in source
    text = ("\n\n" if named else "\n").join(f"{path}:\n\n{part}" if named else part for path, part in parts)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Unresolved(f"more than {MAX_BYTES} bytes together")
    return text, ", ".join(path + _part(source) for path, _ in parts)


def _of_file(source: Source, pin_id: str, project: str, path: str) -> str:
    try:
        data = project_files.read(project, path)
    except OSError as error:
        raise Unresolved(_said(error)) from None
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        raise Unresolved("no UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    form = format_of(path, source.get("format", ""))
    if form and ("value" in source or "template" in source or isinstance(source.get("sha256"), str)):
        return _of_document(source, _parsed(text, form, path), path, data)
    part = _taken(source, pin_id, text).strip("\n")
    if not part.strip():
        raise Unresolved("there is nothing in it")
    taken = "columns" in source or any(key in source for key in PARTS)
    digest = _sha256(part.encode() if taken else data) if source.get("sha256") else None
    if "template" in source:
        return _filled(source["template"], {"text": part, "file": path, "sha256": digest})
    return f"{path}: SHA-256 {digest}" if digest else part


def _taken(source: Source, pin_id: str, text: str) -> str:
    part: str | None = text
    if "section" in source:
        part, missing = excerpts.section(text, source["section"]), f"no section `{source['section']}`"
    elif "between" in source:
        part, missing = excerpts.between(text, *source["between"]), f"no lines `{'` and `'.join(source['between'])}`"
    elif "block" in source:
        part, missing = excerpts.block(text, pin_id), f"no block `{pin_id}`"
    else:
        missing = ""
    if part is not None and "columns" in source:
        part, missing = excerpts.columns(part, source["columns"]), f"no table with {', '.join(source['columns'])}"
    if part is None:
        raise Unresolved(missing)
    return part


def _of_document(source: Source, document: Any, path: str, data: bytes) -> str:
    if isinstance(document, Mapping) and document.get("contains_tool_origin") is True:
        raise Unresolved("it has content that came from a tool")
    value = _search(source["value"], document) if "value" in source else document
    if value is None:
        raise Unresolved(f"no value `{source['value']}`" if "value" in source else "there is nothing in it")
    hashed = source.get("sha256")
    known: dict[str, Any] = {**value} if isinstance(value, Mapping) else {"value": value}
    if isinstance(hashed, str):
        criteria = _search(hashed, value)
        known["sha256"] = None if criteria is None else _sha256(_canonical(criteria))
    elif hashed:
        known["sha256"] = _sha256(data)
    if "template" in source:
        return _filled(source["template"], {"file": path, **known})
    if hashed:
        return f"{path}: SHA-256 {excerpts.plain(known['sha256'])}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _filled(template: str, known: Mapping[str, Any]) -> str:
    text = excerpts.fill(template, known)
    if text is None:
        raise Unresolved("none of the values that the text needs")
    return text


def _parsed(text: str, form: str, path: str) -> Any:
    """A document as plain data. Raises Unresolved where it is none, or one that could be read in two ways."""
    try:
        if form == "json":
            return json.loads(text, object_pairs_hook=_once)
        if form == "toml":
            return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unresolved(f"no {form.upper()} that can be read: {_first_line(error)}") from None
    document = reader.read(text, path)
    # How versions of YAML read a scalar is nothing here: it is taken as it is written.
    wrong = [finding for finding in document.findings if finding.code != "ECM106"]
    if wrong or document.root is None:
        raise Unresolved(f"no YAML that can be read: {wrong[0].message if wrong else 'there is nothing in it'}")
    return document.root.plain()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _search(expression: str, document: Any) -> Any:
    try:
        return expressions.fold(expression, document)
    except expressions.Invalid as invalid:
        raise Unresolved(invalid.message) from None


def _checked(text: str) -> str:
    """The text, where it can be a pin's. RULINGS ECM 16."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip():
        raise Unresolved("there is nothing in it")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise Unresolved("the text holds half of a character")
    if pins.declares(text):
        raise Unresolved("the text holds a declaration, which no pin may")
    return text


def _part(source: Source) -> str:
    """Which part of a file a source takes, for people."""
    if "section" in source:
        return f" § {source['section']}"
    if "between" in source:
        return f" from `{source['between'][0]}`"
    return f" at `{source['value']}`" if "value" in source else ""


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str).encode(
        "utf-8", "surrogatepass"
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or error.__class__.__name__


def _said(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return (error.strerror or str(error)).lower()
