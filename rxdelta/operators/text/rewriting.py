"""The text of a reply on its way: each block's text goes through a filter once, wherever events say it.

An event says text in five ways: in a start, as a delta, in the fields of a `BlockDelta`, in a finish, and in a finish that
has no start or overrules the block. Most of them say again what was said before. So a filter reads the *block's* text,
as the walk folds it, and each event gets what the filter has given. A text that isn't the earlier one with more behind it
goes through a filter of its own, whole. Filters know no events.

A call's arguments are a text, too, if they are to be filtered. They are held until the call ends, since half of them says
nothing.

An event that the walk ignores may have text that no filter has read. The event keeps its place, without that text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from rxdelta.core import (
    ARGUMENT_FIELDS,
    PIECE_FIELDS,
    TEXT_FIELDS,
    Block,
    BlockFold,
    Change,
    ContentPart,
    Tail,
    ToolCall,
    Walk,
    Walks,
    is_list,
    is_mapping,
    message_order,
    raw_text,
    thaw,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    Index,
    MessageFinish,
    StreamError,
    TextDelta,
    ToolCallDelta,
)
from rxdelta.operators.text.quotes import Elsewhere, elsewhere_in, moved, rewritten_error
from rxdelta.operators.text.text import Filter, Lane, Text
from rxdelta.runtime import Sink, all_events, lift_machine

if TYPE_CHECKING:
    from reactivex import Observable


_MEDIA = dict.fromkeys(("image", "audio", "video", "file"), ("data",))
_OWN = {**TEXT_FIELDS, **_MEDIA}  # the fields with a part's own text or data
_CONTENT = {BlockStart: "content", BlockDelta: "fields", BlockFinish: "content"}
_LEFT_OUT = "\u2026"  # in place of a piece that belongs to no block: an empty one would break no rule


class Step(NamedTuple):
    """One event of the source: new pieces of a text, from its filter, and the event itself.

    Attributes:
        event: The event; `None` if there are only pieces.
        text: The text that it is about.
        pieces: The text that is certain now.
        inside: Whether the event itself shows the pieces, because its text isn't what was said before with more behind it;
            else deltas show them in front of it.
    """

    event: Event | None
    text: Text | None = None
    pieces: Sequence[str] = ()
    inside: bool = False


class Rewriting:
    """One subscription's state. It knows no Rx.

    Args:
        sink: For the name and the limits.
        make: Makes the filter of a text.
        reasoning: Whether reasoning is filtered, too.
        arguments: Makes the filter of a call's arguments, which are then held; `None` lets them pass.
        apart: Whether each piece that a filter gives is an event of its own.
        drops: Whether what is held is dropped where the text was cut off: it may be half of what nobody must see.
        elsewhere: Rewrites a text that an event has elsewhere, and those of the source's error; `None` lets all that pass.
        cites_last: Whether citations wait for the end of their text, which they quote, and are left out where that was
            replaced.
    """

    def __init__(
        self,
        sink: Sink[Any],
        make: Callable[[], Filter],
        *,
        reasoning: bool,
        arguments: Callable[[], Filter] | None = None,
        apart: bool = False,
        drops: bool = False,
        elsewhere: Elsewhere | None = None,
        cites_last: bool = False,
    ) -> None:
        self._sink = sink
        self._make = make
        self._types = frozenset(TEXT_FIELDS if reasoning else TEXT_FIELDS.keys() - {"reasoning"})
        self._arguments = arguments
        self._apart = apart
        self._drops = drops
        self._elsewhere = elsewhere
        self._cites_last = cites_last
        self._texts: dict[Walk, dict[BlockFold, Text]] = {}
        self._ending: dict[Walk, Sequence[Block]] = {}  # blocks that the newest event ends
        self._tail = Tail(self._grow, self._walk)
        self._newest: Text | None = None  # that of the newest delta's block
        self._is_held = False  # whether its deltas are held, whatever they say

    @cached_property
    def _walks(self) -> Walks:
        return Walks(self._sink.limits)  # which are known with the first event

    def step(self, event: Event) -> Sequence[Event]:
        """The event as it goes on, and what it makes certain.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: The reply has become too large.
        """
        if not self._tail.take(event):
            return self.shown(self._steps(event))
        text = self._newest
        if text is None:
            return () if self._is_held else (event,)
        piece = _piece(event)
        pieces = text.feed(piece)
        if len(pieces) == 1 and pieces[0] is piece:
            text.show(pieces)
            return (event,)
        return self._deltas(text, pieces) if pieces else ()

    def close(self) -> Sequence[Event]:
        """The events before the end of the source."""
        return self.shown(self.cut_off())

    def fail(self, error: Exception) -> tuple[Sequence[Event], Exception]:
        """The events before the source's error, and the error that readers get in its place."""
        shown = error if self._elsewhere is None else rewritten_error(error, self._elsewhere.all_of)
        return self.close(), shown

    def shown(self, steps: Sequence[Step]) -> Sequence[Event]:
        """The events of these steps, with all their pieces."""
        if len(steps) == 1:
            return self.events(steps[0], steps[0].pieces)
        return [event for step in steps for event in self.events(step, step.pieces)]

    def events(self, step: Step, pieces: Sequence[str]) -> Sequence[Event]:
        """The events of one step, with these pieces in place of its own. Steps are to be asked for in their order."""
        event, text = step.event, step.text
        if text is None:
            return () if event is None else (event,)
        if step.inside:
            text.show(pieces)
            return (self._with_text(event, text),)
        deltas = self._deltas(text, pieces)
        return deltas if event is None else (*deltas, self._with_text(event, text))

    def _deltas(self, text: Text, pieces: Sequence[str]) -> Sequence[Event]:
        text.show(pieces)
        if len(pieces) > 1 and not self._apart:
            pieces = ("".join(pieces),)
        return [text.delta(piece) for piece in pieces if piece]

    def _with_text(self, event: Any, text: Text) -> Event:
        """The event with the text as it is shown, if it says the text, and with its citations where they are now."""
        field = _CONTENT[type(event)]
        content = getattr(event, field)
        if content is None:
            return self._rewritten(event)
        names = ARGUMENT_FIELDS if text.kind == "arguments" else TEXT_FIELDS[text.kind]
        changes: dict[str, Any] = {}
        said = [name for name in names if isinstance(content.get(name), str)]
        if said and (len(said) > 1 or content[said[0]] != text.shown):
            changes = dict.fromkeys(said) | {said[0]: text.shown}
        elif text.kind == "arguments" and text.shown:
            changes = {"args": text.shown}
        cited: Any = content.get("citations")
        if is_list(cited):
            text.cited = None if text.is_over else cited
            if self._cites_last and not text.is_over:
                changes["citations"] = None
            elif text.moves:
                cited = [one for one in cited if not (self._cites_last and text.has_changed(one))]
                changes["citations"] = moved(cited, text.place)
        return self._rewritten(_changed(event, changes), names)

    # From events to steps.

    def steps(self, event: Event) -> Sequence[Step]:
        """The steps of an event. Then ask for the `events` of each."""
        if not self._tail.take(event):
            return self._steps(event)
        text = self._newest
        if text is None:
            return () if self._is_held else (Step(event),)
        return (Step(None, text, text.feed(_piece(event))),)

    def _steps(self, event: Event) -> Sequence[Step]:
        kind = type(event)
        if kind not in EVENT_TYPES:
            raise self._sink.refusal(event)
        self._tail.follow(event)
        self._newest, self._is_held = None, False
        self._ending.clear()
        if kind in PIECE_FIELDS:
            return self._delta(event)
        if kind is StreamError:
            return (*self.cut_off(), Step(self._rewritten(event)))
        found: list[Step] = []
        for walk in self._walks.of(event):
            changes = walk.step(event)
            if kind in _CONTENT:
                return self._block(walk, event, changes)
            if changes:
                found += self._message(walk, changes, is_cut=kind is not MessageFinish)
                if changes[0].kind == "another":
                    found += self._other_choices(walk, event)
        return (*found, Step(self._rewritten(event)))

    def cut_off(self) -> Sequence[Step]:
        """The events before the end of the source: the rest of texts that haven't ended."""
        self._tail.follow(None)
        self._newest, self._is_held = None, False
        found: list[Step] = []
        for walk, texts in self._texts.items():
            for text in texts.values():
                found += self._rest(text, is_cut=True)
            texts.clear()
            walk.break_off()  # what still comes for these blocks, nobody filters any more
        return found

    def ending(
        self, lane: Lane, why: str, *, unseen: bool = False, but: Index | None = None
    ) -> Sequence[Event]:
        """The events that end the open blocks of a reply before its source does; open calls are invalid, for this reason.

        Args:
            lane: The reply.
            why: The reason.
            unseen: Whether nobody has got the newest event, so that the blocks that it ends are open, too.
            but: A block that has ended already.
        """
        run_id, choice = lane
        walk = self._walk(MessageFinish(choice=choice, run_id=run_id))
        blocks = [fold.block for fold in walk.blocks.values() if fold.block.open]
        blocks += self._ending.get(walk, ()) if unseen else ()
        blocks.sort(key=lambda block: message_order(block.key))
        return [
            refused(_index(block), lane, why)
            if isinstance(block, ToolCall)
            else BlockFinish(_index(block), choice=choice, run_id=run_id)
            for block in blocks
            if block.key != but
        ]

    def _walk(self, event: Event) -> Walk:
        """The walk of an event that names a choice."""
        (walk,) = self._walks.of(event)
        return walk

    def _grow(self, delta: Any) -> None:
        self._walk(delta).grow(delta)

    def _delta(self, event: Any) -> Sequence[Step]:
        walk, field = self._walk(event), PIECE_FIELDS[type(event)]
        fold, piece = walk.grow(event), getattr(event, field)
        if fold is None:
            self._tail.follow(None)  # nothing is known of the block whose further pieces it would take
            if type(event) is ToolCallDelta and self._arguments is not None:
                return ()  # a call that is shown without its arguments would take it
            return (Step(attrs.evolve(event, **{field: _LEFT_OUT}) if piece else event),)
        if isinstance(fold.block, ToolCall):
            self._is_held = self._arguments is not None
            return () if self._is_held else (Step(event),)
        text = self._newest = self._texts.get(walk, {}).get(fold)
        if text is None:
            return (Step(event),)
        return (Step(None, text, text.feed(piece)),)

    def _message(self, walk: Walk, changes: Sequence[Change], *, is_cut: bool) -> Sequence[Step]:
        """The events before one of the whole message, which may end its texts."""
        texts = self._texts.get(walk, {})
        found: list[Step] = []
        if changes[0].kind == "another":
            for text in texts.values():
                found += self._rest(text, is_cut=True)
        if changes[0].kind in ("another", "reset"):
            texts.clear()  # what a reset takes back is dropped unseen
        self._ending[walk] = [change.fold.block for change in changes if change.kind == "closed"]
        for change in changes:
            ended = texts.pop(change.fold, None) if change.kind == "closed" else None
            if ended is not None:
                found += self._rest(ended, change.fold.block, is_cut=is_cut)
        return found

    def _other_choices(self, walk: Walk, event: Event) -> Sequence[Step]:
        """The events before another message of one choice, which cuts off the others of its run."""
        if self._drops:
            return ()
        found: list[Step] = []
        for other, texts in self._texts.items():
            for text in texts.values() if other is not walk else ():
                if text.lane[0] == event.run_id:
                    found += self._rest(text, is_cut=True)
                    text.filter = self._make()  # for what may come of it
        return found

    def _rest(self, text: Text, block: Block | None = None, *, is_cut: bool) -> Sequence[Step]:
        if isinstance(block, ToolCall) and not is_cut:
            return (Step(None, text, text.whole(_arguments_of(block))),)
        if text.kind == "arguments" or (is_cut and self._drops):
            return ()
        text.is_over = not is_cut
        return (Step(None, text, text.close(is_whole=block is not None)), *self._citing(text))

    def _block(self, walk: Walk, event: Any, changes: Sequence[Change]) -> Sequence[Step]:
        if not changes:
            return (Step(_without_content(event)),)
        fold, before = changes[-1].fold, changes[0].before
        block = fold.block
        if before is not None and before.open and not block.open:
            self._ending[walk] = (block,)
        texts = self._texts.setdefault(walk, {})
        old = texts.pop(fold, None)
        if isinstance(block, ToolCall):
            return self._call(texts, fold, block, event, before)
        if block.type not in self._types:
            return (Step(self._rewritten(event, _OWN.get(block.type, ()))),)
        is_start = type(event) is BlockStart
        more = _more(before, block) if old is not None and old.kind == block.type and not is_start else None
        inside = old is None or more is None
        if old is None or more is None:
            anew = before is not None and not is_start
            text, more = Text(self._make(), block.type, event, contradicts=anew), block.text or ""
        else:
            text = old
        is_said = inside or raw_text(before) is not raw_text(block)  # type: ignore[arg-type]
        pieces = text.go_on(more) if is_said else ()
        if block.open:
            texts[fold] = text
        else:
            pieces, text.is_over = (*pieces, *text.close()), True
        if is_start and self._apart:
            return (Step(event, text, (), True), Step(None, text, pieces))
        citing = () if inside else self._citing(text)
        if citing:
            return (Step(None, text, pieces), *citing, Step(event, text))
        return (Step(event, text, pieces, inside),)

    def _citing(self, text: Text) -> Sequence[Step]:
        """The event with the newest citations of an ended text, if they have waited or their places have moved since."""
        if not text.is_over or text.cited is None or not (self._cites_last or text.moves):
            return ()
        return (Step(text.citing(), text),)

    def _call(
        self, texts: dict[BlockFold, Text], fold: BlockFold, call: ToolCall, event: Any, before: Block | None
    ) -> Sequence[Step]:
        """A call goes on without its arguments until it has ended."""
        if self._arguments is None:
            return (Step(self._rewritten(event, ARGUMENT_FIELDS)),)
        event = _changed(event, dict.fromkeys(ARGUMENT_FIELDS))
        text = Text(self._arguments(), "arguments", event)
        if call.open:
            texts[fold] = text
            return (Step(self._rewritten(event)),)
        was_open = isinstance(before, ToolCall) and before.open
        return (Step(event, text, text.whole(_arguments_of(call)), inside=not was_open),)

    def _rewritten(self, event: Any, kept: Sequence[str] = ()) -> Event:
        """The event with its texts elsewhere rewritten, but for these fields of a block's content."""
        return event if self._elsewhere is None else elsewhere_in(event, self._elsewhere, kept)


