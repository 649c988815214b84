"""Written attacks on what hides, checks and cuts text. A row: a name, what is sent, and what must hold."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from support.cost import work_done
from support.loops import run, turns

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

SECRET = "sk-Zq9Xw7Kp"
PATTERN = r"sk-[A-Za-z0-9]{8}"
SHORTEST = 6  # so many characters of the secret are a part that a reader recognises
TEXT: list[rd.Event] = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
END: list[rd.Event] = [ev.BlockFinish(0), ev.MessageFinish("stop")]
CALL = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "find"})


def texts(*pieces: str, choice: int = 0, run_id: str | None = None) -> list[rd.Event]:
    return [ev.TextDelta(0, piece, choice=choice, run_id=run_id) for piece in pieces]


def arguments(*pieces: str) -> list[rd.Event]:
    return [ev.MessageStart("m"), CALL, *(ev.ToolCallDelta(0, piece) for piece in pieces), ev.BlockFinish(0),
            ev.MessageFinish("tool_use")]  # fmt: skip


def lane(choice: int = 0, run_id: str | None = None) -> list[rd.Event]:
    where: Any = {"choice": choice, "run_id": run_id}
    return [ev.MessageStart("m", **where), ev.BlockStart(0, {"type": "text", "text": ""}, **where)]


def woven(*lanes: Sequence[rd.Event]) -> list[rd.Event]:
    """One event of each by turns."""
    longest = max(map(len, lanes))
    return [one[place] for place in range(longest) for one in lanes if place < len(one)]


HALF = len(SECRET) // 2
FIRST, LAST = SECRET[:HALF], SECRET[HALF:]

WAYS: dict[str, list[rd.Event]] = {
    "a character a delta": [*TEXT, *texts(*f"It is {SECRET}, yes."), *END],
    "between empty deltas": [*TEXT, *texts(*[piece for one in SECRET for piece in ("", one, "")]), *END],
    "half in the start": [TEXT[0], ev.BlockStart(0, {"type": "text", "text": FIRST}), *texts(LAST), *END],
    "whole in the start": [TEXT[0], ev.BlockStart(0, {"type": "text", "text": SECRET}), *END],
    "half in a field": [*TEXT, *texts(FIRST), ev.BlockDelta(0, {"text": SECRET}), *END],
    "in a finish alone": [*TEXT, ev.BlockFinish(0, {"type": "text", "text": SECRET}), END[1]],
    "in a finish that overrules": [*TEXT, *texts("Hi."), ev.BlockFinish(0, {"type": "text", "text": SECRET}), END[1]],
    "half in the finish": [*TEXT, *texts(FIRST), ev.BlockFinish(0, {"type": "text", "text": SECRET}), END[1]],
    "in a finish of no block": [TEXT[0], ev.BlockFinish(5, {"type": "text", "text": SECRET}), END[1]],
    "in a delta of no block": [*TEXT, ev.TextDelta(7, SECRET), *END],
    "in a delta behind the finish": [*TEXT, ev.BlockFinish(0), *texts(SECRET), END[1]],
    "behind the end of the message": [*TEXT, *END, *texts(FIRST, LAST), ev.BlockFinish(0)],
    "the block begins twice": [*TEXT, *texts(FIRST), TEXT[1], *texts(SECRET), *END],
    "the block becomes reasoning": [*TEXT, *texts(FIRST), ev.BlockDelta(0, {"type": "reasoning", "reasoning": SECRET}), *END],
    "the text was reasoning": [*TEXT, *texts(FIRST), ev.BlockFinish(0, {"type": "reasoning", "reasoning": SECRET}), END[1]],
    "in reasoning": [TEXT[0], ev.BlockStart(0, {"type": "reasoning", "reasoning": ""}), *(ev.ReasoningDelta(0, one) for one in SECRET), *END],
    "half, then the stream ends": [*TEXT, *texts(f"It is {SECRET[:-1]}")],
    "half, then an interruption": [*TEXT, *texts(f"It is {SECRET[:-1]}"), ev.MessageInterrupted("user")],
    "half, another attempt, the rest": [*TEXT, *texts(SECRET[:-1]), ev.AttemptReset(1, "x"), *TEXT, *texts(SECRET[-1:], "."), *END],
    "whole, then another attempt": [*TEXT, *texts(*SECRET, "."), ev.AttemptReset(1, f"failed at {SECRET}"), *TEXT, *texts("Hi."), *END],
    "half, then an error event": [*TEXT, *texts(SECRET[:-1]), ev.StreamError(f"broke at {SECRET}", "x")],
    "two choices by turns": woven([*lane(0), *texts(*SECRET)], [*lane(1), *texts(*SECRET, choice=1)]),
    "two runs by turns": woven([*lane(run_id="a"), *texts(*SECRET, run_id="a")], [*lane(run_id="b"), *texts(*SECRET, run_id="b")]),
    "another message begins": [*TEXT, *texts(SECRET[:-1]), ev.MessageStart("n"), TEXT[1], *texts(SECRET[-1:]), *END],
    "twice without a gap": [*TEXT, *texts(*(SECRET + SECRET)), *END],
    "behind a false beginning": [*TEXT, *texts(*f"sk-sk-s{SECRET}"), *END],
    "arguments by characters": arguments('{"q": "', *SECRET, '"}'),
    "arguments with escapes": arguments('{"q": "', *"".join(f"\\u{ord(one):04x}" for one in SECRET), '"}'),
    "a key of arguments": arguments(json.dumps({SECRET: {SECRET: [SECRET]}})),
    "arguments that are cut off": arguments('{"q": "', SECRET),
    "arguments that are no JSON": arguments("{", SECRET, "}"),
    "arguments whole in the start": [TEXT[0], ev.BlockStart(0, {"type": "tool_call", "id": "c", "name": "find", "args": {"q": SECRET}}), ev.BlockFinish(0), END[1]],
    "arguments whole in the finish": [TEXT[0], CALL, ev.BlockFinish(0, {"type": "tool_call", "id": "c", "name": "find", "args": {"q": [{"r": SECRET}]}}), END[1]],
    "arguments of an invalid call": [TEXT[0], ev.BlockStart(0, {"type": "invalid_tool_call", "id": "c", "name": "f", "args": SECRET, "error": SECRET}), ev.BlockFinish(0), END[1]],
    "a result": [*arguments("{}"), ev.ToolUpdate("c", "completed", SECRET, rd.ToolResult("c", {SECRET: [SECRET]}))],
    "a result that grows": [*arguments("{}"), ev.ToolUpdate("c", "executing", None, rd.ToolResult("c", f"log {SECRET[:-1]}")), ev.ToolUpdate("c", "completed", None, rd.ToolResult("c", f"log {SECRET}"))],
    "a file's text": [*arguments("{}"), ev.ToolUpdate("c", "completed", None, rd.ToolResult("c", [{"type": "text", "text": SECRET}]))],
    "metadata": [ev.MessageStart("m", metadata={"note": SECRET, "deep": [{"n": SECRET}]}), TEXT[1], *END[:1], ev.MessageFinish("stop", metadata={"last": SECRET})],
    "data of the application": [*TEXT, ev.Custom("note", {SECRET: [SECRET]}), *END],
    "an event of the provider": [*TEXT, ev.ProviderEvent("x", "note", {"a": {"b": [SECRET]}}), *END],
    "fields that nobody knows": [*TEXT, ev.BlockDelta(0, {"note": SECRET, "notes": [{"deep": SECRET}]}), *END],
    "a citation": [*TEXT, *texts(f"It is {SECRET}."), ev.BlockDelta(0, {"citations": [{"type": "citation", "start_index": 6, "end_index": 17, "cited_text": SECRET, "title": SECRET}]}), *END],
    "log probabilities": [*TEXT, ev.BlockDelta(0, {"logprobs": {"content": [{"token": one} for one in (FIRST, LAST)]}}), *texts(SECRET), *END],
}  # fmt: skip

ENCODERS: dict[str, Callable[[], Any]] = {
    "ai-sdk": rd.to_ai_sdk,
    "ag-ui": rd.to_ag_ui,
    "langchain": rd.to_langchain_events,
    "openai-chat": rd.to_openai_chat,
    "openai-responses": rd.to_openai_responses,
    "anthropic": rd.to_anthropic_messages,
    "ollama": rd.to_ollama,
}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a value, keys included, with the name of the field that has them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield "keys", f"{key} "
            yield from leaves(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item, name)
    elif isinstance(value, str):
        yield name, value


def says_it(values: Sequence[Any]) -> str | None:
    """A part of the secret that the values say, each alone or one behind the other in fields of a name."""
    told: dict[str, str] = {}
    for value in values:
        plain = json.loads(
            json.dumps(value, default=lambda one: one.to_dict() if hasattr(one, "to_dict") else str(one))
        )
        for name, text in leaves(plain):
            told[name] = told.get(name, "") + text
    whole = "\n".join(told.values())
    parts = [SECRET[at : at + SHORTEST] for at in range(len(SECRET) - SHORTEST + 1)]
    return next((part for part in parts if part in whole), None)


EXITS: dict[str, Callable[[rx.Observable[rd.Event]], rx.Observable[Any]]] = {
    "the events": lambda events: events,
    "snapshots": lambda events: events.pipe(rd.scan_deltas()),
    "the message": lambda events: events.pipe(rd.scan_deltas(), rd.to_message()),
    "texts": lambda events: events.pipe(rd.text_deltas()),
    "reasoning": lambda events: events.pipe(rd.text_deltas(of="reasoning")),
    "sentences": lambda events: events.pipe(rd.sentences()),
    "markdown": lambda events: events.pipe(rd.stable_blocks()),
    "partial arguments": lambda events: events.pipe(rd.partial_arguments()),
    "completed calls": lambda events: events.pipe(rd.completed_tool_calls()),
    "a stream for each block": lambda events: events.pipe(rd.group_by_block(), rx.operators.flat_map(lambda one: one)),
    "a shared source": lambda events: events.pipe(rd.share_events()),
    "joined deltas": lambda events: events.pipe(rd.compact_deltas(1)),
    **{f"frames of {name}": lambda events, to=to: events.pipe(to()) for name, to in ENCODERS.items()},  # type: ignore[misc]
}  # fmt: skip


def read(source: rx.Observable[Any]) -> tuple[list[Any], list[Exception]]:
    got, errors = list[Any](), list[Exception]()
    source.subscribe(got.append, errors.append)
    return got, errors


def everything_of(error: BaseException) -> str:
    """What a log, a tracker or a debugger shows of an error."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join([*shown.format(), repr(error), repr(vars(error)), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", [False, True], ids=["", "then an error that quotes it"])
