"""What is easily got wrong: the error says what is allowed, what was seen, and what would be right."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta import operators
from rxdelta.testing import open_sample

ev = rd.events


class ChatCompletionChunk:
    """An object as an SDK's stream has it."""


FEEDS: dict[str, tuple[Any, str]] = {
    "snapshots": (
        rd.MessageDelta(merged_content=[rd.ContentPart("text", "Hi")]),
        "in front of scan_deltas()",
    ),
    "chunks": ({"id": "c1", "choices": []}, "decode() makes events of chunks"),
    "objects of an SDK": (ChatCompletionChunk(), "a ChatCompletionChunk; decode() makes events of chunks"),
    "bytes": (b'data: {"id": 1}\n\n', "parse_sse() or parse_ndjson(), then decode(), make events of it"),
    "lines": ('{"id": 1}', "parse_sse() or parse_ndjson(), then decode(), make events of it"),
    "messages": (rd.Message(), "to_events() makes events of a message"),
    "stored events": (
        ev.TextDelta(0, "Hi").to_dict(),
        "events.from_dict() makes an event of its stored form",
    ),
    "streams": (rx.never(), "ops.merge_all()"),
    "nothing": (None, "and got None"),
}

OF_EVENTS: dict[str, Callable[[], Any]] = {
    "compact_deltas": lambda: rd.compact_deltas(0.01),
    "completed_tool_calls": rd.completed_tool_calls,
    "cut_text": rd.cut_text,
    "group_by_block": rd.group_by_block,
    "group_by_choice": rd.group_by_choice,
    "group_by_message": rd.group_by_message,
    "group_by_run": rd.group_by_run,
    "guard": lambda: rd.guard(lambda _: True),
    "json_items": rd.json_items,
    "map_text": lambda: rd.map_text(str.upper),
    "partial_arguments": rd.partial_arguments,
    "partial_json": rd.partial_json,
    "per_block": lambda: rd.per_block(lambda block: block),
    "redact": lambda: rd.redact("x"),
    "run_tools": lambda: rd.run_tools({}),
    "scan_deltas": rd.scan_deltas,
    "sentences": rd.sentences,
    "share_events": rd.share_events,
    "smooth": rd.smooth,
    "stable_blocks": rd.stable_blocks,
    "text_deltas": rd.text_deltas,
    "until_sequence": lambda: rd.until_sequence("x"),
    "until_stopped": lambda: rd.until_stopped(rx.never()),
    "validate": rd.validate,
    "with_custom": lambda: rd.with_custom(rx.never()),
    "with_run": lambda: rd.with_run("a"),
}
OF_SNAPSHOTS: dict[str, Callable[[], Any]] = {
    "to_message": rd.to_message,
    "until_all_tools_terminal": rd.until_all_tools_terminal,
}
ENCODERS: dict[str, Callable[[], Any]] = {
    "to_ai_sdk": lambda: rd.to_ai_sdk(on_error=str),
    "to_langchain_events": lambda: rd.to_langchain_events(on_error=str),
    "to_ag_ui": lambda: rd.to_ag_ui(thread_id="t", run_id="r", on_error=str),
    "to_openai_chat": lambda: rd.to_openai_chat(on_error=str),
    "to_openai_responses": lambda: rd.to_openai_responses(on_error=str),
    "to_anthropic_messages": lambda: rd.to_anthropic_messages(on_error=str),
    "to_ollama": lambda: rd.to_ollama(on_error=str),
}
OF_ANYTHING = {
    *(
        "parse_sse",
        "parse_ndjson",
        "decode",
        "to_sse",
        "to_ndjson",
        "to_resumable_sse",
    ),  # these have tests of their own, below
    *("throttle_latest", "debounce_latest", "conflate", "share_latest"),  # what they refuse, they could lose
    *(
        "stall_timeout",
        "on_settled",
        "tap_metrics",
        "tap_otel",
        "only_choice",
        "with_limits",
    ),  # these look on
    *("retry_stream", "exponential_backoff", "fallback", "race"),  # no operators
}


