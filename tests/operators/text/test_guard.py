"""`guard`: nothing of a unit is seen before its check has passed, whatever the check is and does."""

from __future__ import annotations

import asyncio
import contextvars
import json
import random
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import BehaviorSubject, Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support.cost import work_done
from support.loops import run, turns
from support.small_replies import REPLIES

import rxdelta as rd
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

ev = rd.events
BOOM = ConnectionError("boom")


def start(text: str = "", index: int = 0, kind: str = "text", **names: Any) -> rd.Event:
    field = "reasoning" if kind == "reasoning" else "text"
    return ev.BlockStart(index, {"type": kind, field: text}, **names)


def say(text: str, index: int = 0, **names: Any) -> rd.Event:
    return ev.TextDelta(index, text, **names)


def call(index: int = 1, call_id: str = "c1", **content: Any) -> rd.Event:
    return ev.BlockStart(index, {"type": "tool_call", "id": call_id, "name": "pay", **content})


def no_bob(text: str) -> bool:
    return "Bob" not in text


END = ev.MessageFinish("stop")
HIT = ev.MessageFinish("content_filter", "guard")


def got(source: Observable[rd.Event], *operators: Any) -> list[Any]:
    """What comes at once; an error as itself, the completion as `|`."""
    found: list[Any] = []
    guarded: Any = source.pipe(*operators)
    guarded.subscribe(found.append, found.append, lambda: found.append("|"))
    return found


def of(*events: Any) -> Observable[rd.Event]:
    return rx.from_iterable(events)


def told(found: list[Any]) -> str:
    """All that can be read anywhere in it."""
    return " ".join(str(attrs.asdict(one)) if attrs.has(type(one)) else str(one) for one in found)


def texts(found: list[Any]) -> list[str]:
    return [one.text for one in found if isinstance(one, ev.TextDelta)]


async def reply(*pieces: str) -> AsyncIterator[rd.Event]:
    yield ev.MessageStart("m")
    yield start()
    for piece in pieces:
        yield say(piece)
    yield ev.BlockFinish(0)
    yield END


def source(*pieces: str) -> Observable[rd.Event]:
    return rd.from_async_iterable(lambda: reply(*pieces))


