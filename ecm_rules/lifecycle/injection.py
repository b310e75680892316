"""Active blocks in a request. ACLP V1 §"Named blocks"; cache discipline C-1 to C-4 of ECM. Part of the runtime ring.

`last` puts them behind the history: the prefix that a provider has cached stays the same from request to request, and
blocks that come and go cost nothing but themselves. `first` and `system` put them in front, where they are cached too,
and each change of them costs the cache once.
"""

from ecm_rules.lifecycle import grammar
from ecm_rules.lifecycle.shapes import ASSISTANT, SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ecm_rules.lifecycle.session import View
    from ecm_rules.lifecycle.shapes import Shape

LAST = "last"
FIRST = "first"
PLACES = (LAST, FIRST, SYSTEM)


def render(blocks: "Iterable[Mapping[str, str]]") -> str:
    """Active blocks, each between its own tags and its body as it is."""
    return "".join(
        f"{grammar.opening(block['id'])}\n{block['content']}{grammar.closing(block['id'])}\n"
        for block in blocks
        if block["status"] == "active"
    )


def inject(view: "View", shape: "Shape", blocks: "Iterable[Mapping[str, str]]", where: str) -> None:
    """Put the active blocks into the view, in a message of their own or into its `system`."""
    text = render(blocks)
    if not text:
        return
    message = shape.block_message(text, where)
    if message is None:
        view.system = text
        return
    if where == LAST:
        at = len(view.core)
        # What an application begins for the model to go on with stays the last.
        while at and shape.role(view.core[at - 1]) == ASSISTANT and not shape.calls(view.core[at - 1]):
            at -= 1
    else:
        at = next((n for n, told in enumerate(view.core) if shape.role(told) != SYSTEM), len(view.core))
    view.messages = [*view.core[:at], message, *view.core[at:]]
    view.injected = at