def ended(value: Any, operator: Any) -> tuple[list[Any], list[Exception]]:
    values: list[Any] = []
    errors: list[Exception] = []
    rx.of(value).pipe(operator).subscribe(values.append, errors.append)
    return values, errors


def test_every_operator_is_in_a_table() -> None:
    made = {name for name in rd.__all__ if name.islower() and hasattr(operators, name)}
    assert made == {*OF_EVENTS, *OF_SNAPSHOTS, *ENCODERS, *OF_ANYTHING}


@pytest.mark.parametrize(
    ("name", "feed"),
    # `scan_deltas` merges small snapshots.
    [(name, feed) for name in OF_EVENTS for feed in FEEDS if (name, feed) != ("scan_deltas", "snapshots")],
)
def test_what_is_no_event_is_refused_with_the_cure(name: str, feed: str) -> None:
    value, cure = FEEDS[feed]
    values, (error,) = ended(value, OF_EVENTS[name]())
    assert (values, type(error)) == ([], rd.InvalidValueError)
    assert str(error).startswith(f"{name}() reads events")
    assert cure in str(error)


@pytest.mark.parametrize("name", OF_SNAPSHOTS)
@pytest.mark.parametrize(
    ("value", "cure"),
    [
        (ev.MessageStart(), "got a MessageStart; put scan_deltas() in front of it"),
        (FEEDS["chunks"][0], "decode() makes events of chunks, and scan_deltas() makes snapshots of events"),
        (b"{}", "then decode(), make events of it, and scan_deltas() makes snapshots of events"),
    ],
    ids=["events", "chunks", "bytes"],
)
def test_what_is_no_snapshot_is_refused_with_the_cure(name: str, value: Any, cure: str) -> None:
    _, (error,) = ended(value, OF_SNAPSHOTS[name]())
    assert isinstance(error, rd.InvalidValueError)
    assert str(error).startswith(f"{name}() reads snapshots")
    assert cure in str(error)


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_tells_whoever_watches_its_errors(name: str, feed: str) -> None:
    if name == "to_ag_ui":
        pytest.importorskip("ag_ui")
    value, cure = FEEDS[feed]
    frames, errors = ended(value, ENCODERS[name]())
    said = " ".join(str(frame) for frame in frames)
    assert errors == []
    assert f"{name}() reads events" in said
    assert cure in said


@pytest.mark.parametrize("value", [ev.TextDelta(0, "Hi"), rd.Snapshot()], ids=["events", "snapshots"])
def test_what_is_decoded_is_not_decoded_again(value: Any) -> None:
    _, (error,) = ended(value, rd.decode("openai-chat"))
    assert "has made isn't decoded again" in str(error)


@pytest.mark.parametrize("value", [ev.TextDelta(0, "Hi"), rd.Snapshot()], ids=["events", "snapshots"])
def test_a_frame_is_made_by_an_encoder(value: Any) -> None:
    _, (error,) = ended(value, rd.to_sse())
    assert "to_ai_sdk(), to_ag_ui(), to_langchain_events() or to_openai_chat() makes frames" in str(error)


def source() -> Any:
    return rx.of({"id": "c1"})


