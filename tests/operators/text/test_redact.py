"""`redact`: what it hides stays hidden, wherever and however the stream says it."""

from __future__ import annotations

import json
import re
import traceback
from random import Random
from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

ev = rd.events
WORD = "SECRET"
BEGUN: list[rd.Event] = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
HIDE = rd.redact(WORD, "#", arguments=True)


def run(events: list[rd.Event], *, error: Exception | None = None) -> tuple[list[rd.Event], list[Exception]]:
    source: rx.Observable[rd.Event] = rx.from_iterable(events)
    if error is not None:
        source = rx.concat(source, rx.throw(error))
    told: list[rd.Event] = []
    errors: list[Exception] = []
    source.pipe(HIDE).subscribe(told.append, errors.append)
    return told, errors


def folded(events: list[rd.Event]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot


def pieces(text: str, draw: Random) -> list[str]:
    cuts = sorted(draw.sample(range(len(text) + 1), min(len(text), draw.randint(0, 5))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def test_nothing_leaks_behind_an_error_event() -> None:
    late: list[rd.Event] = [ev.TextDelta(0, "SEC"), ev.TextDelta(0, "RET"), ev.TextDelta(0, f" {WORD}")]
    told, _ = run([*BEGUN, ev.TextDelta(0, "a SE"), ev.StreamError(f"no {WORD}", "overloaded"), *late])
    assert told[2:4] == [ev.TextDelta(0, "a "), ev.StreamError("no #", "overloaded")]
    said = "".join(event.text for event in told if isinstance(event, ev.TextDelta))
    assert "SEC" not in said
    assert "RET" not in said


@pytest.mark.parametrize(
    "end", [[], [ev.MessageInterrupted("x")], [ev.AttemptReset(1, "x")], [ev.StreamError("x", "y")], [ev.MessageStart("n")]]
)  # fmt: skip
def test_half_of_a_word_is_dropped_where_the_reply_is_cut_off(end: list[rd.Event]) -> None:
    told, _ = run([*BEGUN, ev.TextDelta(0, "a SECRE"), *end])
    assert told == [*BEGUN, ev.TextDelta(0, "a "), *end]


def test_half_of_a_word_is_text_where_the_block_ends() -> None:
    told, _ = run([*BEGUN, ev.TextDelta(0, "a SECRE"), ev.MessageFinish("length")])
    assert folded(told).text == "a SECRE"


CALL = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "find"})


@pytest.mark.parametrize("end", [[ev.BlockFinish(0)], []])
@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"q": "a SECRET", "SECRET": [1]}', {"q": "a #", "#": [1]}),
        (r'{"q": "S\u0045CRET"}', {"q": "#"}),
        (r'{"q": "S\u0045CRET', '{"q": "#'),  # cut: it's an invalid call, and stays one
        ('{"q": 1}{"r": "SECRET"}', '{"q": 1}{"r": "#"}'),
        ('{"q": 1e999}', '{"q": 1e999}'),
        ("[" * 900, "[" * 900),
    ],
)
def test_arguments_are_hidden_and_invalid_ones_stay_invalid(
    end: list[rd.Event], arguments: str, wanted: object
) -> None:
    draw = Random(1)
    come = [ev.ToolCallDelta(0, piece) for piece in pieces(arguments, draw)]
    told, errors = run([BEGUN[0], CALL, *come, *end, ev.MessageFinish("tool_use")])
    (call,) = folded(told).blocks
    assert isinstance(call, rd.ToolCall)
    assert not errors
    assert call.arguments == wanted
    assert (call.type == "invalid_tool_call") == isinstance(wanted, str)


def test_a_piece_for_a_call_that_takes_none_stays_away_from_its_arguments() -> None:
    whole = ev.BlockStart(0, {"type": "server_tool_call", "id": "s", "name": "web", "args": {"q": WORD}})
    told, _ = run([BEGUN[0], whole, ev.ToolCallDelta(0, WORD), ev.MessageFinish("stop")])
    (call,) = folded(told).blocks
    assert isinstance(call, rd.ToolCall)
    assert call.arguments == {"q": "#"}


