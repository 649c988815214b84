"""What a fake provider is told, every way to its chunks gives, and every decoder reads as the same reply."""

from __future__ import annotations

import gc
import http.client
import json
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
from hypothesis import given, settings
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from support.written import overlap, read, told

import rxdelta as rd
from rxdelta.formats import registry
from rxdelta.testing import FakeProvider, FakeRequest, VirtualTime
from rxdelta.testing.strategies import messages

ev = rd.events
FORMATS = [name for name in registry.names() if registry.is_own(name)]
WITH_CALLS = [name for name in FORMATS if "tool_call" in registry.get(name).carries]
Part, Call = rd.ContentPart, rd.ToolCall

BREST = Call(name="tides", arguments={"port": "Brest", "days": [1, 2]})
OSLO = Call(call_id="own", name="tides", arguments={"port": "Oslo"})
CUT = ConnectionError("cut")
BUSY = ev.StreamError("Busy.", "overloaded_error")


@attrs.frozen
class Case:
    """A reply, and what it says: texts, calls, and the error that ends it."""

    reply: Any
    said: Sequence[tuple[str, Any]]
    error: Any = None
    needs: frozenset[str] = frozenset({"text"})
    finish_reason: str = "stop"


def case(reply: Any, *said: tuple[str, Any], error: Any = None, needs: Sequence[str] = ()) -> Case:
    asked = any(kind == "tool_call" for kind, _ in said)
    needed = frozenset({*needs, *(kind for kind, _ in said)})
    return Case(reply, said, error, needed, "tool_use" if asked else "stop")


ASKS = [
    ("tool_call", ("tides", {"port": "Brest", "days": [1, 2]})),
    ("tool_call", ("tides", {"port": "Oslo"})),
]
CASES = {
    "a text": case("Hello, wide world", ("text", "Hello, wide world")),
    "a message": case(
        rd.Message(blocks=[Part("reasoning", "Hm, tides."), Part("text", "Let me see."), BREST, OSLO]),
        ("reasoning", "Hm, tides."), ("text", "Let me see."), *ASKS,
    ),
    "a list with pauses": case(
        ["Hel", 2.5, "lo ", timedelta(hours=2), "sea.", 1, BREST, 0.25],
        ("text", "Hello sea."), ASKS[0],
    ),
    "calls at a time": case(["So.", (BREST, OSLO)], ("text", "So."), *ASKS),
    "a part": case(Part("reasoning", "Hm."), ("reasoning", "Hm.")),
    "an empty list": case([]),
    "the provider's error": case(["Hel", 1.5, "lo", BUSY], ("text", "Hello"), error=BUSY),
    "the provider's error first": case([2.0, BUSY], error=BUSY),
    "a broken line": case(["Hel", 1.5, "lo", CUT], ("text", "Hello"), error=CUT),
    "a broken line first": case([2.0, CUT], error=CUT),
}  # fmt: skip
EACH = [
    pytest.param(wire_format, one, id=f"{wire_format}-{name}")
    for wire_format in FORMATS
    for name, one in CASES.items()
    if one.needs <= registry.get(wire_format).carries
]
EACH_CASE = pytest.mark.parametrize(("wire_format", "one"), EACH)


def collected(chunks: Any) -> tuple[list[Any], Exception | None]:
    """The chunks of an iterator, and the error that it raises."""
    found: list[Any] = []
    try:
        found.extend(chunks)
    except ConnectionError as error:
        return found, error
    return found, None


def of_stream(provider: FakeProvider, wire_format: str) -> tuple[list[Any], Exception | None, float]:
    """The same of `stream`, and how long it took."""
    found: list[Any] = []

    async def main() -> Exception | None:
        try:
            async for chunk in provider.stream(wire_format):
                found.append(chunk)  # noqa: PERF401  # what came before an error stays
        except ConnectionError as error:
            return error
        return None

    time = VirtualTime()
    return found, time.run(main()), time.elapsed


def of_observable(provider: FakeProvider, wire_format: str) -> tuple[list[Any], Exception | None, float]:
    scheduler = VirtualTimeScheduler()
    found: list[Any] = []
    ends: list[Exception | None] = []
    chunks = provider.observable(wire_format, scheduler=scheduler)
    chunks.subscribe(found.append, ends.append, lambda: ends.append(None))
    scheduler.start()
    (end,) = ends
    return found, end, scheduler.clock