REFUSED: list[tuple[Callable[[], object], list[str]]] = [
    # Names of formats
    (lambda: rd.decode("openai"), ["'openai'; did you mean 'openai-chat', 'openai-completions' or 'openai-responses'?"]),
    (lambda: rd.decode("anthropic"), ["did you mean 'anthropic-messages'?", "There are ag-ui, ai-sdk, anthropic-"]),
    (lambda: rd.decode("openai_chat"), ["did you mean 'openai-chat'?"]),
    (lambda: rd.decode("Gemini"), ["did you mean 'gemini'"]),
    (lambda: rd.decode("openai-chat-completions"), ["did you mean 'openai-chat'?"]),
    (lambda: rd.decode("mistrall"), ["did you mean 'mistral'?"]),
    (lambda: rd.decode("qqq"), ["no wire format is called 'qqq'; there are ag-ui, "]),
    (lambda: rd.decode(None), ["wire_format: must be a format's name or a function"]),  # type: ignore[arg-type]
    (lambda: rd.to_request([], "openai"), ["written as 'openai'; did you mean 'openai-chat' or 'openai-responses'?"]),
    (lambda: rd.to_request([], "openai-completions"), ["because "]),
    (lambda: rd.to_request("openai-chat", ["Hi"]), ["wire_format: must be the name of a format"]),  # type: ignore[arg-type]
    (lambda: rd.to_request([rd.Snapshot()], "openai-chat"), ["messages[0]: must be a Message", "its to_message()"]),  # type: ignore[list-item]
    # Options of decoders
    (lambda: rd.decode("openai-chat", resoning_tags="think"), ["no option 'resoning_tags'; did you mean 'reasoning_tags'?"]),
    (lambda: rd.decode("openai-chat", reasoning_tags=3), ["reasoning_tags: must be True, or names of tags"]),  # type: ignore[arg-type]
    (lambda: rd.decode("openai-chat", cumulative="yes"), ['cumulative: must be True, False or "auto"']),  # type: ignore[arg-type]
    (lambda: rd.with_limits(5), ["limits: must be rd.Limits"]),  # type: ignore[arg-type]
    (lambda: rd.decode("auto", limits=rd.Limits()), ["with_limits(limits)"]),
    # Operators
    (lambda: rd.run_tools([print]), ["tools: must be a mapping of functions by the names that the model uses"]),  # type: ignore[arg-type]
    (lambda: rd.run_tools({"x": "y"}), ["tools['x']: must be a function", "(got tools['x']='y')"]),  # type: ignore[dict-item]
    (lambda: rd.run_tools({}, start="mesage"), ["start: must be 'ready' or 'message'", "did you mean 'message'?"]),  # type: ignore[arg-type]
    (lambda: rd.run_tools({}, unknown="raise"), ["unknown: must be 'fail' or 'leave' (got unknown='raise')"]),  # type: ignore[arg-type]
    (lambda: rd.run_tools({}, max_concurrency=0), ["max_concurrency: must be"]),
    (lambda: rd.run_tools({}, max_concurrency=1.5), ["max_concurrency: must be"]),  # type: ignore[arg-type]
    (lambda: rd.run_tools({}, on_error="no"), ["on_error: must be"]),  # type: ignore[arg-type]
    (lambda: rd.run_tools({}, choice="0"), ["choice: must be a whole number from 0 (got choice='0')"]),  # type: ignore[arg-type]
    (lambda: rd.only_choice(None), ["n: must be a whole number from 0"]),  # type: ignore[arg-type]
    (lambda: rd.scan_deltas("Hi"), ["seed: must be a Snapshot"]),  # type: ignore[arg-type]
    (lambda: rd.scan_deltas(None, "0"), ["choice: must be a whole number"]),  # type: ignore[arg-type]
    (lambda: rd.per_block(None), ["fn: must be a function of a block's stream"]),  # type: ignore[arg-type]
    (lambda: rd.on_settled(None), ["fn: must be a function of a snapshot and an outcome"]),  # type: ignore[arg-type]
    (lambda: rd.validate("strict"), ["on_violation: must be a function"]),  # type: ignore[arg-type]
    (lambda: rd.retry_stream(source()), ["factory: must be a function that makes the stream"]),
    (lambda: rd.fallback(), ["fallback needs at least one source"]),
    (lambda: rd.fallback([source()]), ["sources[0]: must be an Observable of events, or a function", "write fallback(*sources)"]),  # type: ignore[arg-type]
    (lambda: rd.fallback(source(), iter(())), ["sources[1]: must be an Observable of events", "then decode(), make one of chunks"]),  # type: ignore[arg-type]
    (lambda: rd.fallback(lambda snapshot: source()), ["a function without arguments"]),  # type: ignore[arg-type]
    (lambda: rd.race(source().pipe(rd.scan_deltas())), ["race() reads events, and scan_deltas() in front of it emits snapshots"]),  # type: ignore[arg-type]
    (lambda: rd.race(source(), after=-1), ["after: must be a positive number of seconds"]),
    (lambda: rd.race(source(), after=True), ["after: must be a positive number of seconds"]),
    (lambda: rd.race(source(), scheduler="now"), ["scheduler: must be a scheduler of reactivex"]),  # type: ignore[arg-type]
    (lambda: rd.until_stopped(rx.never(), reason=5), ["reason: must be a string"]),  # type: ignore[arg-type]
    (lambda: rd.until_stopped(threading.Event()), ["signal: must be an Observable, an asyncio.Event, or an awaitable"]),  # type: ignore[arg-type]
    (lambda: rd.stall_timeout(), ["needs at least one limit: first, idle or total"]),
    (lambda: rd.throttle_latest("50ms"), ["a positive number of seconds, at most 1e9, or a timedelta (got seconds='50ms'); write 0.05"]),  # type: ignore[arg-type]
    (lambda: rd.throttle_latest(1, scheduler="now"), ["scheduler: must be a scheduler of reactivex"]),  # type: ignore[arg-type]
    (lambda: rd.smooth("words"), ["chunking: must be 'word', 'line'", "did you mean 'word'?"]),  # type: ignore[arg-type]
    (lambda: rd.smooth(re.compile(r"\s*")), ["chunking: must not match the empty text"]),
    (lambda: rd.stall_timeout(idle=None), ["needs at least one limit: first, idle or total"]),
    (lambda: rd.stall_timeout(idle="last"), ["idle: must be a positive number"]),  # type: ignore[arg-type]
    (lambda: rd.until_stopped(asyncio.Event), ["signal: must be an Observable, an asyncio.Event, or an awaitable"]),  # type: ignore[arg-type]
    (lambda: rd.until_stopped(lambda: None), ["signal: must be an Observable, an asyncio.Event, or an awaitable"]),  # type: ignore[arg-type]
    (lambda: rd.retry_stream(rx.never, 0), ["attempts: must be"]),
    (lambda: rd.retry_stream(rx.never, True), ["attempts: must be"]),
    (lambda: rd.retry_stream(rx.never, 1.5), ["attempts: must be"]),  # type: ignore[arg-type]
    (lambda: rd.retry_stream(rx.never, backoff=1), ["backoff: must be"]),  # type: ignore[arg-type]
    (lambda: rd.retry_stream(rx.never, retry_if=None), ["retry_if: must be"]),  # type: ignore[arg-type]
    (lambda: rd.retry_stream(rx.never, min_overlap=0), ["min_overlap: must be"]),
    (lambda: rd.retry_stream(rx.never, min_overlap=True), ["min_overlap: must be"]),
    (lambda: rd.retry_stream(rx.never, min_overlap=1.5), ["min_overlap: must be"]),  # type: ignore[arg-type]
    (lambda: rd.tap_metrics(None), ["fn: must be"]),  # type: ignore[arg-type]
    (lambda: rd.tap_metrics(print, through=3), ["through: must be"]),  # type: ignore[arg-type]
    (lambda: rd.tap_otel(""), ["provider: must be"]),
    (lambda: rd.tap_otel(None), ["provider: must be"]),  # type: ignore[arg-type]
    (lambda: rd.redact(5), ["pattern: must be"]),  # type: ignore[arg-type]
    (lambda: rd.redact("["), ["pattern: is no regular expression: "]),
    (lambda: rd.redact("x*"), ["pattern: must "]),
    (lambda: rd.redact("x", 5), ["replacement: must be"]),  # type: ignore[arg-type]
    (lambda: rd.redact("x", r"\1"), ["replacement: "]),
    (lambda: rd.redact("x", holdback=0), ["holdback: must be"]),
    (lambda: rd.map_text("x"), ["fn: must be a function of a text"]),  # type: ignore[arg-type]
    (lambda: rd.map_text(str.upper, "words"), ["by: must be 'word', ", "did you mean 'word'?"]),  # type: ignore[arg-type]
    (lambda: rd.cut_text("sentences"), ["by: must be", "did you mean 'sentence'?"]),  # type: ignore[arg-type]
    (lambda: rd.until_sequence(), ["sequences: must be one or more texts that aren't empty"]),
    (lambda: rd.until_sequence(""), ["sequences: must be one or more texts that aren't empty"]),
    (lambda: rd.until_sequence(["a"]), ["write until_sequence(*sequences)"]),  # type: ignore[arg-type]
    (lambda: rd.guard("x"), ["check: must be a function of a text"]),  # type: ignore[arg-type]
    (lambda: rd.guard(bool, "sentences"), ["by: must be", "did you mean 'sentence'?"]),  # type: ignore[arg-type]
    (lambda: rd.guard(bool, on_hit=5), ["on_hit: must be 'stop', 'error', another text"]),  # type: ignore[arg-type]
    (lambda: rd.guard(bool, context=-1), ["context: must be a number of characters, from 0"]),
    (lambda: rd.json_items(1.5), ["path: must consist of keys and indexes"]),  # type: ignore[arg-type]
    (lambda: rd.json_items(-1), ["path: must consist of keys and indexes"]),
    (lambda: rd.json_items(True), ["path: must consist of keys and indexes"]),
    (lambda: rd.json_items(("a", -1)), ["path: must consist of keys and indexes"]),
    (lambda: rd.json_items(("a", None)), ["path: must consist of keys and indexes"]),  # type: ignore[arg-type]
    (lambda: rd.json_items({"a"}), ["path: must consist of keys and indexes"]),  # type: ignore[arg-type]
    (lambda: rd.to_ai_sdk(on_error="Sorry"), ["on_error: must be a function that returns the text"]),  # type: ignore[arg-type]
    (lambda: rd.to_openai_chat(tools="search"), ["tools: must be the names of tools"]),
    (lambda: rd.to_openai_chat(5), ["model: must be a string"]),  # type: ignore[arg-type]
    (lambda: rd.to_openai_responses(tools="search"), ["tools: must be the names of tools"]),
    (lambda: rd.to_openai_responses(5), ["model: must be a string"]),  # type: ignore[arg-type]
    (lambda: rd.to_anthropic_messages(tools="search"), ["tools: must be the names of tools"]),
    (lambda: rd.to_anthropic_messages(5), ["model: must be a string"]),  # type: ignore[arg-type]
    (lambda: rd.to_ollama(tools="search"), ["tools: must be the names of tools"]),
    (lambda: rd.to_ollama(5), ["model: must be a string"]),  # type: ignore[arg-type]
    (lambda: rd.to_ndjson(0), ["keep_alive: must be"]),
    (lambda: rd.to_resumable_sse(rd.to_ollama()), ["encode: must write server-sent events", "relay.watch"]),
    (lambda: rd.to_ai_sdk(sdk_version=4), ["sdk_version: must be 5, 6 or 7"]),  # type: ignore[arg-type]
    (lambda: source().pipe(rd.scan_deltas), ["write source.pipe(scan_deltas(…))"]),
    (lambda: open_sample("wether"), ["name: must be 'weather', ", "did you mean 'weather'?"]),
    # Values
    (lambda: rd.Limits(blocks=-1), ["blocks: must be a whole number from 0 (got blocks=-1)"]),
    (lambda: rd.Limits(runs="many", line_bytes=1.5), ["runs: must be a whole number from 0; line_bytes: must be"]),  # type: ignore[arg-type]
    (lambda: rd.ContentPart("txt"), ["type: is invalid (got type='txt'); did you mean 'text'? There are audio, "]),
    (lambda: rd.ContentPart("text", _key=(1,)), ["key: is invalid", "('part', slot) or ('call', index)"]),  # type: ignore[arg-type]
    (lambda: rd.ToolCall(status="completed"), ["(got status='completed'); did you mean 'complete'?"]),  # type: ignore[arg-type]
    (lambda: rd.ToolCall(index="0"), ["index: is invalid (got index='0'); index is a whole number"]),  # type: ignore[arg-type]
    (lambda: rd.MessageDelta(role="assistent"), ["role: is invalid", "did you mean 'assistant'?"]),  # type: ignore[arg-type]
    (lambda: rd.MessageDelta(choice=-1), ["choice: is invalid (got choice=-1); choice is a whole number from 0"]),
    (lambda: rd.Message(role="bot"), ["role: is invalid (got role='bot'); there are "]),  # type: ignore[arg-type]
    (lambda: rd.MessageDelta(role="unknown", status="complete").to_message(), ["role: is invalid", "with the role 'assistant'"]),
    (lambda: ev.TextDelta("", "Hi"), ["index: is invalid (got index=''); index is a whole number or a text"]),
    (lambda: ev.TextDelta(0, 5), ["text: must be a string (got text=5)"]),  # type: ignore[arg-type]
    (lambda: ev.from_dict({"event": "content-block-finish"}), ["index: is invalid (got index=None); index is a whole"]),
    (lambda: ev.from_dict("Hi"), ["event: must be a mapping (got event='Hi')"]),  # type: ignore[arg-type]
    (lambda: rd.TokenUsage(cumulative="yes"), ["cumulative: must be True or False (got cumulative='yes')"]),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "said"), [pytest.param(*one, id=one[1][0].partition(":")[0]) for one in REFUSED]
)
def test_a_wrong_argument_is_refused_at_once_with_what_is_allowed(
    make: Callable[[], object], said: list[str]
) -> None:
    with pytest.raises((rd.InvalidValueError, rd.errors.UnknownWireFormatError)) as caught:
        make()
    assert [words for words in said if words not in str(caught.value)] == []


