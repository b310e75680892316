"""Active blocks in a request. ACLP V1 §"Named blocks"; cache discipline C-1 to C-4 of ECM. Part of the runtime ring.

`last` puts them behind the history: the prefix that a provider has cached stays the same from request to request, and
blocks that come and go cost nothing but themselves. `first` and `system` put them in front, where they are cached too,
and each change of them costs the cache once.
"""

from ecm_rules.lifecycle import grammar, pairs
from ecm_rules.lifecycle.shapes import ASSISTANT, SYSTEM, USER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ecm_rules.lifecycle.session import View
    from ecm_rules.lifecycle.shapes import Messages, Shape

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
    if shape.places_tell:
        # What is put behind all others takes no place of theirs; what would stand in front is told by one of them.
        told = (at for at, said in enumerate(view.core) if shape.role(said) == USER)
        at = next(told, len(view.core)) if where == FIRST else len(view.core)
        if at < len(view.core):
            message = shape.in_front(view.core[at], text)
        view.messages = [*view.core[:at], message, *view.core[at + 1 :]]
        view.injected = at
        return
    at = _last(shape, view.core) if where == LAST else front(shape, view.core)
    view.messages = [*view.core[:at], message, *view.core[at:]]
    view.injected = at


def front(shape: "Shape", messages: "Messages") -> int:
    """In front of everything but the system messages that a history begins with."""
    return next((at for at, told in enumerate(messages) if shape.role(told) != SYSTEM), len(messages))


def _last(shape: "Shape", messages: "Messages") -> int:
    """Behind a history, but in front of an answer that is not finished: what an application begins for the model to go
    on with stays the last, and a call is not parted from its result.
    """
    at = _before_system(shape, messages, len(messages))
    begins = pairs.unfinished(shape, messages[:at])
    if begins < at:
        at = begins
        while at and shape.role(messages[at - 1]) == ASSISTANT:
            at -= 1
        at = _before_system(shape, messages, at)
    return at


def _before_system(shape: "Shape", messages: "Messages", at: int) -> int:
    """In front of the system messages before a place, where these must be the last or stand in front of an answer."""
    while shape.system_ends_turn and at and shape.role(messages[at - 1]) == SYSTEM:
        at -= 1
    return at
