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
from typing import Any, ClassVar, Final, Literal, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    TokenUsage,
    begins_another,
    clean_text,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.encoding import Masked, cut_off, masked, not_an_event, number_problems, shown_error
from rxdelta.formats.langchain.block_frames import DELTAS, BlockFrames
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
        self._limits = limits
        self._new_id = new_id
        self._choice = choice
        self._on_error = on_error
        self._over = False
        self._frames = FrameWriter(now, namespace, first_seq)
        self._tools = ToolRuns(self._frames)
        # Of the current message:
        self._state: Literal["none", "open", "closed"] = "none"
        self._id: str | None = None
        self._has_start = False  # from the source
        self._usage: TokenUsage | None = None
        self._blocks = BlockFrames(self._frames, self._tools, limits)

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
        if kind in DELTAS:
            return self._blocks.grow(given) if given.choice == self._choice else ()
        step = self._STEPS.get(kind)
        if step is None:
            raise not_an_event(event)
        if kind is not StreamError and getattr(given, "choice", None) not in (None, self._choice):
            return ()
        return list(step(self, given))

    def fail(self, error: Exception, /) -> Sequence[LangChainFrame]:
        """The stream ended with an error: all that is open is closed, and the message ends with the masked error."""
        if self._over:
            return ()
        self._over = True
        message = shown_error(self._on_error, error)
        frames = [*self._blocks.close(), *self._tools.close()]
        if self._state != "open":  # only a message can end with an error
            frames += self._begin(MessageStart(), synthetic=True)
        return [*frames, self._frames.message("error", message=message)]

    def close(self) -> Sequence[LangChainFrame]:
        """The stream completed. If its message hadn't, it was cut off, and ends as by `fail`."""
        if self._state != "closed":
            return self.fail(cut_off())
        if self._over:
            return ()
        self._over = True
        return list(self._tools.close())

    # The message.

    def _begin(self, event: MessageStart, *, synthetic: bool = False) -> Frames:
        self._state = "open"
        self._id, self._usage = event.id, event.usage
        self._has_start = not (synthetic or event.assumed)
        self._blocks = BlockFrames(self._frames, self._tools, self._limits)
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

    def _message_start(self, event: MessageStart) -> Frames:
        if self._state == "open":
            begun = self._has_start and bool(self._blocks.known)
            if not begins_another(event, id=self._id, begun=begun, over=False):
                self._has_start = self._has_start or not event.assumed
                self._id = self._id or event.id
                self._usage = self._usage or event.usage
                yield self._frames.custom(event)
                return
            yield from self._blocks.close()
            yield self._frames.message("error", message=_ANOTHER, **{SYNTHETIC: True})
        yield from self._begin(event)

    def _message_finish(self, event: MessageFinish) -> Frames:
        if self._state == "closed":
            yield self._frames.custom(event)
            return
        if self._state == "none":
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._blocks.close()
        self._state = "closed"
        data = event.to_dict()
        data.pop("choice", None)
        yield self._frames.frame("messages", data | write_usage(event.usage or self._usage))

    def _message_interrupted(self, event: MessageInterrupted) -> Frames:
        if self._state == "open":
            yield from self._blocks.close()
            mark = {INTERRUPTED: True if event.reason is None else event.reason}
            yield self._frames.message("message-finish", **mark, **write_usage(self._usage))
        else:
            yield self._frames.custom(event)
        self._state = "closed"

    def _attempt_reset(self, event: AttemptReset) -> Frames:
        """End the attempt's message. Its error stays here: `on_error` is not asked what may be shown of it."""
        event = AttemptReset(event.attempt, usage=event.usage)
        if self._state == "open":
            yield from self._blocks.close()
            yield from self._tools.close(self._blocks.known)
            fields = {name: value for name, value in event.to_dict().items() if name != "event"}
            yield self._frames.message("error", message=_NEW_ATTEMPT, **{ATTEMPT_RESET: fields})
        else:
            yield self._frames.custom(event)
        self._state = "none"

    def _stream_error(self, event: StreamError) -> Sequence[LangChainFrame]:
        return self.fail(ProviderError(event.message, type=event.type, code=event.code))

    def _usage_update(self, event: UsageUpdate) -> Frames:
        if self._state == "open":
            self._usage = event.usage
        yield self._frames.custom(event)

    def _provider_event(self, event: ProviderEvent) -> Frames:
        yield self._frames.custom(event)

    # Blocks and tools.

    def _block_start(self, event: BlockStart) -> Frames:
        if self._state == "closed":
            return
        fold = self._blocks.fold(event)  # before any frame: it may refuse the block
        if self._state == "none":
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._blocks.start(event.index, fold)

    def _block_delta(self, event: BlockDelta) -> Frames:
        return self._blocks.change(event)

    def _block_finish(self, event: BlockFinish) -> Frames:
        block = self._blocks.known.get(event.index)
        if block is None:
            if event.content is None or self._state == "closed":
                return
            yield from self._block_start(BlockStart(event.index, event.content))
        elif block.done:
            if event.content is not None and self._state == "open":  # other readers keep the first finish
                yield self._frames.custom(event)
            return
        yield from self._blocks.finish(event)

    def _tool_update(self, event: ToolUpdate) -> Frames:
        return self._tools.update(event)

    _STEPS: ClassVar[Mapping[type, Callable[..., Iterable[LangChainFrame]]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        StreamError: _stream_error,
        ProviderEvent: _provider_event,
        ToolUpdate: _tool_update,
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