def test_what_is_hidden_comes_out_nowhere(way: str, broken: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    error = RuntimeError(f"400 for {SECRET}")
    error.__cause__ = ValueError(SECRET)
    source: rx.Observable[rd.Event] = rx.from_iterable(WAYS[way])
    if broken:
        source = rx.concat(source, rx.throw(error))
    hidden = source.pipe(rd.redact(PATTERN, "[key]", arguments=True))
    for exit_, leave in EXITS.items():
        got, errors = read(leave(hidden))
        assert says_it(got) is None, exit_
        for one in errors:
            assert isinstance(one, rd.RxDeltaError)
            assert SECRET not in repr((str(one), one.args, vars(one))), exit_
            assert getattr(one, "snapshot", None) is None or says_it([one.snapshot]) is None, exit_
    assert SECRET not in caplog.text


def hidden_ways() -> Iterator[tuple[str, rx.Observable[rd.Event]]]:
    for way, events in WAYS.items():
        yield way, rx.from_iterable(events).pipe(rd.redact(PATTERN, "[key]", arguments=True))


def test_what_is_hidden_is_in_no_recording(tmp_path: Path) -> None:
    for number, (way, hidden) in enumerate(hidden_ways()):
        path = tmp_path / f"{number}.jsonl"
        read(hidden.pipe(rd.record(path)))
        assert SECRET not in path.read_text("utf-8"), way
        assert says_it(read(rd.from_recording(path))[0]) is None, way


def test_what_is_hidden_is_read_from_no_relay() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            for way, hidden in hidden_ways():
                await relay.start(way, hidden)
                got, errors, over = list[Any](), list[Exception](), asyncio.Event()
                relay.watch(way).pipe(rx.operators.do_action(on_error=errors.append)).subscribe(
                    got.append, lambda _, over=over: over.set(), over.set
                )
                await asyncio.wait_for(over.wait(), 30)
                assert says_it(got) is None, way
                assert not any(SECRET in everything_of(error) for error in errors), way

    run(main)


@pytest.mark.parametrize("way", WAYS)
def test_a_span_doesnt_have_it(way: str) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    spans, tracers = memory.InMemorySpanExporter(), trace.TracerProvider()
    tracers.add_span_processor(export.SimpleSpanProcessor(spans))
    source = rx.concat(rx.from_iterable(WAYS[way]), rx.throw(RuntimeError(SECRET)))
    read(source.pipe(rd.redact(PATTERN, arguments=True), rd.tap_otel("x", tracer_provider=tracers)))
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert told
    assert SECRET not in told


GUARDED = [way for way in WAYS if way not in (
    # What a guard doesn't check: it reads texts, reasoning and arguments, and what quotes a unit that it has refused.
    "a result", "a result that grows", "a file's text", "metadata", "data of the application", "an event of the provider",
    "fields that nobody knows", "half, then an error event", "whole, then another attempt",
    "the block becomes reasoning", "arguments of an invalid call",  # in fields beside the text, and beside the arguments
)]  # fmt: skip


@pytest.mark.parametrize("way", GUARDED)
@pytest.mark.parametrize(
    "on_hit", ["[no]", *(pytest.param(one, marks=pytest.mark.soak) for one in ("stop", "error"))]
)
def test_what_is_refused_comes_out_nowhere(way: str, on_hit: str) -> None:
    check = rd.guard(lambda text: re.search(r"sk-|\\u0073", text) is None, on_hit=on_hit)
    for exit_, leave in EXITS.items():
        got, errors = read(leave(rx.from_iterable(WAYS[way]).pipe(check)))
        assert says_it(got) is None, exit_
        assert not any(SECRET in everything_of(one) for one in errors)


# Patterns and texts whose characters are not what they seem. A match is the one that `re` finds in the whole text.

UNICODE: dict[str, tuple[str, str]] = {
    "a combining mark behind": ("caf\u00e9", "a cafe\u0301 and a caf\u00e9\u0301."),
    "a pattern of marks": ("e\u0301+", "e\u0301\u0301\u0301 e e\u0301"),
    "joiners within": (r"s\u200d?k\u200d?-\d+", "s\u200dk-12 sk\u200d-34 s\u200d\u200dk-5"),
    "an emoji of several": ("\U0001f468(?:\u200d\U0001f469)+", "a \U0001f468\u200d\U0001f469\u200d\U0001f469 b \U0001f468"),
    "beyond the first plane": ("\U0001f511\\d+\U0001f511", "a \U0001f51112\U0001f511\U0001f5113\U0001f511"),
    "a class beyond the first plane": ("[\U0001f600-\U0001f64f]{2}", "\U0001f600\U0001f601\U0001f602 \U0001f512"),
    "sharp s, any case": ("(?i)stra\u00dfe\\d", "STRASSE1 Stra\u00dfe2 STRA\u1e9eE3 strasse4"),
    "dotted I, any case": ("(?i)i\u0307d=\\d+", "\u0130d=1 i\u0307d=2 I\u0307D=34 id=5"),
    "long s and Kelvin, any case": ("(?i)sk-\\d+", "\u017f\u212a-12 SK-3 sk-45"),
    "ligatures, any case": ("(?i)\ufb01x", "\ufb01x fix \ufb01X"),
    "wide letters are others": ("sk-[0-9]+", "\uff53\uff4b-1 sk-2 sk-\uff13"),
    "wide digits are digits": (r"sk-\d+", "sk-\uff11\uff12 sk-3\u0664"),
    "marks of direction": ("sk-[0-9]+", "\u202esk-12\u202c sk\u200f-3 \u2066sk-4\u2069"),
    "a mark of order within": (r"s\ufeff?k-\d", "s\ufeffk-1 \ufeffsk-2"),
    "nothing but NUL": ("\0+x", "a\0\0x\0\0"),
    "a look behind a pair": ("(?<=\U0001f511)[a-z]+", "\U0001f511abc \U0001f512def \U0001f511g"),
    "a boundary at a mark": (r"\bsk\b", "sk\u0301 sk\u200d sk. \u00e9sk sk\U0001f600"),
    "line ends of all kinds": (r"(?m)^sk-\d+$", "sk-1\r\nsk-2\nsk-3\u2028sk-4\n"),
    "Hangul in parts": ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab\u1112\u1161 \ud55c"),
    "flags": ("\U0001f1e9\U0001f1ea", "\U0001f1e9\U0001f1ea\U0001f1e9\U0001f1e9\U0001f1ea"),
}  # fmt: skip


def halved(text: str) -> list[str]:
    """The code units of UTF-16, in which some providers cut their text."""
    units = text.encode("utf-16-le", "surrogatepass")
    return [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]


@pytest.mark.parametrize("name", UNICODE)
def test_characters_that_are_not_what_they_seem(name: str) -> None:
    pattern, text = UNICODE[name]
    wanted = re.sub(pattern, "#", text)
    assert wanted != text
    units = halved(text)
    tellings = [units, list(text), *([text[:cut], text[cut:]] for cut in range(len(text) + 1))]
    tellings += [["".join(units[:cut]), "".join(units[cut:])] for cut in range(len(units) + 1)]
    for told in tellings:
        done, _ = read(
            rx.from_iterable([*TEXT, *texts(*told), *END]).pipe(rd.redact(pattern, "#"), rd.scan_deltas())
        )
        assert done[-1].text == wanted, told


@pytest.mark.parametrize("name", UNICODE)
@pytest.mark.parametrize("by", ["word", "line", "sentence", "char", "block", 3])
def test_cutting_keeps_characters_whole_and_the_text_as_it_is(name: str, by: Any) -> None:
    text = UNICODE[name][1]
    for told in (halved(text), list(text)):
        whole = rx.from_iterable([*TEXT, *texts(*told), *END])
        for operator in (rd.cut_text(by), rd.map_text(str, by), rd.guard(lambda _: True, by)):
            got, errors = read(whole.pipe(operator))
            pieces = [event.text for event in got if isinstance(event, ev.TextDelta)]
            assert not errors
            assert "".join(pieces) == text
            "".join(pieces).encode()
            for piece in pieces:
                piece.encode()


# Patterns, tags and texts that might take for ever: each is long enough that a test would not end if they did.

LONG = 800
SLOW_TO_GROW = ("dots", "closing quotes", "joiners", "a mark on a mark")
"""What has no end is looked through again until it is cut, after some hundred characters."""
ENDLESS: dict[str, tuple[Callable[[], Any], Callable[[int], list[str]]]] = {
    "a beginning that never ends": (lambda: rd.redact(r"sk-\w+"), lambda n: ["sk-", *["a"] * n]),
    "a beginning again and again": (lambda: rd.redact(r"sk-\w{8,}!"), lambda n: ["sk-"] * n),
    "everything may begin": (lambda: rd.redact(r"[\w.+-]+@[\w-]+\.[\w.]+"), lambda n: ["a.b"] * n),
    "an address that is none": (lambda: rd.redact(r"[\w.+-]+@[\w-]+\.[\w.]+"), lambda n: ["a@"] * n),
    "what comes to the end of the block": (lambda: rd.redact(r"(?s)BEGIN.*?END"), lambda n: ["BEGIN", *["x\n"] * n]),
    "a look ahead without an end": (lambda: rd.redact(r"x(?=[^y]*y)"), lambda n: ["x "] * n),
    "a group again": (lambda: rd.redact(r"(\w)\1{3}"), lambda n: ["aab"] * n),
    "empty deltas while something is held": (lambda: rd.redact(r"sk-\w+"), lambda n: ["sk-", *[""] * n]),
    "nothing but empty deltas": (lambda: rd.map_text(str.upper), lambda n: [""] * n),
    "replaced each time": (lambda: rd.redact("s", "##"), lambda n: ["s"] * n),
    "a sequence that almost comes": (lambda: rd.until_sequence("a" * 50 + "b"), lambda n: ["a"] * n),
    "many sequences": (lambda: rd.until_sequence(*(f"{'a' * k}b" for k in range(1, 20))), lambda n: ["a"] * n),
    "dots": (lambda: rd.cut_text("sentence"), lambda n: ["."] * n),
    "initials": (lambda: rd.cut_text("sentence"), lambda n: ["A. "] * n),
    "closing quotes": (lambda: rd.cut_text("sentence"), lambda n: [".", *['"'] * n]),
    "spaces": (lambda: rd.cut_text("sentence"), lambda n: [" "] * n),
    "a word without an end": (lambda: rd.cut_text("word"), lambda n: ["a"] * n),
    "a mark on a mark": (lambda: rd.cut_text("char"), lambda n: ["\u0301"] * n),
    "half a flag": (lambda: rd.cut_text("char"), lambda n: ["\U0001f1e9"] * n),
    "joiners": (lambda: rd.cut_text("char"), lambda n: ["\u200d"] * n),
    "half pairs": (lambda: rd.cut_text("char"), lambda n: ["\ud83d"] * n),
    "one unit": (lambda: rd.cut_text("block"), lambda n: ["ab"] * n),
    "a guard of words": (lambda: rd.guard(lambda _: True, "word", context=20), lambda n: ["ab "] * n),
    "a guard that refuses each word": (lambda: rd.guard(lambda _: False, "word", on_hit="#", context=0), lambda n: ["ab "] * n),
    "quotes in quotes": (rd.stable_blocks, lambda n: ["> "] * n),
    "backticks": (rd.stable_blocks, lambda n: ["`"] * n),
    "brackets": (rd.stable_blocks, lambda n: ["["] * n),
    "stars": (rd.stable_blocks, lambda n: ["*a "] * n),
    "a table's rows": (rd.stable_blocks, lambda n: ["|a|\n|-|\n", *["|b|\n"] * n]),
    "a list that is indented": (rd.stable_blocks, lambda n: [" " * (k % 30) + "- a\n" for k in range(n)]),
    "open tags": (rd.stable_blocks, lambda n: ["<div>"] * n),
    "a comment without an end": (rd.stable_blocks, lambda n: ["<!--", *["a\n"] * n]),
    "references": (rd.stable_blocks, lambda n: [f"[a{k}]: b\n" for k in range(n)]),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.soak) if one in SLOW_TO_GROW else one for one in ENDLESS]
)
def test_a_long_text_costs_what_its_length_says(name: str) -> None:
    make, pieces = ENDLESS[name]

    def cost(count: int) -> int:
        events = [*TEXT, *texts(*pieces(count)), *END]
        return work_done(lambda: read(rx.from_iterable(events).pipe(make())))

    cost(2)  # caches
    few = 700 if name in SLOW_TO_GROW else 80
    assert cost(2 * few) < 3 * cost(few)
    _, errors = read(rx.from_iterable([*TEXT, *texts(*pieces(LONG)), *END]).pipe(make()))
    assert not errors


