"""rules/hosts.yaml as the plain data that the runtime ring reads."""

from __future__ import annotations

from typing import Any

from ecm_rules.tables import expressions, reader, schemas, shipped
from ecm_rules.tables.findings import EcmError, Finding, in_order

FILE = "rules/hosts.yaml"


def load_hosts() -> dict[str, Any]:
    """{"hosts": {name: host as in the file, its payload paths as lists of keys}, "models": {prefix: window in tokens}}.

    Raises EcmError.
    """
    document = reader.load(shipped.path(FILE))
    shape = schemas.validate("hosts", document)
    findings: list[Finding] = document.findings + shape.findings
    if shape.root is None or findings:
        raise EcmError(in_order(findings))
    hosts = shape.root.value["hosts"].plain()
    for name, host in hosts.items():
        for key, text in host["payload"].items():
            place = shape.root.at(("hosts", name, "payload", key)).span
            try:
                host["payload"][key] = expressions.path(text)
            except expressions.Invalid as invalid:
                findings.append(document.source.finding("ECM309", place, invalid.message))
    if findings:
        raise EcmError(in_order(findings))
    return {"hosts": hosts, "models": {m["model"]: m["window"] for m in shape.root.value["models"].plain()}}
