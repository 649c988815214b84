"""What every door does with its arguments, and where there is no loop of asyncio."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


async def for_each(source: Any, **options: Any) -> None:
    await rd.for_each(source, lambda _: None, **options)


async def iterate(source: Any, **options: Any) -> None:
    async for _ in rd.iterate(source, **options):
        pass


async def to_async_iterable(source: Any, **options: Any) -> None:
    async with rd.to_async_iterable(source, **options) as values:
        async for _ in values:
            pass


async def to_iterable(source: Any, **options: Any) -> None:
    def read() -> None:
        with rd.to_iterable(source, **options) as values:
            list(values)

    await asyncio.to_thread(read)


async def first_value(source: Any) -> None:
    await rd.first_value(source)


async def last_value(source: Any) -> None:
    await rd.last_value(source)


MANY: list[Any] = [for_each, iterate, to_async_iterable, to_iterable]
ALL: list[Any] = [*MANY, first_value, last_value]


def refusal(call: Callable[[], Coroutine[Any, Any, None]]) -> rd.InvalidValueError:
    async def main() -> rd.InvalidValueError:
        with pytest.raises(rd.InvalidValueError) as refused:
            await call()
        return refused.value

    return asyncio.run(main())


@pytest.mark.parametrize("source", [[1], None, rx.of, "text"])
@pytest.mark.parametrize("door", ALL)
def test_a_source_that_is_no_observable_is_refused(door: Any, source: Any) -> None:
    error = refusal(lambda: door(source))
    assert f"{door.__name__} reads an Observable; from_async_iterable() and from_iterable() make one" in str(
        error
    )
    assert (error.field, error.value) == ("source", source)


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("overflow", "drop", "{} knows latest, buffer, block, error, join"),
        ("maxsize", 0, "must be at least 1 for {}"),
        ("maxsize", True, "must be at least 1 for {}"),
        ("limits", {"blocks": 1}, "{} takes rd.Limits"),
        ("limits", 1024, "{} takes rd.Limits"),
    ],
)
@pytest.mark.parametrize("door", MANY)
def test_an_option_that_a_door_cannot_use_is_refused(door: Any, option: str, value: Any, wanted: str) -> None:
    error = refusal(lambda: door(rx.of(1), **{option: value}))
    assert wanted.format(door.__name__) in str(error)
    assert (error.field, error.value) == (option, value)


@pytest.mark.parametrize(
    ("given", "meant"), [("newest", "latest"), ("Block", "block"), ("lastest", "latest")]
)
@pytest.mark.parametrize("door", MANY)
def test_the_policy_that_was_meant_is_named(door: Any, given: str, meant: str) -> None:
    assert str(refusal(lambda: door(rx.of(1), overflow=given))).endswith(f"did you mean '{meant}'?")


@pytest.mark.parametrize("fn", [None, "print"])
def test_for_each_needs_a_function(fn: Any) -> None:
    subscribed: list[int] = []
    source = rx.defer(lambda _: subscribed.append(1) or rx.of(1))
    with pytest.raises(rd.InvalidValueError, match="fn: must be a function of a value"):
        asyncio.run(rd.for_each(source, fn))
    assert subscribed == []


@pytest.mark.parametrize("make", [rd.to_async_iterable, rd.to_iterable])
def test_all_refusals_come_at_once_and_before_entering(make: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"overflow: .*; maxsize: .*; limits: "):
        make(rx.of(1), "drop", maxsize=0, limits=0)


@pytest.mark.parametrize("door", MANY)
def test_the_limits_of_a_door_reach_its_pipeline(door: Any) -> None:
    two = [rd.events.BlockStart(number, {"type": "text", "text": "Hi"}) for number in range(2)]
    snapshots = rx.from_iterable(two).pipe(rd.scan_deltas())
    asyncio.run(door(snapshots))
    with pytest.raises(rd.errors.LimitExceededError):
        asyncio.run(door(snapshots, limits=rd.Limits(blocks=1)))


# Other libraries.


class NotFoundError(RuntimeError):
    pass


def sniffio(library: str | None) -> Any:
    def current() -> str:
        if library is None:
            raise NotFoundError
        return library

    return SimpleNamespace(current_async_library=current, AsyncLibraryNotFoundError=NotFoundError)


@pytest.mark.parametrize("door", [door for door in ALL if door is not to_iterable])
@pytest.mark.parametrize("library", ["trio", "curio"])
def test_a_door_names_itself_and_the_way_out_under_another_library(
    door: Any, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sniffio", sniffio(library))
    wanted = (
        f"^{door.__name__} needs a running asyncio loop: {library} runs this task; "
        r"read with to_iterable\(\) in a worker thread$"
    )
    with pytest.raises(rd.InvalidValueError, match=wanted):
        door(rx.of(1)).send(None)  # as that library's loop does
    assert wanted[1:9] in str(refusal(lambda: door(rx.of(1))))  # in trio's guest mode asyncio runs too


def test_a_source_names_itself_under_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sniffio", sniffio("trio"))
    errors: list[Exception] = []
    rd.from_async_iterable(lambda: None).subscribe(on_error=errors.append)  # type: ignore[arg-type,return-value]
    (error,) = errors
    assert str(error).startswith("from_async_iterable needs a running asyncio loop: trio runs this task; ")


def test_a_plain_for_would_block_another_librarys_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sniffio", sniffio("trio"))
    with (
        pytest.raises(
            rd.InvalidValueError, match=r"^to_iterable would block the loop of trio, .* worker thread$"
        ),
        rd.to_iterable(rx.of(1)),
    ):
        pass


@pytest.mark.parametrize("library", ["asyncio", None])
@pytest.mark.parametrize("door", ALL)
def test_a_door_opens_under_asyncio_and_on_a_worker_thread(
    door: Any, library: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sniffio", sniffio(library))
    if (door is to_iterable) is (library is None):
        asyncio.run(door(rx.of(1)))


@pytest.mark.parametrize("door", [door for door in ALL if door is not to_iterable])
def test_without_any_loop_a_door_asks_for_one(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sniffio", raising=False)
    with pytest.raises(
        rd.InvalidValueError, match=rf"^{door.__name__} needs a running .* asyncio\.run\(\) runs$"
    ):
        door(rx.of(1)).send(None)


def test_under_trio_itself() -> None:
    trio = pytest.importorskip("trio")

    def read() -> list[int]:
        with rd.to_iterable(rx.of(1, 2)) as values:
            return list(values)

    async def main() -> list[int]:
        with pytest.raises(rd.InvalidValueError, match=r"^for_each needs a running asyncio loop: trio runs"):
            await for_each(rx.of(1))
        with pytest.raises(rd.InvalidValueError, match=r"^to_iterable would block the loop of trio"):
            read()
        got: list[int] = await trio.to_thread.run_sync(read)
        return got

    assert trio.run(main) == [1, 2]
