"""A provider that says what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import length_hint
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
from reactivex.disposable import Disposable

from rxdelta.core import Event, InvalidValueError
from rxdelta.providers import WireFormat
from rxdelta.recording import Line, check_speed, read_lines
from rxdelta.runtime import Sink, create
from rxdelta.testing.script import FakeReply, FakeRequest, Script, Written, recorded_script, script_of

if TYPE_CHECKING:
    from reactivex import Observable, abc

    from rxdelta.testing.fake_server import FakeServer


Answer: TypeAlias = Callable[[FakeRequest], FakeReply]


class FakeProvider:
    """A provider that gives these replies, one for each request, in any format and without a network.

    A reply is

    - a `Message`, or a text: it comes word by word, arguments of calls come in pieces of 9 characters;
    - a list of parts, which comes as it is written: a text is one piece, neighbouring texts are one block. Other parts are
      a `ContentPart`, a `ToolCall`, a pause in seconds, an exception (the connection breaks there), `EOFError()` (the
      stream ends there, without an error and before the message does), a `StreamError` (the provider's own error), any
      other event, or a tuple of parts that come at a time, a piece of each in turn;
    - one of these parts alone;
    - a tuple of replies: the choices of one reply, which come at a time;
    - a function of the `FakeRequest` that returns one of these.

    What a provider says by itself is added: ids, a model's name, the finish reason, the usage. The same replies always
    become the same chunks.

    Args:
        replies: The replies. The n-th request gets the n-th, whatever it asks for.
        repeat: Whether the first reply follows the last one. Otherwise one request too many is an error.

    Attributes:
        requests: The requests so far, in order.

    Raises:
        InvalidValueError: Something is no part of a reply.

    Example:
        >>> from rxdelta.testing import FakeProvider
        >>> provider = FakeProvider("Hello world")
        >>> [chunk["message"]["content"] for chunk in provider.chunks("ollama")]
        ['Hello ', 'world', '']
    """

    def __init__(self, *replies: FakeReply | Answer, repeat: bool = False) -> None:
        self._replies: list[Script | Answer] = [
            reply if callable(reply) else script_of(reply, number) for number, reply in enumerate(replies, 1)
        ]
        self._repeat = repeat
        self._server: FakeServer | None = None
        self._given = 0
        self._lock = Lock()
        self.requests: list[FakeRequest] = []

    @classmethod
    def from_recording(
        cls, *paths: str | PathLike[str], speed: float = 1.0, repeat: bool = False
    ) -> FakeProvider:
        """A provider that gives recorded replies, at the times at which they came.

        In the format of its recording, a reply comes in the recorded chunks; in another one, in chunks of the same events.
        An error that ended the recorded stream ends this one, and so does a recording without its last line.

        Args:
            paths: The recordings, by `rd.record` or as `rd.from_recording` takes them: one for each reply.
            speed: How fast they come: 2 is twice as fast, 0 leaves the pauses out.
            repeat: As for `FakeProvider`.

        Raises:
            OSError: A file can't be read.
            InvalidValueError: The speed is no number from 0, or a file is a recording of a later version.
            MalformedChunkError: A file is no recording.
        """
        provider = cls(repeat=repeat)
        provider._add(map(read_lines, paths), check_speed(speed))
        return provider

    def _add(self, recordings: Iterable[Iterable[Line]], speed: float) -> None:
        self._replies += [recorded_script(lines, speed) for lines in recordings]

    @property
    def server(self) -> FakeServer:
        """The newest server of `serve()`.

        Raises:
            InvalidValueError: There is none.
        """
        if self._server is None:
            raise InvalidValueError("the fake provider isn't served: enter serve() first", field="server")
        return self._server

    @property
    def left(self) -> int:
        """How many replies nobody has asked for yet."""
        return max(0, len(self._replies) - self._given)

    def _next(self, request: FakeRequest) -> Script:
        """The reply to a request.

        Raises:
            InvalidValueError: There is none, or a function has returned something else.
        """
        return self._take(request)()

    def _take(self, request: FakeRequest) -> Callable[[], Script]:
        """Take the next reply for a request. The returned function gives it, and calls the function that a reply may
        be.

        Raises:
            InvalidValueError: There is none.
        """
        with self._lock:
            self.requests.append(request)
            place = self._given
            if self._repeat and self._replies:
                place %= len(self._replies)
            if place >= len(self._replies):
                wanted = f"{len(self._replies)} {'reply' if len(self._replies) == 1 else 'replies'}"
                raise InvalidValueError(
                    f"the fake provider has {wanted}, and was asked once more", field="replies"
                )
            self._given += 1
        reply = self._replies[place]

        def script() -> Script:
            made = reply if isinstance(reply, Script) else script_of(reply(request), place + 1)
            return attrs.evolve(made, number=place + 1)

        return script

    @contextmanager
    def _items(self, wire_format: str) -> Generator[Iterator[Written]]:
        """What the next reply is in a format, for a reader that closes the request by leaving before the last item."""
        request = FakeRequest(wire_format=wire_format)
        items = iter(self._next(request).written(wire_format))
        try:
            yield items
        finally:
            if length_hint(items):
                request.closed.set()

    def events(self) -> Iterator[Event]:
        """The next reply's events, without its pauses. An exception of the reply is raised in its place.

        The reply is asked for when the first event is read, as by `chunks`, `stream` and `observable`.
        """
        for item in self._next(FakeRequest(wire_format="")).items:
            if isinstance(item, Exception):
                raise item
            if not isinstance(item, (int, float)):
                yield item

    def chunks(self, wire_format: WireFormat | str) -> Iterator[dict[str, Any]]:
        """The next reply's chunks, without its pauses. An exception of the reply is raised in its place.

        Args:
            wire_format: The format, one of `rd.providers.FORMATS`.

        Raises:
            InvalidValueError: No reply is left; or the format can't carry this one, and then no chunk comes.
            UnknownWireFormatError: There is no such format.
        """
        with self._items(wire_format) as items:
            for item in items:
                if isinstance(item, Exception):
                    raise item
                if not isinstance(item, (int, float)):
                    yield item

    async def stream(self, wire_format: WireFormat | str) -> AsyncIterator[dict[str, Any]]:
        """The next reply's chunks at their times, as an asynchronous SDK gives them. Raises as `chunks` does.

        Example:
            >>> import asyncio
            >>> import rxdelta as rd
            >>> from rxdelta.testing import FakeProvider, VirtualTime
            >>> async def main():
            ...     async with rd.stream(FakeProvider(["Hello ", 7200.0, "world"]).stream("gemini")) as reply:
            ...         return (await reply.result()).text
            >>> VirtualTime().run(main())
            'Hello world'
        """
        with self._items(wire_format) as items:
            for item in items:
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, (int, float)):
                    await asyncio.sleep(item)
                else:
                    yield item

    def observable(
        self, wire_format: WireFormat | str, *, scheduler: abc.SchedulerBase | None = None
    ) -> Observable[dict[str, Any]]:
        """The next reply's chunks at their times, by the clock of a scheduler. Each subscription asks for the next reply.

        Completes with the reply. An exception in it, and what `chunks` raises, is the Observable's error.

        Args:
            wire_format: The format.
            scheduler: Times the pauses; the subscriber's by default, else the running loop or a thread.
        """

        def begin(sink: Sink[dict[str, Any]]) -> None:
            reading = ExitStack()
            items = reading.enter_context(self._items(wire_format))
            sink.own(Disposable(reading.close))
            timer = sink.timer(sink.clock(scheduler))

            def go_on() -> None:
                for item in items:
                    if sink.closed:
                        return
                    if isinstance(item, Exception):
                        sink.on_error(item)
                        return
                    if isinstance(item, (int, float)):
                        timer.start(item, go_on)
                        return
                    sink.on_next(item)
                sink.on_completed()

            go_on()

        return create("FakeProvider.observable", begin)

    def serve(self, wire_format: WireFormat | str | None = None, *, port: int = 0) -> FakeServer:
        """Serve the replies on this machine, over HTTP, to any client of any format. Each request gets the next reply.

        A context manager, also for asynchronous tests: entering and leaving it take no time. Leaving it cuts the replies
        that are still running. If a reply is a function that has raised an error, leaving raises that error, unless
        the block itself raises one.

        What a client gets:

        - A request for a stream gets the chunks at their times, any other request the whole body. A format whose decoder
          reads no such body refuses it in words (HTTP 400).
        - An exception that comes first closes the connection without an answer. A later one cuts it. If the first one has
          a `status_code`, as an `rd.RecordedError` may, the answer is an HTTP error, with the error's `headers`.
        - A `StreamError` that comes first becomes an HTTP error. A code from 400 to 599 is its status. Otherwise the type
          decides, and 500 is the default. A later one is the provider's own event.
        - One request too many, and a reply that the format can't carry, are refused in words (HTTP 400), since a client
          doesn't try that again.

        The server listens at 127.0.0.1 only. It answers no web page but those of this machine.

        Args:
            wire_format: The format of requests whose path doesn't begin with the name of one; else the path says it.
            port: The port; 0 for any that is free.

        Raises:
            InvalidValueError: The port is no number from 0 to 65535, or the format has no endpoint.
            UnknownWireFormatError: There is no such format; the error lists those there are.
            OSError: The port is in use.

        Example:
            >>> import json, urllib.request
            >>> from rxdelta.testing import FakeProvider
            >>> with FakeProvider("Hello world").serve() as server:
            ...     url = server.base_url("ollama") + "/api/chat"
            ...     with urllib.request.urlopen(url, json.dumps({"model": "m", "stream": False}).encode()) as answer:
            ...         print(json.load(answer)["message"])
            {'role': 'assistant', 'content': 'Hello world'}
        """
        from rxdelta.testing.fake_server import FakeServer  # servers are imported when one is asked for

        self._server = FakeServer(self._take, wire_format, port)
        return self._server


def provider_of_lines(
    recordings: Iterable[Iterable[Line]], *, speed: float = 1.0, repeat: bool = False
) -> FakeProvider:
    """A provider that gives recorded replies, as `FakeProvider.from_recording`, of lines that were read already."""
    provider = FakeProvider(repeat=repeat)
    provider._add(recordings, speed)  # pyright: ignore[reportPrivateUsage]
    return provider
