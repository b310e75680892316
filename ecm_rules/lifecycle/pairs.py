"""Tool calls and their results: each call has its result, each result its call. Part of the runtime ring.

`broken_by` asks it of an edit, and looks at what was edited alone: where a message has the calls and the results that
it had, in the order in which it had them, every pair is what it was. `faults` asks it of a whole history.
"""

from collections import deque

from ecm_rules.lifecycle.shapes import (
    ASSISTANT,
    CALLS,
    DIRECTLY,
    LATER,
    MISPLACED_RESULT,
    NEXT,
    REFERENCE,
    RESULT,
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
    prefilled = shape.prefills and shape.role(messages[-1]) == ASSISTANT
    return begins if prefilled or check.pending else ends


class _Call:
    __slots__ = ("answered", "id", "index", "kind", "late", "name", "place", "turn")

    def __init__(self, kind: str, index: int, id: "str | None", name: str, place: int, turn: int) -> None:
        self.kind = kind
        self.index = index
        self.id = id
        self.name = name
        # Which call of the history it is, and in which turn.
        self.place = place
        self.turn = turn
        self.answered = False
        # Whether its result has no more place where it must stand.
        self.late = False


class _Check:
    """A history as far as it was read."""

    __slots__ = (
        "_by_id",
        "_calls",
        "_faults",
        "_late",
        "_next",
        "_open",
        "_orphans",
        "_references",
        "_role",
        "_said",
        "_shape",
        "_turn",
        "_waiting",
    )

    def __init__(self, shape: "Shape") -> None:
        self._shape = shape
        self._next = shape.results_stand == NEXT
        self._calls: list[_Call] = []
        self._by_id: dict[tuple[bool, str], _Call] = {}
        # By the name of the tool and whether they have ids: the calls that may be answered where the reading is, and
        # those whose results have no more place.
        self._open: dict[tuple[str, bool], deque[_Call]] = {}
        self._late: dict[tuple[str, bool], deque[_Call]] = {}
        self._waiting: list[_Call] = []
        self._faults: list[Fault] = []
        self._orphans: dict[str, Fault] = {}
        self._references: list[int] = []
        self._role: str | None = None
        self._turn = 0
        # Whether something else than results stands in this turn so far.
        self._said = False

    def read(self, index: int, message: "Message") -> None:
        self._expire(index, message)
        for kind, id, name in self._shape.links(message):
            if kind in CALLS:
                self._call(_Call(kind, index, id, name, len(self._calls), self._turn))
            elif kind == REFERENCE:
                self._references.append(index)
            else:
                self._result(MISPLACED_RESULT if kind == RESULT and self._said else kind, index, id, name)
        self._said = self._said or (self._shape.turns_merge and not _goes_on(self._shape, message))

    @property
    def pending(self) -> bool:
        """Whether a call has no result yet."""
        return not all(call.answered for call in self._calls)

    def end(self, messages: "Messages") -> "list[Fault]":
        begins = unfinished(self._shape, messages)
        referred = self._references[-1] if self._references else -1
        for call in self._calls:
            is_open = call.index >= begins and (call.kind == SERVER_CALL or not self._next or call.turn == self._turn)
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
        stands, role = self._shape.results_stand, self._shape.role(message)
        if index and not (self._shape.turns_merge and role == self._role):
            self._turn += 1
            self._said = False
        self._role = role
        if stands == LATER or (stands == DIRECTLY and role == TOOL):
            return
        kept = []
        for call in self._waiting:
            if self._next and call.turn >= self._turn - 1:
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
            self._open.setdefault((call.name, call.id is not None), deque()).append(call)
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
        """The first call of that name which has no result yet, one whose result may stand here before others; where
        both have ids these alone tell.
        """
        keys = [(name, False)] if id is not None else [(name, False), (name, True)]
        waiting = [call for key in keys if (call := self._first_open(key)) is not None]
        late = [call for key in keys if (call := _front(self._late.get(key))) is not None] if not waiting else []
        return min(waiting or late, key=lambda call: call.place, default=None)

    def _first_open(self, key: "tuple[str, bool]") -> "_Call | None":
        calls = self._open.get(key)
        while calls and (calls[0].answered or calls[0].late):
            if calls[0].answered:
                calls.popleft()
            else:
                self._late.setdefault(key, deque()).append(calls.popleft())
        return calls[0] if calls else None

    def _fault(self, code: str, index: int, id: "str | None", name: str) -> Fault:
        fault = Fault(code, index, name if id is None else id)
        self._faults.append(fault)
        return fault


def _front(calls: "deque[_Call] | None") -> "_Call | None":
    """The first call without a result; those with one are dropped."""
    while calls and calls[0].answered:
        calls.popleft()
    return calls[0] if calls else None


def _goes_on(shape: "Shape", message: "Message") -> bool:
    """Whether a message leaves a response unfinished: it is the model's, or results and nothing else."""
    role = shape.role(message)
    if role in (ASSISTANT, TOOL):
        return True
    units = shape.units(message)
    return bool(units) and all(unit.role == TOOL for unit in units)