class _Answer:
    def __init__(self, text: str) -> None:
        self.text = text


class _SdkError(Exception):
    def __init__(self, message: str, answer: object) -> None:
        super().__init__(message)
        self.response = answer


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def _noted(error: Exception) -> Exception:
    error.add_note(f"it said {WORD}")
    return error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(WORD),
        KeyError({WORD: 1}),
        UnicodeDecodeError("utf-8", b"SECRET\xff", 6, 7, "bad"),
        json.JSONDecodeError("bad", WORD, 0),
        ExceptionGroup("two", [ValueError(WORD)]),
        _SdkError("429", {"error": {"message": WORD}}),
        _SdkError("429", _Answer(WORD)),
        _noted(RuntimeError("x")),
        _caused(RuntimeError("x"), ValueError(WORD)),
        _caused(RuntimeError("x"), _SdkError("429", _Answer(WORD))),
        _caused(rd.ProviderError("x"), ValueError(WORD)),
        _caused(RuntimeError("x"), rd.ProviderError("x", snapshot=folded([*BEGUN, ev.TextDelta(0, WORD)]))),
        rd.ProviderError(WORD),
        rd.ProviderError("x", snapshot=folded([*BEGUN, ev.TextDelta(0, WORD)])),
        _noted(rd.ProviderError("x")),
    ],
    ids=repr,
)
def test_an_error_says_nothing_of_it(error: Exception) -> None:
    _, (told,) = run([*BEGUN, ev.TextDelta(0, "hi")], error=error)
    assert isinstance(told, rd.RxDeltaError)
    said = [str(told), repr(told), repr(vars(told)), *traceback.format_exception(told)]
    assert not [one for one in said if WORD in one]
    assert told.__cause__ is None
    assert told.snapshot is None


def test_an_error_that_says_nothing_of_it_stays() -> None:
    error = _SdkError("429", _Answer("busy"))
    assert run(BEGUN, error=error)[1] == [error]


@pytest.mark.parametrize(
    "operator",
    [rd.redact("x"), rd.map_text(str.upper), rd.cut_text(), rd.guard(lambda _: True), rd.until_sequence("x")],
)
@pytest.mark.parametrize("resume", [False, True])
def test_a_resumed_reply_has_no_operator_of_text_in_its_factory(operator: Any, *, resume: bool) -> None:
    asked: list[int] = []

    def request() -> rx.Observable[rd.Event]:
        asked.append(1)
        return rx.of(*BEGUN, ev.MessageFinish("stop")).pipe(operator, rd.stall_timeout(idle=9))

    errors: list[Exception] = []
    replies = rd.retry_stream(request, resume=resume, retry_if=lambda _: True, backoff=lambda _, __: 0)
    replies.subscribe(on_error=errors.append)
    assert len(asked) == 1
    assert [isinstance(one, rd.InvalidValueError) for one in errors] == [True] * resume


@pytest.mark.parametrize("end", [[ev.BlockFinish(0)], []])
@pytest.mark.parametrize("way", ["start", "delta", "early delta", "finish"])
def test_citations_are_moved_also_those_that_come_while_text_is_held(end: list[rd.Event], way: str) -> None:
    def cited(start: int, stop: int) -> list[dict[str, Any]]:
        raw = {"startIndex": start, "endIndex": stop}
        return [{"type": "citation", "start_index": start, "end_index": stop, "raw": raw}]

    text = "é SECRET is a SECRET"
    given: dict[str, Any] = {"citations": cited(9, len(text))}
    start = ev.BlockStart(0, {"type": "text", "text": text} | (given if way == "start" else {}))
    events: list[rd.Event] = [BEGUN[0], start]
    if way != "start":
        events = [*BEGUN, *(ev.TextDelta(0, piece) for piece in (text[:5], text[5:]))]
    if way == "delta":
        events.append(ev.BlockDelta(0, given))
    if way == "early delta":
        events.insert(3, ev.BlockDelta(0, given))
    if way == "finish":
        end = [ev.BlockFinish(0, {"type": "text", "text": text, **given})]
    told, _ = run([*events, *end, ev.MessageFinish("stop")])
    (part,) = folded(told).to_dict()["blocks"]
    assert part["text"] == "é # is a #"
    (citation,) = part["citations"]
    assert (citation["start_index"], citation["end_index"]) == (4, 10)
    assert "SECRET" not in json.dumps(part)