def lift_rewriting(
    name: str, begin: Callable[[Sink[Any]], Rewriting]
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The operator of this name whose subscriptions each begin with such a `Rewriting`."""
    return all_events(name, lift_machine(name, begin, emits="events", needs_all=True))


def _piece(delta: Any) -> str:
    piece: str = delta.text if type(delta) is TextDelta else delta.reasoning
    return piece


def _index(block: Block) -> Any:
    return block.key


def _more(before: Any, part: ContentPart) -> str | None:
    """The addition to the part's earlier text; `None` if the text isn't the earlier one with more."""
    if raw_text(before) is raw_text(part):
        return ""
    whole, so_far = part.text or "", before.text or ""
    return whole[len(so_far) :] if whole.startswith(so_far) else None


def _arguments_of(call: ToolCall) -> str:
    arguments: Any = call.arguments
    if is_mapping(arguments):
        return json.dumps(thaw(arguments), ensure_ascii=False) if arguments else ""
    return str(arguments or "")


def _changed(event: Any, changes: Mapping[str, Any]) -> Any:
    """The event with these fields of a block's content; `None` leaves one out."""
    field = _CONTENT[type(event)]
    content = getattr(event, field)
    if content is None or not any(name in content or new is not None for name, new in changes.items()):
        return event
    fields = {
        name: value
        for name, value in {**content, **changes}.items()
        if name not in changes or value is not None
    }
    return attrs.evolve(event, **{field: fields})


def _without_content(event: Any) -> Event:
    """An event of a block that changes nothing, without what it has: nobody has filtered that."""
    if type(event) is BlockStart:
        fields: Any = {"type": event.content.get("type", "text")}
    else:
        fields = None
    left: Event = attrs.evolve(event, **{_CONTENT[type(event)]: fields})
    return left


def refused(index: Any, lane: Lane, why: str) -> BlockFinish:
    """The end of a call that must not be run."""
    run_id, choice = lane
    return BlockFinish(index, {"type": "invalid_tool_call", "error": why}, choice=choice, run_id=run_id)
