"""The short way: any SDK's stream as a live picture and a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from reactivex import abc

from rxdelta.aio.live import Live, Operator, applied
from rxdelta.aio.queues import ReaderMeter, check_meter
from rxdelta.aio.readers import iterate, refuse_loop, to_iterable
from rxdelta.aio.reading import to_async_iterable
from rxdelta.aio.sources import Opener, Source, check_stream, forget, read
from rxdelta.aio.threads import Gate
from rxdelta.core import (
    Event,
    InvalidValueError,
    Limits,
    Message,
    Seconds,
    Snapshot,
    check_pace,
    check_seconds,
)
from rxdelta.operators import (
    Answers,
    Approve,
    decode as decode_chunks,
    run_tools,
    stall_timeout,
    throttle_latest,
    with_limits,
)
from rxdelta.recording import RecordingFile
from rxdelta.runtime import SourceObservable, Taker, is_made_by, needed_loop, running_loop

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from reactivex import Observable

    from rxdelta.core.events import Custom
    from rxdelta.providers import WireFormat


C = TypeVar("C")
_OF_OBSERVABLES = ("pipe", "subscribe", "run")


def stream(
    source: Source | Opener,
    wire_format: WireFormat | str = "auto",
    *,
    decode: Callable[[Observable[Any]], Observable[Event]] | None = None,
    through: Sequence[Operator] = (),
    tools: Mapping[str, Callable[..., Any]] | Operator | None = None,
    approve: Approve | Answers | None = None,
    every: Seconds | None = None,
    timeout: Seconds | None = None,
    limits: Limits | None = None,
    meter: ReaderMeter | None = None,
    loads: Callable[[str], Any] | None = None,
    record: str | os.PathLike[str] | None = None,
) -> ReplyOpener:
    """A reply as it comes: `async with` gives a `Reply`, `with` a `BlockingReply`, and `await` only the message.

    Entering the block makes the request. The reply is read to its end, whether or not anybody iterates. Leaving the
    block, in any way, closes the request first. It is made once, however many readers there are.

    `every` is in seconds, not in milliseconds, and counts no snapshots. `timeout` limits a silence, not the reply.

    The events pass the operators of `through`, then the tools, and all that shows the reply stands behind them: snapshots,
    texts, `events` and the message. An operator may end the reply, which closes the request; its error is the reply's. The
    request is made once, so an operator can't ask again: give `retry_stream(…)` as the source.

    Args:
        source: The provider's stream: an SDK's stream or stream manager, an awaitable of one, or a function that opens
            one; any iterable of chunks or events, async or not; an Observable of these; a response of `httpx` or its
            pieces, as bytes of SSE or NDJSON. A coroutine function is called on the loop. Any other function, and a
            blocking stream, runs on a thread, so that a sync client blocks no loop.
        wire_format: One of `rxdelta.providers.FORMATS`; by default what the first chunks show.
        decode: A configured `rd.decode(…)`, in the place of `wire_format` and `loads`; or any operator that turns what the
            source emits into events.
        through: Operators from events to events, such as `[rd.smooth()]`, the first in front. They run
            on the loop, if there is one.
        tools: Functions by the names that the model uses, or a configured `rd.run_tools(…)`. The reply then ends when the
            tools have ended.
        approve: Decides whether a call may run; see `run_tools`. Without `tools`, it decides only about calls that the
            provider will run. A configured `rd.run_tools(…)` takes it itself.
        every: Seconds, or a `timedelta`, between two snapshots of a loop, at least. Without it, each loop gets the newest snapshot
            whenever it asks.
        timeout: The longest silence of the provider, in seconds or as a `timedelta`: before the first chunk, and between two. A ping is no
            chunk. To limit the whole reply, use `asyncio.timeout`.
        limits: Bounds on what the reply may hold in memory; see `with_limits`.
        meter: Measures what waits for the loops over the reply and over its `text_deltas`, see `ReaderMeter`.
        loads: Reads the JSON of bytes, see `parse_sse`.
        record: A file, in which the chunks are recorded as they come, see `rd.record`; `rd.from_recording` is a source that
            replays it. To record the events, write `through=[rd.record(path)]`.

    Raises:
        OSError: On entering, if the file of `record` can't be opened. No request is made then.
        InvalidValueError: At once, for an argument that makes no sense, and for a source that is no stream, such as
            a text, a mapping, or the whole reply of a client without `stream=True`; and for an operator of `through` that
            emits something else than events. An error that only shows when the source is opened is raised by the readers. On
            entering, the second time; for `with` in a running asyncio loop; for `async with` without one.
        UnknownWireFormatError: At once, if there is no such format.

    Example:
        >>> import rxdelta as rd
        >>> chunks = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "lo")]
        >>> chunks += [{"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        >>> with rd.stream(chunks) as reply:
        ...     print("".join(reply.text_deltas))
        Hello
        >>> reply.message.status
        'complete'

        With an operator and a decoder of your own choice:

        >>> from reactivex import operators as ops
        >>> def is_wanted(event):
        ...     return not isinstance(event, rd.events.ProviderEvent)
        >>> with rd.stream(chunks, decode=rd.decode("openai-chat"), through=[ops.filter(is_wanted), rd.smooth()]) as reply:
        ...     reply.result().text
        'Hello'
    """
    check_stream(source)
    wrong = check_meter(meter, "rd.stream")
    if wrong:
        raise InvalidValueError.of(wrong)
    decoder = _decoder(wire_format, decode, loads)
    silence = None if timeout is None else stall_timeout(check_seconds("timeout", timeout))
    pace = None if every is None else throttle_latest(timedelta(seconds=check_pace("every", every)))
    operators: object = through
    if not isinstance(operators, Sequence):
        raise InvalidValueError.of([("through", operators, "must be a list of operators: [rd.smooth()]")])
    run = _tool_runner(tools, approve)

    def begin(observer: Taker[Any], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        return read(source, live.gate).subscribe(*observer, scheduler=scheduler)

    chunks: Observable[Any] = SourceObservable("…", begin)
    if silence is not None:
        chunks = chunks.pipe(silence)
    recording = None if record is None else RecordingFile(record)
    if recording is not None:
        chunks = chunks.pipe(recording.writes())
    decoded = applied("decode", decoder, chunks)
    if limits is not None:
        decoded = decoded.pipe(with_limits(limits))
    live = Live(decoded, through, run, pace, meter)
    is_ours = decode is None or is_made_by(decode, "decode")
    # Tools need the loop, and what we don't know may need it.
    gate = Gate() if is_ours and not through and run is None else None
    return ReplyOpener(source, live, gate, recording)


def _decoder(
    wire_format: WireFormat | str,
    configured: Callable[[Observable[Any]], Observable[Event]] | None,
    loads: Callable[[str], Any] | None,
) -> Callable[[Observable[Any]], Observable[Event]]:
    if configured is None:
        return decode_chunks("auto", only=None if wire_format == "auto" else wire_format, loads=loads)
    if wire_format != "auto" or loads is not None:
        wrong = "decode: comes in the place of wire_format= and loads=: rd.decode(wire_format, …) takes both itself"
        raise InvalidValueError(wrong, field="decode")
    return configured


def _tool_runner(
    tools: Mapping[str, Callable[..., Any]] | Operator | None, approve: Approve | Answers | None
) -> Operator | None:
    if is_made_by(tools, "run_tools"):
        if approve is not None:
            wanted = "can't be given beside a configured rd.run_tools(…): it is an argument of that"
            raise InvalidValueError.of([("approve", approve, wanted)])
        return tools
    if tools is None:
        return None if approve is None else run_tools({}, unknown="leave", approve=approve)
    if not isinstance(tools, Mapping):
        wanted = "must be functions by their names, or a configured rd.run_tools(…)"
        raise InvalidValueError.of([("tools", tools, wanted)])
    return run_tools(tools, approve=approve)  # pyright: ignore[reportUnknownArgumentType]


def _refuses(**methods: Callable[..., NoReturn]) -> Callable[[type[C]], type[C]]:
    """Add methods that raise an error with advice. Type checkers don't see them, so they refuse such a use, too."""

    def add(cls: type[C]) -> type[C]:
        for name, method in methods.items():
            setattr(cls, name, method)
        return cls

    return add


def _wrong_loop(right: str) -> Callable[[object], NoReturn]:
    def refuse(_: object) -> NoReturn:
        raise InvalidValueError(f"this can't be iterated so: {right}", field="source")

    return refuse


def _not_called(loop: str) -> Callable[[object], NoReturn]:
    def refuse(_: object) -> NoReturn:
        wrong = f"text_deltas isn't called: {loop} piece in reply.text_deltas: …"
        raise InvalidValueError(wrong, field="text_deltas")

    return refuse


def _no_attribute(opener: object, name: str) -> NoReturn:
    hint = ""
    if name in _OF_OBSERVABLES:
        hint = (
            f"; inside `async with rd.stream(…) as reply` it is reply.events.{name}(…), and a pipeline of your own "
            "begins with rd.from_async_iterable(…)"
        )
    elif not name.startswith("_") and hasattr(Reply, name):
        hint = f"; enter it first: async with rd.stream(…) as reply: reply.{name}"
    elif not name.startswith("_") and hasattr(Message, name):
        hint = f"; await it first: message = await rd.stream(…), then message.{name}"
    raise AttributeError(f"rd.stream(…) has no attribute {name!r}{hint}", name=name, obj=opener)


def _no_attribute_of_reply(reply: object, name: str) -> NoReturn:
    hint = ""
    if name in _OF_OBSERVABLES:
        hint = f"; it is reply.events.{name}(…)"
    elif not name.startswith("_") and hasattr(Message, name):
        hint = f"; reply.snapshot.{name} is that of the reply so far, reply.message.{name} of the whole reply"
    raise AttributeError(f"a {type(reply).__name__} has no attribute {name!r}{hint}", name=name, obj=reply)


@_refuses(
    __iter__=_wrong_loop("with rd.stream(…) as reply: for snapshot in reply: …"),
    __aiter__=_wrong_loop("async with rd.stream(…) as reply: async for snapshot in reply: …"),
    __getattr__=_no_attribute,
)
class ReplyOpener:
    """A reply that is opened by `async with`, by `with`, or by `await`; once."""

    def __init__(
        self, source: object, live: Live, gate: Gate | None, recording: RecordingFile | None
    ) -> None:
        self._source = source
        self._recording = recording
        self._new: Live | None = live
        self._gate = gate
        self._reply: Reply | None = None
        self._blocking: BlockingReply | None = None

    async def __aenter__(self) -> Reply:
        self._reply = Reply(self._live())
        await self._reply._enter()
        return self._reply

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._reply is not None:
                await self._reply._leave()
        finally:
            forget(self._source)

    def __enter__(self) -> BlockingReply:
        if running_loop() is not None:
            raise InvalidValueError(
                "an asyncio loop is running here, which `with` would block: use `async with rd.stream(…)`",
                field="source",
            )
        self._blocking = BlockingReply(self._live(self._gate))
        self._blocking._enter()
        return self._blocking

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._blocking is not None:
                self._blocking._leave()
        finally:
            forget(self._source)

    def __await__(self) -> Generator[Any, None, Message]:
        return self._whole().__await__()

    async def _whole(self) -> Message:
        async with self as reply:
            return await reply.result()

    def _live(self, gate: Gate | None = None) -> Live:
        live, self._new = self._new, None
        if live is None:
            raise InvalidValueError("a reply is opened once: call rd.stream() again", field="source")
        live.gate = gate
        if self._recording is not None:
            self._recording.open()
        return live

    def __repr__(self) -> str:
        state = "not opened yet" if self._new is not None else "opened"
        return f"<rd.stream(…), {state}; await it, or open it by `async with` or `with`>"


@_refuses(
    __iter__=_wrong_loop("inside `async with`: async for piece in reply.text_deltas: …"),
    __call__=_not_called("async for"),
)
class _TextDeltas:
    """The pieces of a `Reply`'s text, for one loop. Other ways to read them are refused with the right one."""

    def __init__(self, pieces: AsyncGenerator[str]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[str]:
        return self._pieces

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        await self._pieces.aclose()


@_refuses(
    __aiter__=_wrong_loop("inside `with`: for piece in reply.text_deltas: …"), __call__=_not_called("for")
)
class _BlockingTextDeltas:
    """The pieces of a `BlockingReply`'s text, as `_TextDeltas`."""

    def __init__(self, pieces: Generator[str]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        self._pieces.close()


@_refuses(__getattr__=_no_attribute_of_reply)
class _Face:
    """The common part of both kinds of block."""

    def __init__(self, live: Live) -> None:
        self._live = live

    @property
    def events(self) -> Observable[Event]:
        """The events, shared, for pipelines of your own: `rd.for_each(reply.events.pipe(…), …)`.

        Every reader gets the events so far in their shortest form first; see `share_events`. In synchronous code
        `rd.to_iterable` reads them.
        """
        self._live.was_asked = True
        if self._live.gate is not None:
            self._live.gate.close()  # what reads the events may need the loop
        return self._live.events

    @property
    def snapshot(self) -> Snapshot:
        """The reply so far; empty before the first chunk."""
        return self._live.snapshot

    @property
    def message(self) -> Message:
        """The finished message.

        Raises:
            IncompleteMessageError: The reply is still coming, was stopped, or was left before its end; the reply so far
                is in `.snapshot`.
            Exception: The stream's error, with `.snapshot`; or as `Snapshot.to_message`.
        """
        return self._live.message()

    def stop(self, reason: str = "stopped") -> None:
        """Stop the reply and close the request, from any task, thread or signal handler, and keep what came.

        Loops end with a snapshot whose `status` is `interrupted`, or that of the whole reply if only tools were still
        running. `message` raises `IncompleteMessageError`; `snapshot.to_message()` makes a message of it. A reply that has
        ended isn't changed. Outside of a loop this waits for the end, for five seconds at most.

        The operators of `through` get the interruption, too, and the reply keeps what they emit at it: `smooth` all text
        that came. But the reply waits for none of them. One that doesn't end at once, because it waits for a check or a
        timer, is left, and what it holds is not shown.

        Args:
            reason: The reason that the interrupted message gives.
        """
        self._live.stop(reason)

    def emit(self, event: Custom) -> None:
        """Add an event of the application's own here: to `events`, and to the snapshots if it isn't transient.

        From any task or thread. It passes no operators of `through`. A reply that has ended isn't changed. Data that
        are known earlier, or when the provider has ended, can be yielded by the source, among its chunks.

        Raises:
            InvalidValueError: It is no `events.Custom`.
        """
        self._live.emit(event)

    def __repr__(self) -> str:
        return f"<rd.types.{type(self).__name__} {self._live.state()}; {self._live.snapshot!r}>"


@_refuses(__iter__=_wrong_loop("inside `async with` use `async for`"))
class Reply(_Face):
    """A reply inside `async with rd.stream(…)`, and afterwards.

    Iterating gives the newest snapshot: a slow loop skips some, is never behind, and always gets the last. Each loop is a
    reader of its own, which starts with the reply so far; so `text_deltas`, `events` and several loops may be used
    together or one after another, also in other tasks, and also when the reply has ended.

    If the stream fails, each loop, `message` and `result()` raise the error, with the reply so far in `.snapshot`.
    Leaving the block raises nothing: a loop left by `break` must not fail for what came after it. If nothing had been
    read but `snapshot`, the error is logged (`rxdelta`).

    If the block is left before the reply has ended, the source is closed, `message` raises `IncompleteMessageError`, and
    loops in other tasks raise `StreamInterrupted`.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> from rxdelta.testing import sample_chunks
        >>> async def main():
        ...     async with rd.stream(sample_chunks("tides")) as reply:
        ...         async for snapshot in reply:
        ...             text = snapshot.text
        ...     return text == reply.message.text
        >>> asyncio.run(main())
        True
    """

    def __init__(self, live: Live) -> None:
        super().__init__(live)
        self._reading = to_async_iterable(live.end, "buffer")

    async def _enter(self) -> None:
        needed_loop("rd.stream", "enter it in a coroutine that asyncio.run() runs, or use `with`")
        await self._reading.__aenter__()

    async def _leave(self) -> None:
        self._live.leave()
        await self._reading.__aexit__(None, None, None)

    def __aiter__(self) -> AsyncIterator[Snapshot]:
        live = self._live
        live.was_asked = True
        if live.is_queued:
            return iterate(live.snapshots, overflow="latest", meter=live.meter)
        return live.newest()

    @property
    def text_deltas(self) -> AsyncIterator[str]:
        """The text in pieces, none lost. A loop that begins late gets the text so far as its first piece."""
        self._live.was_asked = True
        return _TextDeltas(self._pieces())

    async def _pieces(self) -> AsyncGenerator[str]:
        try:
            async for piece in iterate(self._live.text_deltas, overflow="buffer", meter=self._live.meter):
                yield piece
        except Exception as error:
            raise self._live.failure(error)  # noqa: B904

    async def result(self) -> Message:
        """The message, as soon as the reply has ended. Raises as `message` does."""
        loop = needed_loop("rd.stream", "await it in a coroutine that asyncio.run() runs")
        await self._live.over.wait(loop, 0)
        return self._live.result()


@_refuses(__aiter__=_wrong_loop("inside `with` use `for`"))
class BlockingReply(_Face):
    """A reply inside `with rd.stream(…)`, and afterwards: a `Reply` for programs without asyncio.

    The reply is read on a thread of its own. A loop, `text_deltas` and `result()` block; they may be used on several
    threads. Otherwise the same as `Reply`.

    Example:
        >>> import rxdelta as rd
        >>> from rxdelta.testing import sample_chunks
        >>> with rd.stream(sample_chunks("tides", pause=0.1)) as reply:
        ...     reply.stop()
        >>> reply.snapshot.status
        'interrupted'
    """

    def __init__(self, live: Live) -> None:
        super().__init__(live)
        self._reading = to_iterable(live.end, "buffer")

    def _enter(self) -> None:
        self._reading.__enter__()

    def _leave(self) -> None:
        self._live.leave()
        self._reading.__exit__(None, None, None)

    def __iter__(self) -> Iterator[Snapshot]:
        self._live.was_asked = True
        return self._newest()

    def _newest(self) -> Iterator[Snapshot]:
        live = self._live
        if live.is_queued:
            with to_iterable(live.snapshots, "latest", meter=live.meter) as snapshots:
                yield from snapshots
        else:
            refuse_loop()
            yield from live.newest_here()

    @property
    def text_deltas(self) -> Iterator[str]:
        """The text in pieces, none lost. A loop that begins late gets the text so far as its first piece."""
        self._live.was_asked = True
        return _BlockingTextDeltas(self._pieces())

    def _pieces(self) -> Generator[str]:
        try:
            with to_iterable(self._live.text_deltas, "buffer", meter=self._live.meter) as pieces:
                yield from pieces
        except Exception as error:
            raise self._live.failure(error)  # noqa: B904

    def result(self) -> Message:
        """Wait for the end of the reply, and return the message. Raises as `message` does."""
        if self._live.is_coming():
            refuse_loop()
            self._live.over.wait_here(0)
        return self._live.result()
