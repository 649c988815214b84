"""Who may read: tenants, and the application's check of each use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from relay.conftest import Opener
from support.loops import run, turns
from support.runs import text, turn
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events
HELLO = turn(text(0, "Hello"))


def said(*words: str) -> rx.Observable[rd.Event]:
    return rx.from_iterable(turn(text(0, *words)))


async def heard(relay: Relay, stream_id: str) -> str:
    """The text of a stream that has ended."""
    message = await rd.last_value(relay.watch(stream_id).pipe(rd.scan_deltas(), rd.to_message()))
    return message.text


# Tenants.


@says("The streams of a tenant")
def test_two_tenants_streams_with_one_id_are_two(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay(lease=0.5) as relay:
            ours, theirs = relay.scope("ours"), relay.scope("theirs")
            live = Subject[rd.Event]()
            assert await ours.start("chat", said("ours"))
            assert await theirs.start("chat", live)
            assert await relay.start("chat", said("nobody's"))
            assert await relay.start("lobby", said("nobody's"))
            assert [await heard(ours, "chat"), await heard(relay, "chat")] == ["ours", "nobody's"]

            assert not await ours.is_live("chat")
            assert not await ours.cancel("chat")
            assert await theirs.is_live("chat")
            assert await ours.delete("chat")
            assert not await ours.delete("chat")
            assert await theirs.is_live("chat")
            assert [await each.streams() for each in (ours, theirs)] == [[], ["chat"]]
            assert sorted(await relay.streams()) == ["chat", "lobby"]
            with pytest.raises(rd.errors.EmptyStreamError):
                await heard(ours, "lobby")
            assert await theirs.cancel("chat", "enough")

    run(main)


@says("The streams of a tenant")
def test_an_entrys_id_of_one_tenant_is_none_of_another(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            for tenant in ("ours", "theirs"):
                await relay.scope(tenant).start("chat", said(tenant))
            entry = await rd.first_value(relay.scope("theirs").entries("chat"))
            with pytest.raises(rd.InvalidValueError, match="no id of an entry of this stream"):
                await rd.for_each(relay.scope("ours").watch("chat", after=entry.id), lambda _: None)

    run(main)


NO_TENANTS = ["", None, 1, "a\n", "a\0b", "\x7f", "\ud800", "x" * 257]


@pytest.mark.parametrize("tenant", NO_TENANTS, ids=repr)
def test_what_is_no_name_is_no_tenant(tenant: Any) -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            with pytest.raises(rd.InvalidValueError) as caught:
                relay.scope(tenant, allow=lambda *_: True)
            assert caught.value.field == "tenant"

    run(main)


def test_a_tenant_is_named_first_and_once() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            for scoped in (relay.scope("ours"), relay.scope(allow=lambda *_: True)):
                with pytest.raises(rd.InvalidValueError, match="must be given first"):
                    scoped.scope("theirs")
            with pytest.raises(rd.InvalidValueError, match="must be given, or a tenant"):
                relay.scope()  # type: ignore[call-overload]
            with pytest.raises(rd.InvalidValueError, match="must be a function"):
                relay.scope("ours", allow="yes")  # type: ignore[arg-type]

    run(main)


# The check. A use is all that a relay can be asked for, under the name that the check gets.

Use = Callable[[Relay, str], Awaitable[object]]
Answer = Callable[[], object]


async def publish(relay: Relay, stream_id: str) -> None:
    await rd.for_each(said("Hello").pipe(relay.publish(stream_id)), lambda _: None)


async def start(relay: Relay, stream_id: str) -> None:
    assert await relay.start(stream_id, said("Hello"))


async def watch(relay: Relay, stream_id: str) -> None:
    await rd.for_each(relay.watch(stream_id), lambda _: None)


async def entries(relay: Relay, stream_id: str) -> None:
    await rd.for_each(relay.entries(stream_id), lambda _: None)


USES: list[tuple[str, Use]] = [
    ("publish", publish),
    ("publish", start),
    ("watch", watch),
    ("watch", entries),
    ("watch", lambda relay, stream_id: relay.is_live(stream_id)),
    ("cancel", lambda relay, stream_id: relay.cancel(stream_id)),
    ("delete", lambda relay, stream_id: relay.delete(stream_id)),
]
each_use = pytest.mark.parametrize(
    ("action", "use"), USES, ids=["publish", "start", "watch", "entries", "is_live", "cancel", "delete"]
)
both_kinds = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Check:
    """A check that keeps what it is asked."""

    def __init__(self, answer: Answer, is_async: bool = False) -> None:
        self.asked: list[tuple[str, str]] = []
        self._answer = answer
        self._is_async = is_async

    def __call__(self, action: str, stream_id: str) -> Any:
        self.asked.append((action, stream_id))
        return self._later() if self._is_async else self._answer()

    async def _later(self) -> object:
        async with asyncio.timeout(10):  # works only in a task
            await asyncio.sleep(0)
        return self._answer()


@each_use
@both_kinds
def test_each_use_is_asked_for_once_and_done_if_it_is_allowed(
    open_relay: Opener, action: str, use: Use, is_async: bool
) -> None:
    async def main() -> None:
        check = Check(lambda: True, is_async)
        async with open_relay() as relay:
            if action != "publish":
                await relay.start("chat", said("Hello"))
                await heard(relay, "chat")  # to its end, so that `cancel` comes too late to stop it
            await use(relay.scope(allow=check), "chat")
            assert check.asked == [(action, "chat")]
            if action == "delete":
                assert await relay.streams() == []
            else:
                assert await heard(relay, "chat") == "Hello"

    run(main)


@says("A refusal is the same")
@each_use
@both_kinds
def test_a_refusal_is_one_error_and_says_nothing_of_the_stream(
    open_relay: Opener, action: str, use: Use, is_async: bool
) -> None:
    async def main() -> None:
        check = Check(lambda: False, is_async)
        async with open_relay(lease=1000) as relay:
            await relay.start("there", said("Hello"))
            theirs = relay.scope("theirs", allow=check)
            texts = list[str]()
            for scoped, stream_id in (
                (relay.scope(allow=check), "there"),
                (relay.scope(allow=check), "not there"),
                (theirs, "there"),
            ):
                with pytest.raises(rd.errors.AccessDeniedError) as caught:
                    await use(scoped, stream_id)
                error = caught.value
                assert (error.action, error.stream_id, error.__cause__) == (action, stream_id, None)
                texts.append(str(error).replace("not there", "there"))
            assert texts == [f"it isn't allowed to {action} the stream there"] * 3
            assert await relay.streams() == ["there"]
            assert await relay.scope("theirs").streams() == []

    run(main)


@pytest.mark.parametrize("through", ["publish", "start"])
def test_what_is_refused_subscribes_nothing(open_relay: Opener, through: str) -> None:
    async def main() -> None:
        subscribed = list[object]()
        source: rx.Observable[rd.Event] = rx.defer(lambda _: subscribed.append(1) or said("Hello"))
        async with open_relay() as relay:
            for is_async in (False, True):
                scoped = relay.scope(allow=Check(lambda: False, is_async))
                with pytest.raises(rd.errors.AccessDeniedError):
                    if through == "start":
                        await scoped.start("chat", source)
                    else:
                        await rd.for_each(source.pipe(scoped.publish("chat")), lambda _: None)
            assert await relay.start("chat", source)
            await heard(relay, "chat")
        assert subscribed == [1]

    run(main)


class OfMyOwn(BaseException):
    """As those of gevent or of a Rust extension."""


KINDS = [ValueError, StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError, OfMyOwn]


@pytest.mark.parametrize("use", [watch, publish], ids=["watch", "publish"])
@pytest.mark.parametrize("kind", KINDS)
@both_kinds
def test_a_check_that_raises_refuses_and_a_subscriber_hears_why(
    use: Use, kind: type[BaseException], is_async: bool
) -> None:
    def fail() -> object:
        raise kind

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", said("Hello"))
            with pytest.raises(rd.errors.AccessDeniedError, match="the check of it failed") as caught:
                await asyncio.wait_for(use(relay.scope(allow=Check(fail, is_async)), "chat"), 20)
            cause = caught.value.__cause__
            # Python lets no StopIteration leave a coroutine.
            assert isinstance(cause, RuntimeError if is_async and kind is StopIteration else kind)

    run(main)


@says("A scope allows what")
@each_use
@both_kinds
def test_a_check_that_raises_refuses_each_use(action: str, use: Use, is_async: bool) -> None:
    wrong = ConnectionError("the database is away, password=hunter2")

    def fail() -> object:
        raise wrong

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", said("Hello"))
            with pytest.raises(rd.errors.AccessDeniedError) as caught:
                await use(relay.scope(allow=Check(fail, is_async)), "chat")
            assert caught.value.__cause__ is wrong
            assert "hunter2" not in str(caught.value)
            assert await heard(relay, "chat") == "Hello"

    run(main)


@says("A scope allows what")
@pytest.mark.parametrize("answer", [None, 1, "no", "yes", [], {"user": "ann"}, 1.0], ids=repr)
@both_kinds
def test_only_true_allows(answer: object, is_async: bool) -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", said("Hello"))
            for use in (watch, start):
                with pytest.raises(rd.errors.AccessDeniedError) as caught:
                    await use(relay.scope(allow=Check(lambda: answer, is_async)), "chat")
                assert "must return True or False" in str(caught.value.__cause__)

    run(main)


def test_a_wrong_argument_is_told_before_anything_is_asked() -> None:
    async def main() -> None:
        check = Check(lambda: True)
        async with Relay.open() as relay:
            scoped = relay.scope(allow=check)
            for use in (scoped.watch, scoped.entries, scoped.publish):
                with pytest.raises(rd.InvalidValueError):
                    use("a\nb")
            for call in (scoped.cancel, scoped.delete, scoped.is_live):
                with pytest.raises(rd.InvalidValueError):
                    await call("")
            with pytest.raises(rd.InvalidValueError):
                await scoped.start("chat", None)  # type: ignore[arg-type]
        assert check.asked == []

    run(main)


# Scopes of scopes.


@says("A scope of a scope")
@both_kinds
@pytest.mark.parametrize("outer_is_async", [False, True], ids=["outer sync", "outer async"])
def test_both_are_asked_the_outer_one_first_and_either_may_refuse(
    open_relay: Opener, outer_is_async: bool, is_async: bool
) -> None:
    async def main() -> None:
        order = list[str]()

        def answer(who: str, says: bool) -> Answer:
            return lambda: order.append(who) or says

        async with open_relay() as relay:
            await relay.scope("ours").start("chat", said("Hello"))
            for outer, inner, asked in (
                (True, True, ["outer", "inner"]),
                (True, False, ["outer", "inner"]),
                (False, True, ["outer"]),
            ):
                order.clear()
                first = relay.scope("ours", allow=Check(answer("outer", outer), outer_is_async))
                nested = first.scope(allow=Check(answer("inner", inner), is_async))
                if outer and inner:
                    assert await heard(nested, "chat") == "Hello"
                    assert not await nested.is_live("chat")
                else:
                    with pytest.raises(rd.errors.AccessDeniedError):
                        await heard(nested, "chat")
                    with pytest.raises(rd.errors.AccessDeniedError):
                        await nested.is_live("chat")
                assert order == asked * 2

    run(main)


def test_streams_lists_what_may_be_watched(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            for name in ("ann/1", "bob/1", "ann/2"):
                await relay.start(name, said("Hello"))

            def anns(action: str, stream_id: str) -> bool:
                assert action == "watch"
                return stream_id.startswith("ann/")

            async def second(_: str, stream_id: str) -> bool:
                await asyncio.sleep(0)
                return stream_id.endswith("2")

            scoped = relay.scope(allow=anns)
            assert await scoped.streams() == ["ann/1", "ann/2"]
            assert await scoped.scope(allow=second).streams() == ["ann/2"]
            with pytest.raises(
                rd.errors.AccessDeniedError
            ) as caught:  # an empty list would say that there is nothing
                await relay.scope(allow=lambda *_: 1 / 0 > 0).streams()
            assert isinstance(caught.value.__cause__, ZeroDivisionError)

    run(main)


# When, and where.


@says("A reader that watches already")
def test_who_watches_goes_on_when_the_answer_would_be_another() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, got, may = Subject[rd.Event](), list[Any](), [True]
            source.pipe(relay.publish("chat")).subscribe()
            reading = asyncio.create_task(
                rd.for_each(relay.scope(allow=lambda *_: may[0]).watch("chat"), got.append)
            )
            await turns()
            may[0] = False
            for event in HELLO:
                source.on_next(event)
            source.on_completed()
            await reading
            assert got == HELLO

    run(main)


def test_a_reader_that_leaves_while_the_check_is_under_way_ends_it() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            ended = list[str]()

            async def check(*_: str) -> bool:
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append("check")
                return True

            scoped = relay.scope(allow=check)
            got = list[Any]()
            reading = scoped.watch("chat").subscribe(got.append, got.append, lambda: got.append("|"))
            await turns()
            reading.dispose()
            await turns()
            assert ended == ["check"]
            scoped.watch("chat").subscribe(got.append, got.append).dispose()  # before the check has begun
            await turns()
            assert (ended, got) == (["check"], [])

    run(main)


def test_a_check_that_is_cancelled_from_outside_refuses() -> None:
    async def main() -> None:
        async with Relay.open() as relay:

            async def check(*_: str) -> bool:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
                return True

            with pytest.raises(rd.errors.AccessDeniedError) as caught:
                await asyncio.wait_for(watch(relay.scope(allow=check), "chat"), 20)
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)

    run(main)


def test_a_call_that_is_cancelled_while_it_is_checked_is_cancelled() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            asked = asyncio.Event()

            async def check(*_: str) -> bool:
                asked.set()
                await asyncio.Event().wait()
                return True

            starting = asyncio.create_task(relay.scope(allow=check).start("chat", said("Hello")))
            await asked.wait()
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            assert await relay.streams() == []

    run(main)


def test_an_async_check_needs_a_loop_and_says_so_and_a_plain_one_does_not() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", said("Hello"))
            told = list[Any]()

            def read(scoped: Relay) -> None:
                done = threading.Event()

                def end(error: object = None) -> None:
                    told.append(error)
                    done.set()

                scoped.watch("chat").subscribe(lambda _: None, end, end)
                assert done.wait(20)

            await asyncio.to_thread(read, relay.scope(allow=Check(lambda: True, is_async=True)))
            await asyncio.to_thread(read, relay.scope(allow=Check(lambda: True)))
            failed, completed = told
            assert isinstance(failed, rd.InvalidValueError)
            assert failed.field == "allow"
            assert "needs a running asyncio loop" in str(failed)
            assert completed is None

            def plain_code() -> list[rd.Event]:
                scoped = relay.scope(allow=Check(lambda: True, is_async=True))
                with rd.to_iterable(scoped.watch("chat")) as events:
                    return list(events)

            assert (await asyncio.to_thread(plain_code))[-1] == HELLO[-1]

    run(main)


def test_the_check_is_asked_on_the_thread_of_its_user() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            threads = list[int]()
            scoped = relay.scope(allow=lambda *_: threads.append(threading.get_ident()) is None)
            await scoped.start("chat", said("Hello"))

            def elsewhere() -> int:
                with rd.to_iterable(scoped.watch("chat")) as events:
                    list(events)
                asyncio.run(heard(scoped, "chat"))
                return threading.get_ident()

            there = await asyncio.to_thread(elsewhere)
            assert threads[0] == threading.get_ident()
            assert threads[2] == there
            assert threads[1] not in (threads[0], there)  # the thread of to_iterable's loop

    run(main)


def test_the_relay_stops_what_its_scopes_publish(open_relay: Opener) -> None:
    async def main() -> None:
        closed = list[int]()
        silent: rx.Observable[rd.Event] = rx.never()
        source = rx.using(lambda: Disposable(partial(closed.append, 1)), lambda _: silent)
        async with open_relay() as relay:
            assert await relay.scope("ours", allow=lambda *_: True).start("chat", source)
        assert closed == [1]

    run(main)
