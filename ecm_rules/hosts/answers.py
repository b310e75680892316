"""What a client takes as an answer of its hook. Part of the runtime ring.

Where the text goes, how much of it a client takes whole and what it does to it is data: `channels` in rules/hosts.yaml.
"""

import json

from ecm_rules.kernel.lookup import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Channel = Mapping[str, Any]

TEXT = "text"
MESSAGES = "messages"


def compose(channel: "Channel", payload: "dict[str, Any]", given: "Mapping[str, Any]") -> bytes:
    """The answer by a channel: one JSON document, or a plain text where the channel has no place for one.

    given: `text` or `messages`. What a template names besides is looked up in the payload, as it came.
    """
    if not channel["put"]:
        return (str(given[TEXT]) + "\n").encode("utf-8", "replace")
    document: "dict[str, Any]" = {}
    for path, template in channel["put"]:
        inner = document
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = _filled(template, payload, given)
    return json.dumps(document).encode("ascii")


def room(channel: "Channel", text: str) -> "float":
    """How much more than this text a channel takes whole, in bytes; negative where the text is too long."""
    if channel["most"] is None:
        return float("inf")
    size = len(text) if channel["unit"] == "characters" else len(text.encode("utf-8", "replace"))
    left: "float" = channel["most"] - size
    return left


def _filled(template: str, payload: "dict[str, Any]", given: "Mapping[str, Any]") -> "Any":
    if not (template.startswith("{") and template.endswith("}")):
        return template
    name = template[1:-1]
    return given[name] if name in given else find(payload, name.split("."))