class Asked:
    """A check whose answers are in the test's hands."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.answers: list[Subject[bool]] = []
        self.left = 0
        self.running = 0

    def __call__(self, text: str) -> Observable[bool]:
        assert self.running == 0, "another check runs"
        self.running += 1
        self.texts.append(text)
        self.answers.append(Subject())
        answer = self.answers[-1]

        def left() -> None:
            self.left += 1
            self.running -= 1

        return rx.create(lambda observer, _: _both(answer.subscribe(observer), Disposable(left)))

    def answer(self, passes: bool) -> None:
        self.answers[-1].on_next(passes)


def _both(*disposables: abc.DisposableBase) -> abc.DisposableBase:
    def dispose() -> None:
        for one in disposables:
            one.dispose()

    return Disposable(dispose)


# What a check may answer.


class _Unclear:
    def __bool__(self) -> bool:
        raise ValueError("who knows")


class _Moderation:
    flagged = True


def _raises(_: str) -> bool:
    raise ValueError("Bob")


async def _values(_: str) -> AsyncIterator[bool]:
    yield False


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        pytest.param(lambda _: True, True, id="yes"),
        pytest.param(lambda _: 1, True, id="something true"),
        pytest.param(lambda _: rx.of(True), True, id="an Observable"),
        pytest.param(lambda _: rx.of(True, False), True, id="its first value"),
        pytest.param(lambda _: rx.of(False, True), False, id="its first value, no"),
        pytest.param(lambda _: BehaviorSubject(True), True, id="without an end"),
        pytest.param(lambda _: False, False, id="no"),
        pytest.param(lambda _: None, False, id="nothing"),
        pytest.param(lambda _: rx.empty(), False, id="an empty Observable"),
        pytest.param(lambda _: rx.throw(BOOM), False, id="a failing Observable"),
        pytest.param(_raises, False, id="an exception"),
        pytest.param(lambda _: _Unclear(), False, id="what can't be asked"),
        pytest.param(lambda _: _Moderation(), False, id="a service's reply"),
        pytest.param(lambda _: rx.of(_Moderation()), False, id="an Observable of one"),
        pytest.param(lambda _: {"flagged": True}, False, id="its JSON"),
        pytest.param(lambda _: [], False, id="an empty list"),
        pytest.param(lambda _: "no", False, id="a text"),
        pytest.param(lambda _: 0.98, False, id="a score"),
        pytest.param(lambda _: Future[bool](), False, id="a thread's future"),
        pytest.param(_values, False, id="an async generator"),
    ],
)  # fmt: skip
def test_an_answer(answer: Callable[[str], Any], passes: bool, caplog: pytest.LogCaptureFixture) -> None:
    found = got(of(start(), say("It is Bob."), ev.BlockFinish(0), END), rd.guard(answer))
    expected = (
        [start(), say("It is Bob."), ev.BlockFinish(0), END] if passes else [start(), ev.BlockFinish(0), HIT]
    )
    assert found == [*expected, "|"]
    assert "Bob" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "passes"),
    [(True, True), (False, False), (None, False), (_Moderation(), False), ("no", False), (BOOM, False)],
)
@pytest.mark.parametrize("kind", ["coroutine", "future", "later", "cancelled"])
def test_an_awaitable(answer: Any, passes: bool, kind: str) -> None:
    async def wait() -> Any:
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def check(_: str) -> Any:
        if kind == "coroutine":
            return wait()
        if kind == "later":
            return asyncio.ensure_future(wait())
        future = asyncio.get_running_loop().create_future()
        if kind == "cancelled":
            future.cancel()
        elif isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    async def main() -> None:
        snapshot: rd.Snapshot = await rd.last_value(
            source("Hi. ", "You").pipe(rd.guard(check), rd.scan_deltas())
        )
        goes_on = passes and kind != "cancelled"
        assert (snapshot.text, snapshot.finish_reason) == (
            ("Hi. You", "stop") if goes_on else ("", "content_filter")
        )

    run(main)


def test_a_check_sees_the_context_of_the_reader() -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen: list[str] = []

    async def check(_: str) -> bool:
        await asyncio.sleep(0)
        seen.append(tenant.get())
        return True

    async def main() -> None:
        tenant.set("us")
        await rd.last_value(source("One. ", "Two. ", "Three.").pipe(rd.guard(check), rd.scan_deltas()))

    run(main)
    assert seen == ["us"] * 3


def test_no_part_of_a_unit_comes_before_the_answer_and_the_order_is_kept() -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found = got(events, rd.guard(asked))
    for event in (
        start("On"),
        say("e. Two. Th"),
        ev.UsageUpdate(rd.TokenUsage(1)),
        say("ree."),
        ev.BlockFinish(0),
        END,
    ):
        events.on_next(event)
    events.on_completed()
    assert (found, asked.texts) == ([start()], ["One. "])
    asked.answer(True)
    assert (texts(found), asked.texts) == (["One. "], ["One. ", "One. Two. "])
    asked.answer(True)
    assert found == [start(), say("One. "), say("Two. "), ev.UsageUpdate(rd.TokenUsage(1))]
    asked.answer(True)
    assert found[4:] == [say("Three."), ev.BlockFinish(0), END, "|"]
    assert (asked.left, asked.running) == (3, 0)


def test_an_answer_from_another_thread() -> None:
    def check(text: str) -> Observable[bool]:
        def ask(observer: abc.ObserverBase[bool], _: Any) -> abc.DisposableBase:
            threading.Thread(target=lambda: (observer.on_next(no_bob(text)), observer.on_completed())).start()
            return Disposable()

        return rx.create(ask)

    with rd.to_iterable(
        of(start(), *[say(f"{n}. ") for n in range(200)], say("Bob. No."), END).pipe(
            rd.guard(check, by=3), rd.text_deltas()
        )
    ) as read:
        assert "".join(read) == "".join(f"{n}. " for n in range(200)) + "B"


# An answer that nobody waits for any more.


@pytest.mark.parametrize("kind", ["left", "error", "interrupted", "error event"])
def test_what_breaks_a_reply_off_waits_for_no_check(kind: str) -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found: list[Any] = []
    subscription = events.pipe(rd.guard(asked)).subscribe(
        found.append, found.append, lambda: found.append("|")
    )
    usage, note = ev.UsageUpdate(rd.TokenUsage(1)), ev.Custom("note", 1)
    for event in (
        ev.MessageStart("m"),
        start(),
        say("One. Two"),
    ):
        events.on_next(event)
    asked.answer(True)
    for event in (say(". Three. "), call(), note, ev.ToolCallDelta(1, "{}"), ev.BlockFinish(1), usage, END):
        events.on_next(event)
    shown = list(found)
    assert texts(found) == ["One. "]
    end: Any = {
        "error": BOOM,
        "interrupted": ev.MessageInterrupted("x"),
        "error event": ev.StreamError("x"),
    }.get(kind)
    if kind == "left":
        subscription.dispose()
    elif kind == "error":
        events.on_error(BOOM)
    else:
        events.on_next(end)
        assert asked.left == 2  # nobody waits for it any more, though the stream goes on
        events.on_completed()
    expected = [] if kind == "left" else [note, usage, end, *(["|"] if kind != "error" else [])]
    assert found == [*shown, *expected]
    assert (asked.left, asked.running, events.observers) == (2, 0, [])
    asked.answer(True)
    assert found == [*shown, *expected]


def test_an_answer_that_comes_right_behind_an_interruption_is_too_late() -> None:
    events = Subject[rd.Event]()

    def check(text: str) -> Any:
        if "Two" in text:
            events.on_next(ev.MessageInterrupted("x"))
        return rx.of(True)

    found = got(events, rd.guard(check))
    events.on_next(start("One. Two. Three. "))
    assert found == [start(), say("One. "), ev.MessageInterrupted("x")]


def test_an_answer_that_is_too_late_is_not_that_of_the_next_check() -> None:
    events = Subject[rd.Event]()

    def check(text: str) -> Any:
        if "Bob" in text:
            return rx.never()
        events.on_next(ev.MessageInterrupted("x", run_id="a"))
        events.on_next(say("Bob. No. ", run_id="b"))
        return rx.of(True)

    found = got(events, rd.guard(check))
    begun = [start(run_id="b"), start(run_id="a")]
    for event in (*begun, say("Two. Three. ", run_id="a")):
        events.on_next(event)
    assert found == [*begun, ev.MessageInterrupted("x", run_id="a")]


def test_a_run_that_is_interrupted_leaves_the_others_their_checks() -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found = got(events, rd.guard(asked))
    for event in (
        start(run_id="a"),
        start(run_id="b"),
        say("One. Tw", run_id="a"),
        say("Two. Th", run_id="b"),
    ):
        events.on_next(event)
    events.on_next(ev.MessageInterrupted("x", run_id="b"))
    asked.answer(True)
    assert found[2:] == [say("One. ", run_id="a"), ev.MessageInterrupted("x", run_id="b")]
    assert asked.texts == ["One. "]


def test_leaving_cancels_the_task() -> None:
    cancelled: list[str] = []

    async def never(text: str) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(text)
            raise
        return True

    async def main() -> None:
        # Before it has begun, while it runs, on another thread before its loop knows of it, and by the stop button.
        of(start("One. Two")).pipe(rd.guard(never)).subscribe().dispose()
        await turns()
        subscription = of(start("Three. Four")).pipe(rd.guard(never)).subscribe()
        await turns()
        subscription.dispose()
        await turns()
        events = Subject[rd.Event]()
        subscription = events.pipe(rd.guard(never)).subscribe()
        thread = threading.Thread(target=lambda: (events.on_next(start("Five. Six")), subscription.dispose()))
        thread.start()
        thread.join()
        async with rd.stream(rx.concat(of(start("Seven. Eight")), rx.never()).pipe(rd.guard(never))) as one:
            await turns()
            one.stop("enough")
        assert (one.snapshot.status, one.snapshot.text) == ("interrupted", "")
        stop = asyncio.Event()
        asyncio.get_running_loop().call_soon(stop.set)
        front = rx.concat(of(start("Nine. Ten")), rx.never()).pipe(rd.until_stopped(stop), rd.guard(never))
        assert (await rd.last_value(front.pipe(rd.scan_deltas()))).status == "interrupted"

    run(main)
    assert set(cancelled) <= {"Three. ", "Seven. ", "Nine. "}
    assert "Three. " in cancelled


# A hit.


def test_a_hit_ends_the_reply_at_once() -> None:
    scheduler = TestScheduler()
    events = scheduler.create_hot_observable(
        ReactiveTest.on_next(210, start()),
        ReactiveTest.on_next(220, call()),
        ReactiveTest.on_next(225, ev.ToolCallDelta(1, '{"x": 1}')),
        ReactiveTest.on_next(230, say("Hi. Bob. ")),
        ReactiveTest.on_next(240, say("Bye.")),
        ReactiveTest.on_next(250, END),
    )

    def check(text: str) -> Observable[bool]:
        return rx.timer(15).pipe(ops.map(lambda _: no_bob(text)))

    result = scheduler.start(lambda: events.pipe(rd.guard(check)))
    why = "a check ended the reply while the call was open"
    assert result.messages == [
        ReactiveTest.on_next(210, start()),
        ReactiveTest.on_next(220, call()),
        ReactiveTest.on_next(245, say("Hi. ")),
        ReactiveTest.on_next(260, ev.BlockFinish(0)),
        ReactiveTest.on_next(260, ev.BlockFinish(1, {"type": "invalid_tool_call", "error": why})),
        ReactiveTest.on_next(260, HIT),
        ReactiveTest.on_completed(260),
    ]
    assert events.subscriptions == [ReactiveTest.subscribe(200, 260)]


def test_each_choice_ends_by_itself() -> None:
    events = Subject[rd.Event]()
    found = got(events, rd.guard(no_bob))
    for event in (start(), start(choice=1), say("Bob. X"), say("More", choice=0), say("Hi. ", choice=1)):
        events.on_next(event)
    assert found == [start(), start(choice=1), ev.BlockFinish(0), HIT, *found[4:]]
    events.on_next(say("Al. Bob. Y", choice=1))
    one = ev.MessageFinish("content_filter", "guard", choice=1)
    assert found[4:] == [say("Hi. ", choice=1), say("Al. ", choice=1), ev.BlockFinish(0, choice=1), one, "|"]
    assert events.observers == []


def test_an_error_event_behind_a_choice_that_was_ended_is_seen() -> None:
    error = ev.StreamError("boom")
    assert got(of(start(choice=1), start("Bob. X"), error), rd.guard(no_bob))[-2:] == [error, "|"]


def test_an_error_has_what_was_shown() -> None:
    found = got(
        of(ev.MessageStart("m"), start("Hi. "), say("Bob. No."), END),
        rd.guard(no_bob, on_hit="error"),
        rd.scan_deltas(),
    )
    error = found[-1]
    assert isinstance(error, rd.GuardError)
    assert error.snapshot is not None
    assert error.snapshot.text == "Hi. "
    assert "Bob" not in f"{error!r} {error.snapshot!r} {error.__cause__!r} {error.__context__!r}"


def test_the_source_s_error_has_no_reply_of_its_own() -> None:
    error = rd.StreamInterrupted("cut off")
    error.snapshot = of(start("Hi. Ask Bob. ")).pipe(rd.scan_deltas()).run()
    events = rx.concat(of(start("Hi. "), say("Ask B")), rx.throw(error))
    for operators, seen in (([], None), ([rd.scan_deltas()], "Hi. ")):
        found = got(events, rd.guard(no_bob), *operators)
        assert isinstance(found[-1], rd.StreamInterrupted)
        assert getattr(found[-1].snapshot, "text", None) == seen


def test_reasoning_may_pass() -> None:
    events = (start(kind="reasoning"), ev.ReasoningDelta(0, "Bob. "), ev.BlockFinish(0), END)
    assert got(of(*events), rd.guard(lambda _: False, reasoning=False)) == [*events, "|"]


def test_what_quotes_a_refused_unit_is_changed_too() -> None:
    text = "I am Bob. You or Al. Bye."
    citations = [
        {"cited_text": "Bob", "start_index": 5, "end_index": 8},
        {"cited_text": "Al", "start_index": 17, "end_index": 19},
    ]
    notes = {"supports": [{"segment": {"text": part}} for part in ("I am Bob.", "am Bob", text)], "kind": "I"}
    events = [
        start(),
        say("I am Bob"),
        ev.BlockDelta(0, {"citations": citations[:1], "logprobs": [{"token": "I"}]}),
        say(text[8:]),
        ev.BlockDelta(0, {"citations": citations}),
        ev.MessageFinish("stop", metadata={"grounding": notes, "logprobs": {"content": [{"token": "Bob"}]}}),
    ]
    found = got(of(*events), rd.guard(lambda so_far: not so_far.endswith("Bob. "), on_hit="[-] "))
    assert "Bob" not in told(found)
    snapshot = of(*found[:-1]).pipe(rd.scan_deltas()).run()
    (cited,) = snapshot.blocks[0].citations
    assert snapshot.text[cited.start_index : cited.end_index] == "Al"
    parts = [one["segment"]["text"] for one in snapshot.metadata["grounding"]["supports"]]
    assert (parts, snapshot.metadata["grounding"]["kind"]) == (["[-]", "[-]", "[-] You or Al. Bye."], "I")


@pytest.mark.parametrize("end", [[END], [ev.BlockFinish(0), END]])
def test_a_citation_waits_for_the_check_of_its_text(end: list[rd.Event]) -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found = got(events, rd.guard(asked))
    cited = ev.BlockDelta(0, {"citations": [{"cited_text": "two", "start_index": 5, "end_index": 8}]})
    for event in (start(), say("One. two"), cited, say(" Three. Fou"), *end):
        events.on_next(event)
    while asked.running:
        assert "two" not in told(found) or "two" in "".join(texts(found))
        asked.answer(True)
    assert found[-len(end) - 1 :] == [cited, *end]


def test_a_citation_waits_for_all_that_a_finish_says() -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found = got(events, rd.guard(asked))
    cited = ev.BlockDelta(0, {"citations": [{"cited_text": "three", "start_index": 10, "end_index": 15}]})
    finish = ev.BlockFinish(0, {"type": "text", "text": "One. Two. The three."})
    for event in (start(), say("One"), cited, finish, END):
        events.on_next(event)
    asked.answer(True)
    asked.answer(True)
    assert found[2:] == [say("One. "), say("Two. ")]
    asked.answer(True)
    assert found[4:] == [say("The three."), cited, finish, END]


def test_a_citation_of_a_text_that_has_all_been_checked() -> None:
    cited = ev.BlockDelta(0, {"citations": [{"cited_text": "One", "start_index": 0, "end_index": 3}]})
    found = got(of(start(), say("One\n"), cited, END), rd.guard(no_bob, "line"))
    assert found == [start(), say("One\n"), ev.BlockDelta(0, {}), cited, END, "|"]


# The arguments of a call.


def _passing(text: str) -> bool:
    """Of the small replies' calls the first passes."""
    return '"n": 2' not in text