TIMES: dict[str, Callable[[Any], object]] = {
    "seconds: of throttle_latest": rd.throttle_latest,
    "seconds: of debounce_latest": rd.debounce_latest,
    "max_wait: of debounce_latest": lambda wrong: rd.debounce_latest(1, wrong),
    "seconds: of compact_deltas": rd.compact_deltas,
    "rate: of smooth": lambda wrong: rd.smooth(rate=wrong),
    "max_lag: of smooth": lambda wrong: rd.smooth(max_lag=wrong),
    "first: of stall_timeout": lambda wrong: rd.stall_timeout(first=wrong),
    "idle: of stall_timeout": lambda wrong: rd.stall_timeout(idle=wrong),
    "total: of stall_timeout": lambda wrong: rd.stall_timeout(idle=1, total=wrong),
    "first: of exponential_backoff": lambda wrong: rd.exponential_backoff(first=wrong),
    "factor: of exponential_backoff": lambda wrong: rd.exponential_backoff(factor=wrong),
    "longest: of exponential_backoff": lambda wrong: rd.exponential_backoff(longest=wrong),
    "every: of tap_metrics": lambda wrong: rd.tap_metrics(print, every=wrong),
    "timeout: of run_tools": lambda wrong: rd.run_tools({}, timeout=wrong),
    "grace: of share_events": lambda wrong: rd.share_events(grace=wrong),
    "grace: of share_latest": lambda wrong: rd.share_latest(grace=wrong),
}


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), 10**400, True, "1"])
@pytest.mark.parametrize("name", TIMES)
def test_57_what_is_no_positive_number_of_a_float_s_range_is_refused_at_once(
    name: str, wrong: object
) -> None:
    with pytest.raises(rd.InvalidValueError, match=f"{name.partition(' ')[0]} must be"):
        TIMES[name](wrong)


