"""The relay: the public class for streams that outlive their readers."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, overload

from reactivex import Observable, abc, operators as ops

from rxdelta.aio import for_each
from rxdelta.core import (
    Event,
    InvalidValueError,
    Limits,
    Seconds,
    StreamInterrupted,
    check_function,
    check_pace,
    check_seconds,
)
from rxdelta.relay.logs import Budget, Logs
from rxdelta.relay.memory import Memory
from rxdelta.relay.metrics import RelayHealth, RelayMetrics, Reports, Tally, report_otel
from rxdelta.relay.places import store_at, warn_of_workers
from rxdelta.relay.publishing import Publications
from rxdelta.relay.scope import NOT_GIVEN, UNSCOPED, Allow, Entry, check_entry_id, check_stream_id, entry_id
from rxdelta.relay.store import Store, Terms
from rxdelta.relay.watching import Reader
from rxdelta.runtime import call_on, create, needed_loop, running_loop

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


_CLOSE_SECONDS = 5.0
"""How long closing waits for the sources of runs to close."""
_DELETED = "deleted"
_LEAST_LEASE, _SHORT_LEASE = 0.5, 3.0
_PREFIX = re.compile(r"[a-zA-Z0-9._:-]{1,64}")
_log = logging.getLogger("rxdelta")


class Relay:
    """Streams of events that outlive their readers: through a reload, in a second tab, on another thread or machine.

    A publisher writes a stream's events into a log. Readers follow it from the start or from any event on, each at its
    own pace, also when the stream has ended. `Relay.open` makes one, for the whole application; use it from any thread
    and loop.

    A log ends with its source: by completion, by an error, or by a `MessageInterrupted` if it was stopped. The end is a
    part of the log, so every reader gets it. A log that has ended is kept for a while.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> from rxdelta.relay import Relay
        >>> from rxdelta.testing import sample_chunks
        >>> async def main():
        ...     async with Relay.open() as relay:
        ...         chunks = rd.from_async_iterable(lambda: sample_chunks("tides", pause=0.001))
        ...         await relay.start("chat-1", chunks.pipe(rd.decode("auto")))
        ...         entries = [entry async for entry in rd.iterate(relay.entries("chat-1"))]
        ...         rest = relay.watch("chat-1", after=entries[-3].id)
        ...         return [event.event async for event in rd.iterate(rest)]
        >>> asyncio.run(main())
        ['usage', 'message-finish']
    """

    def __init__(
        self,
        store: Logs,
        lease: float,
        max_events: int,
        patience: float = inf,
        window: float | None = None,
        max_bytes: int | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._store = store
        self._tally = tally or Tally()
        self._scope = UNSCOPED
        self._lease = lease
        self._publications = Publications(store, partial(Budget, max_events, max_bytes), patience, window)
        self._reports = Reports(running_loop())
        self._runs: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly

    @staticmethod
    def open(
        store: str | Store | None = None,
        *,
        lease: Seconds = 10.0,
        keep: Seconds = 3600.0,
        max_events: int = 1_000_000,
        max_bytes: int | None = 64 * 2**20,
        max_total_bytes: int | None = None,
        window: Seconds | None = None,
        patience: Seconds = 30.0,
        replicas: int = 0,
        prefix: str = "rxdelta",
        encrypt: Callable[[bytes], bytes] | None = None,
        decrypt: Callable[[bytes], bytes] | None = None,
    ) -> AbstractAsyncContextManager[Relay]:
        """Open a relay for the length of an `async with` block.

        Without a URL its streams are in this process's memory, and nowhere else. Where several worker processes show,
        this warns (`RuntimeWarning`): they don't share their memory.

        With a store, or the URL of one, its streams are there, for all processes that open the same one: in an SQLite
        database, in PostgreSQL, or on Valkey or Redis. `docs/reference/relay-stores.md` says which to choose.

        Seconds are positive; they and `replicas` are at most 1e9, which every store can count.

        Leaving the block stops the live streams that this relay publishes, for their readers with a
        `MessageInterrupted`. It waits until the runs that `start` has begun on this loop have closed their sources, for
        five seconds at most. Memory keeps nothing then; a store keeps what it has.

        Args:
            store: `sqlite:////absolute/path.db`, `postgresql://…`, or `valkey://…` (`redis://…`), of which
                `docs/reference/relay-server.md` has all forms. Or a `Store`, such as `PostgresStore(pool)`, `ValkeyStore(client)`,
                or one of your own: the relay opens and closes it.
            lease: Seconds after which a publisher that gave no sign is dead, and that a reader waits for a stream that
                nobody has published; at least 0.5. With a store and less than 3 this warns (`RuntimeWarning`).
            keep: Seconds that a stream can still be watched after its end.
            max_events: The most events of one stream. With one more the stream ends with a `LimitExceededError`, and
                the source is closed.
            max_bytes: The same for the bytes of one stream, counted alike in memory and in all stores: its texts and data in
                UTF-8, and 64 for each event. `None` for no bound. The default is that of `Limits` for one block.
            max_total_bytes: The same for all streams together, live and kept; in a store for those of all relays with one
                prefix that were opened with a bound, which should be the same. A relay knows at once what it writes itself,
                and what others do after a fifth of a lease. While the store is full no stream begins: its source isn't
                subscribed, `start` raises a `LimitExceededError`, and the id stays free. A stream's bytes are free again
                when its time is over, or it is deleted (in a store a lease later).
            window: Seconds for which deltas wait for their neighbours, such as 0.05: what one entry, one wake-up and one
                turn of each reader then cost is for several. Neighbouring deltas of a block that come within it are
                written and emitted as one, as by `compact_deltas`, the first at once; all other events wait for nothing
                and come behind the held deltas, as the end does, also that of a `cancel`. `None` joins none.
            patience: Seconds that a store may be away. Publishers hold their events so long, and readers wait.
            replicas: How many replicas of Valkey or Redis must have an event before it counts as written.
            prefix: What the names of all keys or tables begin with, in PostgreSQL the schema: 1 to 64 of
                `a-z A-Z 0-9 . _ : -` (to 63 in PostgreSQL). Applications with different prefixes share nothing.
            encrypt, decrypt: From bytes to bytes, such as `Fernet(key).encrypt` and `.decrypt`: events, ends and reasons
                of a cancel are in the store only as `encrypt` made them. Both or neither. They are called on this
                loop's thread, so they should be quick. Memory doesn't use them.

        Raises:
            InvalidValueError: At once, for an argument that isn't as described. On entering, without a running asyncio
                loop.
            StreamInterrupted: On entering, if the store can't be reached.
        """
        lease, keep, patience = (
            check_seconds(name, given)
            for name, given in (("lease", lease), ("keep", keep), ("patience", patience))
        )
        if lease < _LEAST_LEASE:
            raise InvalidValueError.of([("lease", lease, f"must be at least {_LEAST_LEASE} seconds")])
        window = None if window is None else check_pace("window", window)
        for name, given, least, most in (
            ("max_events", max_events, 1, inf),
            *(
                (name, most, 1, 2**53)
                for name, most in (("max_bytes", max_bytes), ("max_total_bytes", max_total_bytes))
                if most is not None
            ),
            ("replicas", replicas, 0, 10**9),
        ):
            if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:  # pyright: ignore[reportUnnecessaryIsInstance]
                wanted = f"must be a whole number from {least}" + f" to {most}" * (most < inf)
                raise InvalidValueError.of([(name, given, wanted)])
        if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError.of([("prefix", prefix, "must be 1 to 64 of a-z A-Z 0-9 . _ : -")])
        keys: Any = {"encrypt": encrypt, "decrypt": decrypt}
        for name, key in keys.items():
            if not (callable(key) or (key is None and encrypt is decrypt)):
                raise InvalidValueError.of([(name, key, "must be a function; give both or neither")])
        make = partial(
            Relay,
            lease=lease,
            max_events=max_events,
            patience=inf if store is None else patience,
            window=window,
            max_bytes=max_bytes,
        )
        if store is None:
            return _opened(partial(_memory, keep, max_total_bytes), make, warns=True)
        if isinstance(store, str):
            place = store_at(store, prefix=prefix, replicas=replicas)
        elif not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            wanted = "must be a URL, a Store, or None for this process's memory; a client of yours is for ValkeyStore"
            raise InvalidValueError.of([("store", store, wanted)])
        elif (prefix, replicas) != ("rxdelta", 0):
            raise InvalidValueError("give a prefix or replicas to the store itself", field="prefix")
        else:
            place = store
        if lease < _SHORT_LEASE:
            warnings.warn(
                f"with a lease of {lease:g} seconds, a line that goes silent unnoticed can cost a living publisher its "
                f"stream. Give Relay.open a lease of {_SHORT_LEASE:g} seconds or more.",
                RuntimeWarning,
                stacklevel=2,
            )
        terms = partial(Terms, lease, keep, patience, max_total_bytes is not None)
        return _opened(partial(_shared, place, terms, max_total_bytes, **keys), make)

    @overload
    def scope(self, tenant: str, *, allow: Allow | None = None) -> Relay: ...
    @overload
    def scope(self, *, allow: Allow) -> Relay: ...
    def scope(self, tenant: Any = NOT_GIVEN, *, allow: Allow | None = None) -> Relay:
        """The same relay as one tenant or one user may use it. It needs no closing, and costs nothing to make.

        A tenant's ids are its own: two tenants' `chat-1` are two streams, and neither the other tenants nor the relay
        itself reach them. Name the tenant first: a scope takes no other tenant.

        `allow` is asked before each use of a stream, on the thread that uses it, with the action and the
        stream's id:

        - `"publish"`: `publish`, when it is subscribed, and `start`
        - `"watch"`: `watch` and `entries`, when they are subscribed, and `is_live`; `streams` lists only ids for which
          the answer is yes
        - `"cancel"` and `"delete"`: these calls

        It returns `True` or `False`, or an awaitable of one of them; whatever else it returns or raises is a refusal. It is
        asked once a call and before the store is, so a refusal says nothing about whether there is such a stream. A
        reader that watches already continues. A scope of a scope asks both, the outer one first: so it allows less, and
        never more.

        Args:
            tenant: 1 to 256 printable characters, as a stream id. `None` is none of these, and refused.
            allow: A function that knows the user, such as a method or a closure. An async one runs as a part of the
                call, or for a subscription as a task on the running loop.

        Raises:
            InvalidValueError: For a wrong argument, without any, and for a tenant that isn't named first.

        Errors: What is refused raises or emits an `AccessDeniedError`, whose `__cause__` is what the check raised, if it
        did. `InvalidValueError` if an async `allow` is to be asked for a subscription without a running loop.

        Example:
            >>> import asyncio
            >>> import reactivex as rx
            >>> import rxdelta as rd
            >>> from rxdelta.relay import Relay
            >>> def streams_of(relay, user):
            ...     return relay.scope("acme", allow=lambda action, stream_id: stream_id.startswith(f"{user}/"))
            >>> async def main():
            ...     async with Relay.open() as relay:
            ...         await streams_of(relay, "ann").start("ann/1", rx.of(rd.events.MessageStart("m1")))
            ...         try:
            ...             await rd.last_value(streams_of(relay, "bob").watch("ann/1"))
            ...         except rd.errors.AccessDeniedError as error:
            ...             return str(error)
            >>> asyncio.run(main())
            "it isn't allowed to watch the stream ann/1"
        """
        scoped = copy(self)
        scoped._scope = self._scope.within(tenant, allow)
        return scoped

    @property
    def is_shared(self) -> bool:
        """Whether the streams are in a store, for all processes that open it; else they are in this process's memory alone."""
        return not isinstance(self._store, Memory)

    def publish(self, stream_id: str) -> Callable[[Observable[Event]], Observable[Event]]:
        """The same events, written into the log of a new stream: each is emitted when it is there.

        With a `window` of `Relay.open`, neighbouring deltas are joined first.

        Subscribing begins the stream. There is one publisher of a stream: if the id is live, or has ended and is neither
        deleted nor expired, the source isn't subscribed. Disposing ends the stream, for its readers with
        `MessageInterrupted("publisher left")`. So a reply that is to continue without its reader is for `start`.

        Readers never make the publisher wait. Put it behind `run_tools` and `retry_stream`, so that the log has what
        they emit. In a store, `run_tools` calls a tool when the log has the call's `executing`.

        Completes with the source; or, after a `MessageInterrupted`, when the stream is stopped by `cancel`, by `delete`,
        or because the relay is closed. The source is then disposed at once.

        Args:
            stream_id: 1 to 256 printable characters, as `str.isprintable` has it. Ids are not normalised.

        Raises:
            InvalidValueError: At once, for any other `stream_id`.

        Errors: The source's own, unchanged; readers get it as `watch` says. `InvalidValueError` if the id is taken or
        the relay is closed, and for a value that is no event. `LimitExceededError` for too many events or bytes, and if
        the store is too full for a new stream. `StreamInterrupted` if the store is away for `patience`, has lost the
        log, or has taken the publisher for dead, and if the relay is draining.
        """
        check_stream_id(stream_id)

        def apply(source: Observable[Event]) -> Observable[Event]:
            def begin(sink: Any) -> None:
                publish = partial(self._publications.begin, sink, source, self._scope.name(stream_id))
                self._scope.ask_first(sink, "publish", stream_id, publish)

            return create("publish", begin, emits="events")

        return apply

    async def start(self, stream_id: str, source: Observable[Event], *, limits: Limits | None = None) -> bool:
        """Publish a stream that continues without a reader, and return when it has begun.

        Calling this once more for the same reply is safe: a stream that is live or kept is left as it is.

        The run reads its source at once and to the end, like `for_each`, on the running loop. It ends with the source,
        by `cancel` or `delete`, or with the relay. An error of the source is a part of the log; because nobody else may
        see it, it is logged, too (`rxdelta`).

        Args:
            stream_id: See `publish`.
            source: The events. They are subscribed only if this call starts the run.
            limits: Bounds on what the run may hold in memory, as at `for_each`; see `rd.with_limits`.

        Returns:
            Whether this call has started the run. If not, the stream can be watched all the same.

        Raises:
            InvalidValueError: For a wrong argument, without a running asyncio loop, or if the relay is closed.
            StreamInterrupted: The store is away for `patience`, or the relay is draining.
            LimitExceededError: The store is full, see `max_total_bytes` of `Relay.open`.
        """
        check_stream_id(stream_id)
        if not isinstance(source, abc.ObservableBase):
            raise InvalidValueError.of([("source", source, "must be an Observable of events")])
        loop = needed_loop("Relay.start", "await it in a coroutine that asyncio.run() runs")
        await self._scope.ask("publish", stream_id)
        began: asyncio.Future[bool] = loop.create_future()

        def tell(whether: bool) -> None:
            call_on(loop, partial(_settle, began, whether))

        name = self._scope.name(stream_id)
        run: Observable[Event] = create(
            "start", lambda sink: self._publications.begin(sink, source, name, tell)
        )
        task = loop.create_task(_run(stream_id, run, began, limits))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        return await began  # a caller that leaves cancels this, and the run continues

    def watch(self, stream_id: str, after: str | None = None) -> Observable[Event]:
        """Emit the events of a stream: first those that are in the log, then each when it is written.

        From the start, the events that were there before the subscription come in a short form that folds to the same
        reply: neighbouring deltas of a block are one event; of usages with only deltas between them, the newest; of the
        application's data with one name and id, the newest in the place of the first. Pings and transient data are left
        out. Later events are emitted as they were published; where 50 or more wait for such a reader, their deltas are
        joined in the same way, and their pings and replaced usages left out.

        Each reader has its own pace, and reads the log when it can take more. It neither makes the publisher or other
        readers wait nor needs memory of its own. Events are emitted on the reader's own clock: its scheduler, else the
        running loop, else a thread that ends with the subscription.

        Completes with the stream, also with one that has ended long ago.

        Args:
            stream_id: See `publish`. If there is no such stream, a publisher is awaited for the relay's `lease`.
            after: The id of an `Entry`: what comes behind it is emitted, and each event that is not transient as it was
                published.

        Raises:
            InvalidValueError: At once, for a wrong `stream_id`, and for an `after` that can't be the id of an entry.

        Errors: The source's own, without what caused it, if it is an error of rxdelta; a `StreamInterrupted` for any
        other, whose text readers must not see. In both `.snapshot` is the reply in the whole log. `EmptyStreamError` if
        nobody has published the stream, or its publisher has died before the first event. `InvalidValueError` if `after` isn't an id of this stream. `StreamInterrupted`,
        too, if the publisher has died, and `StreamUnreadableError` if the store can't tell more of a stream that may be
        live, or the relay is closed.
        """
        return self._read("watch", stream_id, after, None, lambda _, __, event: event)

    def entries(
        self, stream_id: str, after: str | None = None, *, split_at: str | None = None
    ) -> Observable[Entry]:
        """Emit the events as `watch` does, each as an `Entry`, behind whose id a reader can continue.

        A joined delta has the id of its last.

        Args:
            stream_id, after: See `watch`.
            split_at: The id of an entry that no joined delta spans. Up to there the events lead to the state of a
                reader that has read so far; so an encoder can be brought to that point, and continues from there.
        """
        return self._read("entries", stream_id, after, split_at, _entry)

    def _read(
        self,
        name: str,
        stream_id: str,
        after: str | None,
        split_at: str | None,
        make: Callable[[str, int, Event], Any],
    ) -> Observable[Any]:
        check_stream_id(stream_id)
        check_entry_id("after", after)
        check_entry_id("split_at", split_at)

        scope = self._scope

        def begin(sink: Any) -> None:
            def read() -> None:
                name = scope.name(stream_id)
                Reader(sink, name, after, split_at, self._lease, make, self._tally).begin(self._store)

            scope.ask_first(sink, "watch", stream_id, read)

        return create(name, begin, emits="events" if name == "watch" else "items")

    async def cancel(self, stream_id: str, reason: str | None = None) -> bool:
        """Stop a live stream: its source is disposed, and all readers get a `MessageInterrupted` and complete.

        Args:
            stream_id: See `publish`.
            reason: The reason in the interrupted message.

        Returns:
            Whether there was a live publisher to stop.

        Raises:
            AccessDeniedError: A scope doesn't allow it.
            InvalidValueError: For a wrong argument.
            StreamInterrupted: The store is away, or the relay is closed. `is_live`, `streams` and `delete` raise it, too.
        """
        check_stream_id(stream_id)
        if reason is not None and not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError.of([("reason", reason, "must be a string")])
        await self._scope.ask("cancel", stream_id)
        return await self._store.tell(self._scope.name(stream_id), reason)

    async def is_live(self, stream_id: str) -> bool:
        """Whether the stream has begun and not ended. In a scope, the caller needs the right to watch the stream."""
        name = self._scope.name(check_stream_id(stream_id))
        await self._scope.ask("watch", stream_id)
        return await self._store.is_live(name)

    async def streams(self) -> list[str]:
        """The ids of all streams that can be watched, live or kept, in the order in which they began.

        In a scope these are the tenant's streams that this user may watch.
        """
        names = await self._store.names(self._scope.tenant)
        return [name for name in names if await self._scope.allows("watch", name)]

    async def delete(self, stream_id: str) -> bool:
        """Forget a stream, so that the id is free. A live stream is stopped first, with the reason `deleted`.

        Its readers get it to the end.

        Returns:
            Whether there was such a stream.
        """
        name = self._scope.name(check_stream_id(stream_id))
        await self._scope.ask("delete", stream_id)
        await self._store.tell(name, _DELETED)
        return await self._store.delete(name)

    async def drain(self, timeout: Seconds, reason: str = "the server is stopping") -> list[str]:
        """Let the replies that this process publishes finish, then end the rest: for a process that is to stop.

        These are the streams of `start` and `publish` of this relay object and its scopes, of all tenants. A reply that
        finishes within `timeout` ends as always. The rest ends as by `cancel`: the source is disposed, and readers get
        a `MessageInterrupted(reason)` and complete. The call returns when these ends are written, or after five more
        seconds (or `patience`, if that is less) if they can't be: their readers find the publisher dead then, by the
        lease. It doesn't wait for sources that need longer to close; leaving the `async with` block does.

        From the call on, `start` raises `StreamInterrupted`, and a `publish` that is subscribed ends with one, before the
        source is subscribed. Reading, `cancel` and `delete` continue. The relay stays so until it is closed, also if the
        caller of `drain` is cancelled, which ends no stream.

        It may be called again, and on any loop, for example with a shorter time: whichever time is over first counts.

        Args:
            timeout: Seconds for which the replies may continue.
            reason: The reason in the interrupted messages.

        Returns:
            The ids of the streams that this call ended, in the order in which they began.

        Raises:
            InvalidValueError: For a wrong argument, without a running asyncio loop, or in a scope: the relay itself is
                drained, for all.

        Example:
            >>> import asyncio
            >>> import reactivex as rx
            >>> import rxdelta as rd
            >>> from rxdelta.relay import Relay
            >>> async def main():
            ...     async with Relay.open() as relay:
            ...         await relay.start("short", rx.of(rd.events.MessageStart("m1")))
            ...         await relay.start("endless", rx.never())
            ...         return await relay.drain(0.01), await rd.last_value(relay.watch("endless"))
            >>> asyncio.run(main())
            (['endless'], MessageInterrupted(reason='the server is stopping', choice=None))
        """
        seconds = check_seconds("timeout", timeout)
        if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError.of([("reason", reason, "must be a string")])
        if self._scope is not UNSCOPED:
            raise InvalidValueError("drain the relay itself: its streams are those of all scopes")
        needed_loop("Relay.drain", "await it in a coroutine that asyncio.run() runs")
        return await self._publications.drain(seconds, reason)

    async def health(self, timeout: Seconds = 1.0) -> RelayHealth:
        """Ask whether this relay takes new streams, and whether its store writes them: for a readiness probe.

        In a store a small value is written and removed again, on Valkey and Redis with the replicas that `replicas` asks for; in a Cluster on each
        node. In memory nothing is asked.

        Args:
            timeout: Seconds for the answer.

        Returns:
            The answer, also if the store is away, the relay is draining, or was closed.

        Raises:
            InvalidValueError: `timeout` is no positive number.

        Example:
            >>> import asyncio
            >>> from rxdelta.relay import Relay
            >>> async def main():
            ...     async with Relay.open() as relay:
            ...         await relay.drain(0.01)
            ...         return await relay.health()
            >>> asyncio.run(main())
            RelayHealth(ready=False, why='the relay is draining', latency=0.0, draining=True)
        """
        seconds = check_seconds("timeout", timeout)
        draining = self._publications.drains
        try:
            latency = await self._store.probe(seconds)
        except StreamInterrupted as error:
            return RelayHealth(False, str(error), None, draining)
        return RelayHealth(not draining, "the relay is draining" if draining else None, latency, draining)

    @property
    def metrics(self) -> RelayMetrics:
        """The counts of this relay and its scopes in this process until now. It may be asked on any thread, at any
        time.

        Example:
            >>> import asyncio
            >>> import reactivex as rx
            >>> import rxdelta as rd
            >>> from rxdelta.relay import Relay
            >>> async def main():
            ...     async with Relay.open() as relay:
            ...         await relay.start("chat-1", rx.of(rd.events.MessageStart("m1"), rd.events.MessageFinish("stop")))
            ...         await rd.last_value(relay.watch("chat-1"))
            ...         return relay.metrics.events_published, relay.metrics.events_read, relay.metrics.publishing
            >>> asyncio.run(main())
            (2, 2, 0)
        """
        return self._tally.metrics(
            kept_bytes=self._store.kept_bytes(), away=self._store.away(), **self._publications.counts()
        )

    def report_otel(
        self,
        *,
        attributes: Mapping[str, str | bool | int | float] | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Report the metrics to OpenTelemetry, as often as its SDK asks. Call it once, when the relay is open.

        The instruments are `rxdelta.relay.` and the name of a field of `RelayMetrics`: gauges for what is so now, counters
        for what only grows; and the histogram `rxdelta.relay.round_trip`, in seconds, instead of the four fields of round
        trips. Needs the package `opentelemetry-api` (`pip install "rxdelta[otel]"`).

        Args:
            attributes: Further attributes of all instruments, to tell several relays apart.
            meter_provider: By default the global one.

        Raises:
            ImportError: If the package is missing.
        """
        report_otel(self._tally, lambda: self.metrics, attributes, meter_provider)

    def report(self, take: Callable[[RelayMetrics], object], every: Seconds = 10.0) -> None:
        """Call a function with the metrics, again and again, until the relay is closed; then once more.

        Args:
            take: Called on the loop on which the relay was opened, so it should be quick. What it raises is logged.
            every: Seconds between two calls.

        Raises:
            InvalidValueError: For a wrong argument.
        """
        check_function("take", take, "a function of the metrics")
        self._reports.add(take, check_seconds("every", every), lambda: self.metrics)

    async def _close(self) -> None:
        await self._store.close()
        here = asyncio.get_running_loop()
        runs = [task for task in [*self._runs] if task.get_loop() is here]
        if runs:
            _, late = await asyncio.wait(runs, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        self._reports.close()


def _entry(epoch: str, number: int, event: Event) -> Entry:
    return Entry(entry_id(epoch, number), event)


def _settle(began: asyncio.Future[bool], whether: bool) -> None:
    if not began.done():
        began.set_result(whether)


async def _run(
    stream_id: str, run: Observable[Event], began: asyncio.Future[bool], limits: Limits | None
) -> None:
    try:
        await for_each(run.pipe(ops.ignore_elements()), lambda _: None, limits=limits)
    except Exception as error:
        if began.done():
            _log.error("the run of the stream %r ended with an error", stream_id, exc_info=error)
        else:
            began.set_exception(error)
    finally:
        began.cancel()  # nothing, unless the run was cancelled before it began


async def _memory(keep: float, max_total_bytes: int | None, *, tally: Tally) -> Logs:  # noqa: ARG001
    return Memory(keep, asyncio.get_running_loop(), max_total_bytes)


async def _shared(
    store: Store, terms: Callable[..., Terms], max_total_bytes: int | None, *, tally: Tally, **keys: Any
) -> Logs:
    from rxdelta.relay.shared import open_streams

    return await open_streams(store, terms(tally=tally), max_total_bytes=max_total_bytes, **keys)


@asynccontextmanager
async def _opened(
    logs: Callable[..., Awaitable[Logs]], make: Callable[..., Relay], *, warns: bool = False
) -> AsyncGenerator[Relay]:
    if warns:
        warn_of_workers()
    needed_loop("Relay.open", "enter it in a coroutine that asyncio.run() runs")
    tally = Tally()
    relay = make(await logs(tally=tally), tally=tally)
    try:
        yield relay
    finally:
        await relay._close()
