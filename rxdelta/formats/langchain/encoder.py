"""Events → LangChain's agent protocol, whose `messages` and `tools` LangGraph's clients read.

    stream   = (message | tool | custom)*
    message  = message-start block* (message-finish | error)
    block    = content-block-start content-block-delta* content-block-finish
    tool     = tool-started tool-output-delta* (tool-finished | tool-error)

Blocks overlap freely, each under its own index, by which readers sort them. Tools run beside the messages. Every
frame is an envelope with the method (`messages`, `tools`, `custom`), a timestamp and `seq`.

The protocol has fewer words than our events, and `decode("langchain")` restores all of them. What the protocol has no
place for travels in one of these ways, none of which disturbs another reader:

* as further fields of a frame or a block (the finish's `reason` and `metadata`, a reasoning's `signature`);
* as a `custom` event named `rxdelta`, whose payload is our event, whole (usage, a provider's own events);
* in a block of the type `non_standard`, if the protocol doesn't have the block's type, or a field has a value that the
  protocol doesn't allow (`protocol_content.py`).

`marks.py` lists the fields that are added for other readers' sake, and those by which our reader finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    Change,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    TokenUsage,
    Walk,
    clean_text,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.encoding import Masked, cut_off, masked, not_an_event, number_problems, shown_error
from rxdelta.formats.langchain.block_frames import DELTAS, BlockFrames
from rxdelta.formats.langchain.fields import Index
from rxdelta.formats.langchain.frames import FrameWriter, LangChainFrame, LangChainParams
from rxdelta.formats.langchain.marks import ATTEMPT_RESET, INTERRUPTED, SYNTHETIC
from rxdelta.formats.langchain.protocol_content import write_usage
from rxdelta.formats.langchain.tool_runs import ToolRuns
from rxdelta.formats.notes import SYNTHETIC_ID
from rxdelta.framing import SSE_HEADERS

__all__ = ["LANGCHAIN_HEADERS", "LangChainEncoder", "LangChainFrame", "LangChainParams"]

LANGCHAIN_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that streams LangChain's protocol: those of any stream of events."""

Frames: TypeAlias = Iterator[LangChainFrame]
Changes: TypeAlias = Sequence[Change]

_NEW_ATTEMPT = "The attempt failed, and another one begins."
_ANOTHER = "Another message began before this one had ended."