@pytest.mark.parametrize("begins", ["ready", "message"])
@pytest.mark.parametrize("hit", ["stop", "[-]"])
@pytest.mark.parametrize("wire_format", REPLIES)
def test_a_refused_call_never_runs(wire_format: str, begins: Any, hit: str) -> None:
    small = REPLIES[wire_format]
    chunks = [
        *small.begin,
        *small.text,
        *small.call(1),
        *small.call(2),
        *small.call(3),
        *small.end(small.stop),
    ]
    ran: list[int] = []
    tools = rd.run_tools({"f": lambda n: ran.append(n)}, start=begins)
    decoded = of(*chunks).pipe(rd.decode(wire_format))
    shown = got(decoded, rd.guard(_passing, on_hit=hit))
    assert '"n": 2' not in told(shown).replace("\\", "")
    snapshot = got(of(*shown[:-1]), tools, rd.scan_deltas())[-2]
    assert 2 not in ran
    assert ran == sorted(set(ran))
    refused = [
        one for one in snapshot.blocks if isinstance(one, rd.ToolCall) and one.type == "invalid_tool_call"
    ]
    assert refused
    if hit == "[-]":
        assert ran == [1, 3]
    else:
        assert snapshot.finish_reason == "content_filter"
        assert set(ran) <= {1}