# Checks that answer badly, late, twice or never: nothing of what they were asked about is shown.


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __bool__(self) -> bool:
        raise self._error

    def __await__(self) -> Any:
        raise self._error


class _RaisesInTruth(_Raises):
    __await__ = None  # type: ignore[assignment]


class _Lies:
    @property
    def __class__(self) -> Any:  # which `isinstance` reads
        raise ValueError(SECRET)

    @__class__.setter
    def __class__(self, _: Any) -> None: ...

    def __bool__(self) -> bool:
        return True


class _Odd(int):
    def __eq__(self, _: object) -> bool:
        raise ValueError(SECRET)

    __hash__ = int.__hash__


class _YieldsJunk:
    def __await__(self) -> Any:
        yield 5
        return True


def _raising(error: BaseException) -> Callable[[str], Any]:
    def check(_: str) -> Any:
        raise error

    return check


def _raising_later(error: BaseException) -> Callable[[str], Any]:
    async def check(_: str) -> Any:
        raise error

    return check


async def _nested(_: str) -> Any:
    async def inner() -> bool:
        return True

    return inner()


async def _yields(_: str) -> Any:
    yield True


UNUSUAL = [
    ValueError(SECRET), StopIteration(SECRET), StopAsyncIteration(SECRET), GeneratorExit(SECRET),
    asyncio.CancelledError(SECRET), RecursionError(SECRET), MemoryError(SECRET), BaseExceptionGroup(SECRET, [GeneratorExit()]),
]  # fmt: skip

