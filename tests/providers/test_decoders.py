"""Which format is which: by name, and by a first chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from support.shared import recordings

import rxdelta as rd

OTHERS = ("misc-completions", "openai-assistants", "openai-transcription")
"""Recorded, and no format of ours: plain completions of old models, an API that is gone, no reply at all."""


def test_the_names_are_those_of_the_design() -> None:
    assert set(rd.providers.FORMATS) == {
        "ag-ui",
        "ai-sdk",
        "anthropic-messages",
        "bedrock-converse",
        "cohere",
        "gemini",
        "gemini-interactions",
        "langchain",
        "mistral",
        "ollama",
        "openai-chat",
        "openai-completions",
        "openai-responses",
    }


def test_type_checkers_know_the_names_in_the_same_order() -> None:
    assert get_args(rd.providers.WireFormat) == rd.providers.FORMATS
    assert get_args(rd.requests.RequestFormat) == rd.requests.REQUEST_FORMATS


@pytest.mark.parametrize("name", ["", "openai", "OpenAI-Chat", "morse"])
def test_an_unknown_name_lists_those_there_are(name: str) -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError) as caught:
        rd.providers.decoder(name)
    for known in rd.providers.FORMATS:
        assert known in str(caught.value)


def test_an_option_that_the_format_does_not_know_is_refused_where_it_was_written() -> None:
    with pytest.raises(rd.InvalidValueError, match="speed"):
        rd.decode("openai-chat", speed=2)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(case.values[0], id=f"{folder}/{case.id}", marks=case.marks)
        for folder in OTHERS
        for case in recordings(folder)
    ],
)
def test_what_is_no_reply_of_ours_is_no_format(chunks: list[Any]) -> None:
    for chunk in chunks:
        with pytest.raises(rd.errors.UnknownWireFormatError, match="known: "):
            rd.providers.detect(chunk)


@pytest.mark.parametrize(
    ("wire_format", "chunk"),
    [
        ("openai-chat", lambda n: {"id": "c", "choices": [{"index": n, "delta": {"content": "a"}}]}),
        ("mistral", lambda n: {"id": "c", "choices": [{"index": n, "delta": {"content": "a"}}]}),
        ("openai-completions", lambda n: {"id": "c", "choices": [{"index": n, "text": "a"}]}),
        (
            "gemini",
            lambda n: {
                "candidates": [{"index": n, "content": {"role": "model", "parts": [{"text": "a"}]}}],
                "modelVersion": "gemini-x",
            },
        ),
    ],
)
def test_a_decoder_takes_so_many_choices_and_no_more(
    wire_format: str, chunk: Callable[[int], dict[str, Any]]
) -> None:
    decoder = rd.providers.decoder(wire_format)
    for number in range(1_024):
        assert decoder.decode(chunk(number * 3))
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        decoder.decode(chunk(1))
    assert caught.value.limit == "choices"
    assert decoder.decode(chunk(3))
