"""`retry_stream`: what its factory is given, and how many requests it may make."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any
from unittest.mock import Mock

import pytest
import reactivex as rx
from reactivex import Observable

import rxdelta as rd

ev = rd.events
OVERLOADED = rd.ProviderError("Overloaded", type="overloaded_error")
SECOND = rd.ProviderError("Overloaded again", type="overloaded_error")
BOTH = pytest.mark.parametrize("resume", [False, True])


def said(text: str, kind: str = "text") -> rd.Event:
    field = "reasoning" if kind == "reasoning" else "text"
    return ev.BlockStart(0, {"type": kind, field: text})


def script() -> Callable[[], Observable[rd.Event]]:
    """Two requests that break off, and one that finishes."""
    first = rx.concat(rx.of(said("Hel")), rx.throw(OVERLOADED))
    second = rx.concat(rx.of(said("lo ")), rx.throw(SECOND))
    return iter([first, second, rx.of(said("world"), ev.MessageFinish("stop"))]).__next__


def run(factory: Any, *, resume: bool = True, **options: Any) -> list[Any]:
    got: list[Any] = []
    events = rd.retry_stream(factory, backoff=lambda *_: 0, resume=resume, **options)
    events.subscribe(got.append, got.append)
    return got


def texts(given: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        tuple(one.text if isinstance(one, rd.Snapshot) else one for one in arguments) for arguments in given
    ]


def factories(given: list[tuple[Any, ...]]) -> dict[str, tuple[Any, int]]:
    """Factories, and how many arguments they get."""
    ask = script()

    def make(*arguments: Any) -> Observable[rd.Event]:
        given.append(arguments)
        return ask()

    def snapshot_and_error(snapshot: rd.Snapshot | None, error: Exception | None) -> Observable[rd.Event]:
        return make(snapshot, error)

    def positional_only(snapshot: rd.Snapshot | None, /, error: Any = "mine") -> Observable[rd.Event]:
        assert error == "mine"
        return make(snapshot)

    class Asks:
        def method(self, snapshot: rd.Snapshot | None) -> Observable[rd.Event]:
            return make(snapshot)

        def __call__(
            self, snapshot: rd.Snapshot | None, error: Exception | None, attempt: int
        ) -> Observable[rd.Event]:
            return make(snapshot, error, attempt)

        @staticmethod
        def static() -> Observable[rd.Event]:
            return make()

    @wraps(snapshot_and_error)
    def wrapped(*arguments: Any, **options: Any) -> Observable[rd.Event]:
        return snapshot_and_error(*arguments, **options)

    return {
        "none": (lambda: make(), 0),
        "one": (lambda snapshot: make(snapshot), 1),
        "two": (snapshot_and_error, 2),
        "three": (lambda snapshot, error, attempt: make(snapshot, error, attempt), 3),
        "a default": (lambda model="small": make() if model == "small" else None, 0),
        "a default of None": (lambda snapshot=None: make() if snapshot is None else None, 0),
        "one and a default": (positional_only, 1),
        "one and more": (lambda snapshot, *more: make(snapshot, *more), 1),
        "a keyword with a default": (lambda snapshot, *, model="small": make(snapshot), 1),
        "a method": (Asks().method, 1),
        "a callable object": (Asks(), 3),
        "a static method": (Asks.static, 0),
        "a partial": (partial(snapshot_and_error, None), 1),
        "a partial by name": (partial(snapshot_and_error, error=OVERLOADED), 1),
        "a wrapper that says what it wraps": (wrapped, 2),
    }


@BOTH
@pytest.mark.parametrize("name", factories([]))
def test_a_factory_gets_as_many_arguments_as_it_needs(name: str, resume: bool) -> None:
    given: list[tuple[Any, ...]] = []
    factory, count = factories(given)[name]
    assert isinstance(run(factory, resume=resume)[-1], ev.MessageFinish)
    snapshots = [None, "Hel", "Hello "] if resume else [None] * 3
    if name == "a partial":
        assert texts(given) == [(None, snapshot) for snapshot in snapshots]
    elif name == "a partial by name":
        assert texts(given) == [(snapshot, OVERLOADED) for snapshot in snapshots]
    else:
        whole = zip(snapshots, [None, OVERLOADED, SECOND], range(3))
        assert texts(given) == [arguments[:count] for arguments in whole]


@BOTH
def test_a_factory_that_does_not_say_what_it_takes_gets_what_it_is_sure_to_need(resume: bool) -> None:
    ask = script()
    mock = Mock(side_effect=lambda *_: ask())
    run(mock, resume=resume)
    assert texts([call.args for call in mock.call_args_list]) == (
        [(None,), ("Hel",), ("Hello ",)] if resume else [(), (), ()]
    )
    requests = {None: rx.of(ev.MessageFinish("stop"))}
    builtin: Any = requests.get if resume else partial(next, iter(requests.values()))
    assert [type(event) for event in run(builtin, resume=resume)] == [ev.MessageFinish]


@BOTH
@pytest.mark.parametrize(
    "factory",
    [
        lambda snapshot, error, attempt, more: rx.never(),
        lambda snapshot, *, model: rx.never(),
        partial(lambda snapshot, error: rx.never(), snapshot=None),
    ],
)
def test_a_factory_that_needs_more_is_refused_at_once(factory: Any, resume: bool) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"factory.*\(snapshot, error, attempt\)"):
        rd.retry_stream(factory, resume=resume)


def test_what_starts_over_has_no_snapshot_and_counts_on() -> None:
    call = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "f"})
    each = iter([[said("a"), OVERLOADED], [call, SECOND], [said("b"), ev.MessageFinish("stop")]])
    given: list[tuple[Any, ...]] = []

    def factory(snapshot: rd.Snapshot | None, error: Exception | None, attempt: int) -> Observable[rd.Event]:
        given.append((snapshot, error, attempt))
        *told, end = next(each)
        last = rx.throw(end) if isinstance(end, Exception) else rx.just(end)
        return rx.concat(rx.from_iterable(told), last)  # type: ignore[arg-type]

    got = run(factory)
    assert texts(given) == [(None, None, 0), ("a", OVERLOADED, 1), (None, SECOND, 2)]
    assert [event.attempt for event in got if isinstance(event, ev.AttemptReset)] == [2]


# How many requests.


def requests_made(*requests: list[Any], resume: bool, attempts: int = 2, waits: Any = None) -> int:
    """The number of requests of which each breaks off after these events; the last one is made again and again."""
    made = 0

    def factory() -> Observable[rd.Event]:
        nonlocal made
        made += 1
        assert made < 50, "it never ends"
        told = requests[min(made, len(requests)) - 1]
        return rx.concat(rx.from_iterable(told), rx.throw(OVERLOADED))

    def backoff(failures: int, error: Exception) -> float:
        if waits is not None:
            waits.append(failures)
        return 0

    got: list[Any] = []
    rd.retry_stream(factory, attempts, backoff, resume).subscribe(on_error=got.append)
    assert got == [OVERLOADED]
    return made


def test_each_new_text_of_a_continuation_begins_a_new_row() -> None:
    waits: list[int] = []
    steps = [[said(word)] for word in ("The ", "tide ", "is ", "high ")]
    assert requests_made(*steps, [], resume=True, attempts=3, waits=waits) == 6
    assert waits == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("attempts", [1, 2, 5])
@pytest.mark.parametrize(
    ("told", "resume"),
    [
        pytest.param([], True, id="nothing"),
        pytest.param([said("The")], False, id="the first word, and over"),
        pytest.param([said("Reasons", "reasoning")], True, id="reasoning"),
    ],
)
def test_a_provider_that_always_breaks_off_there_is_given_up(
    told: list[Any], resume: bool, attempts: int
) -> None:
    assert requests_made(told, resume=resume, attempts=attempts) == attempts


@pytest.mark.parametrize(
    ("requests", "resume", "made"),
    [
        pytest.param(["The"], True, 2, id="the first word, which is continued"),
        pytest.param(["The tide ", "The "], True, 2, id="words that were there"),
        pytest.param(["The", " \n"], True, 2, id="blanks"),
        pytest.param(["", " "], True, 2, id="only blanks"),
        pytest.param(["a", "ab", "abc", "ab"], False, 4, id="longer each time"),
        pytest.param(["a", "a ", "a  "], False, 2, id="longer by blanks"),
        pytest.param(["abc", "xy", "abcd"], False, 2, id="other words, no longer"),
    ],
)
def test_only_new_text_begins_a_new_row(requests: list[str], resume: bool, made: int) -> None:
    assert requests_made(*([said(text)] for text in requests), resume=resume) == made


def test_an_overlap_is_no_new_text() -> None:
    tide = "The tide is "
    assert requests_made([said(tide)], resume=True) == 2
    assert requests_made([said(tide)], [said(tide + "high")], [], resume=True) == 3
