"""The application's own events among those of a reply."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from rxdelta.core import Event, InvalidValueError
from rxdelta.core.events import EVENT_TYPES, Custom
from rxdelta.runtime import Sink, create, names_operator


@names_operator
def with_custom(custom: Observable[Custom]) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, and the application's own among them, each at once.

    ::

        events  Let-                          _me-_look                         |
        own     -  (custom:status,"Searching")-  -(custom:status,"Found")
                with_custom(own)
        events  Let(custom:status,"Searching")_me-[(custom:status,"Found")_look]|

    `custom` is subscribed first, and so emits in front of the reply what it emits at once. A `Subject` takes events from
    any thread, task or callback, and each subscription gets those that come while it lasts; a `ReplaySubject` gives a later
    one the earlier events, too. Where one function makes both the reply's chunks and the application's events, let it
    yield both, see `decode`. A tool of `run_tools` yields its own.

    Put it in front of `share_events`, so that all readers get the events in one order, and behind `run_tools` if they may
    come while tools run.

    Completes with the source, whether or not `custom` has completed, and disposes it.

    Args:
        custom: The application's events.

    Raises:
        InvalidValueError: At once, if `custom` is no Observable.

    Errors: The source's own, and that of `custom`. `InvalidValueError` for a value of the source that is no event, and for
    one of `custom` that is no `Custom`.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> reply, own = Subject(), Subject()
        >>> shown = reply.pipe(rd.with_custom(own)).subscribe(lambda event: print(event.event))
        >>> own.on_next(rd.events.Custom("status", "Searching"))
        custom
        >>> reply.on_next(rd.events.MessageStart())
        message-start
    """
    if not isinstance(custom, Observable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError.of([("custom", custom, "must be an Observable of events.Custom")])

    def apply(source: Observable[Event]) -> Observable[Event]:
        def begin(sink: Sink[Event]) -> None:
            sink.subscribe(custom, _Own(sink), serial=False)
            sink.subscribe(source, _Source(sink))

        return create("with_custom", begin, emits="events")

    return apply


class _Source:
    """The reply, of one subscription."""

    def __init__(self, sink: Sink[Event]) -> None:
        self._sink = sink

    def on_next(self, event: Event) -> None:
        if type(event) not in EVENT_TYPES:
            raise self._sink.refusal(event)
        self._sink.on_next(event)


class _Own:
    """The application's events. They may come on any thread, which doesn't get the exceptions of an observer."""

    def __init__(self, sink: Sink[Event]) -> None:
        self._sink = sink

    def on_next(self, event: Custom) -> None:
        self._sink.run(self._emit, event)

    def on_error(self, error: Exception) -> None:
        self._sink.run(self._sink.on_error, error)

    def on_completed(self) -> None:
        pass

    def _emit(self, event: Custom) -> None:
        if type(event) is not Custom:
            wanted = "with_custom() takes events.Custom; another stream of events is merged with rx.merge()"
            raise InvalidValueError.of([("custom", event, wanted)])
        self._sink.on_next(event)