def of_server(provider: FakeProvider, wire_format: str) -> tuple[int, list[Any]]:
    """The status and the records of an answer."""
    paths = rd.providers.endpoint(wire_format).paths or ["/"]
    body = json.dumps({"stream": True})
    with provider.serve() as server:
        url = urlsplit(f"{server.base_url(wire_format)}/models/m{[*paths][-1]}")
        line = http.client.HTTPConnection(url.hostname or "", url.port, timeout=20)
        line.request("POST", url.path, body, {"content-type": "application/json"})
        answer = line.getresponse()
        parser, records = rd.providers.AutoParser(), list[Any]()
        try:
            records += parser.feed(answer.read())
        except http.client.IncompleteRead as error:
            records += parser.feed(error.partial)
        line.close()
    return answer.status, [*records, *parser.close()]


def pauses(reply: Any) -> float:
    parts: list[Any] = reply if isinstance(reply, list) else []
    numbers = [part.total_seconds() if isinstance(part, timedelta) else part for part in parts]
    return sum(part for part in numbers if isinstance(part, (int, float)))


# The law.


@EACH_CASE
@pytest.mark.parametrize("decoder", ["own", "auto"])
def test_the_chunks_fold_to_what_was_told(wire_format: str, one: Case, decoder: str) -> None:
    chunks, error = collected(FakeProvider(one.reply).chunks(wire_format))
    assert error == (one.error if one.error is CUT else None)
    if not chunks:
        assert one.error is CUT
        return
    events = read(chunks, wire_format if decoder == "own" else "auto")
    fold = rd.Fold()
    for event in events:
        if not isinstance(event, ev.StreamError):
            fold.step(event)
    reply = fold.snapshot
    said = [
        (block.type, (block.name, rd.core.thaw(block.arguments)) if isinstance(block, Call) else block.text)
        for block in reply.blocks
    ]
    assert said == [*one.said]
    failed = [event.message for event in events if isinstance(event, ev.StreamError)]
    assert failed == (["Busy."] if one.error is BUSY else [])
    assert reply.status == ("incomplete" if one.error else "complete")
    if not one.error:
        assert reply.finish_reason == one.finish_reason
        assert reply.usage is not None
        assert reply.usage.output_tokens


@pytest.mark.parametrize("wire_format", FORMATS)
def test_every_message_comes_back_but_for_what_the_format_loses(wire_format: str) -> None:
    @given(messages(wire_format=wire_format))
    @settings(max_examples=15)
    def law(message: rd.Message) -> None:
        events = [*FakeProvider(message).events()]
        chunks = json.loads(json.dumps([*FakeProvider(message).chunks(wire_format)]))
        sort = "order" in registry.get(wire_format).loses and overlap(events)
        expected = told(events, wire_format, sort=sort)
        assert told(read(chunks, wire_format), wire_format, sort=sort) == expected
        assert told(read(chunks, "auto"), wire_format, sort=sort) == expected

    law()


def test_the_events_of_a_message_fold_to_it() -> None:
    @given(messages())
    @settings(max_examples=40)
    def law(message: rd.Message) -> None:
        fold = rd.Fold()
        for event in FakeProvider(message).events():
            fold.step(event)
        again = fold.snapshot.to_message()
        assert (again.blocks, again.finish_reason) == (message.blocks, message.finish_reason)
        assert message.usage in (None, again.usage)
        assert (again.id, again.model) == (message.id or "reply_1", message.model or "fake-model")

    law()


@pytest.mark.parametrize("wire_format", [name for name in FORMATS if "choices" in registry.get(name).carries])
def test_choices_come_at_a_time_and_each_is_read(wire_format: str) -> None:
    chunks = [*FakeProvider(("one two", ["three", BREST])).chunks(wire_format)]
    assert [chunk["choices"][0]["index"] for chunk in chunks if chunk["choices"]][:4] == [0, 1, 0, 1]
    for decoder in (wire_format, "auto"):
        folds = [rd.Fold(choice=0), rd.Fold(choice=1)]
        for event in read(chunks, decoder):
            for fold in folds:
                fold.step(event)
        assert [fold.snapshot.text for fold in folds] == ["one two", "three"]
        assert [fold.snapshot.finish_reason for fold in folds] == ["stop", "tool_use"]