def test_what_belongs_to_the_provider_stays() -> None:
    block = {"type": "reasoning", "reasoning": "", "id": WORD, "signature": WORD, "encrypted_content": WORD}
    start = ev.BlockStart(0, block)
    call = ev.BlockStart(1, {"type": "tool_call_chunk", "id": WORD, "name": WORD})
    sealed = ev.BlockStart(2, {"type": "reasoning", "reasoning": "", "redacted": True, "data": WORD})
    image = ev.BlockStart(3, {"type": "image", "data": WORD})
    assert run([BEGUN[0], start, call, sealed, image])[0] == [BEGUN[0], start, call, sealed, image]


def _unknown(match: re.Match[str]) -> str:
    names: dict[str, str] = {}
    return names[match["name"]]


def _broken(match: re.Match[str]) -> str:
    raise ValueError(f"no name for {match[0]}") from KeyError(match[0])


def _itself(match: Any) -> Any:
    return match


def _listed(match: re.Match[str]) -> Any:
    return [match[0]]


@pytest.mark.parametrize("replacement", [_unknown, _broken, _itself, _listed])
def test_what_a_replacement_raises_doesnt_say_what_it_got(replacement: Any) -> None:
    hide = rd.redact(r"key-(?P<name>\w+)", replacement)
    errors: list[Exception] = []
    events = [*BEGUN, ev.TextDelta(0, "The key-SEC"), ev.TextDelta(0, "RET is"), ev.MessageFinish("stop")]
    rx.from_iterable(events).pipe(hide, rd.scan_deltas()).subscribe(lambda _: None, errors.append)
    said = "".join("".join(traceback.format_exception(error)) for error in errors)
    assert len(errors) == 1
    assert WORD not in f"{said}{errors[0]!r}{errors[0].__context__!r}"
    assert "[redacted]" in said


def test_what_a_replacement_raises_is_itself_where_it_says_nothing() -> None:
    boom, errors = OSError("boom"), list[Exception]()

    def fail(_: re.Match[str]) -> str:
        raise boom

    source = rx.from_iterable([*BEGUN, ev.TextDelta(0, f"{WORD} is")])
    source.pipe(rd.redact(WORD, fail)).subscribe(lambda _: None, errors.append)
    assert errors == [boom]


def test_no_frame_behind_an_error_shows_what_its_text_hides() -> None:
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": "It is"}}]},
        {"error": {"message": f"failed at {WORD}", "type": "server_error"}},
    ]
    errors: list[Exception] = []
    rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), HIDE).subscribe(lambda _: None, errors.append)
    (shown,) = (traceback.TracebackException.from_exception(error, capture_locals=True) for error in errors)
    assert "failed at #" in str(shown)
    assert WORD not in "".join(shown.format())


@pytest.mark.parametrize(("status", "shown"), [("executing", "a "), ("completed", "a SEC"), (None, "a SEC")])
def test_of_a_result_that_grows_its_undecided_end_waits(status: Any, shown: str) -> None:
    ((update,), _) = run([ev.ToolUpdate("c", status, result=rd.ToolResult("c", {"log": "a SEC"}))])
    assert isinstance(update, ev.ToolUpdate)
    assert update.result is not None
    assert update.result.content == {"log": shown}
