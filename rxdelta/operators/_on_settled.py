"""Once, at the end, whichever end it is."""

from __future__ import annotations

import asyncio
import inspect
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs
from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable

from rxdelta.core import Fold, InvalidValueError, MessageDelta, ProtocolError, ProviderError
from rxdelta.core.events import EVENT_TYPES
from rxdelta.operators._stray import report

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outcome", "on_settled"]

T = TypeVar("T")

_tasks: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly


@attrs.frozen
class Outcome:
    """How a stream ended.

    Attributes:
        kind: `completed`; `failed`; or `disposed`, left by its reader.
        error: What ended it, where it failed.
    """

    kind: Literal["completed", "failed", "disposed"]
    error: Exception | None = None


def on_settled(
    fn: Callable[[MessageDelta | None, Outcome], object], *, choice: int = 0
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; and when it is over, `fn` is called with the last snapshot and how it ended.

    Exactly once for each subscription: when the source completes or fails, before that is passed on; when the
    subscription is disposed, after the source was; when an observer raises, which ends the subscription here.
    So it is the place to store a reply that may be complete, cut, or left by its reader.

    Among snapshots the last one is given; among events, the reply that they fold to (of a conversation the
    last message); among anything else `None`.

    `fn` may be a coroutine function: it then runs as a task on the loop that was running at the subscription,
    and isn't waited for. A loop that is shutting down may not let it come to its end; a plain function always
    does. What `fn` raises goes to that loop's exception handler, or without one to the log `rxdelta`, and never
    into the stream.

    Completes with the source.

    Args:
        fn: What to call, with the snapshot, or `None` where there is none, and an `Outcome`.
        choice: Which of several alternative replies the events are folded for.

    Raises:
        InvalidValueError: At once, if `fn` can't be called.

    Errors: The source's own.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = rx.of(rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo"))
        >>> def store(snapshot, outcome):
        ...     print(outcome.kind, snapshot.text)
        >>> pieces.pipe(rd.scan_deltas(), rd.on_settled(store)).subscribe().dispose()
        completed Hello
    """
    if not callable(fn):
        raise InvalidValueError.of([("fn", fn, "must be a function of a snapshot and an outcome")])

    def apply(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            settling = _Settling(observer, fn, choice)
            settling.upstream.disposable = source.subscribe(
                settling.on_next, settling.on_error, settling.on_completed, scheduler=scheduler
            )
            return CompositeDisposable(settling.upstream, Disposable(settling.disposed))

        return Observable(subscribe)

    return apply


class _Settling(Generic[T]):
    """One subscription's state. It may be disposed from another thread than the source's."""

    def __init__(
        self, observer: abc.ObserverBase[T], fn: Callable[[MessageDelta | None, Outcome], object], choice: int
    ) -> None:
        self._observer = observer
        self._fn = fn
        self._choice = choice
        self._fold: Fold | None = Fold(choice=choice)
        self._snapshot: MessageDelta | None = None
        self._lock = Lock()
        self._settled = False
        self._loop = _running_loop()
        self.upstream = SingleAssignmentDisposable()

    def on_next(self, value: T) -> None:
        self._note(value)
        try:
            self._observer.on_next(value)
        except Exception as error:  # nobody else would say that it is over
            self.upstream.dispose()
            self._settle(Outcome("failed", error))
            raise

    def on_error(self, error: Exception) -> None:
        self._settle(Outcome("failed", error))
        self._observer.on_error(error)

    def on_completed(self) -> None:
        self._settle(Outcome("completed"))
        self._observer.on_completed()

    def disposed(self) -> None:
        self._settle(Outcome("disposed"))

    def _note(self, value: Any) -> None:
        if isinstance(value, MessageDelta):
            self._snapshot = value
        elif self._fold is not None and type(value) in EVENT_TYPES:
            try:
                self._snapshot = self._fold.step(value)
            except ProtocolError:  # another message
                self._fold = Fold(choice=self._choice)
                self._snapshot = self._fold.step(value)
            except ProviderError:
                pass
            except Exception as error:
                self._fold = None
                report(error, "on_settled could not fold the events; what came before is what it will tell")

    def _settle(self, outcome: Outcome) -> None:
        with self._lock:
            if self._settled:
                return
            self._settled = True
        try:
            done = self._fn(self._snapshot, outcome)
            if inspect.isawaitable(done):
                self._await(done)
        except Exception as error:
            report(error, _RAISED)

    def _await(self, done: Any) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            if inspect.iscoroutine(done):
                done.close()
            raise InvalidValueError(
                "an async function needs a running asyncio loop at the subscription", field="fn"
            )
        if _running_loop() is loop:
            _start(loop, done)
        else:
            loop.call_soon_threadsafe(_start, loop, done)


_RAISED = "the function given to on_settled raised"


def _start(loop: asyncio.AbstractEventLoop, done: Any) -> None:
    task = loop.create_task(_finish(done))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _finish(done: Any) -> None:
    try:
        await done
    except Exception as error:
        report(error, _RAISED)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
