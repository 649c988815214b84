"""Each error says what a person needs, keeps the facts, and survives pickling."""

from __future__ import annotations

import copy
import pickle

import pytest

import rxdelta as rd
from rxdelta.core import RxDeltaError

SNAPSHOT = rd.apply_event(None, rd.events.BlockStart(0, {"type": "text", "text": "so far"}))
ERRORS = [
    rd.InvalidValueError("no", field="index", value=-1),
    rd.errors.MalformedChunkError.at("openai-chat", "choices[0]", "an object", 3),
    rd.ProtocolError("no", violation="delta_before_start"),
    rd.errors.MergeError("no"),
    rd.ProviderError("busy", type="overloaded_error", code="529", transient=True, snapshot=SNAPSHOT),
    rd.IncompleteMessageError("no", snapshot=SNAPSHOT),
    rd.errors.InvalidToolCallError("no", call_id="c", name="f", field="arguments"),
    rd.StreamInterrupted("no", snapshot=SNAPSHOT),
    rd.errors.StallTimeoutError("no"),
    rd.errors.EmptyStreamError("no"),
    rd.errors.BufferOverflowError("no"),
    rd.errors.LimitExceededError.of("blocks", 65_536, "the number of blocks"),
    rd.errors.UnknownWireFormatError("no"),
    rd.ToolError("no"),
    rd.errors.AccessDeniedError("no", action="watch", stream_id="chat"),
    rd.GuardError("no"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_an_error_is_copied_with_all_its_facts(error: RxDeltaError, again: object) -> None:
    other = again(error)  # type: ignore[operator]
    assert type(other) is type(error)
    assert (str(other), vars(other)) == (str(error), vars(error))
    assert other.snapshot == error.snapshot


def test_all_errors_have_one_root() -> None:
    assert all(isinstance(error, rd.RxDeltaError) for error in ERRORS)
    assert {type(error).__name__ for error in ERRORS} | {"RxDeltaError"} == {
        name for name in rd.errors.__all__ if isinstance(getattr(rd.errors, name), type)
    }


def test_standard_handlers_catch_what_they_expect() -> None:
    for kind in (rd.InvalidValueError, rd.errors.MalformedChunkError, rd.errors.InvalidToolCallError):
        assert issubclass(kind, ValueError)
    assert issubclass(rd.errors.UnknownWireFormatError, LookupError)


def test_an_error_is_short_however_long_the_place_is() -> None:
    error = rd.InvalidValueError.of([(f"options.{'k' * 10_000}", "v" * 10_000, "is wrong", "mend it")])
    assert len(str(error)) < 700
    assert len(error.field) > 10_000


def test_an_error_has_the_facts_that_it_was_made_with() -> None:
    facts = {"field": "index", "value": -1}
    assert vars(rd.InvalidValueError("no", **facts)).items() >= facts.items()  # type: ignore[arg-type]
    denied = rd.errors.AccessDeniedError("no", action="watch", stream_id="chat")
    assert (denied.action, denied.stream_id) == ("watch", "chat")
    plain = rd.errors.AccessDeniedError("no")
    assert (plain.action, plain.stream_id) == ("", "")
    broken = rd.errors.InvalidToolCallError("no", call_id="c", name="f", field="arguments")
    assert (broken.call_id, broken.name, broken.field) == ("c", "f", "arguments")
    busy = rd.ProviderError("busy", type="t", code="529", transient=True, snapshot=SNAPSHOT)
    assert (busy.type, busy.code, busy.transient, busy.snapshot) == ("t", "529", True, SNAPSHOT)
    assert rd.ProtocolError("no", violation="v").violation == "v"


def test_an_error_quotes_a_short_text_whole_and_the_beginning_of_a_long_one() -> None:
    whole = []
    for length in range(300):
        error = rd.InvalidValueError.of([("name", "x" * length, "is wrong")])
        quoted, cut, _ = str(error).partition("name='")[2].rstrip("')").partition("…")
        assert quoted == "x" * len(quoted)
        whole.append(not cut and len(quoted) == length)
        assert whole[-1] or len(quoted) > 20
    assert whole == sorted(whole, reverse=True)  # from some length on none is shown whole
    assert (whole[20], whole[-1]) == (True, False)


def test_what_an_error_says() -> None:
    assert (
        str(rd.errors.MalformedChunkError.at("f", "", "an object", 3))
        == "malformed f chunk: as the chunk expected an object, found 3"
    )
    assert str(ERRORS[1]) == "malformed openai-chat chunk: at choices[0] expected an object, found 3"
    assert str(ERRORS[4]) == "the provider ended the stream with an error (overloaded_error/529): busy"
    assert str(rd.ProviderError("busy")) == "the provider ended the stream with an error: busy"
    assert str(ERRORS[11]) == (
        "the number of blocks exceeds the limit of 65,536 (blocks); rd.with_limits(rd.Limits(blocks=…)) allows a trusted source more"
    )
    assert (ERRORS[11].limit, ERRORS[11].maximum) == ("blocks", 65_536)
    assert "as the chunk expected an object, found '…'" in str(
        rd.errors.MalformedChunkError.at("x", "", "an object", "…")
    )


def test_no_error_quotes_a_secret_not_even_one_that_the_quote_cuts_in_two() -> None:
    secret = "sk-canary" + "1a" * 40
    for value in ({"headers": {"x-api-key": "canary"}}, f"Bearer {secret}", "y " * 97 + secret, secret * 99):
        error = rd.errors.MalformedChunkError.at("x", "a", "an object", value)
        assert "canary" not in f"{error} {error.found}"
        assert "canary" not in str(rd.InvalidValueError.of([("key", value, "must be a string")]))
    assert "[redacted]" in rd.errors.MalformedChunkError.at("x", "a", "an object", {"token": "canary"}).found


def test_a_value_of_any_length_or_with_a_hostile_repr_is_shown_shortly() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    long = rd.errors.MalformedChunkError.at("x", "a", "an object", "y" * 10**6)
    assert len(str(long)) < 300
    assert long.found.endswith("…")
    assert "<Hostile whose repr raises RuntimeError>" in str(
        rd.errors.MalformedChunkError.at("x", "a", "b", Hostile())
    )