BAD_CHECKS: dict[str, Callable[[str], Any]] = {
    **{f"raises {type(one).__name__}": _raising(one) for one in UNUSUAL},
    **{f"raises {type(one).__name__} later": _raising_later(one) for one in UNUSUAL},
    **{f"an Observable with {type(one).__name__}": lambda _, one=one: rx.throw(one) for one in UNUSUAL},  # type: ignore[misc]
    **{f"a truth that raises {type(one).__name__}": lambda _, one=one: _RaisesInTruth(one) for one in UNUSUAL},  # type: ignore[misc]
    "what raises where it is awaited": lambda _: _Raises(ValueError(SECRET)),
    "what yields junk where it is awaited": lambda _: _YieldsJunk(),
    "an awaitable of an awaitable": _nested,
    "an async generator": _yields,
    "a generator": lambda _: (one for one in [True]),
    "what lies about its class": lambda _: _Lies(),
    "a number that raises where it is compared": lambda _: _Odd(1),
    "no number": lambda _: float("nan"),
    "a score": lambda _: 0.99,
    "a text": lambda _: "true",
    "a function": lambda _: lambda: True,
    "an Observable that raises": lambda _: rx.create(lambda *_: 1 / 0),  # type: ignore[arg-type,return-value]
    "an Observable without an answer": lambda _: rx.empty(),
    "an Observable of a text": lambda _: rx.of("yes"),
    "no first, then yes": lambda _: rx.of(False, True),
    "nothing": lambda _: None,
}  # fmt: skip
SAID: list[rd.Event] = [*TEXT, *texts(f"It is {SECRET}. ", "And more. "), *END]