@EACH_CASE
def test_iterator_stream_and_observable_give_the_same_chunks_at_their_times(
    wire_format: str, one: Case
) -> None:
    chunks, error = collected(FakeProvider(one.reply).chunks(wire_format))
    seconds = pauses(one.reply)
    assert of_stream(FakeProvider(one.reply), wire_format) == (chunks, error, seconds)
    assert of_observable(FakeProvider(one.reply), wire_format) == (chunks, error, seconds)


@pytest.mark.parametrize("wire_format", [name for name in FORMATS if name != "bedrock-converse"])
@pytest.mark.parametrize("name", ["a message", "a text", "calls at a time"])
def test_a_server_s_bytes_are_the_same_chunks(wire_format: str, name: str) -> None:
    reply = CASES[name].reply if CASES[name].needs <= registry.get(wire_format).carries else "Hi there"
    status, records = of_server(FakeProvider(reply), wire_format)
    found = [
        {name: value for name, value in record.items() if name != "_event"}  # the name of an SSE event
        for record in records
        if record is not rd.wire.DONE
    ]
    assert (status, found) == (200, [*FakeProvider(reply).chunks(wire_format)])


@pytest.mark.parametrize("wire_format", [name for name in FORMATS if name != "bedrock-converse"])
def test_a_reply_that_ends_in_silence_has_no_end_and_no_error(wire_format: str) -> None:
    reply = ["Hi ", EOFError()]
    chunks = [*FakeProvider(reply).chunks(wire_format)]
    assert of_stream(FakeProvider(reply), wire_format)[:2] == (chunks, None)
    assert of_observable(FakeProvider(reply), wire_format)[:2] == (chunks, None)
    _, records = of_server(FakeProvider(reply), wire_format)
    assert rd.wire.DONE not in records
    assert len(records) == len(chunks)
    with pytest.raises(rd.IncompleteMessageError) as caught:
        VirtualTime().run(answer(FakeProvider(reply), wire_format))
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.text == "Hi "


async def answer(provider: FakeProvider, wire_format: str) -> rd.Message:
    return await rd.stream(provider.stream(wire_format))


# Times.


def test_each_chunk_comes_exactly_at_its_time() -> None:
    script = ["a", 0.1, "b", 7200.0, "c", 0.0, "d"]
    expected = [("a", 0.0), ("b", 0.1), ("c", 7200.1), ("d", 7200.1)]
    scheduler, seen = VirtualTimeScheduler(), list[tuple[str, float]]()
    chunks = FakeProvider(script).observable("ollama", scheduler=scheduler)
    chunks.subscribe(lambda chunk: seen.append((chunk["message"]["content"], scheduler.clock)))
    assert seen == expected[:1]  # at the subscription
    scheduler.start()
    assert [(text, round(at, 9)) for text, at in seen if text] == expected

    time, times = VirtualTime(), list[tuple[str, float]]()

    async def main() -> None:
        async for chunk in FakeProvider(script).stream("ollama"):
            times.append((chunk["message"]["content"], round(time.elapsed, 9)))

    time.run(main())
    assert [(text, at) for text, at in times if text] == expected


def test_the_subscriber_s_scheduler_times_the_pauses_if_there_is_no_other() -> None:
    scheduler, seen = VirtualTimeScheduler(), list[Any]()
    FakeProvider(["a", 5.0, "b"]).observable("ollama").subscribe(seen.append, scheduler=scheduler)
    scheduler.advance_to(4.9)
    assert len(seen) == 1
    scheduler.advance_to(5.0)
    assert len(seen) == 3


def test_the_times_are_those_of_virtual_time_s_scheduler() -> None:
    time, seen = VirtualTime(), list[float]()
    chunks = FakeProvider(["a", 3600.0, "b"]).observable("gemini", scheduler=time.scheduler)
    chunks.subscribe(lambda _: seen.append(time.scheduler.clock))
    time.scheduler.start()
    assert seen == [0.0, 3600.0, 3600.0]


def test_disposing_in_a_pause_leaves_no_timer_and_nothing_comes() -> None:
    scheduler, seen = VirtualTimeScheduler(), list[Any]()
    chunks = FakeProvider(["a", 5.0, "b"]).observable("ollama", scheduler=scheduler)
    subscription = chunks.subscribe(seen.append, seen.append, lambda: seen.append("end"))
    scheduler.advance_to(1.0)
    subscription.dispose()
    scheduler.start()
    assert len(seen) == 1

    threads = {*threading.enumerate()}
    FakeProvider(["a", 3600.0, "b"]).observable("ollama").subscribe(seen.append).dispose()
    for timer in {*threading.enumerate()} - threads:
        timer.join(5)
    assert {*threading.enumerate()} <= threads


