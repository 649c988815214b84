"""`fallback`: which source gives the reply, in virtual time, and what sources are."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.subject import Subject
from support.contests import CONTENT, ERRORS, NO_CONTENT, contest
from support.loops import Stream, run as run_loop

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable

ev = rd.events
END = 1_000  # of a scene
HI = ev.TextDelta(0, "Hi")


@pytest.mark.parametrize(
    ("sources", "output", "read"),
    [
        pytest.param(["-s-a-b-y|", "-c"], "---[sa]-b-y|", [[(0, 8)], []], id="the first has content"),
        pytest.param(["-s--#", "-t--c-d-|"], "--------[tc]-d-|", [[(0, 4)], [(4, 12)]], id="an error"),
        pytest.param(
            ["-sk_pun#", "-tc|"], "---------[tc]|", [[(0, 7)], [(7, 10)]], id="an error behind starts"
        ),
        pytest.param(["-s-E", "-t-c-|"], "------[tc]-|", [[(0, 3)], [(3, 8)]], id="an error of the provider"),
        pytest.param(["-s-|", "-t-c-|"], "------[tc]-|", [[(0, 3)], [(3, 8)]], id="an empty reply"),
        pytest.param(["-s-x|", "tc|"], "----[tc]|", [[(0, 4)], [(3, 5)]], id="a refused reply"),
        pytest.param(["-s-x---", "-tc|"], "-----[tc]|", [[(0, 5)], [(3, 6)]], id="a refused reply left open"),
        pytest.param(["#", "|", "E", "-a|"], "-a|", [[(0, 0)]] * 3 + [[(0, 2)]], id="at once"),
        pytest.param(["-s-|", "-t-x|"], "------[s|]", [[(0, 3)], [(3, 6)]], id="all are empty"),
        pytest.param(
            ["-#", "-t|", "-w|"], "-----[t|]", [[(0, 1)], [(1, 3)], [(3, 5)]], id="the first empty one"
        ),
        pytest.param(["-|", "-t#"], "---|", [[(0, 1)], [(1, 3)]], id="an empty one rather than an error"),
        pytest.param(["-sxuc-|", "---t-d"], "----[sxuc]-|", [[(0, 6)], [(2, 4)]], id="another message"),
        pytest.param(["-sx-u-|"], "--[sx]-u-|", [[(0, 6)]], id="the only one is empty"),
        pytest.param(["-sx--#", "-----d|"], "-------d|", [[(0, 5)], [(2, 8)]], id="refused, and then broken"),
        pytest.param(["-nspuk_a|"], "-------[nspuk_a]|", [[(0, 8)]], id="what was held comes in its order"),
        pytest.param(["------", "-a|"], "", [[(0, END)], []], id="silence is no failure"),
        pytest.param(["-s--", "-a|"], "", [[(0, END)], []], id="nor is a silent start"),
    ],
)
def test_the_first_source_with_content_gives_the_reply(
    sources: list[str], output: str, read: list[list[tuple[float, float]]]
) -> None:
    assert contest(rd.fallback, *sources) == (output, read)


@pytest.mark.parametrize(
    ("sources", "output", "error", "notes"),
    [
        pytest.param(["-a-#", "-c|"], "-a-#", 1, [], id="behind the first content"),
        pytest.param(["-s-#"], "---#", 1, [], id="of the only source"),
        pytest.param(["-s#", "-t-#"], "-----#", 2, ["source 1 of fallback failed before: ConnectionError: source 1"], id="all fail"),
        pytest.param(["-sx--#", "-----#"], "-------#", 2, ["source 1 of fallback failed before: ConnectionError: source 1"], id="one had refused"),
    ],
)  # fmt: skip
def test_an_error_ends_the_stream(sources: list[str], output: str, error: int, notes: list[str]) -> None:
    ERRORS[error - 1].__dict__.pop("__notes__", None)
    for _ in range(2):  # the note of an error that comes twice stands there once
        assert contest(rd.fallback, *sources, error=error)[0] == output
        assert getattr(ERRORS[error - 1], "__notes__", []) == notes


def heard(source: Observable[Any]) -> list[Any]:
    """The values, and the end: an error, or `None`."""
    values: list[Any] = []
    source.subscribe(values.append, values.append, lambda: values.append(None))
    return values


def test_the_notes_of_the_last_error_tell_of_the_others_without_secrets() -> None:
    def refused() -> Observable[rd.Event]:
        raise PermissionError("no access with api_key=sk-0123456789abcdef")

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError

    wrong: Any = lambda: "text"  # noqa: E731
    chunks: Any = rx.of({"id": "c1"})
    last = rx.of(ev.MessageStart("m"), ev.StreamError("Overloaded", "overloaded_error"))
    sources = [refused, rx.throw(Unspeakable()), wrong, chunks, rx.throw(OSError("x" * 5_000)), last]
    (error,) = heard(rd.fallback(*sources))
    assert isinstance(error, rd.ProviderError)
    assert error.type == "overloaded_error"
    notes = error.__notes__
    assert notes[:2] == [
        "source 1 of fallback failed before: PermissionError: no access with api_key=[redacted]",
        "source 2 of fallback failed before: Unspeakable: <its str() raises ValueError>",
    ]
    assert (
        "sources[2]: must give an Observable of events; decode() makes one (got sources[2]='text')"
        in notes[2]
    )
    assert "fallback() reads events, and got a dict; decode() makes events of chunks" in notes[3]
    assert len(notes) == 5
    assert all(len(note) <= 200 for note in notes)


def test_one_error_of_all_sources_is_no_note_of_itself() -> None:
    error = ConnectionError("down")
    assert heard(rd.fallback(rx.throw(error), rx.throw(error))) == [error]
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("name", CONTENT)
def test_content_is(name: str) -> None:
    events = [ev.MessageStart("m1"), CONTENT[name]]
    first = rx.concat(rx.from_iterable(events), rx.throw(ERRORS[0]))
    assert heard(rd.fallback(first, rx.of(HI))) == [*events, ERRORS[0]]


@pytest.mark.parametrize("name", NO_CONTENT)
def test_no_content_is(name: str) -> None:
    held = [ev.MessageStart("m1"), NO_CONTENT[name]]
    first = rx.concat(rx.from_iterable(held), rx.throw(ERRORS[0]))
    assert heard(rd.fallback(first, rx.of(HI))) == [HI, None]
    later = rx.concat(rx.from_iterable(held), rx.of(HI))
    assert heard(rd.fallback(later)) == [*held, HI, None]


def test_each_event_has_been_thought_about() -> None:
    known = {type(event) for event in [*CONTENT.values(), *NO_CONTENT.values()]}
    assert {kind for kind in rd.events.__dict__.values() if hasattr(kind, "event")} - known == {
        ev.StreamError
    }


def test_a_stall_is_a_failure_of_a_source_with_a_limit() -> None:
    def limited(first: Observable[Any], second: Observable[Any]) -> Observable[Any]:
        return rd.fallback(first.pipe(rd.stall_timeout(4)), second)

    assert contest(limited, "-s-p-----a", "-c|") == ("------c|", [[(0, 5)], [(5, 7)]])
    assert contest(limited, "-s-a------", "-c|")[0].startswith("---[sa]")


# What is asked, and when.


def test_a_function_is_called_when_its_source_is_asked_and_each_subscription_asks_afresh() -> None:
    asked: list[str] = []

    def source(name: str, *events: rd.Event) -> Callable[[], Observable[rd.Event]]:
        def ask() -> Observable[rd.Event]:
            asked.append(name)
            return rx.from_iterable(events)

        return ask

    reply = rd.fallback(source("a", ev.MessageStart()), source("b", HI), source("c", HI))
    assert asked == []
    assert heard(reply) == heard(reply) == [HI, None]
    assert asked == ["a", "b"] * 2


tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def test_requests_are_made_in_the_context_of_the_subscriber() -> None:
    seen: list[str] = []
    first = Subject[rd.Event]()

    def ask() -> Observable[rd.Event]:
        seen.append(tenant.get())
        tenant.set("changed")
        return rx.throw(ERRORS[0])

    token = tenant.set("ours")
    rd.fallback(first, ask, ask).subscribe(on_error=lambda _: None)
    tenant.reset(token)
    first.on_completed()
    assert seen == ["ours", "ours"]
    assert tenant.get() == "nobody"


def test_a_reader_that_has_enough_asks_no_more() -> None:
    asked: list[int] = []

    def ask() -> Observable[rd.Event]:
        asked.append(1)
        return rx.of(HI)

    assert heard(rd.fallback(rx.of(HI, ev.StreamError("late")), ask).pipe(ops.take(1))) == [HI, None]
    assert asked == []


def test_a_function_that_is_none_is_refused_at_once() -> None:
    async def coroutine() -> Observable[rd.Event]:
        return rx.of(HI)

    async def generator() -> Any:
        yield HI

    for source in (coroutine, generator, generator(), Stream(HI), rd.scan_deltas(), [rx.of(HI)], "text"):
        with pytest.raises(rd.InvalidValueError, match=r"sources\[1\]: must be an Observable of events"):
            rd.fallback(rx.of(HI), source)  # type: ignore[arg-type]


def test_a_source_of_something_else_fails_as_soon_as_it_is_known() -> None:
    snapshots: Any = rx.of(HI).pipe(rd.scan_deltas())
    with pytest.raises(rd.InvalidValueError, match=r"fallback\(\) reads events, and scan_deltas\(\)"):
        rd.fallback(snapshots)
    (error,) = heard(rd.fallback(lambda: snapshots))
    assert "give it the events in front of scan_deltas()" in str(error)
    behind: Any = rx.of(HI, "text")
    values = heard(rd.fallback(behind, rx.of(HI)))
    assert values[0] == HI
    assert "fallback() reads events, and got a str" in str(values[1])


# Closing.


class Request:
    """A source whose subscriptions are counted. It emits these events while it is being subscribed, and while it is closed."""

    def __init__(self, *events: rd.Event, at_the_end: rd.Event | None = None) -> None:
        self.events = events
        self.at_the_end = at_the_end
        self.opened = self.closed = 0
        self.observer: abc.ObserverBase[rd.Event] | None = None
        self.source = rx.create(self._subscribe)

    def _subscribe(self, observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        self.opened += 1
        self.observer = observer
        for event in self.events:
            observer.on_next(event)
        return Disposable(self._close)

    def _close(self) -> None:
        self.closed += 1
        if self.at_the_end is not None and self.observer is not None:
            self.observer.on_next(self.at_the_end)


def test_a_reader_that_leaves_while_a_source_is_being_asked_closes_it() -> None:
    first, got = Subject[rd.Event](), list[Any]()

    class Leaving(Request):
        def _subscribe(self, observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
            reading.dispose()
            return super()._subscribe(observer)

    second, third = Request(HI), Leaving(HI)

    def ask() -> Observable[rd.Event]:
        reading.dispose()
        return second.source

    for source in (ask, third.source):
        reading = rd.fallback(first, source).subscribe(got.append)
        first.on_next(ev.StreamError("Overloaded"))
    assert (second.opened, third.opened, third.closed, got) == (0, 1, 1, [])


def test_an_exception_of_an_observer_is_no_failure_of_a_source() -> None:
    asked: list[int] = []

    def ask() -> Observable[rd.Event]:
        asked.append(1)
        return rx.of(HI)

    def look(_: object) -> None:
        raise ZeroDivisionError

    first = Subject[rd.Event]()
    rd.fallback(first, ask).subscribe(look)
    with pytest.raises(ZeroDivisionError):
        first.on_next(HI)
    assert asked == []
    assert not first.observers
    with pytest.raises(ZeroDivisionError):
        rd.fallback(Request(HI).source, ask).subscribe(look)
    assert asked == []


def test_what_a_source_emits_while_it_is_asked_is_emitted_at_once() -> None:
    first, got, seen = Subject[rd.Event](), list[Any](), list[int]()

    def subscribe(observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        for _ in range(3):
            observer.on_next(HI)
            seen.append(len(got))
        return Disposable()

    rd.fallback(first, rx.create(subscribe)).subscribe(got.append)
    first.on_completed()
    assert seen == [1, 2, 3]


def test_a_source_that_raises_behind_its_end_has_failed_once() -> None:
    def fail(observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        observer.on_error(ERRORS[0])
        raise ERRORS[1]

    def complete(observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        observer.on_completed()
        raise ERRORS[1]

    for subscribe in (fail, complete):
        assert heard(rd.fallback(rx.create(subscribe), rx.never())) == []
        assert heard(rd.fallback(rx.create(subscribe), rx.of(HI))) == [HI, None]
    assert heard(rd.fallback(rx.create(complete))) == [None]


# Bounds.


def test_what_is_held_is_bounded() -> None:
    endless = rx.from_iterable([ev.ProviderEvent("house", "queued", {})] * 3_000)
    for blocks, most in ((1, 1_000), (2_000, 2_000)):
        limits = rd.Limits(blocks=blocks)
        (error,) = heard(rd.fallback(endless).pipe(rd.with_limits(limits)))
        assert isinstance(error, rd.errors.LimitExceededError)
        assert error.maximum == most
        assert heard(rd.fallback(endless, rx.of(HI)).pipe(rd.with_limits(limits))) == [HI, None]
        (error,) = heard(rd.fallback(endless.pipe(rd.with_limits(limits))))
        assert error.maximum == most
    assert len(heard(rd.fallback(endless))) == 3_001


def test_the_choice_of_a_source_that_has_lost_isnt_read() -> None:
    begin = ev.BlockStart(0, {"type": "text", "text": "first"})
    other = ev.BlockStart(0, {"type": "text", "text": "second"}, choice=1)
    whole = rx.of(begin, other)
    broken = rx.throw(ERRORS[0])

    def read(*sources: Observable[rd.Event]) -> list[Any]:
        texts = rd.fallback(*sources).pipe(rd.text_deltas())
        with_a_scheduler = list[Any]()
        texts.subscribe(with_a_scheduler.append, scheduler=CurrentThreadScheduler())
        values = heard(texts)
        assert values == [*with_a_scheduler, None]
        return values

    assert read(broken.pipe(rd.only_choice(1)), whole) == ["first", None]
    assert read(whole.pipe(rd.only_choice(1)), whole) == ["second", None]
    assert read(broken, whole.pipe(rd.only_choice(1))) == ["second", None]


def test_the_limits_of_the_source_that_has_won_hold_behind() -> None:
    small = rd.with_limits(rd.Limits(block_chars=1))
    broken = rx.throw(ERRORS[0])
    hello = rx.of(ev.BlockStart(0, {"type": "text", "text": "Hello"}))
    assert heard(rd.fallback(broken.pipe(small), hello).pipe(rd.text_deltas())) == ["Hello", None]
    (error,) = heard(rd.fallback(broken, hello.pipe(small)).pipe(rd.scan_deltas()))
    assert isinstance(error, rd.errors.LimitExceededError)


# With a loop.


def test_the_source_that_is_asked_later_waits_for_the_reader() -> None:
    async def main() -> None:
        first = Stream[rd.Event](ev.MessageStart(), end=ERRORS[0])
        second = Stream[rd.Event](*[ev.TextDelta(0, str(n)) for n in range(1_000)])
        reply = rd.fallback(
            rd.from_async_iterable(lambda: first), lambda: rd.from_async_iterable(lambda: second)
        )
        async with rd.to_async_iterable(reply, maxsize=3) as events:
            async for event in events:
                assert event == ev.TextDelta(0, "0")
                for _ in range(100):
                    await asyncio.sleep(0)
                break
        assert second.given < 10
        assert (first.closed, second.closed) == (1, 1)

    run_loop(main)


def test_the_log_names_the_sources_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    def misspelled() -> Observable[rd.Event]:
        raise AttributeError("no attribute 'mesages' beside the key sk-1234")

    refused = rx.throw(PermissionError("the key sk-1234 was refused"))
    got: list[Any] = []
    rd.fallback(misspelled, refused, rx.of(HI)).subscribe(got.append, got.append)
    assert got == [HI]
    assert [record.getMessage() for record in caplog.records] == [
        "source 1 of fallback failed with AttributeError, and another one gives the reply",
        "source 2 of fallback failed with PermissionError, and another one gives the reply",
    ]


def test_the_log_says_nothing_where_the_error_does(caplog: pytest.LogCaptureFixture) -> None:
    got: list[Any] = []
    rd.fallback(rx.throw(KeyError("one")), rx.throw(KeyError("two"))).subscribe(got.append, got.append)
    assert isinstance(got[0], KeyError)
    assert caplog.records == []