def test_calls_that_end_with_the_message() -> None:
    """A call passes, a text or another call is refused: no open call is whole behind it."""
    events = [
        ev.MessageStart("m"),
        start(),
        call(),
        ev.ToolCallDelta(1, "{}"),
        call(2, "c2"),
        ev.ToolCallDelta(2, '{"to": "Bob"}'),
    ]
    ran: list[Any] = []
    tools = rd.run_tools({"pay": lambda **given: ran.append(given)})
    for last, checked in (([say("Ask Bob")], True), ([], True), ([], False)):
        guarded = rd.guard(no_bob, arguments=checked)
        found = got(of(*events, *last, ev.MessageFinish("tool_calls")), guarded, tools, rd.scan_deltas())
        assert ran == ([] if checked else [{}, {"to": "Bob"}])
        assert found[-2].finish_reason == ("content_filter" if checked else "tool_use")
    found = got(
        of(*events, say("Ask Bob"), ev.MessageFinish("tool_calls")),
        rd.guard(no_bob, arguments=False),
        rd.scan_deltas(),
    )
    assert [one.type for one in found[-2].blocks[1:]] == ["invalid_tool_call"] * 2


def test_a_refused_call_that_ends_with_the_message_ends_once() -> None:
    refused = ev.BlockFinish(1, {"type": "invalid_tool_call", "error": "a check refused the call"})
    found = got(of(call(), ev.ToolCallDelta(1, '{"to": "Bob"}'), END), rd.guard(no_bob))
    assert found == [call(), refused, HIT, "|"]


