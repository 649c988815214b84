"""A stop signal that keeps the reply so far."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeGuard

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import Event, InvalidValueError
from rxdelta.core.events import EVENT_TYPES, MessageInterrupted
from rxdelta.runtime import SideSession, Sink, call_on, lift, names_operator, running_loop, subscribing


class _Waitable(Protocol):
    """An object with an async `wait()`, such as an `asyncio.Event`."""

    def wait(self) -> Coroutine[Any, Any, Any]: ...


Signal: TypeAlias = Observable[Any] | _Waitable | Awaitable[Any]


@names_operator
def until_stopped(
    signal: Signal, *, reason: str | None = "stopped"
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events until a signal; then a `MessageInterrupted`, and completion.

    ::

        events  The _tide _is--          _high _now|
        signal  -   -     -  -x
                until_stopped(signal)
        events  The _tide _is-[(stop:x)|]

    The signal is an Observable whose first value means stop (a `Subject` that a button pushes into, from any
    thread); an `asyncio.Event`, or any object with an async `wait()`; or an awaitable, such as a future or a task,
    whose end means stop. An Observable that completes without a value, and a cancelled future, stop nothing.

    The signal disposes the source at once, which closes the provider's connection. In `scan_deltas` the message is
    then `interrupted`, with its content so far; `to_message()` makes a message of it. If the signal is there from the
    start (a set event, a future that is done, a `BehaviorSubject`), the source is never subscribed.

    Put it in front of `run_tools`, which then cancels its tools and fails their calls. A finished message is not
    changed.

    Completes with the source or the signal, whichever comes first, and disposes the other.

    Args:
        signal: The stop signal. A future or task is not cancelled when the source ends; a coroutine is, and can be
            subscribed once.
        reason: The reason in the interrupted message; a string from the signal replaces it.

    Raises:
        InvalidValueError: At once, if `signal` is none of these.

    Errors: The source's own, and the signal's. `InvalidValueError` for a value that is no event, and for an awaitable
    without a running asyncio loop.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> stop = Subject()
        >>> hello = rd.events.BlockStart(0, {"type": "text", "text": "Hel"})
        >>> reply = rx.concat(rx.of(hello), rx.never()).pipe(rd.until_stopped(stop), rd.scan_deltas())
        >>> subscription = reply.subscribe(lambda snapshot: print(snapshot.status, snapshot.text))
        incomplete Hel
        >>> stop.on_next(None)
        interrupted Hel
    """
    if not (isinstance(signal, Observable) or inspect.isawaitable(signal) or _is_waitable(signal)):
        raise InvalidValueError.of(
            [("signal", signal, "must be an Observable, an asyncio.Event, or an awaitable")]
        )

    def begin(sink: Sink[Event]) -> _Until:
        until = _Until(sink, reason)
        sink.own(_listen(signal, until, sink))
        return until

    return lift("until_stopped", begin, emits="events")


class _Until:
    """One subscription's state. The signal may come on any thread, and during the notification of an observer."""

    def __init__(self, sink: Sink[Event], reason: str | None) -> None:
        self._sink = sink
        self._reason = reason

    def on_next(self, event: Event) -> None:
        if type(event) not in EVENT_TYPES:
            raise self._sink.refusal(event)
        self._sink.on_next(event)

    def stop(self, value: object = None) -> None:
        self._sink.dispose_source()
        self._sink.run(self._interrupt, value if isinstance(value, str) and value else self._reason)

    def fail(self, error: Exception) -> None:
        self._sink.dispose_source()
        self._sink.run(self._sink.on_error, error)

    def _interrupt(self, reason: str | None) -> None:
        self._sink.on_next(MessageInterrupted(reason))
        self._sink.on_completed()


def _is_waitable(signal: object) -> TypeGuard[_Waitable]:
    return inspect.iscoroutinefunction(getattr(signal, "wait", None)) and not isinstance(signal, type)


def _listen(signal: Signal, until: _Until, sink: Sink[Event]) -> abc.DisposableBase:
    if isinstance(signal, Observable):
        if sink.session is None:
            return signal.subscribe(until.stop, until.fail, scheduler=sink.scheduler)
        with subscribing(SideSession(sink.session), sink.scheduler) as scheduler:
            return signal.subscribe(until.stop, until.fail, scheduler=scheduler)
    if _is_waitable(signal):
        if getattr(signal, "is_set", bool)():
            until.stop()
            return Disposable()
        awaitable: Any = signal.wait()
    else:
        awaitable = signal
    if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) != inspect.CORO_CREATED:
        raise InvalidValueError(
            "this signal is a coroutine that has been awaited before; give an asyncio.Event or an Observable",
            field="signal",
            value=signal,
        )
    loop = running_loop()
    if loop is None:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise InvalidValueError(
            "an awaitable signal needs a running asyncio loop: subscribe inside a coroutine, or give an Observable",
            field="signal",
        )
    return _await(awaitable, until, loop)


def _await(signal: Any, until: _Until, loop: asyncio.AbstractEventLoop) -> abc.DisposableBase:
    ours = not asyncio.isfuture(signal)
    future: asyncio.Future[Any] = signal
    if ours:  # a coroutine itself becomes the task: in `_wait` it would stay unawaited if cancelled at once
        future = loop.create_task(signal if inspect.iscoroutine(signal) else _wait(signal))

    def ended(future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            until.stop(future.result())
        elif isinstance(error, Exception):
            until.fail(error)

    def leave() -> None:
        future.remove_done_callback(ended)
        if ours:
            future.cancel()

    if future.done():
        ended(future)
        return Disposable()
    future.add_done_callback(ended)
    return Disposable(lambda: call_on(loop, leave))


async def _wait(signal: Awaitable[Any]) -> Any:
    return await signal
