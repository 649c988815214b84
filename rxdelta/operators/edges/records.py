"""The base of `parse_sse` and `parse_ndjson`: a sans-IO parser for a stream of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parse_records"]


class _Parser(Protocol):
    @property
    def error(self) -> Exception | None: ...

    def feed(self, data: bytes | str) -> list[Any]: ...

    def close(self) -> list[Any]: ...


def parse_records(parser: Callable[[], _Parser]) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the source's bytes into records, by a parser that `parser()` returns for each subscription."""

    def apply(source: Observable[bytes | str]) -> Observable[Any]:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            reader = _Reader(observer, parser())
            upstream = source.subscribe(
                reader.on_next, reader.on_error, reader.on_completed, scheduler=scheduler
            )
            return CompositeDisposable(Disposable(reader.stop), upstream)

        return Observable(subscribe)

    return apply


class _Reader:
    """One subscription. Emitting an error ends it, and by Rx's contract disposes the upstream."""

    def __init__(self, observer: abc.ObserverBase[Any], parser: _Parser) -> None:
        self._observer = observer
        self._parser = parser
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def on_next(self, data: bytes | str) -> None:
        error = self._emit(lambda: self._parser.feed(data))
        if error is not None:
            self._fail(error)

    def on_error(self, error: Exception) -> None:
        # Complete records are flushed. An incomplete last record needs no error: `error` explains the cut.
        self._emit(self._parser.close)
        self._fail(error)

    def on_completed(self) -> None:
        error = self._emit(self._parser.close)
        if error is not None:
            self._fail(error)
        elif not self._stopped:
            self._stopped = True
            self._observer.on_completed()

    def _emit(self, read: Callable[[], list[Any]]) -> Exception | None:
        """Emit the records that `read` returns, until disposed. Return the error that ended the reading."""
        try:
            records = read()
        except Exception as error:
            return error
        for record in records:
            if self._stopped:  # by the observer: it disposed, or it ended the source
                return None
            self._observer.on_next(record)
        return self._parser.error

    def _fail(self, error: Exception) -> None:
        if not self._stopped:
            self._stopped = True
            self._observer.on_error(error)
