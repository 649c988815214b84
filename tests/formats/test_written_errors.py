"""A provider's error, written in a format and read again, is the same error where the format has a place for its words."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import FakeProvider

BEFORE: list[rd.Event] = [
    ev.MessageStart("m1", "m"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    ev.TextDelta(0, "Hel"),
]
Words = tuple[str | None, str | None]
SOME: list[Words] = [
    ("rate_limit_error", "slow_down"),
    ("a_word_of_tomorrow", None),
    (None, "503"),
    (None, None),
    ("RESOURCE_EXHAUSTED", "429"),
    ("throttlingException", None),
]


def one_word(kind: str | None, code: str | None) -> Words:
    return None, code or kind


def anthropic(kind: str | None, _: str | None) -> Words:
    return kind or "api_error", None


def gemini(kind: str | None, code: str | None) -> Words:
    """Its code is a number, which its SDK compares."""
    statuses = {"rate_limit_error": "429", "throttlingException": "429"}
    return kind, code if code is not None and code.isdecimal() else statuses.get(kind or "", "500")


def bedrock(kind: str | None, code: str | None) -> Words:
    """It has the exceptions of its own types only."""
    if code == "503":
        return "serviceUnavailableException", None
    known = kind in ("rate_limit_error", "RESOURCE_EXHAUSTED", "throttlingException")
    return "throttlingException" if known else "modelStreamErrorException", None


COMES_BACK: dict[str, Any] = {
    "openai-chat": lambda *words: words,
    "openai-completions": lambda *words: words,
    "mistral": lambda *words: words,
    "langchain": lambda *words: words,
    "openai-responses": one_word,
    "gemini-interactions": one_word,
    "ag-ui": one_word,
    "anthropic-messages": anthropic,
    "gemini": gemini,
    "bedrock-converse": bedrock,
    "cohere": lambda *_: (None, "ERROR"),
    "ollama": lambda *_: (None, None),
    "ai-sdk": lambda *_: (None, None),
}


def test_every_format_says_what_comes_back() -> None:
    assert {*COMES_BACK} == {*rd.providers.FORMATS}


@pytest.mark.parametrize(("kind", "code"), SOME)
@pytest.mark.parametrize("before", [[], BEFORE], ids=["first", "later"])
@pytest.mark.parametrize("wire_format", COMES_BACK)
def test_an_error_comes_back_with_its_type_and_its_code(
    wire_format: str, before: list[rd.Event], kind: str | None, code: str | None
) -> None:
    if wire_format == "ag-ui":
        pytest.importorskip("ag_ui")
    chunks = rd.wire.write(
        [*before, ev.StreamError("Boo", kind, code)], wire_format, on_error=lambda error: str(error)[-3:]
    )
    decoder = rd.providers.decoder(wire_format)
    (error,) = (
        event for chunk in chunks for event in decoder.decode(chunk) if isinstance(event, ev.StreamError)
    )
    assert (error.message, error.type, error.code) == ("Boo", *COMES_BACK[wire_format](kind, code))


def test_a_fake_provider_s_error_is_not_masked() -> None:
    said = ev.StreamError("Too many", "rate_limit_error", "slow_down")
    (chunk,) = FakeProvider(said).chunks("openai-chat")
    assert chunk["error"] == {
        "message": "Too many",
        "type": "rate_limit_error",
        "param": None,
        "code": "slow_down",
    }


TO_CLIENTS: dict[str, Any] = {
    "to_openai_chat": rd.to_openai_chat,
    "to_openai_responses": rd.to_openai_responses,
    "to_anthropic_messages": rd.to_anthropic_messages,
    "to_ollama": rd.to_ollama,
    "to_langchain_events": rd.to_langchain_events,
}


@pytest.mark.parametrize("name", TO_CLIENTS)
def test_an_application_s_client_gets_none_of_the_error_s_words(name: str) -> None:
    error = ev.StreamError("key sk-1", "secret_type", "secret_code")
    arguments = () if name == "to_langchain_events" else ("house",)
    frames = rx.from_iterable([*BEFORE, error]).pipe(TO_CLIENTS[name](*arguments), ops.to_list()).run()
    assert "secret" not in str(frames)
    assert "sk-1" not in str(frames)


def test_an_ag_ui_client_gets_none_of_the_error_s_words() -> None:
    pytest.importorskip("ag_ui")
    error = ev.StreamError("key sk-1", "secret_type", "secret_code")
    to_ag_ui = rd.to_ag_ui(thread_id="t", run_id="r")
    frames = rx.from_iterable([*BEFORE, error]).pipe(to_ag_ui, ops.to_list()).run()
    assert "secret" not in str(frames)
    assert "sk-1" not in str(frames)
