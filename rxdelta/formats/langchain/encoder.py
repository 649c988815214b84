"""Events → LangChain's agent protocol, whose `messages` and `tools` LangGraph's clients read.

    stream   = (message | tool | custom)*
    message  = message-start block* (message-finish | error)
    block    = content-block-start content-block-delta* content-block-finish
    tool     = tool-started tool-output-delta* (tool-finished | tool-error)

Blocks overlap freely, each under its own index, by which readers sort them. Tools run beside the messages. Every
frame is an envelope with the method (`messages`, `tools`, `custom`), a timestamp and `seq`. Its namespace names the run,
in whose frames one message follows another; runs overlap freely, each in its own namespace.

The protocol has fewer words than our events, and `decode("langchain")` restores all of them. Content that the protocol has no
place for travels in one of these ways, none of which disturbs another reader:

* as further fields of a frame or a block (the finish's `reason` and `metadata`, a reasoning's `signature`);
* as a `custom` event named `rxdelta`, whose payload is our event, whole (usage, a provider's own events, and a `Custom`
  that has this name; any other `Custom` is a `custom` event with its own name);
* in a block of the type `non_standard`, if the protocol doesn't have the block's type, or a field has a value that the
  protocol doesn't allow (`protocol_content.py`).

`tables.py` lists the fields that are added for other readers' sake, and those by which our reader finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Final

from rxdelta.core import DEFAULT_LIMITS, Event, InvalidValueError, Limits, ProviderError, Walk
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent
from rxdelta.formats.encoding import Masked, cut_off, masked, not_an_event, number_problems, shown_error
from rxdelta.formats.endings import PROVIDER_ERROR
from rxdelta.formats.format import Endpoint, plain_error
from rxdelta.formats.langchain.frames import DELTAS, FrameWriter, LangChainFrame, RunFrames
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.runs import Lanes
from rxdelta.framing import SSE_HEADERS

LANGCHAIN_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that streams LangChain's protocol: those of any stream of events."""


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

    headers: ClassVar[Mapping[str, str]] = LANGCHAIN_HEADERS

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
        self._on_error = on_error
        self._over = False
        self._frames = FrameWriter(now, namespace, count(first_seq))

        def make(walk: Walk, _first: RunFrames | None) -> RunFrames:
            return RunFrames(self._frames.of_run(None), walk, new_id)

        self._runs = Lanes(make, choice, limits)

    def encode(self, event: Event, /) -> Sequence[LangChainFrame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, its index or their number is too large, or there are too many runs.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        runs = self._runs
        if kind in DELTAS and (given.run_id == runs.newest_id or runs.turn_to(given.run_id)):
            fold = runs.grow(event)
            return () if fold is None else runs.newest.blocks.grow(fold, given)
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        if isinstance(event, ProviderEvent):
            if event.name == PROVIDER_ERROR:  # its text is masked, so the object that has it stays here, too
                return ()
            return (self._frames.of_run(event.run_id).custom(event),)
        if isinstance(event, Custom):
            return (self._frames.of_run(event.run_id).application(event),)
        try:
            concerned = runs.of(event)
        except ProviderError as error:
            return self.fail(error)
        return [frame for run in concerned for frame in run.encode(event)]

    def fail(self, error: Exception, /) -> Sequence[LangChainFrame]:
        """The stream ended with an error: all that is open is closed, and each message ends with the masked error."""
        if self._over:
            return ()
        self._over = True
        message, words = shown_error(self._on_error, error), self._words_of(error)
        frames = [frame for run in self._runs for frame in run.close()]
        open_runs = [run for run in self._runs if run.is_open] or [self._runs.first]
        return frames + [frame for run in open_runs for frame in run.fail(message, words)]

    def _words_of(self, _: Exception, /) -> Mapping[str, str]:
        """The error's type and code for the client, which the public encoder hides as it hides the text."""
        return {}

    def close(self) -> Sequence[LangChainFrame]:
        """The stream completed. If a message of a run hadn't, it was cut off, and ends as by `fail`."""
        if not self._runs.over:
            return self.fail(cut_off())
        if self._over:
            return ()
        self._over = True
        return [frame for run in self._runs for frame in run.close()]


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


ENDPOINT: Final = Endpoint(error=plain_error)


class _Writer(LangChainEncoder):
    def _words_of(self, error: Exception, /) -> Mapping[str, str]:
        found = {name: getattr(error, name, None) for name in ("type", "code")}
        return {name: word for name, word in found.items() if isinstance(word, str)}


def writer(on_error: Masked) -> LangChainEncoder:
    numbers = count(1)
    return _Writer(
        now=lambda: CREATED,
        new_id=lambda: REPLY_ID if (n := next(numbers)) == 1 else f"reply-{n}",
        on_error=on_error,
    )
