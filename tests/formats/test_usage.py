"""What each format's usage tells: its counts, and what is billed, in one form for all."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

Json = dict[str, Any]
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "input_audio_tokens",
    "output_audio_tokens",
)


def chat(usage: Json) -> list[Json]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    return [{"id": "c", "choices": [choice]}, {"id": "c", "choices": [], "usage": usage}]


def completions(usage: Json) -> list[Json]:
    frame = {"id": "c", "object": "text_completion"}
    choice = {"index": 0, "text": "x", "finish_reason": "stop"}
    return [{**frame, "choices": [choice]}, {**frame, "choices": [], "usage": usage}]


def mistral(usage: Json) -> list[Json]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    return [{"id": "0" * 32, "model": "mistral-small", "choices": [choice], "usage": usage}]


def responses(usage: Json) -> list[Json]:
    response = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage}
    return [{"type": "response.completed", "response": response}]


def anthropic(usage: Json, **later: Any) -> list[Json]:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": message},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": later},
        {"type": "message_stop"},
    ]


def bedrock(usage: Json) -> list[Json]:
    return [
        {"messageStart": {"role": "assistant"}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": usage}},
    ]


def gemini(usage: Json) -> list[Json]:
    part = {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}
    return [{"candidates": [part], "usageMetadata": usage}]


def interactions(usage: Json) -> list[Json]:
    done = {"id": "i", "status": "completed", "usage": usage}
    return [{"event_type": "interaction.completed", "interaction": done}]


def cohere(usage: Json) -> list[Json]:
    start = {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}}
    return [start, {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}]


def ollama(usage: Json) -> list[Json]:
    return [{"model": "m", "message": {"role": "assistant", "content": "x"}, "done": True, **usage}]


def langchain(usage: Json) -> list[Json]:
    return [{"type": "AIMessageChunk", "id": "run-1", "content": "x", "usage_metadata": usage}]


def protocol(usage: Json) -> list[Json]:
    start, finish = {"event": "message-start", "id": "m"}, {"event": "message-finish", "reason": "stop"}
    return [start, {**finish, "usage": usage}]


def ai_sdk(usage: Json) -> list[Json]:
    return [{"type": "start", "messageId": "m"}, {"type": "finish", "messageMetadata": {"usage": usage}}]


def ag_ui(*usage: Json) -> list[Json]:
    run = {"threadId": "t", "runId": "r"}
    return [{"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run, "usage": [*usage]}]


def told(wire_format: str, chunks: list[Json]) -> rd.TokenUsage:
    seen: list[rd.Snapshot] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(seen.append)
    usage = seen[-1].usage
    assert usage is not None
    return usage


def known(usage: rd.TokenUsage) -> Json:
    return {name: count for name in COUNTS if (count := getattr(usage, name)) is not None}


def counts(given: int, made: int, **details: int) -> Json:
    return {"input_tokens": given, "output_tokens": made, **details}


# (format, its chunks, what its usage knows, what is billed: the same if it is None, else what differs)
CASES: dict[str, tuple[str, list[Json], Json, Json | None]] = {
    "openai": (
        "openai-chat",
        chat({
            "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0, "cache_write_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 4},
        }),
        counts(20, 9, cache_read_tokens=8, cache_write_tokens=3, reasoning_tokens=0,
               input_audio_tokens=0, output_audio_tokens=4),
        None,
    ),
    "says nothing": ("openai-chat", chat({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": None}), counts(2, 1), None),
    "deepseek": (
        "openai-chat",
        chat({"prompt_tokens": 451, "completion_tokens": 21, "total_tokens": 472,
              "prompt_cache_hit_tokens": 384, "prompt_cache_miss_tokens": 67}),
        counts(451, 21, cache_read_tokens=384),
        None,
    ),
    "moonshot": ("openai-chat", chat({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 5}), counts(9, 1, cache_read_tokens=5), None),
    "moonshot, with the choice": (
        "openai-chat",
        [{"id": "c", "choices": [{"index": 0, "delta": {"content": "x"}}]},
         {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop",
                                  "usage": {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 5}}]}],
        counts(9, 1, cache_read_tokens=5),
        None,
    ),
    "writer": ("openai-chat", chat({"prompt_tokens": 9, "completion_tokens": 1, "prompt_token_details": {"cached_tokens": 5}}), counts(9, 1, cache_read_tokens=5), None),
    "a second name that is left at 0": (
        "openai-chat",
        chat({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 5}),
        counts(9, 1, cache_read_tokens=5),
        None,
    ),
    "litellm": (
        "openai-chat",
        chat({"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
              "prompt_tokens_details": {"cached_tokens": 1500, "cache_creation_tokens": 400,
                                        "cache_creation_token_details": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 300}},
              "cache_read_input_tokens": 1500, "cache_creation_input_tokens": 400}),
        counts(2006, 300, cache_read_tokens=1500, cache_write_tokens=400),
        {"cache_write_5m_tokens": 100, "cache_write_1h_tokens": 300},
    ),
    "alibaba": (
        "openai-chat",
        chat({"prompt_tokens": 2059, "completion_tokens": 201, "total_tokens": 2260, "completion_tokens_details": {"reasoning_tokens": 170},
              "prompt_tokens_details": {"cached_tokens": 0, "text_tokens": 2059, "cache_creation_input_tokens": 2048,
                                        "cache_creation": {"ephemeral_5m_input_tokens": 2048}}}),
        counts(2059, 201, cache_read_tokens=0, cache_write_tokens=2048, reasoning_tokens=170),
        {"cache_write_5m_tokens": 2048},
    ),
    "a proxy that leaves caches beside the prompt": (
        "openai-chat",
        chat({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}),
        counts(9, 4, cache_read_tokens=100, cache_write_tokens=20),
        {"input_tokens": 129},
    ),
    "a gateway that counts what it wrote to the cache as read, too": (
        "openai-chat",
        chat({"prompt_tokens": 2168, "completion_tokens": 100, "total_tokens": 2268,
              "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161}}),
        counts(2168, 100, cache_read_tokens=2161, cache_write_tokens=2161),
        None,
    ),
    "Mistral's audio, beside the prompt": (
        "openai-chat",
        chat({"prompt_tokens": 9, "completion_tokens": 248, "total_tokens": 632, "prompt_tokens_details": {"audio_tokens": 375}}),
        counts(9, 248, input_audio_tokens=375),
        {"input_tokens": 384},
    ),
    "a proxy whose sum has the caches": (
        "openai-chat",
        chat({"prompt_tokens": 90, "completion_tokens": 4, "total_tokens": 134, "cache_read_input_tokens": 40}),
        counts(90, 4, cache_read_tokens=40),
        {"input_tokens": 130},
    ),
    "xai": (
        "openai-chat",
        chat({"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 354,
              "prompt_tokens_details": {"cached_tokens": 11}, "completion_tokens_details": {"reasoning_tokens": 340}}),
        counts(12, 2, cache_read_tokens=11, reasoning_tokens=340),
        {"output_tokens": 342},
    ),
    "xai, of little reasoning": (
        "openai-chat",
        chat({"prompt_tokens": 12, "completion_tokens": 50, "total_tokens": 72, "completion_tokens_details": {"reasoning_tokens": 10}}),
        counts(12, 50, reasoning_tokens=10),
        {"output_tokens": 60},
    ),
    "reasoning beside, and no sum": (
        "openai-chat",
        chat({"prompt_tokens": 12, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 340}}),
        counts(12, 2, reasoning_tokens=340),
        {"output_tokens": 342},
    ),
    "gemini behind a gateway": (
        "openai-chat",
        chat({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}),
        counts(20, 198),
        {"output_tokens": 603},
    ),
    "perplexity": (
        "openai-chat",
        chat({"prompt_tokens": 33, "completion_tokens": 7163, "total_tokens": 7196, "citation_tokens": 20016,
              "num_search_queries": 18, "reasoning_tokens": 5000}),
        counts(33, 7163, reasoning_tokens=5000),
        {"output_tokens": 32179, "output_citation_tokens": 20016, "web_searches": 18},
    ),
    "databricks": (
        "openai-chat",
        chat({"prompt_tokens": 33, "completion_tokens": 70, "total_tokens": 103, "reasoning_tokens": 50}),
        counts(33, 70, reasoning_tokens=50),
        None,
    ),
    "completions": ("openai-completions", completions({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}), counts(5, 1, cache_read_tokens=4), None),
    "mistral": ("mistral", mistral({"prompt_tokens": 159, "completion_tokens": 28, "total_tokens": 187, "prompt_tokens_details": {"cached_tokens": 128}}), counts(159, 28, cache_read_tokens=128), None),
    "responses": (
        "openai-responses",
        responses({"input_tokens": 115, "output_tokens": 30, "total_tokens": 145,
                   "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 43},
                   "output_tokens_details": {"reasoning_tokens": 14}}),
        counts(115, 30, cache_read_tokens=0, cache_write_tokens=43, reasoning_tokens=14),
        None,
    ),
    "anthropic": (
        "anthropic-messages",
        anthropic(
            {"input_tokens": 6, "cache_creation_input_tokens": 3337, "cache_read_input_tokens": 6289, "output_tokens": 1,
             "cache_creation": {"ephemeral_5m_input_tokens": 3068, "ephemeral_1h_input_tokens": 269}},
            output_tokens=198, output_tokens_details={"thinking_tokens": 53}, server_tool_use={"web_search_requests": 2},
        ),
        counts(6, 198, cache_read_tokens=6289, cache_write_tokens=3337, reasoning_tokens=53),
        {"input_tokens": 9632, "cache_write_5m_tokens": 3068, "cache_write_1h_tokens": 269, "web_searches": 2},
    ),
    "anthropic, compacted": (
        "anthropic-messages",
        anthropic({"input_tokens": 612, "cache_read_input_tokens": 10, "output_tokens": 1}, output_tokens=2819, iterations=[
            {"type": "compaction", "input_tokens": 60385, "output_tokens": 522, "cache_read_input_tokens": 5},
            {"type": "message", "input_tokens": 612, "output_tokens": 2819, "cache_read_input_tokens": 10},
            {"type": "advisor_message", "model": "another", "input_tokens": 2543, "output_tokens": 18},
        ]),
        counts(612, 2819, cache_read_tokens=10),
        {"input_tokens": 61012, "output_tokens": 3341, "cache_read_tokens": 15},
    ),
    "bedrock": (
        "bedrock-converse",
        bedrock({"inputTokens": 40, "outputTokens": 12, "totalTokens": 352, "cacheReadInputTokens": 200, "cacheWriteInputTokens": 100,
                 "cacheDetails": [{"ttl": "1h", "inputTokens": 70}, {"ttl": "5m", "inputTokens": 30}]}),
        counts(40, 12, cache_read_tokens=200, cache_write_tokens=100),
        {"input_tokens": 340, "cache_write_5m_tokens": 30, "cache_write_1h_tokens": 70},
    ),
    "nova": ("bedrock-converse", bedrock({"inputTokens": 5, "outputTokens": 10, "cacheReadInputTokenCount": 7, "cacheWriteInputTokenCount": 0}),
             counts(5, 10, cache_read_tokens=7, cache_write_tokens=0), {"input_tokens": 12}),
    "gemini": (
        "gemini",
        gemini({
            "promptTokenCount": 100, "candidatesTokenCount": 50, "thoughtsTokenCount": 30, "cachedContentTokenCount": 60,
            "toolUsePromptTokenCount": 20, "totalTokenCount": 200,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}, {"modality": "AUDIO", "tokenCount": 30},
                                    {"modality": "IMAGE", "tokenCount": 4}, {"modality": "DOCUMENT", "tokenCount": 6}],
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 50}, {"modality": "AUDIO", "tokenCount": 10}],
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 50}],
            "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
        }),
        counts(100, 50, cache_read_tokens=60, reasoning_tokens=30, input_audio_tokens=30, output_audio_tokens=50),
        {"input_tokens": 120, "output_tokens": 80, "input_tool_tokens": 20, "input_text_tokens": 80, "input_text_tool_tokens": 20,
         "input_image_tokens": 10, "cache_text_read_tokens": 50, "cache_audio_read_tokens": 10},
    ),
    "gemini, all thought": ("gemini", gemini({"promptTokenCount": 9, "thoughtsTokenCount": 30}),
                            {"input_tokens": 9, "reasoning_tokens": 30}, {"output_tokens": 30}),
    "interactions": (
        "gemini-interactions",
        interactions({"total_input_tokens": 11, "total_output_tokens": 42, "total_thought_tokens": 126, "total_cached_tokens": 0,
                      "total_tool_use_tokens": 4, "input_tokens_by_modality": [{"modality": "audio", "tokens": 11}]}),
        counts(11, 42, cache_read_tokens=0, reasoning_tokens=126, input_audio_tokens=11),
        {"input_tokens": 15, "output_tokens": 168, "input_tool_tokens": 4},
    ),
    "cohere": (
        "cohere",
        cohere({"billed_units": {"input_tokens": 44.0, "output_tokens": 2692}, "cached_tokens": 1392.0,
                "tokens": {"input_tokens": 1430.0, "output_tokens": 2697, "reasoning_tokens": 2463}}),
        counts(1430, 2697, cache_read_tokens=1392, reasoning_tokens=2463),
        counts(44, 2692, cache_read_tokens=None, output_reasoning_tokens=None),
    ),
    "ollama": ("ollama", ollama({"prompt_eval_count": 26, "eval_count": 58}), counts(26, 58), None),
    "langchain": (
        "langchain",
        langchain({"input_tokens": 350, "output_tokens": 240, "total_tokens": 590,
                   "input_token_details": {"audio": 10, "cache_creation": 200, "cache_read": 100},
                   "output_token_details": {"audio": 10, "reasoning": 200}}),
        counts(350, 240, cache_read_tokens=100, cache_write_tokens=200, reasoning_tokens=200,
               input_audio_tokens=10, output_audio_tokens=10),
        None,
    ),
    "langchain, of a cache's lifetimes": (
        "langchain",
        langchain({"input_tokens": 350, "output_tokens": 2, "total_tokens": 352, "input_token_details": {
            "cache_read": 100, "cache_creation": 0, "ephemeral_5m_input_tokens": 150, "ephemeral_1h_input_tokens": 50}}),
        counts(350, 2, cache_read_tokens=100, cache_write_tokens=200),
        {"cache_write_5m_tokens": 150, "cache_write_1h_tokens": 50},
    ),
    "langchain, with reasoning beside": (
        "langchain",
        langchain({"input_tokens": 12, "output_tokens": 2, "total_tokens": 354, "output_token_details": {"reasoning": 340}}),
        counts(12, 2, reasoning_tokens=340),
        {"output_tokens": 342},
    ),
    "langchain, with the cache beside": (
        "langchain",
        langchain({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
                   "input_token_details": {"cache_read": 100, "cache_creation": 0, "ephemeral_5m_input_tokens": 20}}),
        counts(3, 2, cache_read_tokens=100, cache_write_tokens=20),
        {"input_tokens": 123, "cache_write_5m_tokens": 20},
    ),
    "langchain's protocol": (
        "langchain",
        protocol({"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_token_details": {"cache_read": 4}}),
        counts(9, 2, cache_read_tokens=4),
        None,
    ),
    "ai sdk 5": ("ai-sdk", ai_sdk({"inputTokens": 9, "outputTokens": 5, "totalTokens": 14, "reasoningTokens": 3, "cachedInputTokens": 4}),
                 counts(9, 5, cache_read_tokens=4, reasoning_tokens=3), None),
    "ai sdk 7": (
        "ai-sdk",
        ai_sdk({"inputTokens": 9, "inputTokenDetails": {"noCacheTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 2},
                "outputTokens": 5, "outputTokenDetails": {"textTokens": 2, "reasoningTokens": 3}, "totalTokens": 14}),
        counts(9, 5, cache_read_tokens=4, cache_write_tokens=2, reasoning_tokens=3),
        None,
    ),
    "ag-ui": (
        "ag-ui",
        ag_ui({"model": "a", "inputTokens": 9, "outputTokens": 5, "cachedInputTokens": 4, "cacheWriteInputTokens": 0, "reasoningTokens": 3},
              {"model": "b", "inputTokens": 1, "outputTokens": 1, "cachedInputTokens": 1}),
        counts(10, 6, cache_read_tokens=5, cache_write_tokens=0, reasoning_tokens=3),
        None,
    ),
    "ag-ui, with reasoning beside": (
        "ag-ui",
        ag_ui({"inputTokens": 12, "outputTokens": 2, "totalTokens": 354, "reasoningTokens": 340}),
        counts(12, 2, reasoning_tokens=340),
        {"output_tokens": 342},
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize(("wire_format", "chunks", "knows", "bill"), CASES.values(), ids=CASES)
IN_THE_BILL = {"reasoning_tokens": "output_reasoning_tokens"}


@EACH
def test_a_usage_has_the_providers_counts_and_what_is_billed(
    wire_format: str, chunks: list[Json], knows: Json, bill: Json | None
) -> None:
    usage = told(wire_format, chunks)
    assert known(usage) == knows
    billed = {IN_THE_BILL.get(name, name): count for name, count in knows.items()} | (bill or {})
    have = {
        name: count
        for name, count in usage.billed.items()
        # the text of what is no text, which cases don't spell out
        if name in billed or not name.endswith(("_text_tokens", "_audio_tokens"))
    }
    assert have == {name: count for name, count in billed.items() if count is not None}


@EACH
def test_a_usage_survives_being_stored_sent_and_pickled(
    wire_format: str, chunks: list[Json], knows: Json, bill: Json | None
) -> None:
    usage = told(wire_format, chunks)
    assert rd.TokenUsage.from_dict(json.loads(json.dumps(usage.to_dict()))) == usage
    assert pickle.loads(pickle.dumps(usage)) == usage
    event = rd.events.UsageUpdate(usage)
    sent = rd.events.from_dict(json.loads(json.dumps(event.to_dict())))
    assert sent == event
    assert isinstance(sent, rd.events.UsageUpdate)
    assert sent.usage.billed == usage.billed


@EACH
def test_the_bill_of_two_attempts_is_the_sum_of_both_bills(
    wire_format: str, chunks: list[Json], knows: Json, bill: Json | None
) -> None:
    usage, other = told(wire_format, chunks), rd.TokenUsage(3, 2, cache_read_tokens=1)
    total = usage.add(other)
    assert total.billed["input_tokens"] == usage.billed["input_tokens"] + 3
    assert total.billed["output_tokens"] == usage.billed.get("output_tokens", 0) + 2
    assert total.billed["cache_read_tokens"] == usage.billed.get("cache_read_tokens", 0) + 1
    assert total.cache_read_tokens == knows.get("cache_read_tokens", 0) + 1
    assert total.reasoning_tokens == knows.get("reasoning_tokens")
    assert other.add(usage).billed == total.billed