SECRET = "sk-proj-abc123def456ghi789jkl012"
LARGE = f"{SECRET} {'x' * 100_000}"


@pytest.mark.parametrize(
    "make",
    [
        rd.decode,
        rd.ContentPart,
        rd.per_block,
        rd.smooth,
        rd.throttle_latest,
        rd.scan_deltas,
        rd.run_tools,
        rd.validate,
        rd.map_text,
        rd.cut_text,
        rd.guard,
        lambda value: rd.map_text(str, value),
        lambda value: rd.guard(bool, value),
        lambda value: rd.until_sequence([value]),  # type: ignore[arg-type]
        lambda value: rd.redact(f"({value}"),
        lambda value: rd.redact("x", [value]),  # type: ignore[arg-type]
        lambda value: rd.to_request([], value),
        lambda value: rd.to_request([{value}], "openai-chat"),
        lambda value: rd.run_tools({}, start=value),
        lambda value: rd.run_tools({}, choice=value),
        lambda value: rd.run_tools({"f": value}),
        lambda value: rd.Limits(blocks=value),
        lambda value: rd.MessageDelta(role=value),
        lambda value: ev.TextDelta(0, [value]),  # type: ignore[arg-type]
        lambda value: rd.providers.detect({"type": value}),
        lambda value: open_sample(value),
    ],
)
def test_no_message_shows_a_large_value_whole_nor_a_secret(make: Callable[[Any], object]) -> None:
    with pytest.raises((rd.InvalidValueError, rd.errors.UnknownWireFormatError)) as caught:
        make(LARGE)
    assert len(str(caught.value)) < 1000
    assert SECRET not in str(caught.value)


