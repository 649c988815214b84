"""The official SDKs as judges: what their own accumulators make of each recorded stream is what we make of it.

Where an SDK is wrong, the stream is listed with the reason, and the test is that it still differs.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.sdk_objects import sdk_objects
from support.sdks_say import SAYS, ours
from support.shared import recordings

import rxdelta as rd

REPEATED_ID = "concatenates an id and a name that are repeated with every fragment"
NULLS = "asserts that an opening fragment has arguments, where the vendor sends null"
ERROR_CHUNK = "iterates over the choices of an error chunk, which has none"
UNASSEMBLED = "leaves arguments that come one by one as they come"
PARTIAL = "takes arguments that were cut off for whole ones"

RESUMED = "refuses a stream that doesn't begin with the first event"
FAILED = "has no response where the provider reports an error"

WRONG = {
    "openai-chat": {
        "llm-test-tools-streaming-variant-a": REPEATED_ID,
        "tl-test-writer-async-streaming-chat-multiple-tool-call-requests-legacy": NULLS,
        "pai-test-tool-use-failed-error-streaming": ERROR_CHUNK,
    },
    "openai-responses": {
        "pai-test-background-mode-streaming-starting-after-vcr--1": RESUMED,
        "vercel-openai-error-1": FAILED,
    },
    "anthropic-messages": {"anthsdk-incomplete-partial-json-response": PARTIAL},
    "gemini": {
        "vercel-google-stream-tool-call-arguments": UNASSEMBLED,
        "vercel-google-stream-tool-call-array-arguments-missing-terminal-function-call": UNASSEMBLED,
    },
}


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in ("bedrock-converse", "cohere", "ollama")
        for case in recordings(wire_format)
    ],
)
def test_the_sdk_s_objects_are_the_same_message(wire_format: str, chunks: list[Any]) -> None:
    def folded(found: list[Any]) -> rd.Snapshot:
        decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
        for event in [*(event for chunk in found for event in decoder.decode(chunk)), *decoder.close()]:
            fold.step(event)
        return fold.snapshot

    theirs, own = folded(sdk_objects(wire_format, chunks)), folded(chunks)
    assert theirs.blocks == own.blocks
    assert (theirs.id, theirs.status, theirs.finish_reason) == (own.id, own.status, own.finish_reason)
    if wire_format != "bedrock-converse":  # boto3 leaves out what its types don't know
        assert theirs == own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wire_format", "name", "chunks"),
    [
        pytest.param(wire_format, case.id, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in SAYS
        for case in recordings(wire_format)
    ],
)
def test_the_sdk_says_the_same(wire_format: str, name: str, chunks: list[Any]) -> None:
    reason = WRONG.get(wire_format, {}).get(name)
    if reason is None:
        assert SAYS[wire_format](chunks) == ours(wire_format, chunks)
        return
    try:
        theirs = SAYS[wire_format](chunks)
    except (AssertionError, RuntimeError, TypeError):
        return
    assert theirs != ours(wire_format, chunks), f"the SDK agrees now: it no longer {reason}"
