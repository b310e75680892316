"""rules/hosts.yaml as the plain data that the runtime ring reads."""

from __future__ import annotations

from typing import Any

from ecm_rules.tables import expressions, places, reader, schemas
from ecm_rules.tables.findings import EcmError, Finding, in_order, shown

FILE = "rules/hosts.yaml"


def load_hosts(path: str | None = None) -> dict[str, Any]:
    """{"hosts": {name: host as in the file, its payload paths as lists of keys}, "models": {prefix: window in tokens}}.

    Raises EcmError.
    """
    document = reader.load(path or places.shipped(FILE))
    shape = schemas.validate("hosts", document)
    findings: list[Finding] = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    source = document.source
    hosts = shape.root.value["hosts"].plain()
    for name, host in hosts.items():
        for key, text in host["payload"].items():
            place = shape.root.at(("hosts", name, "payload", key)).span
            try:
                host["payload"][key] = keys = expressions.path(text)
            except expressions.Invalid as invalid:
                findings.append(source.finding("ECM309", place, invalid.message))
            else:
                if keys is None:
                    message = "found an expression, expected a path of keys, which is all that the hook can follow"
                    findings.append(source.finding("ECM309", place, message))
    windows: dict[str, int] = {}
    for node in shape.root.value["models"].value:
        model = node.value["model"]
        if model.value in windows:
            findings.append(source.finding("ECM206", model.span, f"found the model {shown(model.value)} twice"))
        windows[model.value] = node.value["window"].value
    if findings:
        raise EcmError(in_order(findings))
    return {"hosts": hosts, "models": windows}