def test_a_missing_extra_is_named() -> None:
    program = "import sys; sys.modules['starlette'] = None; import rxdelta.asgi"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: rxdelta.asgi needs starlette: pip install 'rxdelta[asgi]'" in done.stderr


def test_a_sync_source_in_the_async_door_is_told_of_its_own() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"from_iterable\(\) reads a sync client's stream"):
        asyncio.run(rd.last_value(rd.from_async_iterable([{"id": "c1"}])))  # type: ignore[arg-type]


def test_an_async_tool_without_a_loop_is_told_to_the_programmer_and_not_to_the_model() -> None:
    async def tool() -> str:
        return "never"

    call = {"type": "tool_call", "id": "c1", "name": "f", "args": {}}
    events = rx.of(ev.BlockStart(0, call), ev.BlockFinish(0), ev.MessageFinish("tool_use"))
    with pytest.raises(rd.InvalidValueError, match=r"needs a running asyncio loop.* or with to_iterable\(\)"):
        events.pipe(rd.run_tools({"f": tool}), rd.scan_deltas()).run()


def test_a_stored_event_that_the_error_names_can_be_read() -> None:
    """The cure that the table names works."""
    events = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi")]
    stored = [json.loads(json.dumps(event.to_dict())) for event in events]
    assert rx.from_iterable(stored).pipe(ops.map(ev.from_dict), rd.text_deltas()).run() == "Hi"


