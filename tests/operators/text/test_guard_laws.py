"""The law of `guard`: nothing is shown that no check has let pass, however the text is told and the check answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex.subject import Subject
from support.loops import run, turns
from support.tellings import Told, after, cut_off, final, joined, plain, replies, strings, tell, tellings

import rxdelta as rd

ev = rd.events

PIECES = [*"abskx .!?\n", "sk-", "bad ", "Bad. ", "good", "\u4f60\u3002", "\U0001f600"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
UNITS = st.sampled_from(["word", "line", "sentence", "char", "block", 7, re.compile(r"[,.]\s*")])
SEEDS = st.integers(0, 2**32)

KINDS_OF_ANSWERS: dict[str, Callable[[Callable[[], bool]], Any]] = {
    "value": lambda answer: answer(),
    "observable": lambda answer: rx.defer(lambda _: rx.of(answer())),
    "several": lambda answer: rx.defer(lambda _: rx.of(answer(), True, True)),
}


def units(text: str, by: Any) -> list[str]:
    told = after(plain(text, len(text) or 1), rd.cut_text(by))
    return [event.text for event in told.events if isinstance(event, ev.TextDelta)]


def length(unit: str) -> str:
    return f"<{len(unit)}>"


class Check:
    """Lets pass what has no `bad` in it, and remembers what it has let pass."""

    def __init__(self, kind: str = "value") -> None:
        self.asked = list[str]()
        self.passed = [""]
        self.kind = kind

    def __call__(self, text: str) -> Any:
        self.asked.append(text)

        def answer() -> bool:
            if "bad" in text.lower():
                return False
            self.passed.append(text)
            return True

        return KINDS_OF_ANSWERS[self.kind](answer)


def nothing_unchecked(result: Told, check: Check) -> None:
    for seen in joined(result).values():
        assert all(any(one.startswith(shown) for one in check.passed) for _, shown in seen)


@given(st.data(), TEXTS, UNITS, st.sampled_from([*KINDS_OF_ANSWERS]))
def test_a_check_that_lets_all_pass_changes_no_reply(
    data: st.DataObject, text: str, by: Any, kind: str
) -> None:
    told = data.draw(tellings(text))
    result = after(told, rd.guard(lambda _: KINDS_OF_ANSWERS[kind](lambda: True), by))
    assert {lane: seen[-1] for lane, seen in replies(result).items()} == {
        lane: seen[-1] for lane, seen in replies(told).items()
    }


@given(st.data(), TEXTS, UNITS, st.sampled_from([*KINDS_OF_ANSWERS]), SEEDS)
def test_nothing_is_shown_that_no_check_has_let_pass(
    data: st.DataObject, text: str, by: Any, kind: str, seed: int
) -> None:
    told = data.draw(tellings(text))
    for source in (told, cut_off(Random(seed), told)):
        for on_hit in ("stop", "error", "#", length):
            check = Check(kind)
            result = after(source, rd.guard(check, by, on_hit=on_hit))
            if isinstance(on_hit, str) and len(on_hit) > 1:
                nothing_unchecked(result, check)
            assert not any("bad" in shown.lower() for seen in joined(result).values() for _, shown in seen)
            for event in result.events:
                assert not any("bad" in one.lower() for one in strings(event.to_dict()))
            assert "bad" not in f"{result.error} {getattr(result.error, '__notes__', '')}".lower()


@given(st.data(), TEXTS, UNITS, st.sampled_from([*KINDS_OF_ANSWERS]))
def test_the_check_reads_the_block_so_far_a_unit_more_each_time(
    data: st.DataObject, text: str, by: Any, kind: str
) -> None:
    told = data.draw(tellings(text, lanes=False, blocks=1, takes_back=False, strays=False))
    check = Check(kind)
    result = after(told, rd.guard(check, by))
    wanted = list(accumulate(units(text, by)))
    hit = next((so_far for so_far in wanted if "bad" in so_far.lower()), None)
    if hit is not None:
        wanted = wanted[: wanted.index(hit) + 1]
    is_twice = check.asked != wanted  # a late change of the type is a new text
    if is_twice:
        assert "reasoning" in {kind for seen in joined(told).values() for kind, _ in seen}
        assert check.asked[-len(wanted) :] == wanted
    last = replies(result)[None, 0][-1]
    if hit is None:
        assert last == replies(told)[None, 0][-1]
        return
    assert (last.status, last.finish_reason) == ("complete", "content_filter")
    assert not any(block.open for block in last.blocks if isinstance(block, rd.ContentPart))
    before = [so_far for so_far in wanted if so_far != hit]
    shown = [said for _, said in final(result).values() if said]
    assert shown in ([], before[-1:]) or (is_twice and shown[0] in before)
    assert result.error is None
    last.to_message()


@given(st.data(), TEXTS, UNITS, st.integers(0, 9))
def test_the_check_reads_no_more_than_the_context(
    data: st.DataObject, text: str, by: Any, context: int
) -> None:
    asked = list[str]()
    told = data.draw(tellings(text, kinds=["text"], lanes=False, blocks=1, takes_back=False, strays=False))
    after(told, rd.guard(lambda text: not asked.append(text), by, context=context))
    pieces = units(text, by)
    wanted = [
        so_far[-(context + len(unit)) :] for so_far, unit in zip(accumulate(pieces), pieces, strict=True)
    ]
    assert asked == wanted


@given(st.data(), TEXTS, UNITS, st.booleans())
def test_what_is_refused_is_replaced_wherever_it_is_told(
    data: st.DataObject, text: str, by: Any, by_function: bool
) -> None:
    """The check reads what came, also what was refused."""

    def check(so_far: str) -> bool:
        return not so_far.lower().rstrip(" .!?\n").endswith("bad")

    def change(text: str) -> str:
        pieces = units(text, by)
        return "".join(
            unit if check(so_far) else f"<{len(unit)}>" if by_function else "#"
            for unit, so_far in zip(pieces, accumulate(pieces), strict=True)
        )

    told = data.draw(tellings(text, takes_back=False))
    result = after(told, rd.guard(check, by, on_hit=length if by_function else "#"))
    assert final(result) == {place: (kind, change(said)) for place, (kind, said) in final(told).items()}
    for place, seen in joined(result).items():
        assert all(final(result)[place][1].startswith(shown) for _, shown in seen)


@given(st.data(), TEXTS, UNITS, SEEDS)
def test_a_unit_that_is_cut_off_is_dropped(data: st.DataObject, text: str, by: Any, seed: int) -> None:
    whole = data.draw(tellings(text, takes_back=False))
    cut = cut_off(Random(seed), whole)
    result = after(cut, rd.guard(lambda _: True, by))
    assert result.error is cut.error
    for place, (_, shown) in final(result).items():
        pieces = [*accumulate(units(final(whole)[place][1], by), initial="")]
        assert shown in pieces


# Calls.


def a_call(arguments: str, way: str, size: int = 3) -> list[rd.Event]:
    start = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "pay"})
    deltas = [ev.ToolCallDelta(1, arguments[at : at + size]) for at in range(0, len(arguments), size)]
    whole = {"type": "tool_call", "id": "c", "name": "pay", "args": arguments}
    ways: dict[str, list[rd.Event]] = {
        "deltas": [start, *deltas, ev.BlockFinish(1)],
        "whole": [ev.BlockFinish(1, whole)],
        "both": [start, *deltas, ev.BlockFinish(1, whole)],
        "at once": [ev.BlockStart(1, {**whole, "type": "tool_call_chunk"}), ev.BlockFinish(1)],
        "field": [start, ev.BlockDelta(1, {"args": arguments}), ev.BlockFinish(1)],
        "unfinished": [start, *deltas],
    }
    return ways[way]


WAYS = ["deltas", "whole", "both", "at once", "field", "unfinished"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_hit", ["stop", "error", "#"])
def test_a_refused_call_is_never_run(way: str, on_hit: str) -> None:
    ran = list[object]()

    def pay(**query: object) -> str:
        ran.append(query)
        return "paid"

    for arguments, runs in [('{"to": "bad"}', 0), ('{"to": "good"}', 1)]:
        ran.clear()
        check = Check()
        events = [
            ev.MessageStart("m"),
            *plain("Good. ", 2).events[1:-1],
            *a_call(arguments, way),
            ev.MessageFinish("tool_use"),
        ]
        result = after(Told(events), rd.guard(check, on_hit=on_hit), rd.run_tools({"pay": pay}))
        assert len(ran) == runs
        assert check.asked[-1] == arguments  # whole, once
        assert sum(one.startswith("{") for one in check.asked) == 1
        if not runs:
            for event in result.events:
                assert not any("bad" in one for one in strings(event.to_dict()))
            assert isinstance(result.error, rd.GuardError if on_hit == "error" else type(None))
        else:
            call = replies(result)[None, 0][-1].tool_calls[0]
            assert (call.arguments, call.status) == ({"to": "good"}, "complete")


@pytest.mark.parametrize("way", WAYS[:-1])
def test_arguments_are_shown_when_they_have_passed(way: str) -> None:
    source: Subject[rd.Event] = Subject()
    answer: Subject[bool] = Subject()
    seen = list[rd.Event]()
    source.pipe(rd.guard(lambda text: answer if "zzz" in text else True)).subscribe(seen.append)
    for event in [ev.MessageStart("m"), *a_call('{"zzz": "x"}', way)]:
        source.on_next(event)
    assert not any("zz" in one for event in seen for one in strings(event.to_dict()))
    answer.on_next(True)
    assert replies(Told(seen))[None, 0][-1].tool_calls[0].arguments == {"zzz": "x"}


def test_calls_and_reasoning_pass_unasked_if_that_is_wanted() -> None:
    told = Told(
        [
            *plain("bad", kind="reasoning").events[:-1],
            *a_call('"bad"', "deltas"),
            ev.MessageFinish("tool_use"),
        ]
    )
    assert after(told, rd.guard(Check(), reasoning=False, arguments=False)).events == told.events


# Checks that take their time.


def asked_late(draw: Random, check: Check) -> Callable[[str], Any]:
    """The same answers as an awaitable, an Observable or at once; each after some turns of the loop."""

    async def later(text: str) -> bool:
        await turns(draw.randrange(4))
        return bool(check(text))

    def ask(text: str) -> Any:
        how = draw.randrange(4)
        if how == 0:
            return check(text)
        if how == 1:
            return rx.from_future(asyncio.ensure_future(later(text)))
        return asyncio.ensure_future(later(text)) if how == 2 else later(text)

    return ask


async def shown(told: Told, operator: Any) -> Told:
    async def events() -> Any:
        for event in told.events:
            yield event
        if told.error is not None:
            raise told.error

    found = list[rd.Event]()
    try:
        await rd.for_each(rd.from_async_iterable(events).pipe(operator), found.append)
    except (rd.RxDeltaError, ConnectionError) as error:
        return Told(found, error)
    return Told(found)


@pytest.mark.parametrize("seed", range(4))
def test_a_check_that_answers_late_gives_the_same_reply(seed: int) -> None:
    draw = Random(seed)

    async def main() -> None:
        for _ in range(40):
            told = tell(draw, "".join(draw.choices(PIECES, k=draw.randrange(12))))
            by: Any = draw.choice(["word", "sentence", "block", 5])
            on_hit: Any = draw.choice(["stop", "error", "#"])
            at_once, late = Check(), Check()
            wanted = after(told, rd.guard(at_once, by, on_hit=on_hit))
            found = await shown(told, rd.guard(asked_late(draw, late), by, on_hit=on_hit))
            assert late.asked == at_once.asked
            assert found.events == wanted.events
            assert type(found.error) is type(wanted.error)

    run(main)
