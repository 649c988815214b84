"""A call is known by its run, its message and its id, for its whole life.

Gateways give one id to two calls, and a replay, or a request that continues a reply, says a call again. So a block with
the id of an earlier call is held until the block has ended. With the same name and arguments the block is a repetition,
of which nothing is emitted. Else the block is another call and gets an id of its own: the first id with a number. A block
with another name isn't held.

    a block's call                   what is emitted
    with an id that is new           its events, at once
    with the id of another block     held: nothing yet
    ... and with another name        the block so far, with an id of its own, then its events
    ... ended, as the first          nothing, now and later
    ... ended otherwise              the block, with an id of its own
    ... when its message ends        one of the last two
    which takes such an id later     its events; if it ends otherwise than the first, with an id of its own

Decoders, `run_tools`, `retry_stream` and encoders hold this rule, and stand on this file. A fold keeps the ids that it is
given. Calls that a provider runs itself keep their ids too, which its results name. `Walk` says when a message ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from rxdelta.core.block_fold import BlockFold
from rxdelta.core.blocks import block_to_wire, finish_content, is_call
from rxdelta.core.event_classes import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    StreamError,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.core.json_values import EMPTY, FrozenDict, InvalidJson, is_list, is_mapping
from rxdelta.core.options import DEFAULT_LIMITS, Limits
from rxdelta.core.text import finish_text
from rxdelta.core.tool_call import parse_arguments, raw_arguments
from rxdelta.core.walk import Walk, Walks, call_id_of

_OF_BLOCKS = (BlockStart, BlockDelta, BlockFinish)
_OF_MESSAGES = (MessageStart, MessageFinish, MessageInterrupted, AttemptReset)
_EVENTS = frozenset((*_OF_BLOCKS, *_OF_MESSAGES, ToolCallDelta, ToolUpdate, StreamError))
_FEW = 16  # calls with one id, whose names are compared one by one
_MOST_NOTED = 4096  # events
_MOST_KEPT = 1000  # messages: a connection may live long, and nobody sends it all again


class CallIdentity:
    """Events in, the same events out, in which each call of a message has an id of its own and comes once.

    Args:
        limits: Bounds on the number of runs and choices, and on the size of a message.
        keeps_messages: Whether a message is the same as an earlier one if it has its id, as in one stream of a front end,
            which a server may send again. Else a message begins with each start, since gateways have one id for several.

    Example:
        >>> import rxdelta as rd
        >>> calls = rd.core.CallIdentity()
        >>> again = {"type": "tool_call", "id": "c1", "name": "now", "args": {}}
        >>> events = [rd.events.BlockStart(0, again), rd.events.BlockFinish(0)]
        >>> events += [rd.events.BlockStart(1, again), rd.events.BlockFinish(1), rd.events.MessageFinish("tool_use")]
        >>> [(event.event, getattr(event, "index", None)) for event in calls.steps(events)]
        [('content-block-start', 0), ('content-block-finish', 0), ('message-finish', None)]
    """

    EVENTS = _EVENTS
    """The kinds of event that it has to see. All others pass."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, keeps_messages: bool = False) -> None:
        self._limits = limits
        self._keeps_messages = keeps_messages
        self._ids: set[str] = set()
        self._indexes: set[Index] = set()  # of calls
        self._messages: _Messages | None = None
        # The first message's events, unread while each of its calls has an id of its own.
        self._noted: list[Event] | None = []

    def steps(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events to emit for these.

        Raises:
            LimitExceededError: There are too many runs, choices or blocks, or a block is too large.
        """
        noted, place = self._noted, -1
        for event in events:
            place += 1
            if type(event) in _EVENTS and (noted is None or not self._is_plain(event, noted)):
                known = [*events[:place]]
                for later in events[place:]:
                    known += self.step(later)
                return known
        return events

    def step(self, event: Event) -> Sequence[Event]:
        """The events to emit for this one.

        Raises:
            LimitExceededError: There are too many runs, choices or blocks, or a block is too large.
        """
        if self._messages is None:
            if self._noted is not None and self._is_plain(event, self._noted):
                return (event,)
            self._messages = _Messages(self._limits, self._keeps_messages)
            for before in self._noted or ():
                self._messages.step(before)
            self._noted = None
        return self._messages.step(event)

    def grow(self, event: ToolCallDelta) -> Sequence[Event]:
        """The events to emit for a piece of arguments: `step`, for those in a hurry."""
        noted = self._noted
        if noted is None or len(noted) >= _MOST_NOTED:
            return self.step(event)
        noted.append(event)
        return (event,)

    def close(self) -> list[Event]:
        """The events to emit at the end of the stream, also if that is an error: those of held blocks."""
        return [] if self._messages is None else self._messages.close()

    def drop_held(self) -> None:
        """Forget the held blocks: their source has broken off, and is asked again."""
        if self._messages is not None:
            self._messages.drop_held()

    def _is_plain(self, event: Any, noted: list[Event]) -> bool:
        """Whether the event is of the first message and brings no id that a call has. Then it is noted."""
        kind: Any = type(event)  # pyright: ignore[reportUnknownVariableType]
        if len(noted) >= _MOST_NOTED:
            return False
        if kind is BlockStart or kind is BlockFinish:
            content, known = event.content, event.index in self._indexes
            if content is not None and is_call(content) and not (known and kind is BlockFinish):
                if known or self._has_id(content):
                    return False
                self._indexes.add(event.index)
            elif not known:
                return True  # of another block
            elif kind is BlockStart:
                return False
        elif kind is BlockDelta:
            if event.index not in self._indexes:
                return True
            if self._has_id(event.fields):
                return False
        elif kind is MessageStart or kind is AttemptReset:
            if self._ids:
                return False
            noted.clear()
            self._indexes.clear()
        noted.append(event)
        return True

    def _has_id(self, said: Mapping[str, Any]) -> bool:
        """Whether a call has the id that is said. A new id is noted."""
        call_id: Any = said.get("id") or said.get("call_id")
        if not isinstance(call_id, str):
            return False
        has = call_id in self._ids
        self._ids.add(call_id)
        return has


class _Messages:
    """The messages of a stream in which an id may come twice, lane by lane."""

    def __init__(self, limits: Limits, keeps_messages: bool) -> None:
        self._limits = limits
        self._keeps_messages = keeps_messages
        self._kept: dict[tuple[Walk, str], _Lane] = {}  # of earlier messages, by their ids
        self._walks = Walks(limits)
        self._lanes: dict[Walk, _Lane] = {}

    def step(self, event: Event) -> Sequence[Event]:
        given: Any = event
        kind: Any = type(event)  # pyright: ignore[reportUnknownVariableType]
        if kind is ToolCallDelta or kind in _OF_BLOCKS:
            return self._block(given)
        if kind in _OF_MESSAGES:
            return [*self._of_message(given), event]
        if kind is StreamError:
            return [*self.close(), event]
        if kind is ToolUpdate:
            self._note(given)
        return (event,)

    def close(self) -> list[Event]:
        return [event for lane in self._lanes.values() for event in lane.decide()]

    def drop_held(self) -> None:
        for lane in self._lanes.values():
            lane.drop_held()

    def _block(self, event: Any) -> Sequence[Event]:
        (walk,) = self._walks.of(event)
        if type(event) is BlockStart:
            walk.step(event)
        if walk.over:
            return (event,)
        lane = self._lanes.get(walk)
        if lane is None:
            lane = self._lanes[walk] = _Lane(self._limits)
        return lane.step(event)

    def _of_message(self, event: Any) -> Sequence[Event]:
        held: list[Event] = []
        for walk in self._walks.of(event):
            lane, known_as, begins = self._lanes.get(walk), walk.id, walk.begins_another(event)
            walk.step(event)
            if type(event) is MessageStart and not begins:
                continue
            if lane is not None and (begins or type(event) is not AttemptReset):
                held += lane.decide()
            if begins or type(event) is AttemptReset:
                self._lanes.pop(walk, None)
            if begins and self._keeps_messages:
                self._keep(walk, known_as, lane)
        return held

    def _keep(self, walk: Walk, known_as: str | None, lane: _Lane | None) -> None:
        """Keep the calls of a message under its id, and continue with those of the message that begins, if it is known."""
        if lane is not None and known_as is not None:
            lane.put_away()
            self._kept[walk, known_as] = lane
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        again = None if walk.id is None else self._kept.get((walk, walk.id))
        if again is not None:
            self._lanes[walk] = again

    def _note(self, event: ToolUpdate) -> None:
        for walk, lane in self._lanes.items():
            if event.choice in (None, walk.choice) and event.run_id in (None, walk.run_id):
                lane.note(event)


class _Call:
    """A call of the message that continues: a block.

    Attributes:
        same_id: The calls to which its source has given its id.
        is_open: Whether it is one of the open ones of these.
        finish: Its newest finish.
        shown: Whether its events are emitted.
        own_id: The id that it has got instead of its source's.
        updates: The news of its id while it was held.
    """

    __slots__ = ("_fold", "_pieces", "finish", "is_open", "own_id", "same_id", "shown", "updates")

    def __init__(self, start: BlockStart, limits: Limits) -> None:
        self._fold = BlockFold(start, limits=limits)
        self._pieces: list[str] = []  # of arguments, behind the fold
        self.same_id: _SameId | None = None
        self.is_open = False
        self.finish: BlockFinish | None = None
        self.shown = True
        self.own_id: str | None = None
        self.updates: list[ToolUpdate] = []

    @property
    def block(self) -> Any:
        """The block without its finish: the text of arguments is parsed only if it has to be compared."""
        if self._pieces:
            if self._fold.grows is ToolCallDelta:
                self._fold.grow("".join(self._pieces))
            self._pieces.clear()
        return self._fold.block

    @property
    def id(self) -> str | None:
        """The id by which its source knows it."""
        return call_id_of(self._fold.block)

    def take(self, event: ToolCallDelta | BlockDelta | BlockFinish) -> None:
        if type(event) is BlockFinish:
            self.finish = event
            if self.is_open and self.same_id is not None:
                self.same_id.end(self)
        elif self.finish is None and type(event) is ToolCallDelta:
            self._pieces.append(event.args)
            if len(self._pieces) >= _MOST_NOTED:
                _ = self.block
        elif self.finish is None and type(event) is BlockDelta:
            _ = self.block
            self._fold.step(event)

    def says(self) -> Hashable:
        """What it says, for a comparison."""
        block: Any = self.block
        if self.finish is not None and self.finish.content is not None:
            block = finish_content(block, self.finish.content, block.key)
        if call_id_of(block) is None:
            return self  # it has turned out to be no call, which repeats no other
        arguments: Any = raw_arguments(block)
        if not is_mapping(arguments):
            arguments = _parsed("" if arguments is None else finish_text(arguments))
        return block.type, block.name, _exact(arguments)


class _SameId:
    """The calls of a message to which its source has given one id.

    Attributes:
        calls: Those that are emitted.
        open: Those of them that haven't ended.
        waiting: Those that are held and have ended.
        unread: Those that are emitted and have ended, but have not been compared yet.
        number: The number of the newest call that has got an id of its own.
        places: The ids of their own that calls have got, by their blocks; `None` for a call that kept its source's. A
            block that begins again under an id that it has had is the same call, whatever it then says.
    """

    __slots__ = ("_said", "calls", "number", "open", "places", "unread", "waiting")

    def __init__(self) -> None:
        self.calls: dict[_Call, None] = {}
        self.open = 0
        self.waiting: list[_Call] = []
        self.number = 1
        self.places: dict[Index, str | None] = {}
        self._said: set[Hashable] = set()
        self.unread: list[_Call] = []

    def add(self, call: _Call) -> None:
        call.same_id, call.is_open = self, call.finish is None
        self.calls[call] = None
        self.places[call.block.key] = call.own_id
        if call.is_open:
            self.open += 1
        else:
            self.unread.append(call)

    def end(self, call: _Call) -> None:
        """One of the open calls has ended."""
        call.is_open = False
        self.open -= 1
        self.unread.append(call)

    def has(self, call: _Call) -> bool:
        """Whether one of the calls that have ended says the same."""
        unread, self.unread = self.unread, []
        self._said.update(known.says() for known in unread)
        return call.says() in self._said

    def may_have(self, call: _Call) -> bool:
        """Whether one of the calls may be this one, by its name, which may come in pieces."""
        if len(self.calls) > _FEW:
            return True
        names = ((known.block.name or "", call.block.name or "") for known in self.calls)
        return any(known.startswith(name) or name.startswith(known) for known, name in names)


class _Lane:
    """The calls of one message.

    Args:
        limits: Bounds on the size of a call.
    """

    __slots__ = ("_by_id", "_calls", "_held", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._calls: dict[Index, _Call] = {}
        self._by_id: dict[str, _SameId] = {}
        self._held: dict[_Call, BlockStart] = {}

    def step(self, event: Any) -> Sequence[Event]:
        """The events to emit for an event of a block."""
        kind: Any = type(event)  # pyright: ignore[reportUnknownVariableType]
        if kind is BlockStart:
            return self._start(event)
        call = self._calls.get(event.index)
        if call is None:
            content = event.content if kind is BlockFinish else None
            return (event,) if content is None or not is_call(content) else self._whole(event)
        if not call.shown and call not in self._held:
            return ()
        if kind is ToolCallDelta:
            call.take(event)
            return (event,) if call.shown else ()
        return self._finish(call, event) if kind is BlockFinish else self._change(call, event)

    def decide(self) -> list[Event]:
        """Decide the held blocks, since the message ends."""
        for call in self._calls.values():
            if call.is_open and call.same_id is not None:
                call.same_id.end(call)
        return [event for call in [*self._held] for event in self._decide(call)]

    def put_away(self) -> None:
        """Forget where the calls are: other blocks come."""
        for known in self._by_id.values():
            known.places.clear()
        self._calls.clear()

    def drop_held(self) -> None:
        self._held.clear()

    def note(self, event: ToolUpdate) -> None:
        for call in self._held:
            if call.id == event.call_id:
                call.updates.append(event)

    # A block.

    def _start(self, event: BlockStart) -> Sequence[Event]:
        former = self._calls.pop(event.index, None)
        before = self._end(former)
        if not is_call(event.content):
            return [*before, event]
        call = self._calls[event.index] = _Call(event, self._limits)
        if not self._shares_id(call):
            return [*before, _with_own_id(call, event)]
        # Held until it is known to be another call: an emitted event can't be taken back.
        call.shown = False
        self._held[call] = event
        return [*before, *self._show_if_another(call)]

    def _end(self, former: _Call | None) -> Sequence[Event]:
        """Another block begins in the place of a call."""
        if former is None:
            return ()
        if former.is_open and former.same_id is not None:
            former.same_id.end(former)
        return self._decide(former) if former in self._held else ()

    def _shares_id(self, call: _Call) -> bool:
        """Whether an earlier call has the id. If none has, it is the call's from now on."""
        if call.id is None:
            return False
        known = self._by_id.setdefault(call.id, _SameId())
        call.same_id, place = known, call.block.key
        if known.calls and place not in known.places:
            return True
        call.own_id = known.places.get(place)
        known.add(call)
        return False

    def _whole(self, event: BlockFinish) -> Sequence[Event]:
        """Take a finish that has no start."""
        start = BlockStart(event.index, event.content or {}, choice=event.choice, run_id=event.run_id)
        return [one for one in (*self._start(start), *self.step(event)) if one is not start]

    def _change(self, call: _Call, event: BlockDelta) -> Sequence[Event]:
        before, known = call.id, call.same_id
        call.take(event)
        if call.id != before and call.own_id is None:
            if known is not None and [*known.calls] == [call]:
                del self._by_id[before or ""]
            if known is not None and call.is_open:
                known.end(call)
            shares = self._shares_id(call)
            if not (shares or call.shown):
                return self._show(call)
        if call.shown:
            return (_with_own_id(call, event),)
        return self._show_if_another(call)

    def _finish(self, call: _Call, event: BlockFinish) -> Sequence[Event]:
        known = call.same_id
        call.take(event)
        if known is None:
            return (event,)
        if not call.shown:
            known.waiting.append(call)
            return self._decide_waiting(known)
        found: list[Event] = []
        if not (call in known.calls or known.has(call)):  # it has got the id late
            fields = {"id": self._make_id(call)}
            found.append(BlockDelta(event.index, fields, choice=event.choice, run_id=event.run_id))
        return [*found, _with_own_id(call, event), *self._decide_waiting(known)]

    # A block that is held.

    def _decide_waiting(self, known: _SameId) -> Sequence[Event]:
        """Decide the calls that have ended, unless one that is emitted has not, and may turn out to be the same."""
        if known.open or not known.waiting:
            return ()
        waiting, known.waiting = known.waiting, []
        return [event for call in waiting if call in self._held for event in self._decide(call)]

    def _decide(self, call: _Call) -> Sequence[Event]:
        known = call.same_id
        if known is not None and known.has(call):
            del self._held[call]
            return ()
        return self._show_another(call)

    def _show_if_another(self, call: _Call) -> Sequence[Event]:
        known = call.same_id
        return () if known is None or known.may_have(call) else self._show_another(call)

    def _show_another(self, call: _Call) -> Sequence[Event]:
        self._make_id(call)
        return self._show(call)

    def _show(self, call: _Call) -> Sequence[Event]:
        """The events of a block that was held: one start with all that has come of it, and its finish."""
        start = self._held.pop(call)
        call.shown = True
        found = [_with_own_id(call, attrs.evolve(start, content=FrozenDict(block_to_wire(call.block))))]
        found += [attrs.evolve(update, call_id=call.own_id or update.call_id) for update in call.updates]
        return found if call.finish is None else [*found, _with_own_id(call, call.finish)]

    def _make_id(self, call: _Call) -> str:
        """Give a call an id of its own, beside the others whose source has given them the same."""
        known = call.same_id or _SameId()
        known.add(call)
        known.number += 1
        while f"{call.id}-{known.number}" in self._by_id:
            known.number += 1
        call.own_id = own_id = f"{call.id}-{known.number}"
        known.places[call.block.key] = own_id
        own = self._by_id[own_id] = _SameId()
        own.calls[call] = None
        own.unread.append(call)
        return own_id


def _with_own_id(call: _Call, event: BlockStart | BlockDelta | BlockFinish) -> Event:
    """The event, with the call's own id where it says the one that the source gave it."""
    said = event.fields if isinstance(event, BlockDelta) else event.content
    if call.own_id is None or said is None:
        return event
    ids = {name: call.own_id for name in ("id", "call_id") if said.get(name) == call.id}
    if not ids:
        return event
    known: FrozenDict[Any] = FrozenDict({**said, **ids})
    return (
        attrs.evolve(event, fields=known)
        if isinstance(event, BlockDelta)
        else attrs.evolve(event, content=known)
    )


def _exact(value: Any) -> Hashable:
    """A value that equals another only if both are the same JSON: in Python `True` is 1."""
    if is_mapping(value):
        return "{", frozenset((name, _exact(one)) for name, one in value.items())
    if is_list(value):
        return "[", tuple(map(_exact, value))
    return isinstance(value, bool), value


def _parsed(text: str) -> Hashable:
    """The arguments that a text is, or the text if it is none."""
    try:
        return parse_arguments(text) if text else EMPTY
    except InvalidJson:
        return text