CHUNKS = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}]
RD: Any = rd


async def draw(snapshot: object) -> None:
    """A coroutine function, which `subscribe` would never run."""


async def inside(read: Callable[[Any], object]) -> None:
    async with rd.stream(CHUNKS) as reply:
        read(reply)


def inside_with(read: Callable[[Any], object]) -> None:
    with rd.stream(CHUNKS) as reply:
        read(reply)


async def whole(source: Any) -> None:
    await rd.stream(source)


def unawaited() -> None:
    coroutine = draw(None)
    try:
        rd.ToolResult("c1", coroutine)
    finally:
        coroutine.close()


def events() -> Any:
    return source().pipe(rd.decode("auto"))


SAID: dict[str, tuple[Callable[[], object], list[str]]] = {
    "a forgotten await": (lambda: RD.stream(CHUNKS).text, ["await it first: message = await rd.stream(…)", "message.text"]),
    "no block": (lambda: RD.stream(CHUNKS).events, ["async with rd.stream(…) as reply: reply.events"]),
    "pipe of rd.stream": (lambda: RD.stream(CHUNKS).pipe(rd.scan_deltas()), ["reply.events.pipe(…)", "rd.from_async_iterable"]),
    "pipe of a reply": (lambda: asyncio.run(inside(lambda reply: reply.pipe)), ["it is reply.events.pipe(…)"]),
    "pipe of a blocking reply": (lambda: inside_with(lambda reply: reply.pipe), ["it is reply.events.pipe(…)"]),
    "text of a reply": (lambda: asyncio.run(inside(lambda reply: reply.text)), ["reply.snapshot.text", "reply.message.text"]),
    "for in async": (lambda: asyncio.run(inside(lambda reply: list(reply.text_deltas))), ["async for piece in reply.text_deltas"]),
    "async for in sync": (lambda: inside_with(lambda reply: aiter(reply.text_deltas)), [": for piece in reply.text_deltas"]),
    "called": (lambda: asyncio.run(inside(lambda reply: reply.text_deltas())), ["isn't called: async for piece in"]),
    "called in sync": (lambda: inside_with(lambda reply: reply.text_deltas()), ["isn't called: for piece in"]),
    "pieces of text": (lambda: asyncio.run(whole(["Hello ", "world"])), ["'Hello world'", "events.TextDelta(0, text)"]),
    "a coroutine function": (lambda: events().subscribe(draw), ["awaits nothing", "await rd.for_each(observable, fn)"]),
    "… behind snapshots": (lambda: events().pipe(rd.scan_deltas()).subscribe(draw), ["await rd.for_each(observable, fn)"]),
    "a moved name": (lambda: RD.MalformedChunkError, ["it is rd.errors.MalformedChunkError"]),
    "a moved builder": (lambda: RD.lift_map, ["it is rd.building.lift_map"]),
    "a moved type": (lambda: RD.Reply, ["it is rd.types.Reply"]),
    "a name that went": (lambda: RD.reasoning_deltas, ['it is rd.text_deltas(of="reasoning")']),
    "a typing error": (lambda: RD.scan_delta, ["did you mean rd.scan_deltas?"]),
    "the name of another module": (lambda: RD.detect, ["it is rd.providers.detect"]),
    "half a name": (lambda: RD.from_openai, ["did you mean rd.requests.from_openai_chat or rd.requests.from_openai_responses?"]),
    "a provider": (lambda: rd.decode("claude"), ["did you mean 'anthropic-messages'?"]),
    "a model": (lambda: rd.stream(CHUNKS, "gpt-4o"), ["did you mean 'openai-chat' or 'openai-responses'?"]),
    "a cloud": (lambda: rd.to_request("Hi", "vertex"), ["did you mean 'gemini'?"]),
    "an encoder of snapshots": (lambda: events().pipe(rd.scan_deltas(), rd.to_ai_sdk()), ["to_ai_sdk() reads events", "in front of scan_deltas()"]),
    "an encoder of frames": (lambda: events().pipe(rd.to_ai_sdk(), rd.to_ai_sdk()), ["emits frames; leave out to_ai_sdk()"]),
    "decode of snapshots": (lambda: rx.of(rd.Snapshot()).pipe(rd.decode("auto")).run(), ["isn't decoded again"]),
    "an unawaited result": (unawaited, ["is a coroutine", "`await` is missing"]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", SAID)
def test_a_newcomers_mistake_is_told_its_cure(mistake: str) -> None:
    make, said = SAID[mistake]
    with pytest.raises((rd.RxDeltaError, AttributeError)) as caught:
        make()
    assert [words for words in said if words not in str(caught.value)] == []


@pytest.mark.parametrize("name", ["__path__x", "_private", "zzzzqqq"])
def test_a_name_that_is_nowhere_is_just_missing(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'rxdelta' has no attribute '{name}'$"):
        getattr(rd, name)


def test_a_second_message_names_the_retry() -> None:
    begun = [
        ev.MessageStart(id="a"),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "Hi"),
        ev.MessageStart(id="b"),
    ]
    with pytest.raises(rd.ProtocolError, match=r"group_by_message\(\).*retry_stream\(\)"):
        rx.from_iterable(begun).pipe(rd.scan_deltas()).run()