def test_a_call_is_shown_without_arguments_until_they_have_passed() -> None:
    asked, events = Asked(), Subject[rd.Event]()
    found = got(events, rd.guard(asked))
    for event in (call(), ev.ToolCallDelta(1, '{"a": '), ev.ToolCallDelta(1, "1}"), ev.BlockFinish(1), END):
        events.on_next(event)
    assert (found, [json.loads(text) for text in asked.texts]) == ([call()], [{"a": 1}])
    asked.answer(True)
    snapshot = of(*found).pipe(rd.scan_deltas()).run()
    assert (snapshot.tool_calls[0].arguments, snapshot.finish_reason) == ({"a": 1}, "tool_use")


def test_another_attempt_takes_back_what_is_held() -> None:
    events = [
        ev.MessageStart("m"),
        start("Ask Bo"),
        call(),
        ev.ToolCallDelta(1, '{"to": "Bob"'),
        ev.AttemptReset(1, "cut"),
    ]
    again = [ev.MessageStart("m"), start("Hi. "), call(), ev.ToolCallDelta(1, "{}"), ev.BlockFinish(1), END]
    checked: list[str] = []
    guarded = rd.guard(lambda text: (checked.append(text), no_bob(text))[1])
    found = got(of(*events, *again), guarded, rd.scan_deltas())
    assert (found[-2].text, found[-2].tool_calls[0].arguments, checked) == ("Hi. ", {}, ["Hi. "])


