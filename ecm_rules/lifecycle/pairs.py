"""Tool calls and their results: each call has its result, each result its call. Part of the runtime ring.

`broken_by` asks it of an edit, and looks at what was edited alone: where a message has the calls and the results that
it had, in the order in which it had them, every pair is what it was. `faults` asks it of a whole history.
"""

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALLS,
    DIRECTLY,
    LATER,
    MISPLACED_RESULT,
    NEXT,
    REFERENCE,
    SERVER_CALL,
    SERVER_RESULT,
    TOOL,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ecm_rules.lifecycle.shapes import Message, Messages, Shape

# What is wrong with a call or a result. A result stands behind what else its message says where it must be the first.
NO_RESULT = "no-result"
NO_CALL = "no-call"
CALLED_TWICE = "called-twice"
ANSWERED_TWICE = "answered-twice"
MISPLACED = "misplaced"
BEHIND = "behind"


class Fault:
    """A call or a result that is no half of a whole pair: what is wrong, the index of its message, its id or, where it
    has none, the name of the tool.
    """

    __slots__ = ("code", "index", "name")

    def __init__(self, code: str, index: int, name: str) -> None:
        self.code = code
        self.index = index
        self.name = name

    def __repr__(self) -> str:
        return f"Fault({self.code!r}, {self.index}, {self.name!r})"


def broken_by(shape: "Shape", before: "Messages", after: "Messages", edited: "Iterable[int]") -> str:
    """What an edit of some messages breaks; empty where every pair that was whole still is."""
    for index in edited:
        old, new = before[index], after[index]
        if shape.role(old) != shape.role(new):
            return f"message {index} speaks in another role"
        if shape.links(old) != shape.links(new):
            lost = "call" if shape.calls(old) != shape.calls(new) else "result"
            return f"message {index} lost a tool {lost}"
    return ""


def faults(shape: "Shape", messages: "Messages") -> "list[Fault]":
    """Every call and every result of a history that is no half of a whole pair, in the order of the messages.

    What the model has just called is open, not broken, as long as nothing but results stands behind it.
    """
    check = _Check(shape)
    for index, message in enumerate(messages):
        check.read(index, message)
    return check.end(messages)


def unfinished(shape: "Shape", messages: "Messages") -> int:
    """Where the latest answer begins, if it is not finished: if it ends the history, or if a call in it has no result
    yet and nothing but results stands behind it. Else where the history ends.
    """
    begins, ends = shape.latest_answer(messages), len(messages)
    if begins < 0:
        return ends
    check = _Check(shape)
    for index in range(begins, ends):
        if not _goes_on(shape, messages[index]):
            return ends
        check.read(index, messages[index])
    return begins if shape.role(messages[-1]) == ASSISTANT or check.pending else ends


class _Call:
    __slots__ = ("answered", "id", "index", "kind", "late", "name")

    def __init__(self, kind: str, index: int, id: "str | None", name: str) -> None:
        self.kind = kind
        self.index = index
        self.id = id
        self.name = name
        self.answered = False
        # Whether its result has no more place where it must stand.
        self.late = False


class _Check:
    """A history as far as it was read."""

    __slots__ = ("_by_id", "_by_name", "_calls", "_faults", "_next", "_orphans", "_references", "_shape", "_waiting")

    def __init__(self, shape: "Shape") -> None:
        self._shape = shape
        self._next = shape.results_stand == NEXT
        self._calls: list[_Call] = []
        self._by_id: dict[tuple[bool, str], _Call] = {}
        self._by_name: dict[str, list[_Call]] = {}
        self._waiting: list[_Call] = []
        self._faults: list[Fault] = []
        self._orphans: dict[str, Fault] = {}
        self._references: list[int] = []

    def read(self, index: int, message: "Message") -> None:
        self._expire(index, message)
        for kind, id, name in self._shape.links(message):
            if kind in CALLS:
                self._call(_Call(kind, index, id, name))
            elif kind == REFERENCE:
                self._references.append(index)
            else:
                self._result(kind, index, id, name)

    @property
    def pending(self) -> bool:
        """Whether a call has no result yet."""
        return not all(call.answered for call in self._calls)

    def end(self, messages: "Messages") -> "list[Fault]":
        begins, last = unfinished(self._shape, messages), len(messages) - 1
        referred = self._references[-1] if self._references else -1
        for call in self._calls:
            is_open = call.index >= begins and (call.kind == SERVER_CALL or not self._next or call.index == last)
            if call.answered or is_open or call.index < referred:
                continue
            orphan = self._orphans.pop(call.id or "", None)
            if orphan is not None:
                # It stands in front of its call.
                orphan.code = MISPLACED
            else:
                self._fault(NO_RESULT, call.index, call.id, call.name)
        self._faults.sort(key=lambda fault: fault.index)
        return self._faults

    def _expire(self, index: int, message: "Message") -> None:
        """Close what waits for a result that would have had to stand in front of this message."""
        stands = self._shape.results_stand
        if stands == LATER or (stands == DIRECTLY and self._shape.role(message) == TOOL):
            return
        kept = []
        for call in self._waiting:
            if self._next and call.index == index - 1:
                kept.append(call)
            else:
                call.late = True
        self._waiting = kept

    def _call(self, call: _Call) -> None:
        if call.id is not None:
            key = (call.kind == SERVER_CALL, call.id)
            known = self._by_id.get(key)
            if known is not None and (self._shape.unique_ids or not (known.answered or known.late)):
                self._fault(CALLED_TWICE, call.index, call.id, call.name)
                if not known.answered:
                    return
            self._by_id[key] = call
        if call.name:
            self._by_name.setdefault(call.name, []).append(call)
        self._calls.append(call)
        if call.kind != SERVER_CALL:
            self._waiting.append(call)

    def _result(self, kind: str, index: int, id: "str | None", name: str) -> None:
        known = self._by_id.get((kind == SERVER_RESULT, id)) if id is not None else None
        call = known if known is not None and not known.answered else self._named(id, name)
        if call is not None:
            call.answered = True
            if call.late or kind == MISPLACED_RESULT:
                self._fault(MISPLACED if call.late else BEHIND, index, id, name)
        elif known is not None:
            self._fault(ANSWERED_TWICE, index, id, name)
        elif not self._references:
            fault = self._fault(NO_CALL, index, id, name)
            if id is not None:
                self._orphans.setdefault(id, fault)

    def _named(self, id: "str | None", name: str) -> "_Call | None":
        """The first call of that name which has no result yet; both having ids tells by these alone."""
        for call in self._by_name.get(name, ()):
            if not call.answered and (id is None or call.id is None):
                return call
        return None

    def _fault(self, code: str, index: int, id: "str | None", name: str) -> Fault:
        fault = Fault(code, index, name if id is None else id)
        self._faults.append(fault)
        return fault


def _goes_on(shape: "Shape", message: "Message") -> bool:
    """Whether a message leaves a response unfinished: it is the model's, or results and nothing else."""
    role = shape.role(message)
    if role in (ASSISTANT, TOOL):
        return True
    units = shape.units(message)
    return bool(units) and all(unit.role == TOOL for unit in units)