@pytest.mark.parametrize("name", BAD_CHECKS)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_check_that_says_no_yes_says_no(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        for source in (rx.from_iterable(SAID), rd.from_async_iterable(lambda: _told(SAID))):
            for on_hit in ("stop", "#"):
                got, errors, over = list[Any](), list[Exception](), asyncio.Event()
                source.pipe(rd.guard(BAD_CHECKS[name], on_hit=on_hit)).subscribe(
                    got.append, lambda error, errors=errors, over=over: (errors.append(error), over.set()), over.set
                )  # fmt: skip
                await asyncio.wait_for(over.wait(), 30)
                assert not errors
                assert "And" not in str(got)
                assert SECRET not in str(got)
                assert isinstance(got[-1], ev.MessageFinish)

    run(main, reports=[])
    assert SECRET not in caplog.text


async def _told(events: Sequence[rd.Event]) -> Any:
    for event in events:
        await asyncio.sleep(0)
        yield event


BREAKS: dict[str, Callable[[Subject[rd.Event]], object]] = {
    "the source fails": lambda source: source.on_error(RuntimeError("x")),
    "an error event": lambda source: source.on_next(ev.StreamError("x", "y")),
    "an interruption": lambda source: source.on_next(ev.MessageInterrupted("user")),
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("kind", ["coroutine", "future", "observable", "thread"])
def test_an_answer_that_comes_too_late_shows_nothing(name: str, kind: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        later, threads = Subject[bool](), list[threading.Thread]()

        async def wait() -> bool:
            try:
                return await answer
            except asyncio.CancelledError:
                return True  # it answers all the same

        def check(_: str) -> Any:
            if kind == "thread":
                return rx.create(
                    lambda observer, _: threads.append(
                        threading.Thread(target=lambda: observer.on_next(True))
                    )
                )  # type: ignore[arg-type,func-returns-value]
            return {"coroutine": wait, "future": lambda: answer, "observable": lambda: later}[kind]()  # type: ignore[operator]

        source, got = Subject[rd.Event](), list[Any]()
        source.pipe(rd.guard(check)).subscribe(got.append, lambda _: None)
        for event in SAID[:-2]:
            source.on_next(event)
        await turns()
        BREAKS[name](source)
        source.on_completed()
        if not answer.done():
            answer.set_result(True)
        later.on_next(True)
        for thread in threads:
            thread.start()
            thread.join()
        await turns()
        assert SECRET not in str(got)
        assert not any(isinstance(one, ev.TextDelta) for one in got)

    run(main)


def test_a_check_that_never_answers_is_left_with_its_reader() -> None:
    async def main() -> None:
        left = list[str]()

        async def never(_: str) -> bool:
            try:
                await asyncio.Event().wait()
            finally:
                left.append("left")
            return True

        got = list[Any]()
        subscription = rx.from_iterable(SAID).pipe(rd.guard(never)).subscribe(got.append)
        await turns()
        subscription.dispose()
        await turns()
        assert left == ["left"]
        assert SECRET not in str(got)

    run(main)


@pytest.mark.parametrize("said", [True, False])
def test_a_second_answer_counts_for_no_other_unit(said: bool) -> None:
    answers = list[Any]()
    got, _ = read(
        rx.from_iterable([*TEXT, *texts("One. ", "Two. ", "Six"), *END]).pipe(
            rd.guard(lambda _: rx.create(lambda observer, _: answers.append(observer)))  # type: ignore[arg-type,func-returns-value]
        )
    )
    first = answers[0]
    first.on_next(True)
    for _ in range(5):
        first.on_next(said)
        first.on_completed()
    assert [one.text for one in got if isinstance(one, ev.TextDelta)] == ["One. "]
    assert len(answers) == 2


# What is held has a bound, and so has what comes whole.


HELD: dict[str, Callable[[], Any]] = {
    "a match that goes on": lambda: rd.redact(r"sk-a+!"),
    "a match that goes on, with a holdback": lambda: rd.redact(r"sk-a+!", holdback=5),
    "a block": lambda: rd.map_text(str, "block"),
    "a word": lambda: rd.cut_text("word"),
    "a unit that waits for its check": lambda: rd.guard(lambda _: True, "block"),
    "a unit of arguments": lambda: rd.guard(lambda _: True),
    "a sequence": lambda: rd.until_sequence("a" * 5000 + "b"),
    "a block of markdown": rd.stable_blocks,
    "sentences": rd.sentences,
}


@pytest.mark.parametrize("name", HELD)
def test_what_is_held_has_the_bound_of_a_block(name: str) -> None:
    is_call = name == "a unit of arguments"
    piece: rd.Event = ev.ToolCallDelta(0, "a" * 100) if is_call else ev.TextDelta(0, "a" * 100)
    begun = [TEXT[0], CALL] if is_call else [*TEXT, ev.TextDelta(0, "sk-")]
    endless = rx.concat(rx.from_iterable(begun), rx.repeat_value(piece, 100))
    _, (error,) = read(endless.pipe(HELD[name](), rd.with_limits(rd.Limits(block_chars=3_000))))
    assert isinstance(error, rd.errors.LimitExceededError)
    assert error.limit == "block_chars"


@pytest.mark.parametrize("name", [*HELD][:4])
def test_one_delta_of_ten_megabytes(name: str) -> None:
    text = "sk-" + "a" * 10_000_000
    got, errors = read(rx.from_iterable([*TEXT, ev.TextDelta(0, text), *END]).pipe(HELD[name]()))
    assert not errors
    assert sum(len(one.text) for one in got if isinstance(one, ev.TextDelta)) == len(text)


# Tags of reasoning, told byte by byte.

TAGS: dict[str, tuple[str, str, str]] = {  # what comes, the text, and the reasoning
    "never closed": ("<think>abc", "", "abc"),
    "closed twice": ("<think>a</think>b</think>c", "b</think>c", "a"),
    "opened twice": ("<think>a<think>b</think>c", "c", "a<think>b"),
    "within another": ("<thinking><think>a</think>b</thinking>c", "c", "<think>a</think>b"),
    "closed by another": ("<think>a</thinking>b</think>c", "c", "a</thinking>b"),
    "half at the end": ("a<thin", "a<thin", ""),
    "half a closing one at the end": ("<think>a</thin", "", "a</thin"),
    "beginnings of it": ("<<th<thi<think>a<</</think></think>b", "<<th<thib", "a<</</think>"[:4]),
    "other letters": ("<THINK>a</THINK>", "<THINK>a</THINK>", ""),
    "with a space": ("<think >a</think >", "<think >a</think >", ""),
    "with an attribute": ("<think x='</think>'>a", "<think x='</think>'>a", ""),
    "with a joiner": ("<th\u200dink>a</think>", "<th\u200dink>a</think>", ""),
    "wide letters": ("\uff1cthink\uff1ea", "\uff1cthink\uff1ea", ""),
    "nothing between": ("<think></think>a", "a", ""),
    "many times": ("<think>a</think>b" * 4, "b" * 4, "a" * 4),
}
KEPT_TAGS = (
    "other letters",
    "with a space",
    "with an attribute",
    "with a joiner",
    "closed twice",
    "beginnings of it",
)


@pytest.mark.parametrize("name", TAGS)
def test_tags_byte_by_byte(name: str) -> None:
    text, wanted, thought = TAGS[name]

    def decoded(pieces: Sequence[str]) -> tuple[str, str]:
        chunks = [{"id": "m", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        events = rx.from_iterable(chunks).pipe(rd.decode("openai-chat", reasoning_tags=True))
        done, errors = read(events.pipe(rd.scan_deltas()))
        assert not errors
        return done[-1].text, done[-1].reasoning

    seen = {
        decoded(pieces)
        for pieces in ([text], [*text], *([text[:cut], text[cut:]] for cut in range(len(text))))
    }
    assert len(seen) == 1
    if name not in KEPT_TAGS:  # whose closing tags mean something of their own
        assert seen == {(wanted, thought)}
    else:
        (found,) = seen
        tags = re.compile(r"</?think>")
        assert tags.sub("", found[1] + found[0]).count("a") == text.count("a")


def test_what_is_hidden_is_hidden_in_a_thought_that_shows_late() -> None:
    text = f"My key is {SECRET} and</think>done"
    for pieces in ([*text], [text]):
        chunks = [{"id": "m", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        events = rx.from_iterable(chunks).pipe(
            rd.decode("openai-chat", reasoning_tags=True), rd.redact(PATTERN)
        )
        for leave in EXITS.values():
            assert says_it(read(leave(events))[0]) is None


def _cited(count: int) -> list[rd.Event]:
    cited = [{"type": "citation", "start_index": at * 7, "end_index": at * 7 + 6} for at in range(count)] * 4
    return [*TEXT, *texts(*["SECRET "] * count), ev.BlockDelta(0, {"citations": cited}), *END]


def _quoted(count: int) -> list[rd.Event]:
    return [*TEXT, *texts(*["bad "] * count), *[ev.Custom("x", {"a": "b c"})] * count, *END]


QUOTING: dict[str, tuple[Callable[[], Any], Callable[[int], list[rd.Event]]]] = {
    "as many citations as secrets": (lambda: rd.redact("SECRET", "#"), _cited),
    "as many quotes as times that a unit is refused": (
        lambda: rd.guard(lambda text: "bad" not in text, "word", on_hit="#", context=0),
        _quoted,
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.soak) if "citations" in one else one for one in QUOTING]
)
def test_what_quotes_the_text_costs_what_it_is(name: str) -> None:
    make, told = QUOTING[name]

    def cost(count: int) -> int:
        events = told(count)
        return work_done(lambda: read(rx.from_iterable(events).pipe(make())))

    cost(2)
    assert cost(240) < 2.6 * cost(120)