def test_a_subscriber_that_has_enough_gets_no_more() -> None:
    scheduler = VirtualTimeScheduler()
    for reply in ("one two three", ["one", 1.0, "two"], ["one", CUT]):
        seen: list[Any] = []
        chunks = FakeProvider(reply).observable("ollama", scheduler=scheduler)
        chunks.pipe(ops.take(1)).subscribe(seen.append, seen.append)
        scheduler.start()
        assert [chunk["message"]["content"].strip() for chunk in seen] == ["one"]


def test_closing_a_stream_in_a_pause_ends_it() -> None:
    async def main() -> int:
        chunks: Any = FakeProvider(["a", 7200.0, "b"]).stream("ollama")
        count = 0
        async for _ in chunks:
            count += 1
            break
        await chunks.aclose()
        return count

    time = VirtualTime()
    assert (time.run(main()), time.elapsed) == (1, 0.0)
    gc.collect()


# Which reply.


def test_a_reader_that_leaves_before_the_end_closes_its_request() -> None:
    provider = FakeProvider(["a", 60.0, "b"], repeat=True)
    time = VirtualTime()

    async def stopped() -> None:
        async with rd.stream(provider.stream("openai-chat")) as reply:
            async for snapshot in reply:
                if snapshot.text:
                    reply.stop()

    time.run(stopped())
    chunks: Any = provider.chunks("openai-chat")
    next(chunks)
    chunks.close()
    provider.observable("openai-chat", scheduler=time.scheduler).subscribe().dispose()
    assert [request.closed.is_set() for request in provider.requests] == [True, True, True]


def test_a_reader_that_reads_all_closes_no_request() -> None:
    whole, broken = ["a", 60.0, "b"], ["a", CUT]
    provider, time = FakeProvider(whole, whole, broken, whole, broken), VirtualTime()

    async def read() -> str:
        return (await rd.stream(provider.stream("openai-chat"))).text

    assert time.run(read()) == "ab"
    assert [collected(provider.chunks("openai-chat"))[1] for _ in range(2)] == [None, CUT]
    for _ in range(2):
        provider.observable("openai-chat", scheduler=time.scheduler).subscribe(on_error=lambda _: None)
    time.scheduler.start()
    assert [request.closed.is_set() for request in provider.requests] == [False] * 5


def test_each_reading_asks_anew_and_not_before_its_first_chunk() -> None:
    provider = FakeProvider("one", "two", "three", "four")
    waiting = provider.chunks("ollama"), provider.stream("ollama"), provider.events()
    chunks = provider.observable("ollama")
    assert (provider.left, provider.requests) == (4, [])
    first, second = list[Any](), list[Any]()
    chunks.subscribe(first.append)
    chunks.subscribe(second.append)
    assert [one[0]["message"]["content"] for one in (first, second)] == ["one", "two"]
    assert next(waiting[0])["message"]["content"] == "three"
    assert next(waiting[2]) == ev.MessageStart("reply_4", "fake-model")
    assert provider.left == 0
    assert [request.wire_format for request in provider.requests] == ["ollama", "ollama", "ollama", ""]


def test_one_request_too_many_is_an_error_in_words() -> None:
    provider = FakeProvider("one", "two")
    for _ in range(2):
        assert [*provider.chunks("cohere")]
    says = "the fake provider has 2 replies, and was asked once more"
    with pytest.raises(rd.InvalidValueError, match=says):
        next(provider.chunks("cohere"))
    _, error, _ = of_observable(provider, "cohere")
    assert says in str(error)


def test_replies_that_are_repeated_come_in_their_order_without_end() -> None:
    provider = FakeProvider("one", "two", repeat=True)
    said = ["".join(chunk["message"]["content"] for chunk in provider.chunks("ollama")) for _ in range(5)]
    assert said == ["one", "two", "one", "two", "one"]


def test_a_function_gives_the_reply_to_its_request() -> None:
    asked: list[FakeRequest] = []

    def answer(request: FakeRequest) -> Any:
        asked.append(request)
        return [f"in {request.wire_format}", 1.0]

    provider = FakeProvider(answer, "then")
    assert read([*provider.chunks("gemini")], "gemini")[2] == ev.TextDelta(0, "in gemini")
    assert (asked, provider.left) == (provider.requests, 1)