# Units, messages, and other operators beside it.


def test_two_messages_are_two_texts() -> None:
    checked: list[str] = []
    events = [
        ev.MessageStart("a"),
        start("One. "),
        ev.BlockFinish(0),
        END,
        ev.MessageStart("b"),
        start("Two. "),
        ev.BlockFinish(0),
        END,
    ]
    assert got(of(*events), rd.guard(lambda text: not checked.append(text)))[-1] == "|"
    assert checked == ["One. ", "Two. "]


def test_a_check_gets_the_text_as_it_came() -> None:
    checked: list[str] = []

    def check(text: str) -> bool:
        checked.append(text)
        return no_bob(text)

    told = of(start("It is. Ask Bob. "), say("Or me."), END)
    guarded = told.pipe(rd.guard(check, on_hit="[…] "), rd.scan_deltas())
    assert guarded.run().text == "It is. […] […] "
    assert checked == ["It is. ", "It is. Ask Bob. ", "It is. Ask Bob. Or me."]
    guarded = told.pipe(rd.guard(check, on_hit="[…] ", context=0), rd.scan_deltas())
    assert guarded.run().text == "It is. […] Or me."


def test_answers_without_an_end_are_left() -> None:
    answer = BehaviorSubject(True)

    def cost(count: int) -> int:
        events = of(start(), *[say("So it is. ") for _ in range(count)], END)
        return work_done(lambda: events.pipe(rd.guard(lambda _: answer, context=0)).subscribe())

    cost(5)
    assert cost(400) < 4.15 * cost(100)
    assert answer.observers == []


# While a check runs, the source waits.

CHECK = 0.05


async def slow(_: str) -> bool:
    await asyncio.sleep(CHECK)
    return True


async def quick(_: str) -> bool:
    await asyncio.sleep(0.001)
    return True