class LangChainEncoder:
    """The frames of one stream.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a message that has none.
        choice, namespace, on_error, first_seq: As for `rxdelta.to_langchain_events`.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.LangChainEncoder(now=lambda: 1.5, new_id=lambda: "m1")
        >>> (frame,) = encoder.encode(rd.events.MessageStart())
        >>> frame["method"], frame["params"]["data"]
        ('messages', {'event': 'message-start', 'role': 'ai', 'id': 'm1', 'synthetic_id': True})
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        choice: int = 0,
        namespace: Sequence[str] = (),
        on_error: Masked = masked,
        first_seq: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check_options(choice, namespace, first_seq)
        self._new_id = new_id
        self._choice = choice
        self._on_error = on_error
        self._over = False
        self._frames = FrameWriter(now, namespace, first_seq)
        self._tools = ToolRuns(self._frames)
        self._walk = Walk(choice, limits=limits, keep_calls=True)
        self._open = False  # whether the client is in a message
        self._usage: TokenUsage | None = None  # of the message
        self._blocks = BlockFrames(self._frames, self._tools)

    def encode(self, event: Event, /) -> Sequence[LangChainFrame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, its index or their number is too large.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        if kind in DELTAS:  # as in `Walk.grow`, but the event is needed, too
            fold = self._walk.blocks.get(given.index)
            if fold is None or fold.grows is not kind or given.choice != self._choice:
                return ()
            return self._blocks.grow(fold, given)
        if kind is ToolUpdate:  # a block's content doesn't repeat what the frames of its tool have
            return list(self._tools.update(given)) if given.choice in (None, self._choice) else ()
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        try:
            changes = self._walk.step(event)
        except ProviderError as error:
            return self.fail(error)
        if getattr(given, "choice", None) not in (None, self._choice):
            return ()
        return list(self._STEPS[kind](self, given, changes))

    def fail(self, error: Exception, /) -> Sequence[LangChainFrame]:
        """The stream ended with an error: all that is open is closed, and the message ends with the masked error."""
        if self._over:
            return ()
        self._over = True
        message = shown_error(self._on_error, error)
        frames = [*self._blocks.close(), *self._tools.close()]
        if not self._open:  # only a message can end with an error
            frames += self._begin(MessageStart(), synthetic=True)
        return [*frames, self._frames.message("error", message=message)]

    def close(self) -> Sequence[LangChainFrame]:
        """The stream completed. If its message hadn't, it was cut off, and ends as by `fail`."""
        if not self._walk.over:
            return self.fail(cut_off())
        if self._over:
            return ()
        self._over = True
        return list(self._tools.close())

    # The message.

    def _begin(self, event: MessageStart, *, synthetic: bool = False) -> Frames:
        self._open = True
        self._usage = self._usage or event.usage
        data = event.to_dict()
        metadata: dict[str, Any] = data.pop("metadata", {})
        data.pop("choice", None)
        plain = {name: value for name, value in metadata.items() if _is_plain(name, value)}
        more = {name: value for name, value in metadata.items() if name not in plain}
        if event.id is None:
            data |= {"id": clean_text(self._new_id()), SYNTHETIC_ID: True}
        data |= {"metadata": plain} if plain else {}
        data |= {"responseMetadata": more} if more else {}
        data |= {SYNTHETIC: True} if synthetic else {}
        yield self._frames.frame("messages", data)

    def _message_start(self, event: MessageStart, changes: Changes) -> Frames:
        if changes[0].kind == "another":
            if self._open:
                yield from self._blocks.close()
                yield self._frames.message("error", message=_ANOTHER, **{SYNTHETIC: True})
            self._put_away()
        if self._open:
            self._usage = self._usage or event.usage
            yield self._frames.custom(event)
        else:
            yield from self._begin(event)

    def _put_away(self) -> None:
        """Go on with another message, or another attempt at this one."""
        self._open, self._usage = False, None
        self._blocks = BlockFrames(self._frames, self._tools)

    def _message_finish(self, event: MessageFinish, changes: Changes) -> Frames:
        if not changes:
            yield self._frames.custom(event)
            return
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._close_blocks(changes)
        data = event.to_dict()
        data.pop("choice", None)
        yield self._frames.frame("messages", data | write_usage(event.usage or self._usage))

    def _message_interrupted(self, event: MessageInterrupted, changes: Changes) -> Frames:
        if changes and self._open:
            yield from self._close_blocks(changes)
            mark = {INTERRUPTED: True if event.reason is None else event.reason}
            yield self._frames.message("message-finish", **mark, **write_usage(self._usage))
        else:
            yield self._frames.custom(event)

    def _close_blocks(self, changes: Changes) -> Frames:
        """Finish the blocks that the end of the message closes. To our reader, that end finishes them."""
        self._open = False
        for change in changes:
            if change.kind == "closed":
                yield from self._blocks.finish(change.fold, change.fold.block, synthetic=True)

    def _attempt_reset(self, event: AttemptReset, changes: Changes) -> Frames:
        """End the attempt's message. Its error stays here: `on_error` is not asked what may be shown of it."""
        event = AttemptReset(event.attempt, usage=event.usage, choice=event.choice)
        if changes[0].kind == "reset":
            yield from self._blocks.close()
            yield from self._tools.close(self._blocks)
        if self._open:
            fields = {
                name: value for name, value in event.to_dict().items() if name not in ("event", "choice")
            }
            yield self._frames.message("error", message=_NEW_ATTEMPT, **{ATTEMPT_RESET: fields})
        else:
            yield self._frames.custom(event)
        self._put_away()

    def _usage_update(self, event: UsageUpdate, changes: Changes) -> Frames:
        if changes:
            self._usage = event.usage
        yield self._frames.custom(event)

    def _provider_event(self, event: ProviderEvent, _: Changes) -> Frames:
        yield self._frames.custom(event)

    # Blocks.

    def _block_start(self, event: BlockStart, changes: Changes) -> Frames:
        for change in changes:
            fold, before = change.fold, change.before
            if before is not None:
                yield from self._blocks.cut(fold, before)
            yield from self._start_block(event.index, fold, fold.block)

    def _start_block(self, key: Index, fold: BlockFold, begun: Block) -> Frames:
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._blocks.start(key, fold, begun)

    def _block_delta(self, event: BlockDelta, changes: Changes) -> Frames:
        for change in changes:
            yield from self._blocks.change(change.fold, event)

    def _block_finish(self, event: BlockFinish, changes: Changes) -> Frames:
        for change in changes:
            if change.kind == "overruled":  # other readers keep the first finish
                yield self._frames.custom(event)
            elif change.kind == "closed":
                fold, before = change.fold, change.before
                if len(changes) > 1 and before is not None:  # the block had no start
                    yield from self._start_block(event.index, fold, before)
                yield from self._blocks.finish(fold, fold.block, as_folded=event.content is None)

    _STEPS: ClassVar[Mapping[type, Callable[..., Iterable[LangChainFrame]]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        ProviderEvent: _provider_event,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
    }


def _is_plain(name: str, value: object) -> bool:
    """Whether the protocol allows this in the metadata of a message's start."""
    if name in _STRING_METADATA:
        return isinstance(value, str)
    return value is None or isinstance(value, (bool, int, float, str))


_STRING_METADATA = frozenset(
    ["provider", "model", "model_type", "run_id", "thread_id", "system_fingerprint", "service_tier"]
)


def _check_options(choice: object, namespace: object, first_seq: object) -> None:
    """Refuse options that make no sense.

    Raises:
        InvalidValueError: Naming the first that is wrong.
    """
    for name, value in (("choice", choice), ("first_seq", first_seq)):
        if problems := number_problems(name, value):
            raise InvalidValueError.of(problems)
    if isinstance(namespace, (str, bytes)) or not isinstance(namespace, Sequence):
        raise InvalidValueError.of([("namespace", namespace, "must be a list of strings")])
    if not all(isinstance(one, str) for one in namespace):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidValueError.of([("namespace", namespace, "must be a list of strings")])  # pyright: ignore[reportUnknownArgumentType]
