"""`rd.stream(through=…, decode=…)`: what is configured behind the front door, and how it is closed and stopped through it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from support.loops import Stream, run, turns
from support.replies import OPENAI

import rxdelta as rd
from rxdelta.building import Sink, lift, lift_machine

ev = rd.events
Operator = Callable[[Observable[rd.Event]], Observable[rd.Event]]
WHOLE = "Let me look."


def chunk(text: str, *, last: bool = False) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop" if last else None}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}


def held(*texts: str) -> Stream[Any]:
    return Stream(*map(chunk, texts), hold=True)


def worded(*texts: str) -> Stream[Any]:
    return Stream(*map(chunk, texts), chunk("", last=True))


def mapped(fn: Callable[[str], str]) -> Operator:
    """The text changed, delta by delta."""

    def changed(event: rd.Event) -> rd.Event:
        return ev.TextDelta(event.index, fn(event.text)) if isinstance(event, ev.TextDelta) else event

    return ops.map(changed)


class Holding:
    """Holds text to the end of its line, and emits it at any end."""

    def __init__(self, _: object) -> None:
        self._text = ""

    def step(self, event: rd.Event) -> Iterable[rd.Event]:
        if isinstance(event, ev.TextDelta):
            whole, newline, self._text = (self._text + event.text).rpartition("\n")
            return [ev.TextDelta(0, whole + newline)] if newline else []
        return [*self.close(), event]

    def close(self) -> Iterable[rd.Event]:
        text, self._text = self._text, ""
        return [ev.TextDelta(0, text)] if text else []

    def fail(self, error: Exception) -> tuple[Iterable[rd.Event], Exception]:
        return self.close(), error


def holding() -> Operator:
    return lift_machine("holding", Holding, emits="events")


class Checking:
    """Lets each event through when a check has passed that may take for ever."""

    def __init__(self, sink: Sink[rd.Event], check: Callable[[], Any]) -> None:
        self._sink = sink
        self._check = check
        self._task: asyncio.Task[None] | None = None

    def on_next(self, event: rd.Event) -> None:
        if self._task is None and not isinstance(event, ev.TextDelta):
            self._sink.on_next(event)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wait(event))
            self._sink.own(Disposable(self._leave))

    def on_completed(self) -> None:
        if self._task is None:
            self._sink.on_completed()

    def _leave(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _wait(self, event: rd.Event) -> None:
        await self._check()
        self._sink.on_next(event)
        self._sink.on_completed()


def checking(check: Callable[[], Any]) -> Operator:
    return lift("checking", lambda sink: Checking(sink, check), emits="events")


def says(event: rd.Event, text: str) -> bool:
    return isinstance(event, ev.TextDelta) and event.text == text


async def shown(reply: rd.types.Reply, text: str) -> None:
    while reply.snapshot.text != text:
        await asyncio.sleep(0)


async def given(source: Stream[Any]) -> None:
    """Wait until the provider has said all, and it has been taken."""
    while source.given < len(source.items):
        await asyncio.sleep(0)
    await turns()


# What passes.


def test_events_pass_the_operators_in_order_in_front_of_whatever_shows_them() -> None:
    async def main() -> None:
        through = [mapped(str.upper), mapped(lambda text: text.replace("L", "<l>"))]
        async with rd.stream(Stream(*OPENAI), through=through) as reply:
            seen = [event async for event in rd.iterate(reply.events)]
            snapshots = [snapshot.text async for snapshot in reply]
        changed = WHOLE.upper().replace("L", "<l>")
        assert "".join(event.text for event in seen if isinstance(event, ev.TextDelta)) == changed
        assert "".join([piece async for piece in reply.text_deltas]) == changed
        assert snapshots[-1] == reply.message.text == changed

    run(main)


def test_in_synchronous_code_and_by_await() -> None:
    async def main() -> rd.Message:
        return await rd.stream(Stream(*OPENAI), through=(mapped(str.upper),))

    assert run(main).text == WHOLE.upper()
    with rd.stream(Stream(*OPENAI), through=[mapped(str.upper)]) as reply:
        assert "".join(reply.text_deltas) == WHOLE.upper()
    assert reply.message.text == WHOLE.upper()


def test_tools_run_behind_them() -> None:
    def unwanted(at: str) -> None:
        pytest.fail(f"run at {at}")

    async def main() -> None:
        only_text: Operator = ops.filter(lambda event: getattr(event, "index", 0) == 0)
        message = await rd.stream(Stream(*OPENAI), through=[only_text], tools={"look": unwanted})
        assert (message.text, message.tool_calls) == (WHOLE, ())

    run(main)


def test_limits_and_a_timeout_are_in_front_of_them() -> None:
    limits = rd.Limits(block_chars=123_456)
    got: list[rd.Limits] = []

    def look(sink: Sink[rd.Event]) -> Any:
        class Looking:
            def step(self, event: rd.Event) -> list[rd.Event]:
                got.append(sink.limits)
                return [event]

        return Looking()

    through = [lift_machine("look", look, emits="events")]
    with rd.stream(Stream(*OPENAI), through=through, limits=limits) as reply:
        reply.result()
    assert set(got) == {limits}

    def silent(source: Observable[rd.Event]) -> Observable[rd.Event]:
        return source.pipe(ops.merge(rx.interval(0.01).pipe(ops.map(lambda _: ev.Custom("alive", 1)))))

    async def main() -> None:
        with pytest.raises(rd.errors.StallTimeoutError):
            await rd.stream(held("Hel"), through=[silent], timeout=0.05)

    run(main)


@pytest.mark.parametrize("options", [{"every": 3600}, {"meter": rd.ReaderMeter()}])
def test_a_pace_and_a_meter_are_behind_them(options: dict[str, Any]) -> None:
    async def main() -> None:
        async with rd.stream(worded("a", "b"), through=[mapped(str.upper)], **options) as reply:
            texts = [snapshot.text async for snapshot in reply]
        assert texts[-1] == "AB"

    run(main)


def test_the_application_s_own_events_pass_them_from_the_source_and_not_from_emit() -> None:
    async def main() -> None:
        names: list[str] = []

        def note(event: rd.Event) -> None:
            if isinstance(event, ev.Custom):
                names.append(event.name)

        async def source() -> AsyncIterator[Any]:
            yield ev.Custom("yielded", 1)
            for one in OPENAI:
                yield one

        async with rd.stream(source, through=[ops.do_action(note)]) as reply:
            reply.emit(ev.Custom("emitted", 2))
            await reply.result()
        assert names == ["yielded"]
        assert {event.name for event in reply.message.custom_events} == {"yielded", "emitted"}

    run(main)


def test_every_kind_of_source_passes_them() -> None:
    events: list[rd.Event] = [*rd.to_events(rd.Message.of("assistant", "hi"))]
    body = b"".join(
        b"data: " + json.dumps(one).encode() + b"\n\n" for one in [chunk("hi"), chunk("", last=True)]
    )
    sources: list[Any] = [events, rx.from_iterable(events), body, lambda: iter(events), lambda: worded("hi")]

    async def main() -> None:
        for source in sources:
            message = await rd.stream(source, through=[holding()])
            assert message.text == "hi"

    run(main)
    for source in sources:
        with rd.stream(source, through=[holding()]) as reply:
            assert reply.result().text == "hi"


def test_the_operators_run_on_the_loop_also_for_a_blocking_source() -> None:
    loops: set[object] = set()

    def source() -> Iterator[Any]:
        yield from OPENAI

    def note(_: object) -> None:
        loops.add(asyncio.get_running_loop())

    def noted(source: Observable[Any]) -> Observable[Any]:
        return source.pipe(rd.decode("auto"), ops.do_action(note))

    with rd.stream(source, through=[ops.do_action(note)]) as reply:
        assert reply.result().text == WHOLE
    assert len(loops) == 1
    with rd.stream(source, decode=noted) as reply:
        assert reply.result().text == WHOLE
    assert len(loops) == 2


def test_two_replies_at_once_and_a_slow_reader_lose_nothing() -> None:
    words = [f"{n} " for n in range(200)]

    async def read(reply: rd.types.Reply) -> str:
        text = ""
        async for piece in reply.text_deltas:
            text += piece
            await asyncio.sleep(0)
        return text

    async def ask() -> None:
        async with rd.stream(worded(*words), through=[rd.smooth(max_lag=0.05), holding()]) as reply:
            texts = await asyncio.gather(read(reply), read(reply))
        assert texts == ["".join(words)] * 2 == [reply.message.text] * 2

    async def main() -> None:
        await asyncio.gather(ask(), ask())

    run(main)


# Leaving, stopping and ends.

HOLDERS: dict[str, Callable[[], Operator]] = {
    "smooth": lambda: rd.smooth(rate=0.01, max_lag=3600),
    "one that holds a line": holding,
    "one that goes on for others": partial(rd.share_events, unread="keep"),
    "one that waits for ever": lambda: checking(asyncio.Event().wait),
    "one that subscribes later": lambda: ops.delay_subscription(3600),
    "stopped in front": lambda: rd.until_stopped(rx.never()),
}


async def look(at: str) -> str:
    await asyncio.Event().wait()
    return at


@pytest.mark.parametrize("tools", [None, {"look": look}])
@pytest.mark.parametrize("holder", HOLDERS)
def test_leaving_early_closes_the_request_through_them(holder: str, tools: Any) -> None:
    async def main() -> None:
        source = held("Hel", "lo")
        opened = holder != "one that subscribes later"
        async with rd.stream(source, through=[HOLDERS[holder]()], tools=tools) as reply:
            if opened:
                await given(source)
        assert source.closed == opened
        with pytest.raises(rd.IncompleteMessageError, match="left before its end"):
            _ = reply.message

    run(main)


@pytest.mark.parametrize("tools", [None, {"look": look}])
@pytest.mark.parametrize("holder", HOLDERS)
def test_stop_ends_the_reply_at_once_and_closes_the_request_through_them(holder: str, tools: Any) -> None:
    async def main() -> None:
        source = held("Hel lo ", "you")
        opened = holder != "one that subscribes later"
        async with rd.stream(source, through=[HOLDERS[holder]()], tools=tools) as reply:
            if opened:
                await given(source)
            reply.stop("enough")
            assert reply.snapshot.status == "interrupted"
            assert reply.snapshot.metadata["interrupted"] == "enough"
            with pytest.raises(rd.IncompleteMessageError, match="stopped"):
                await reply.result()
            await turns()
            assert source.closed == opened  # and not only when the block is left
            reply.stop()
        events = [event async for event in rd.iterate(reply.events)]
        assert sum(isinstance(event, ev.MessageInterrupted) for event in events) <= 1
        waits = not opened or holder == "one that waits for ever"
        assert reply.snapshot.text == ("" if waits else "Hel lo you")
        assert source.closed == opened

    run(main)


@pytest.mark.parametrize("provider", ["has ended", "goes on"])
def test_stop_while_a_tool_runs_behind_them_cancels_it(provider: str) -> None:
    async def main() -> None:
        started, cancelled = asyncio.Event(), 0

        async def look(at: str) -> None:
            nonlocal cancelled
            started.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled += 1
                raise

        source = Stream(*OPENAI, hold=provider == "goes on")
        async with rd.stream(source, through=[holding()], tools={"look": look}) as reply:
            await started.wait()
            await given(source)
            reply.stop()
            with pytest.raises(rd.IncompleteMessageError, match="stopped"):
                await reply.result()
            await turns()
            assert cancelled == source.closed == 1
        assert reply.snapshot.text == WHOLE
        assert reply.snapshot.tool_calls[0].execution_status() != "completed"

    run(main)


def test_stop_while_an_operator_still_shows_what_a_provider_that_has_ended_said() -> None:
    async def main() -> None:
        source = worded("Hel ", "lo")
        async with rd.stream(source, through=[rd.smooth(rate=0.01, max_lag=3600)]) as reply:
            await given(source)
            assert reply.snapshot.text == "Hel "
            reply.stop()
            assert (reply.snapshot.status, reply.snapshot.text) == ("interrupted", "Hel ")
        assert source.closed == 1

    run(main)


def test_stop_fails_the_calls_also_if_an_operator_in_front_of_the_tools_waits() -> None:
    async def main() -> None:
        source = Stream(*OPENAI)
        async with rd.stream(source, through=[ops.concat(rx.never())], tools={"look": look}) as reply:
            while "executing" not in {call.execution_status() for call in reply.snapshot.tool_calls}:
                await asyncio.sleep(0)
            await given(source)
            reply.stop()
            assert reply.snapshot.tool_calls[0].execution_status() == "failed"

    run(main)


# The operators run on the loop of a thread, and the main thread stops them.


def test_stop_in_synchronous_code_shows_what_a_busy_operator_holds() -> None:
    threads: set[int] = set()
    busy, go_on = threading.Event(), threading.Event()

    def work(event: rd.Event) -> None:
        threads.add(threading.get_ident())
        if says(event, "lo "):  # from a timer of `smooth`
            busy.set()
            assert go_on.wait(30)

    before = set(threading.enumerate())
    source = held("Hel lo ", "you")
    with rd.stream(source, through=[rd.smooth(), ops.do_action(work), holding()]) as reply:
        assert busy.wait(30)
        threading.Timer(0.1, go_on.set).start()
        reply.stop("enough")
        assert (reply.snapshot.status, reply.snapshot.text) == ("interrupted", "Hel lo you")
    assert source.closed == 1
    assert len(threads - {threading.get_ident()}) == len(threads) == 1
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def unchanged(source: Observable[Any]) -> Observable[rd.Event]:
    """For a source of events: nothing else in front takes turns."""
    return source


@pytest.mark.parametrize("has_ended", [True, False])
def test_stop_closes_the_source_at_once_and_ends_what_waits_behind_its_end(has_ended: bool) -> None:
    source = Subject[rd.Event]()
    busy, go_on = threading.Event(), threading.Event()
    closed: list[bool] = []

    def work(_: object) -> None:
        busy.set()
        assert go_on.wait(30)

    def release() -> None:
        end = time.monotonic() + 3
        while source.observers and time.monotonic() < end:
            time.sleep(0.001)
        closed.append(not source.observers)
        go_on.set()

    through: list[Operator] = [ops.do_action(work), ops.concat(rx.never())]
    with rd.stream(source, decode=unchanged, through=through) as reply:
        start = ev.BlockStart(0, {"type": "text", "text": "Hel"})
        emitting = threading.Thread(target=source.on_next, args=(start,))
        emitting.start()
        assert busy.wait(30)
        if has_ended:
            source.on_completed()  # which waits for its turn
        threading.Thread(target=release).start()
        reply.stop()
        assert (reply.snapshot.status, reply.snapshot.text) == ("interrupted", "Hel")
        emitting.join(30)
    assert closed == [True]


def test_stop_by_a_reader_in_the_middle_of_an_event() -> None:
    async def main() -> None:
        source = Stream(*map(chunk, ["a\nb", "c\nd", "e"]), hold=True)
        async with rd.stream(source, through=[holding()]) as reply:
            reply.events.pipe(rd.text_deltas()).subscribe(lambda text: reply.stop() if "c" in text else None)
            with pytest.raises(rd.IncompleteMessageError):
                await reply.result()
        assert (reply.snapshot.status, reply.snapshot.text) == ("interrupted", "a\nbc\nd")
        assert source.closed == 1

    run(main)


def test_an_operator_may_end_the_reply_and_so_the_request() -> None:
    async def main() -> None:
        source = held("Hel", "lo")
        async with rd.stream(source, through=[ops.take_while(lambda event: not says(event, "lo"))]) as reply:
            with pytest.raises(rd.IncompleteMessageError):
                await reply.result()
            await turns()
            assert source.closed == 1
        assert (reply.snapshot.status, reply.snapshot.text) == ("incomplete", "Hel")

    async def stopped() -> None:
        source, stop = held("Hel", "lo"), asyncio.Event()
        async with rd.stream(source, through=[rd.until_stopped(stop)]) as reply:
            await shown(reply, "Hello")
            stop.set()
            assert [snapshot async for snapshot in reply][-1].status == "interrupted"
        assert source.closed == 1

    run(main)
    run(stopped)


# Errors.


def raising(source: Observable[rd.Event]) -> Observable[rd.Event]:
    """An operator that knows nothing of errors: what it raises goes to its source."""

    def subscribe(observer: abc.ObserverBase[rd.Event], scheduler: abc.SchedulerBase | None) -> Any:
        def take(event: rd.Event) -> None:
            if says(event, "lo") or isinstance(event, ev.MessageInterrupted):
                raise KeyError("lo")
            observer.on_next(event)

        return source.subscribe(take, observer.on_error, observer.on_completed, scheduler=scheduler)

    return rx.create(subscribe)


def fail(event: rd.Event) -> None:
    if says(event, "lo"):
        raise KeyError("lo")


FAILING: dict[str, Operator] = {
    "on_error": ops.do_action(fail),
    "raises": raising,
}


@pytest.mark.parametrize("tools", [None, {"look": look}])
@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_an_operator_is_the_reply_s(name: str, tools: Any) -> None:
    async def main() -> None:
        source = held("Hel", "lo")
        async with rd.stream(source, through=[FAILING[name], holding()], tools=tools) as reply:
            with pytest.raises(rd.StreamInterrupted) as caught:
                await reply.result()
            await turns()
            assert source.closed == 1
        assert isinstance(caught.value.__cause__, KeyError)
        assert caught.value.snapshot is not None
        assert caught.value.snapshot.text == ("Hel" if name == "on_error" else "")

    run(main)
    with (
        rd.stream(worded("Hel", "lo"), through=[FAILING[name]], tools=tools) as reply,
        pytest.raises(rd.StreamInterrupted),
    ):
        reply.result()


def test_an_operator_that_raises_at_the_interruption_does_not_keep_the_reply() -> None:
    async def main() -> None:
        source = held("Hel")
        async with rd.stream(source, through=[raising]) as reply:
            await shown(reply, "Hel")
            reply.stop()
            with pytest.raises(rd.StreamInterrupted, match="KeyError"):
                await reply.result()
        assert source.closed == 1

    run(main)


def test_what_an_operator_holds_is_shown_before_the_source_s_error() -> None:
    async def main() -> None:
        source = Stream(chunk("Hel"), end=ConnectionResetError("gone"))
        async with rd.stream(source, through=[holding()]) as reply:
            with pytest.raises(rd.StreamInterrupted) as caught:
                await reply.result()
        assert isinstance(caught.value.__cause__, ConnectionResetError)
        assert caught.value.snapshot is not None
        assert caught.value.snapshot.text == "Hel"

    run(main)


def twice(source: Observable[rd.Event]) -> Observable[rd.Event]:
    return rx.merge(source, source)


AGAIN: dict[str, tuple[Operator, bool]] = {
    "retry": (ops.retry(3), True),
    "repeat": (ops.repeat(2), False),
    "merge": (twice, False),
}


@pytest.mark.parametrize("name", AGAIN)
def test_the_request_is_made_once_whatever_an_operator_does(name: str) -> None:
    again, fails = AGAIN[name]
    opened = 0

    def create() -> Stream[Any]:
        nonlocal opened
        opened += 1
        return Stream(chunk("Hel"), end=ConnectionResetError("gone") if fails else None)

    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="requested once"):
            await rd.stream(lambda: create(), through=[again])

    run(main)
    assert opened <= 1


def test_what_an_operator_makes_that_is_no_event_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match=r"^rd\.stream reads events, and got an int"):
            await rd.stream(held("Hel"), through=[ops.map(lambda _: 5)])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]

    run(main)


# Decoding and tools that are configured.


def sse_decoded(source: Observable[Any]) -> Observable[rd.Event]:
    return source.pipe(rd.parse_sse(), rd.decode("openai-chat"))


def test_decode_takes_a_configured_decoder() -> None:
    async def main() -> None:
        chunks = [chunk("<think>Hm"), chunk("</think>Hi"), chunk("", last=True)]
        message = await rd.stream(chunks, decode=rd.decode("openai-chat", reasoning_tags=True))
        assert (message.reasoning, message.text) == ("Hm", "Hi")
        body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in OPENAI)
        message = await rd.stream(
            body, decode=sse_decoded, through=[holding()], limits=rd.Limits(), timeout=30
        )
        assert message.text == WHOLE

    run(main)


def test_tools_take_a_configured_runner_also_in_synchronous_code() -> None:
    asked: list[str] = []

    async def look(at: str) -> str:
        await asyncio.sleep(0)
        return f"seen at {at}"

    def approve(call: rd.ToolCall) -> bool:
        asked.append(call.name or "")
        return True

    runner = rd.run_tools({"look": look}, max_concurrency=1, approve=approve, unknown="leave")

    async def main() -> rd.Message:
        return await rd.stream(Stream(*OPENAI), tools=runner)

    message = run(main)
    with rd.stream(Stream(*OPENAI), tools=runner, through=[holding()]) as reply:
        assert reply.result().text == message.text
    assert reply.message.tool_calls[0].result.content == "seen at sea"  # type: ignore[union-attr]
    assert message.tool_calls[0].result.content == "seen at sea"  # type: ignore[union-attr]
    assert asked == ["look", "look"]


# What is refused at once.


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"through": rd.smooth()}, r"^through: must be a list of operators"),
    ({"through": None}, r"^through: must be a list of operators"),
    ({"through": "smooth"}, r"^through\[0\]: must be an operator that emits events"),
    ({"through": [holding(), None]}, r"^through\[1\]: must be an operator that emits events"),
    ({"through": [rx.never()]}, r"^through\[0\]: must be an operator that emits events"),
    ({"through": [rd.types.Reply]}, r"^through\[0\]: must be an operator that emits events"),
    ({"through": [rd.smooth]}, r"smooth makes an operator"),
    ({"through": [rd.until_stopped]}, r"^through\[0\]: .* is it to be called first\?"),
    ({"through": [ops.map]}, r"^through\[0\]: .* is it to be called first\?"),
    (
        {"through": [rd.scan_deltas()]},
        r"^through\[0\]: .* snapshots; .* reply\.events\.pipe\(scan_deltas\(…\)\)",
    ),
    (
        {"through": [rd.text_deltas()]},
        r"^through\[0\]: .* texts; .* reply\.events\.pipe\(text_deltas\(…\)\)",
    ),
    (
        {"through": [rd.to_ai_sdk()]},
        r"^through\[0\]: .* frames; .* reply\.events\.pipe\(to_ai_sdk\(…\)\)",
    ),
    ({"through": [rd.group_by_block()]}, r"^through\[0\]: .* streams"),
    ({"through": [rd.parse_sse()]}, r"^through\[0\]: .* chunks; put it into decode="),
    ({"through": [rd.throttle_latest(1)]}, r"throttle_latest would drop events"),
    ({"through": [rd.throttle_latest(1, key=id)]}, r"^through\[0\]: .* only the newest"),
    ({"through": [ops.distinct()]}, r"ops\.distinct\(\) in front of it drops some"),
    ({"through": [ops.debounce(1), holding()]}, r"drops some"),
    ({"decode": "openai-chat"}, r"^decode: must be an operator"),
    ({"decode": rd.decode}, r"decode makes an operator"),
    ({"decode": rd.parse_sse()}, r"^decode: .* chunks; put it into decode=, with decode\(\) behind it"),
    (
        {"decode": rd.decode("auto"), "wire_format": "gemini"},
        r"^decode: comes in the place of wire_format=",
    ),
    ({"decode": rd.decode("auto"), "loads": json.loads}, r"^decode: comes in the place of wire_format="),
    ({"tools": rd.run_tools}, r"^tools: must be functions by their names, or a configured"),
    ({"tools": rd.smooth()}, r"^tools: must be functions by their names, or a configured"),
    ({"tools": look}, r"^tools: must be functions by their names, or a configured"),
    ({"tools": rd.run_tools({}), "approve": bool}, r"^approve: .* an argument of that"),
]


@pytest.mark.parametrize(("options", "wrong"), WRONG)
def test_what_makes_no_sense_is_refused_at_once(options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=wrong):
        rd.stream(OPENAI, **options)
