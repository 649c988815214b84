"""Written attacks on decoders, tools and approvals. A row: a name, what is sent or returned, and what must hold."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import enum
import json
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex.subject import Subject
from support.loops import run, turns

import rxdelta as rd
from rxdelta.testing import FakeProvider

ev = rd.events

SECRET = "what-nobody-may-see"


def fail(*_: object, **__: object) -> Any:
    raise ValueError(SECRET)


def call(index: int, name: str, args: dict[str, Any] | None = None) -> list[rd.Event]:
    block = {"type": "tool_call", "id": f"c{index}", "name": name, "args": args or {}}
    return [ev.BlockStart(index, block), ev.BlockFinish(index)]


REPLY: list[rd.Event] = [
    ev.MessageStart("m"),
    *call(0, "bad"),
    *call(1, "good"),
    ev.MessageFinish("tool_use"),
]

# What a tool may return.


class _Repr:
    __repr__ = __str__ = fail


class _Eq:
    __eq__ = fail
    __hash__ = fail  # type: ignore[assignment]


class _Len(list[Any]):
    __len__ = fail


class _Iter(list[Any]):
    __iter__ = fail


class _Items(dict[str, Any]):
    items = fail


class _Keys(dict[str, Any]):
    keys = __iter__ = fail


class _Get(dict[str, Any]):
    get = __getitem__ = fail


class _Class:
    @property
    def __class__(self) -> Any:
        return fail()

    @__class__.setter
    def __class__(self, _: Any) -> None: ...


class _GetAttr:
    __getattr__ = fail


class _Dumps:
    model_dump = fail


class _DumpsItself:
    def model_dump(self, **_: Any) -> Any:
        return self


class _DumpsWhatIsNone:
    def model_dump(self, **_: Any) -> Any:
        return {"a": object()}


@dataclasses.dataclass
class _Record:
    a: object = None


@dataclasses.dataclass
class _ToDict:
    to_dict = fail


@attrs.define
class _Attrs:
    a: object = None


class _Str(str):
    __str__ = encode = __len__ = __contains__ = fail  # type: ignore[assignment]


class _Int(int):
    __str__ = __repr__ = fail


class _Float(float):
    __str__ = __repr__ = fail


class _Enum(enum.Enum):
    A = 1


def _cycle(record: Any) -> Any:
    record.a = [record]
    return record


def _nested(make: Callable[[Any], Any], depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = make(value)
    return value


def _own_list() -> Any:
    own: list[Any] = []
    own.append(own)
    return own


def _own_dict() -> Any:
    own: dict[str, Any] = {}
    own["a"] = own
    return own


def _closes_badly() -> Any:
    try:
        yield 1
    finally:
        fail()


def _after_the_end(observer: Any, _: Any) -> Any:
    observer.on_next(1)
    observer.on_completed()
    observer.on_next(2)
    observer.on_error(ValueError(SECRET))
    observer.on_completed()


def _two_errors(observer: Any, _: Any) -> Any:
    observer.on_error(ValueError(SECRET))
    observer.on_error(ValueError(SECRET))


RESULTS: dict[str, Callable[[], Any]] = {
    "raises where it is shown": _Repr,
    "raises where it is compared": _Eq,
    "raises where it is counted": lambda: _Len([1]),
    "raises where it is read": lambda: _Iter([1]),
    "an object without items": lambda: _Items(a=1),
    "an object without keys": lambda: _Keys(a=1),
    "an object without values": lambda: _Get(a=1),
    "raises where its class is asked for": _Class,
    "raises where anything is asked for": _GetAttr,
    "a model that raises": _Dumps,
    "a model that dumps itself": _DumpsItself,
    "a model that dumps no JSON": _DumpsWhatIsNone,
    "a record that raises": _ToDict,
    "a record in itself": lambda: _cycle(_Record()),
    "a record of attrs in itself": lambda: _cycle(_Attrs()),
    "a list in itself": _own_list,
    "an object in itself": _own_dict,
    "a text that raises": lambda: _Str("abc"),
    "a number that raises": lambda: _Int(5),
    "a float that raises": lambda: _Float(5.5),
    "no number": lambda: math.nan,
    "an infinity within": lambda: {"a": [-math.inf]},
    "a number of 5,000 digits": lambda: 10**5000,
    "an enum": lambda: _Enum.A,
    "a generator that closes badly": _closes_badly,
    "ten million characters": lambda: "x" * 10**7,
    "10,000 items": lambda: ["x"] * 10**4,
    "100,000 lists in lists": lambda: _nested(lambda inner: [inner], 100_000),
    "3,000 objects in objects": lambda: _nested(lambda inner: {"a": inner}, 3_000),
    "3,000 records in records": lambda: _nested(_Record, 3_000),
    "bytes": lambda: SECRET.encode(),
    "a set": lambda: {SECRET},
    "half a character": lambda: "\ud800",
    "a key that is a number": lambda: {1: 2},
    "a key that is nothing": lambda: {None: 1},
    "a key that is a tuple": lambda: {(1, 2): 1},
    "a key of half a character": lambda: {"\ud800": 1},
    "a class": lambda: int,
    "a function": lambda: fail,
    "a module": lambda: sys,
    "an exception": lambda: ValueError(SECRET),
    "a view": lambda: MappingProxyType({"a": [1]}),
    "another call's result": lambda: rd.ToolResult("c1", "x"),
    "an event": lambda: ev.TextDelta(0, SECRET),
    "a snapshot": rd.Snapshot,
    "data for the front end": lambda: ev.Custom("n", 1),
    "an Observable of no number": lambda: rx.of(1, math.nan, 2),
    "an Observable of what raises": lambda: rx.of(_Repr(), _Class(), 1),
    "an Observable that goes on behind its end": lambda: rx.create(_after_the_end),
    "an Observable with two errors": lambda: rx.create(_two_errors),
    "an Observable of nothing": rx.empty,
}  # fmt: skip
OWN_LOOP = [name for name in RESULTS if name.startswith("an Observable")]


def told(
    tools: dict[str, Any], events: list[rd.Event] = REPLY, **options: Any
) -> tuple[list[Any], list[Exception]]:
    got, errors = list[Any](), list[Exception]()
    running = rx.from_iterable(events).pipe(rd.run_tools(tools, **options), rd.scan_deltas())
    running.subscribe(got.append, errors.append)
    return got, errors


def check(got: list[Any]) -> None:
    """Each call has one outcome, all is JSON, and nothing of an exception is told."""
    last = got[-1]
    plain = json.dumps(last.to_dict(), allow_nan=False).encode()
    assert SECRET.encode() not in plain
    bad, good = last.tool_calls
    assert bad.metadata["execution_status"] in ("completed", "failed")
    assert (good.metadata["execution_status"], good.result.content) == ("completed", "fine")
    assert bad.result.call_id == "c0"
    json.dumps(last.to_message().to_dict())


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("how", ["here", "as progress", "on a loop", "as a coroutine"])
def test_whatever_a_tool_returns_each_call_has_one_outcome(
    name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    make = RESULTS[name]

    def generator() -> Any:
        yield make()
        return make()

    async def coroutine() -> Any:
        return make()

    tool = {"here": make, "as progress": generator, "on a loop": make, "as a coroutine": coroutine}[how]
    tools = {"bad": tool, "good": lambda: "fine"}
    if how == "here" or (how == "as progress" and name not in OWN_LOOP):
        got, errors = told(tools)
        assert not errors
        check(got)
        return
    if how == "as progress":
        pytest.skip("an Observable within a generator is no result")

    async def main() -> None:
        got = list[Any]()
        running = rx.from_iterable(REPLY).pipe(rd.run_tools(tools), rd.scan_deltas())
        await asyncio.wait_for(rd.for_each(running, got.append), 30)
        check(got)

    caplog.set_level(logging.CRITICAL)
    asyncio.run(main())


# What a tool may do.


def test_what_a_tool_does_with_its_arguments_is_its_own() -> None:
    seen = list[Any]()

    def spoil(**arguments: Any) -> str:
        seen.append(copy.deepcopy(arguments))
        for name in [*arguments]:
            with_them: Any = arguments[name]
            if isinstance(with_them, list):
                with_them.append(SECRET)
            if isinstance(with_them, dict):
                with_them.clear()
                with_them[SECRET] = SECRET
        arguments.clear()
        return "fine"

    args = {"a": [1, [2]], "b": {"c": {"d": 1}}}
    again = [ev.MessageStart("m"), *call(0, "f", args), *call(1, "f", args), ev.MessageFinish("tool_use")]
    for _ in range(2):
        got, errors = told({"f": spoil}, again)
        assert not errors
        assert SECRET not in json.dumps(got[-1].to_dict())
    assert seen == [args] * 4


LATE: dict[str, Callable[[list[Any]], Any]] = {  # a tool that keeps what it can say more with
    "an Observable that has ended": lambda kept: rx.create(lambda observer, _: _keep_and_end(kept, observer)),
    "a thread of an Observable": lambda kept: rx.create(lambda observer, _: _keep_and_end(kept, observer)),
}


def _keep_and_end(kept: list[Any], observer: Any) -> Any:
    kept.append(observer)
    observer.on_next("fine")
    observer.on_completed()


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("is_over", [False, True])
def test_what_a_tool_says_behind_its_end_is_not_heard(name: str, is_over: bool) -> None:
    kept, got = list[Any](), list[Any]()
    source = Subject[rd.Event]()
    source.pipe(rd.run_tools({"good": lambda: LATE[name](kept)}), rd.scan_deltas()).subscribe(
        got.append, lambda _: None
    )
    for event in [REPLY[0], *call(0, "good"), *([REPLY[-1]] if is_over else [])]:
        source.on_next(event)
    if is_over:
        source.on_completed()
    before = len(got)

    def late() -> None:
        for say in (kept[0].on_next, kept[0].on_error):
            say(RuntimeError(SECRET))
        kept[0].on_next(rd.ToolProgress(SECRET))
        kept[0].on_completed()

    if "thread" in name:
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
    else:
        late()
    assert len(got) == before
    assert got[-1].tool_calls[0].result.content == "fine"


def test_a_tool_whose_tasks_live_on_ends_with_its_own_end() -> None:
    async def main() -> None:
        left = list[asyncio.Task[None]]()

        async def later() -> None:
            await asyncio.sleep(0)
            raise ValueError(SECRET)

        async def spawns() -> str:
            left.append(asyncio.create_task(later()))
            return "fine"

        got = list[Any]()
        running = rx.from_iterable(REPLY).pipe(
            rd.run_tools({"bad": spawns, "good": lambda: "fine"}), rd.scan_deltas()
        )
        await rd.for_each(running, got.append)
        await asyncio.wait(left)
        assert isinstance(left[0].exception(), ValueError)
        check(got)

    run(main)


CANCELLED: dict[str, Any] = {
    "swallows it": None,
    "answers instead": SECRET,
    "raises instead": ValueError(SECRET),
}


async def _swallows(instead: Any) -> Any:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if isinstance(instead, Exception):
            raise instead from None
        return instead


@pytest.mark.parametrize("name", CANCELLED)
def test_a_tool_that_minds_no_time_limit_has_failed(name: str) -> None:
    async def main() -> None:
        got = list[Any]()

        async def good() -> str:
            return "fine"

        tools = {"bad": partial(_swallows, CANCELLED[name]), "good": good}
        running = rx.from_iterable(REPLY).pipe(rd.run_tools(tools, timeout=0.5), rd.scan_deltas())
        await asyncio.wait_for(rd.for_each(running, got.append), 30)
        assert got[-1].tool_calls[0].metadata["execution_status"] == "failed"
        check(got)
        await turns()

    run(main, reports=[])


# What `approve` may answer, and when.

PAY: list[rd.Event] = [ev.MessageStart("m"), *call(0, "pay", {"n": 1}), ev.MessageFinish("tool_use")]


def paying(paid: list[int]) -> dict[str, Any]:
    def pay(n: int) -> None:
        paid.append(n)

    return {"pay": pay}


class _Truthy:
    def __bool__(self) -> bool:
        return True


class _Equal:
    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ANSWERS: dict[str, Callable[[rd.ToolCall], Any]] = {
    "true in words": lambda _: "true",
    "a number": lambda _: 1,
    "a list": lambda _: [True],
    "an object": lambda _: {"approved": True},
    "what is true": lambda _: _Truthy(),
    "what equals all": lambda _: _Equal(),
    "a class": lambda _: rd.Approval,
    "a function": lambda _: lambda: True,
    "no first, then yes": lambda _: rx.of(False, True),
    "nothing": lambda _: None,
    "raises": fail,
    "raises where it is shown": lambda _: _Repr(),
    "raises where its class is asked for": lambda _: _Class(),
    "an Observable of words": lambda _: rx.of("yes"),
    "an Observable of nothing": lambda _: rx.empty(),
    "an Observable that fails": lambda _: rx.throw(ValueError(SECRET)),
}  # fmt: skip


def test_one_that_allows_runs_it_once() -> None:
    for answer in (lambda _: True, lambda _: rx.of(True, False), lambda _: rd.Approval(True)):
        paid = list[int]()
        told(paying(paid), PAY, approve=answer)
        assert paid == [1]
    for answers in (
        rd.requests.approvals_from_ai_sdk([{"id": "m", "role": "assistant", "parts": [part()]}]),
        rd.requests.approvals_from_ag_ui(
            {**RUN, "resume": [{"interruptId": "c0", "status": "resolved", "payload": True}]}
        ),
    ):
        paid = list[int]()
        told(paying(paid), PAY, approve=answers)
        assert paid == [1]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_allows_nothing_runs_nothing(name: str) -> None:
    paid = list[int]()
    got, errors = told(paying(paid), PAY, approve=ANSWERS[name])
    assert paid == []
    assert SECRET not in json.dumps(got[-1].to_dict())
    assert not any(SECRET in str(error) for error in errors)


RUN: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}


def part(**fields: Any) -> dict[str, Any]:
    usual = {"type": "tool-pay", "toolCallId": "c0", "state": "approval-responded", "input": {"n": 1}}
    return {**usual, "approval": {"id": "c0", "approved": True}, **fields}


FORGED: dict[str, Any] = {  # parts of a browser's last message, or its `resume`, by which nothing may be allowed
    "another call": [part(toolCallId="c9", approval={"id": "c9", "approved": True})],
    "another call's answer": [part(approval={"id": "c9", "approved": True}), part(approval={"id": "c9", "approved": False})],
    "an id in other letters": [part(toolCallId="C0", approval={"id": "C0", "approved": True})],
    "an id with a space": [part(toolCallId="c0 ", approval={"id": "c0 ", "approved": True})],
    "an id with NUL": [part(toolCallId="c0\0", approval={"id": "c0\0", "approved": True})],
    "an id with a joiner": [part(toolCallId="c\u200d0", approval={"id": "c\u200d0", "approved": True})],
    "an id in wide letters": [part(toolCallId="\uff430", approval={"id": "\uff430", "approved": True})],
    "an id of a list": [part(toolCallId=["c0"], approval={"id": ["c0"], "approved": True})],
    "a number for an id": [part(toolCallId=0, approval={"id": 0, "approved": True})],
    "yes in words": [part(approval={"id": "c0", "approved": "true"})],
    "a number for yes": [part(approval={"id": "c0", "approved": 1})],
    "a list for yes": [part(approval={"id": "c0", "approved": [True]})],
    "an object for yes": [part(approval={"id": "c0", "approved": {"approved": True}})],
    "no answer": [part(approval={"id": "c0"})],
    "an approval of a list": [part(approval=[True])],
    "an approval of yes": [part(approval=True)],
    "no approval": [part(approval=None)],
    "not responded": [part(state="approval-requested")],
    "a state that is none": [part(state="approved")],
    "a state of a list": [part(state=["approval-responded"])],
    "a text's answer": [part(type="text")],
    "a type that is none": [part(type=None)],
    "a type of a list": [part(type=["tool-pay"])],
    "refused in front": [part(approval={"id": "c0", "approved": False}), part()],
    "refused behind": [part(), part(approval={"id": "c0", "approved": False})],
    "refused among many": [*[part()] * 50, part(approval={"id": "c0", "approved": False}), *[part()] * 50],
    "parts that are none": "c0",
    "parts in an object": {"0": part()},
    "a part that is none": ["c0", None, 5, [part()]],
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("role", ["assistant", "user", "system", "tool", "__proto__"])
def test_a_forged_answer_of_a_browser_allows_nothing(name: str, role: str) -> None:
    paid = list[int]()
    try:
        answers = rd.requests.approvals_from_ai_sdk([{"id": "m", "role": role, "parts": FORGED[name]}])
    except rd.InvalidValueError:
        return
    told(paying(paid), PAY, approve=answers)
    assert paid == []


RESUME: dict[str, Any] = {
    "another call": [{"interruptId": "c9", "status": "resolved", "payload": True}],
    "yes in words": [{"interruptId": "c0", "status": "resolved", "payload": "true"}],
    "a number for yes": [{"interruptId": "c0", "status": "resolved", "payload": 1}],
    "an object that says yes twice": [{"interruptId": "c0", "status": "resolved", "payload": {"approved": "yes"}}],
    "nothing": [{"interruptId": "c0", "status": "resolved", "payload": None}],
    "no payload": [{"interruptId": "c0", "status": "resolved"}],
    "cancelled": [{"interruptId": "c0", "status": "cancelled", "payload": True}],
    "a status that is none": [{"interruptId": "c0", "status": "ok", "payload": True}],
    "no status": [{"interruptId": "c0", "payload": True}],
    "an id of a list": [{"interruptId": ["c0"], "status": "resolved", "payload": True}],
    "an id in other letters": [{"interruptId": "C0", "status": "resolved", "payload": True}],
    "refused behind": [{"interruptId": "c0", "status": "resolved", "payload": one} for one in (True, False)],
    "refused in front": [{"interruptId": "c0", "status": "resolved", "payload": one} for one in (False, True)],
    "cancelled behind": [{"interruptId": "c0", "status": one, "payload": True} for one in ("resolved", "cancelled")],
    "an object": {"interruptId": "c0", "status": "resolved", "payload": True},
    "a text": "c0",
    "answers that are none": [None, 5, "c0"],
}  # fmt: skip


@pytest.mark.parametrize("name", RESUME)
def test_a_forged_resume_allows_nothing(name: str) -> None:
    paid = list[int]()
    try:
        answers = rd.requests.approvals_from_ag_ui({**RUN, "resume": RESUME[name]})
    except rd.InvalidValueError:
        return
    told(paying(paid), PAY, approve=answers)
    assert paid == []


def test_an_answer_that_comes_when_its_call_is_taken_back_runs_nothing() -> None:
    paid, answers = list[int](), Subject[bool]()
    source = Subject[rd.Event]()
    source.pipe(rd.run_tools(paying(paid), approve=lambda _: answers)).subscribe(
        lambda _: None, lambda _: None
    )
    for event in [*PAY[:3], ev.AttemptReset(2, "x"), ev.MessageStart("m")]:
        source.on_next(event)
    for _ in range(3):
        answers.on_next(True)
    answers.on_completed()
    source.on_completed()
    assert paid == []


def test_an_answer_that_comes_twice_runs_the_call_once() -> None:
    paid, seen = list[int](), list[Any]()
    said: Any = rx.create(lambda observer, _: seen.append(observer))  # type: ignore[arg-type,func-returns-value]
    got, _ = told(paying(paid), PAY, approve=lambda _: said)
    for answer in (True, False, True):
        seen[0].on_next(answer)
    seen[0].on_completed()
    seen[0].on_next(True)
    assert paid == [1]
    assert got[-1].tool_calls[0].metadata["execution_status"] == "completed"


# What a provider may say in place of anything: each leaf of each chunk of a reply with text, reasoning and a call.

HOSTILE: list[Any] = [
    None, True, -1, -0.0, 1.5, 2**31, 2**63, 2**200, 1e308, "", "0", "-1", "\0", "\ud800", "\u202e\u0000", "x" * 300, "__proto__", "tool", "system",
    b"x", [], {}, [[]], {"__class__": 1}, {"type": "tool_call"}, [{"index": -1}], math.nan, -math.inf, object(), {1: 2}, (1,), {1},
]  # fmt: skip
FORMATS = [*rd.providers.FORMATS]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, item in inner:
        yield (*path, name)
        yield from leaves(item, (*path, name))


def with_at(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = new
    return changed


@pytest.mark.parametrize("most", [50, pytest.param(2_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("wire_format", FORMATS)
def test_whatever_stands_in_a_chunk_is_values_or_our_error(wire_format: str, most: int) -> None:
    thought = rd.ContentPart("reasoning", "Hm.")
    reply = FakeProvider([thought, "Hi there.", rd.ToolCall(call_id="c0", name="pay", arguments={"n": 1})])
    try:
        chunks = [json.loads(json.dumps(one)) for one in reply.chunks(wire_format)]
    except rd.InvalidValueError:
        pytest.skip("the fake provider doesn't speak it")
    places = [(number, path) for number, chunk in enumerate(chunks) for path in leaves(chunk)]
    step = max(1, len(places) * len(HOSTILE) // most)
    tried = [(number, path, value) for number, path in places for value in HOSTILE][::step]
    for number, path, value in tried:
        sent = [*chunks[:number], with_at(chunks[number], path, value), *chunks[number + 1 :]]
        ran, got, errors = list[Any](), list[Any](), list[Exception]()
        events = rx.from_iterable(sent).pipe(
            rd.decode(wire_format), rd.run_tools({"pay": lambda ran=ran, **a: ran.append(a)})
        )
        events.pipe(rd.scan_deltas()).subscribe(got.append, errors.append)
        assert all(isinstance(error, rd.RxDeltaError) for error in errors), (path, value, errors)
        if got:
            json.dumps(got[-1].to_dict(), allow_nan=False).encode()
        calls = [one for one in got[-1].blocks if isinstance(one, rd.ToolCall)] if got else []
        ids = [one.call_id for one in calls if one.type == "tool_call"]
        assert len(ids) == len({*ids}), (path, value)
        assert len(ran) <= len(calls), (path, value)
