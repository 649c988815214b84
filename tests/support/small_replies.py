"""One small reply, as each wire format sends it, so that a rule can be tested over all formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

import rxdelta as rd
from rxdelta.core import Event, Fold

Chunk = dict[str, Any]


@attrs.frozen(kw_only=True)
class Reply:
    """How a format sends a reply.

    Attributes:
        begin: The chunks in front of everything else.
        text: A text, `Hi`.
        call: The nth call, whole and ended: its arguments are `{"n": n}`.
        cut: The nth call without its end, though its arguments parse; `None` if the format has only whole calls.
        late: More arguments of the nth call.
        end: The end, with a reason in the provider's word.
        body: The same reply with the text alone, not streamed, without a reason; `None` if the format has none.
        stop: The provider's word for an ordinary end.
        length: The provider's word for the token limit.
    """

    begin: tuple[Chunk, ...] = ()
    text: tuple[Chunk, ...]
    call: Callable[[int], tuple[Chunk, ...]]
    cut: Callable[[int], tuple[Chunk, ...]] | None = None
    late: Callable[[int], Chunk] | None = None
    end: Callable[[str], tuple[Chunk, ...]]
    body: Chunk | None = None
    stop: str
    length: str


def folded(wire_format: str, *chunks: Any, close: bool = True) -> tuple[list[Event], rd.Snapshot]:
    """The events of the chunks, and what they fold to; an error ends both."""
    decoder, fold, found = rd.providers.decoder(wire_format), Fold(), list[Event]()
    for decode in (
        *(lambda chunk=chunk: decoder.decode(chunk) for chunk in chunks),
        *([decoder.close] * close),
    ):
        for event in decode():
            found.append(event)
            if isinstance(event, rd.events.StreamError):
                return found, fold.snapshot
            fold.step(event)
    return found, fold.snapshot


def _anthropic() -> Reply:
    def start(n: int, block: Chunk) -> Chunk:
        return {"type": "content_block_start", "index": n, "content_block": block}

    def delta(n: int, **fields: Any) -> Chunk:
        return {"type": "content_block_delta", "index": n, "delta": fields}

    def arguments(n: int, piece: str) -> Chunk:
        return delta(n, type="input_json_delta", partial_json=piece)

    def begun(n: int) -> Chunk:
        return start(n, {"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}})

    stop = {"type": "content_block_stop"}
    return Reply(
        begin=({"type": "message_start", "message": {"id": "m1", "model": "m"}},),
        text=(start(0, {"type": "text", "text": ""}), delta(0, type="text_delta", text="Hi"), {**stop, "index": 0}),
        call=lambda n: (begun(n), arguments(n, f'{{"n": {n}}}'), {**stop, "index": n}),
        cut=lambda n: (begun(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: (
            {"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ),
        body={"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
        stop="end_turn",
        length="max_tokens",
    )  # fmt: skip


def _bedrock() -> Reply:
    def delta(n: int, delta: Chunk) -> Chunk:
        return {"contentBlockDelta": {"contentBlockIndex": n, "delta": delta}}

    def arguments(n: int, piece: str) -> Chunk:
        return delta(n, {"toolUse": {"input": piece}})

    def begun(n: int) -> Chunk:
        start = {"toolUse": {"toolUseId": f"c{n}", "name": "f"}}
        return {"contentBlockStart": {"contentBlockIndex": n, "start": start}}

    def stop(n: int) -> Chunk:
        return {"contentBlockStop": {"contentBlockIndex": n}}

    usage = {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}
    return Reply(
        begin=({"messageStart": {"role": "assistant"}},),
        text=(delta(0, {"text": "Hi"}), stop(0)),
        call=lambda n: (begun(n), arguments(n, f'{{"n": {n}}}'), stop(n)),
        cut=lambda n: (begun(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: ({"messageStop": {"stopReason": word}}, {"metadata": usage}),
        body={"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}},
        stop="end_turn",
        length="max_tokens",
    )


def _cohere() -> Reply:
    def event(kind: str, n: int | None = None, **message: Any) -> Chunk:
        place = {} if n is None else {"index": n}
        return {"type": kind, **place, "delta": {"message": message}}

    def arguments(n: int, piece: str) -> Chunk:
        return event("tool-call-delta", n, tool_calls={"function": {"arguments": piece}})

    def begun(n: int) -> Chunk:
        function = {"name": "f", "arguments": ""}
        return event(
            "tool-call-start", n, tool_calls={"id": f"c{n}", "type": "function", "function": function}
        )

    tokens = {"tokens": {"input_tokens": 3, "output_tokens": 5}}
    return Reply(
        begin=({**event("message-start", role="assistant"), "id": "m1"},),
        text=(event("content-start", 0, content={"type": "text", "text": ""}), event("content-delta", 0, content={"text": "Hi"})),
        call=lambda n: (begun(n), arguments(n, f'{{"n": {n}}}'), {"type": "tool-call-end", "index": n}),
        cut=lambda n: (begun(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: ({"type": "message-end", "delta": {"finish_reason": word, "usage": tokens}},),
        body={"id": "m1", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}},
        stop="COMPLETE",
        length="MAX_TOKENS",
    )  # fmt: skip


def _gemini() -> Reply:
    def said(*parts: Chunk, **candidate: Any) -> Chunk:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}]}

    def function(**fields: Any) -> Chunk:
        return {"functionCall": fields}

    piece = {"jsonPath": "$.n", "numberValue": 7}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 5}
    return Reply(
        text=(said({"text": "Hi"}),),
        call=lambda n: (said(function(name="f", id=f"c{n}", args={"n": n})),),
        cut=lambda n: (said(function(name="f", id=f"c{n}", willContinue=True)),),
        late=lambda n: said(function(id=f"c{n}", partialArgs=[piece])),
        end=lambda word: ({**said(finishReason=word), "usageMetadata": usage},),
        stop="STOP",
        length="MAX_TOKENS",
    )


def _interactions() -> Reply:
    def delta(n: int, **fields: Any) -> Chunk:
        return {"event_type": "step.delta", "index": n, "delta": fields}

    def arguments(n: int, piece: str) -> Chunk:
        return delta(n, type="arguments_delta", arguments=piece)

    def start(n: int, **step: Any) -> Chunk:
        return {"event_type": "step.start", "index": n, "step": step}

    def begun(n: int) -> Chunk:
        return start(n, type="function_call", id=f"c{n}", name="f", arguments={})

    def stop(n: int) -> Chunk:
        return {"event_type": "step.stop", "index": n}

    usage = {"total_input_tokens": 3, "total_output_tokens": 5}
    return Reply(
        begin=({"event_type": "interaction.created", "interaction": {"id": "m1", "status": "in_progress"}},),
        text=(start(0, type="model_output"), delta(0, type="text", text="Hi"), stop(0)),
        call=lambda n: (begun(n), arguments(n, f'{{"n": {n}}}'), stop(n)),
        cut=lambda n: (begun(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: (
            {"event_type": "interaction.completed", "interaction": {"status": word, "usage": usage}},
        ),
        body={
            "object": "interaction",
            "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}],
        },
        stop="completed",
        length="incomplete",
    )


def _ollama() -> Reply:
    def line(*, done: bool = False, **message: Any) -> Chunk:
        said = {"role": "assistant", "content": "", **message}
        return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": said, "done": done}

    return Reply(
        text=(line(content="Hi"),),
        call=lambda n: (
            line(tool_calls=[{"id": f"c{n}", "function": {"name": "f", "arguments": {"n": n}}}]),
        ),
        end=lambda word: ({**line(done=True), "done_reason": word, "prompt_eval_count": 3, "eval_count": 5},),
        body=line(done=True, content="Hi"),
        stop="stop",
        length="length",
    )


def _responses() -> Reply:
    def event(kind: str, n: int, **fields: Any) -> Chunk:
        return {"type": f"response.{kind}", "output_index": n, **fields}

    def item(n: int, text: str, **fields: Any) -> Chunk:
        return {
            "id": f"fc{n}",
            "type": "function_call",
            "call_id": f"c{n}",
            "name": "f",
            "arguments": text,
            **fields,
        }

    def arguments(n: int, piece: str) -> Chunk:
        return event("function_call_arguments.delta", n, delta=piece)

    def call(n: int) -> tuple[Chunk, ...]:
        whole = f'{{"n": {n}}}'
        return (
            event("output_item.added", n, item=item(n, "")),
            arguments(n, whole),
            event("output_item.done", n, item=item(n, whole, status="completed")),
        )

    def end(word: str) -> tuple[Chunk, ...]:
        usage = {"input_tokens": 3, "output_tokens": 5}
        status, _, why = word.partition(":")
        details = {"incomplete_details": {"reason": why}} if why else {}
        return (
            {
                "type": f"response.{status}",
                "response": {"id": "m1", "status": status, "usage": usage, **details},
            },
        )

    part = {"type": "output_text", "text": "Hi"}
    return Reply(
        begin=({"type": "response.created", "response": {"id": "m1", "status": "in_progress"}},),
        text=(event("output_text.delta", 0, content_index=0, delta="Hi"),),
        call=call,
        cut=lambda n: (event("output_item.added", n, item=item(n, "")), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=end,
        body={"object": "response", "id": "m1", "output": [{"type": "message", "content": [part]}]},
        stop="completed",
        length="incomplete:max_output_tokens",
    )  # fmt: skip


def _langchain() -> Reply:
    def chunk(content: str = "", **fields: Any) -> Chunk:
        return {"type": "AIMessageChunk", "content": content, "id": "m1", **fields}

    def fragment(n: int, args: str, **fields: Any) -> Chunk:
        known = {"type": "tool_call_chunk", "index": n, "id": None, "name": None, "args": args}
        return chunk(tool_call_chunks=[{**known, **fields}])

    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    return Reply(
        text=(chunk("Hi"),),
        call=lambda n: (fragment(n, f'{{"n": {n}}}', id=f"c{n}", name="f"),),
        cut=lambda n: (fragment(n, '{"n": 7}', id=f"c{n}", name="f"),),
        late=lambda n: fragment(n, " 7}"),
        end=lambda word: (chunk(response_metadata={"finish_reason": word}, usage_metadata=usage),),
        body={"type": "ai", "content": "Hi", "id": "m1"},
        stop="stop",
        length="length",
    )


def _ai_sdk() -> Reply:
    def start(n: int) -> Chunk:
        return {"type": "tool-input-start", "toolCallId": f"c{n}", "toolName": "f"}

    def arguments(n: int, piece: str) -> Chunk:
        return {"type": "tool-input-delta", "toolCallId": f"c{n}", "inputTextDelta": piece}

    def whole(n: int) -> Chunk:
        return {"type": "tool-input-available", "toolCallId": f"c{n}", "toolName": "f", "input": {"n": n}}

    usage = {"usage": {"inputTokens": 3, "outputTokens": 5}}
    return Reply(
        begin=({"type": "start", "messageId": "m1"}, {"type": "start-step"}),
        text=({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "Hi"}),
        call=lambda n: (start(n), arguments(n, f'{{"n": {n}}}'), whole(n)),
        cut=lambda n: (start(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: (
            {"type": "finish-step"},
            {"type": "finish", "finishReason": word, "messageMetadata": usage},
        ),
        stop="stop",
        length="length",
    )


def _ag_ui() -> Reply:
    def start(n: int) -> Chunk:
        return {"type": "TOOL_CALL_START", "toolCallId": f"c{n}", "toolCallName": "f"}

    def arguments(n: int, piece: str) -> Chunk:
        return {"type": "TOOL_CALL_ARGS", "toolCallId": f"c{n}", "delta": piece}

    marks = {"metadata": {"rxdelta": {"finish_reason": "length"}}}
    return Reply(
        begin=({"type": "RUN_STARTED", "threadId": "t", "runId": "r"},),
        text=(
            {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi"},
        ),
        call=lambda n: (
            start(n),
            arguments(n, f'{{"n": {n}}}'),
            {"type": "TOOL_CALL_END", "toolCallId": f"c{n}"},
        ),
        cut=lambda n: (start(n), arguments(n, '{"n": 7}')),
        late=lambda n: arguments(n, " 7}"),
        end=lambda word: (
            {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", **(marks if word == "length" else {})},
        ),
        stop="stop",
        length="length",
    )


def _openai_chat() -> Reply:
    def chunk(finish: str | None = None, **delta: Any) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "m1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}

    def fragment(n: int, text: str, **fields: Any) -> Chunk:
        return chunk(
            tool_calls=[{"index": n, "function": {**fields.pop("function", {}), "arguments": text}, **fields}]
        )

    def begun(n: int, text: str) -> tuple[Chunk, ...]:
        return (fragment(n, text, id=f"c{n}", type="function", function={"name": "f"}),)

    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    message = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": None}
    return Reply(
        text=(chunk(role="assistant", content="Hi"),),
        call=lambda n: begun(n, f'{{"n": {n}}}'),
        cut=lambda n: begun(n, '{"n": 7}'),
        late=lambda n: fragment(n, " 7}"),
        end=lambda word: (
            chunk(word),
            {"id": "m1", "object": "chat.completion.chunk", "choices": [], "usage": usage},
        ),
        body={"id": "m1", "object": "chat.completion", "choices": [message]},
        stop="stop",
        length="length",
    )  # fmt: skip


REPLIES = {
    "ag-ui": _ag_ui(),
    "ai-sdk": _ai_sdk(),
    "anthropic-messages": _anthropic(),
    "bedrock-converse": _bedrock(),
    "cohere": _cohere(),
    "gemini": _gemini(),
    "gemini-interactions": _interactions(),
    "langchain": _langchain(),
    "mistral": _openai_chat(),
    "ollama": _ollama(),
    "openai-chat": _openai_chat(),
    "openai-responses": _responses(),
}
"""The reply of each format that has calls."""