@pytest.mark.parametrize("kind", ["async", "iterable", "front door"])
def test_a_blocking_reader_and_a_slow_check_read_little_ahead(kind: str) -> None:
    given = shown = ahead = 0

    def events() -> Iterator[rd.Event]:
        nonlocal given
        for event in (start(), *[say(f"No. {n} it is. ") for n in range(100)], END):
            given += 1
            yield event

    async def later() -> AsyncIterator[rd.Event]:
        for event in events():
            yield event

    def see(_: object) -> None:
        nonlocal shown, ahead
        shown += 1
        ahead = max(ahead, given - shown)

    async def main() -> None:
        read: Observable[rd.Event] = (
            rd.from_iterable(events()) if kind == "iterable" else rd.from_async_iterable(later)
        )
        # A thread knows no virtual time.
        way = [rd.guard(quick)] if kind == "iterable" else [rd.stall_timeout(CHECK / 2), rd.guard(slow)]
        if kind == "front door":
            async with rd.stream(later, through=way) as one:
                async for piece in one.text_deltas:
                    see(piece)
        else:
            await rd.for_each(read.pipe(*way), see)

    run(main) if kind == "iterable" else VirtualTime().run(main())
    assert shown >= 100
    assert ahead <= 5


def test_a_check_that_never_answers_is_ended_by_a_stall_timeout_behind() -> None:
    left: list[str] = []

    async def never(text: str) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            left.append(text)
        return True

    async def main() -> None:
        guarded = source("One. ", "Two").pipe(rd.guard(never), rd.stall_timeout(1), rd.scan_deltas())
        with pytest.raises(rd.errors.StallTimeoutError):
            await rd.last_value(guarded)
        await turns()

    VirtualTime().run(main())
    assert left == ["One. "]


def test_the_front_door_without_a_loop() -> None:
    async def check(text: str) -> bool:
        await asyncio.sleep(0)
        return no_bob(text)

    with rd.stream(of(start("Hi. "), say("Al. Bob. Bye."), END).pipe(rd.guard(check))) as one:
        assert "".join(one.text_deltas) == "Hi. Al. "
    assert one.message.finish_reason == "content_filter"


def test_an_asynchronous_check_needs_a_loop() -> None:
    found = got(of(start("Hi. "), END), rd.guard(slow))
    assert isinstance(found[-1], rd.InvalidValueError)
    assert found[-1].field == "check"


# Wrong use, and a recipe.


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        (("Bob",), {}, "check"),
        ((no_bob, "page"), {}, "by"),
        ((no_bob, 0), {}, "by"),
        ((no_bob,), {"on_hit": None}, "on_hit"),
        ((no_bob,), {"context": -1}, "context"),
        ((no_bob,), {"context": True}, "context"),
        ((no_bob,), {"context": "all"}, "context"),
    ],
)
def test_wrong_arguments(arguments: Any, options: Any, field: str) -> None:
    with pytest.raises(rd.InvalidValueError) as refused:
        rd.guard(*arguments, **options)
    assert refused.value.field == field


def not_repeating(text: str) -> bool:
    period = len(text) - 60 - text.rfind(text[-60:], 0, -1)
    return len(text) < 600 or not text.endswith(text[-period:] * max(3, 600 // period))


@pytest.mark.parametrize("period", [1, 2, 7, 60, 199, 200, 201, 333, 1200])
def test_a_reply_that_repeats_itself_is_ended(period: int) -> None:
    chance = random.Random(period)
    said = "".join(chance.choice("abcdefgh .,\n") for _ in range(period))
    text = "It begins well. " * 3 + said * (9000 // period)
    read = of(start(), *[say(text[at : at + 7]) for at in range(0, len(text), 7)], END)
    snapshot = read.pipe(rd.guard(not_repeating, by=200, context=4000), rd.scan_deltas()).run()
    assert snapshot.finish_reason == "content_filter"
    assert len(snapshot.text) < 48 + 3 * period + 800


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{n}. The answer to question {n} is yes.\n" for n in range(400)),
        "".join(f"    assert answer({n}) == {n * n}  # as before\n" for n in range(400)),
        "| a | b |\n" + "| --- | --- |\n" * 3 + "".join(f"| {n} | no |\n" for n in range(900)),
        "One verse. " * 20 + "The chorus, sung by all. " * 8 + "Another verse. " * 15,
        "-" * 500 + " and on",
    ],
)  # fmt: skip
def test_lists_tables_and_code_dont_repeat_themselves(text: str) -> None:
    snapshot = (
        of(start(text), END).pipe(rd.guard(not_repeating, by=200, context=4000), rd.scan_deltas()).run()
    )
    assert (snapshot.text, snapshot.finish_reason) == (text, "stop")