def test_what_a_function_returns_is_checked_as_a_reply_is() -> None:
    wrong: Any = lambda _: ["Hi", object()]  # noqa: E731
    provider = FakeProvider("one", wrong)
    assert [*provider.chunks("ollama")]
    with pytest.raises(rd.InvalidValueError, match="reply 2: must be a text"):
        next(provider.chunks("ollama"))


def test_threads_that_ask_together_get_each_reply_once() -> None:
    provider = FakeProvider(*(f"reply-{number}" for number in range(200)))
    start, said = threading.Barrier(20), list[str]()

    def ask() -> None:
        start.wait()
        for _ in range(10):
            said.append("".join(chunk["message"]["content"] for chunk in provider.chunks("ollama")))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(f"reply-{number}" for number in range(200))
    assert (provider.left, len(provider.requests)) == (0, 200)


# What can't be told.


@pytest.mark.parametrize("way", ["chunks", "stream", "observable"])
def test_what_a_format_can_not_carry_is_named_before_the_first_chunk(way: str) -> None:
    reply = ["Hi", 2.0, BREST, Part("image", "QQ==")]
    provider = FakeProvider("Hello", reply)
    assert [*provider.chunks("openai-completions")]
    with pytest.raises(rd.InvalidValueError) as raised:
        if way == "chunks":
            next(provider.chunks("openai-completions"))
        elif way == "stream":
            of_stream(provider, "openai-completions")
        else:
            chunks, error, at = of_observable(provider, "openai-completions")
            assert (chunks, at) == ([], 0.0)
            raise error or AssertionError
    text = str(raised.value)
    assert "reply 2, block 1: must not be a call (tool_call)" in text
    assert "block 2: must not be an image (image), which a stream of openai-completions can't carry" in text


def test_a_format_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError, match="openai-chat"):
        next(FakeProvider("Hi").chunks("openai"))


# What a provider says by itself.


def test_calls_and_replies_without_an_id_get_one_of_their_own() -> None:
    provider = FakeProvider(
        [BREST, BREST, OSLO], (BREST, BREST), rd.Message(blocks=[BREST], id="m", model="large")
    )
    found: list[tuple[Any, ...]] = []
    for _ in range(3):
        fold = rd.Fold()
        for event in provider.events():
            fold.step(event)
        reply = fold.snapshot
        found.append((reply.id, reply.model, *(call.call_id for call in reply.tool_calls)))
    assert found == [
        ("reply_1", "fake-model", "call_1_0", "call_1_1", "own"),
        ("reply_2", "fake-model", "call_2_0"),
        ("m", "large", "call_3_0"),
    ]


# Under the operators that ask again.


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("fault", [CUT, BUSY], ids=["cut", "busy"])
def test_another_attempt_gets_the_next_reply(wire_format: str, fault: Any) -> None:
    scheduler, found = VirtualTimeScheduler(), list[Any]()
    provider = FakeProvider(["Hel", 1.0, fault], ["Hello"])
    chunks = provider.observable(wire_format, scheduler=scheduler)
    attempts = rd.retry_stream(
        lambda: chunks.pipe(rd.decode(wire_format)), retry_if=lambda _: True, scheduler=scheduler
    )
    attempts.pipe(rd.scan_deltas(), rd.to_message()).subscribe(found.append, found.append)
    scheduler.start()
    (message,) = found
    assert (message.text, message.attempt, provider.left) == ("Hello", 1, 0)


@pytest.mark.parametrize("wire_format", WITH_CALLS)
def test_an_agent_of_two_turns_gets_a_reply_for_each(wire_format: str) -> None:
    def tides(port: str, days: list[int] | None = None) -> str:
        return f"{port} {days}"

    provider = FakeProvider(["Let me see.", 60.0, (BREST, OSLO)], "High tide at noon.")
    conversation: list[rd.Message] = []

    async def main() -> None:
        while not conversation or conversation[-1].finish_reason == "tool_use":
            conversation.append(await rd.stream(provider.stream(wire_format), tools={"tides": tides}))

    VirtualTime().run(main())
    asked, answered = conversation
    assert [call.result and call.result.content for call in asked.tool_calls] == ["Brest [1, 2]", "Oslo None"]
    assert (answered.text, provider.left) == ("High tide at noon.", 0)
