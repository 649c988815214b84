"""Events for the clients of a provider's API: Anthropic's Messages, Ollama, OpenAI's Chat Completions and Responses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.encode import encode, made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import (  # with their format, so not before it is named
        Done,
        Masked,
        NamedFrame,
        OpenAiChatEncoder,
        OpenAiChatFrame,
    )


@operator_maker
def to_anthropic_messages(
    model: str | None = None,
    *,
    tools: Collection[str] | None = None,
    on_error: Masked = masked,
    reasoning: bool = True,
) -> Callable[[Observable[Event]], Observable[NamedFrame]]:
    """Encode a streamed message, which every client of Anthropic's Messages API reads: Claude Code, Anthropic's packages.

    ::

        events  Hm                                                         -(call:look{})       --|
                to_anthropic_messages()
        frames  [<message_start><content_block_start><content_block_delta>]-<content_block_stop>--[<content_block_start>…<message_stop>|]

    In: events of one message, of a conversation, or of several runs. Out: events of the API for `to_sse()`, which writes
    their names, too. A block is one of the API's content: a text, a thinking, a `tool_use`. A refusal is a text. Blocks
    follow one another, and one that begins while another is open waits for its end. Texts are encoded at once. All messages
    are one message, with the usage of all of them together.

    The client runs every call whose block has stopped. So it sees the calls of the last message, without those that somebody
    has begun to run, those that wait for an approval and those that are known to be invalid. This is certain at the end of
    the source only, so they wait for it. With `tools` the calls of all other tools are sent piece by piece. If the arguments
    of such a call can't be read, the reply ends with an error, since the protocol has no place for it.

    What Anthropic's own tools did is passed on in its place, and the signatures of its reasoning, too. Those of another
    provider are left out, and its reasoning has an empty signature. docs/reference/frames-anthropic.md has the table of
    what else a message has no place for.

    If the source fails, or completes before its message has finished, or the reply takes back what the client has, the block
    that is open doesn't stop, and the output ends with `error`; also after a `MessageInterrupted`, whose reason is the
    error's text. Then the output completes; it never fails.

    Args:
        model: The model's name for the client, such as the one that it asked for; by default the reply's own.
        tools: The names of the tools that the server runs, such as the mapping that `run_tools` has. Their calls are
            never sent. `()` if the server runs none. Each call with another name is the client's.
        on_error: The text of an error for the client; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_anthropic_messages("house"))
        >>> frames.subscribe(lambda frame: print(frame["type"])).dispose()
        message_start
        content_block_start
        content_block_delta
        content_block_stop
        message_delta
        message_stop
    """
    from rxdelta.wire import AnthropicMessagesEncoder  # with the format, when it is named

    make = partial(
        AnthropicMessagesEncoder,
        now=time,
        new_id=partial(made_id, "msg_"),
        model=model,
        tools=tools,
        on_error=on_error,
        reasoning=reasoning,
    )
    return encode("to_anthropic_messages", make)


@operator_maker
def to_ollama(
    model: str | None = None,
    *,
    tools: Collection[str] | None = None,
    on_error: Masked = masked,
    reasoning: bool = True,
) -> Callable[[Observable[Event]], Observable[dict[str, Any]]]:
    """Encode a reply of Ollama's `/api/chat`, which local front ends and Ollama's packages read.

    ::

        events  Hm  -(call:look{})--|
                to_ollama()
        frames  <Hm>--            --[<call look><finish stop>|]

    In: events of one message, of a conversation, or of several runs. Out: lines for `to_ndjson()`. Texts and reasoning are
    encoded at once, but one block after the other; images and calls when they are complete. A refusal is a text. All messages
    are one: a blank line separates their texts, and the usage is that of all. The last line has `done: true`.

    The client runs every call that it sees. So it sees the calls of the last message, without those that somebody has begun
    to run, those that wait for an approval and those that are known to be invalid. This is certain at the end of the source
    only, so they wait for it. With `tools` a call of any other tool is sent when it is complete. If the arguments of such a
    call can't be read, the reply ends with an error, since the protocol has no place for it; unless the token limit has cut
    the call, which `done_reason` says.

    If the source fails, or completes before its message has finished, or the reply takes back what the client has, no line
    has `done: true`, and the output ends with an `{"error": …}`; also after a `MessageInterrupted`, whose reason is the
    error's text. Then the output completes; it never fails.

    docs/reference/frames-ollama.md has the table of what else a reply has no place for.

    Args:
        model: The model's name for the client, such as the one that it asked for; by default the reply's own.
        tools: The names of the tools that the server runs, such as the mapping that `run_tools` has. Their calls are
            never sent. `()` if the server runs none. Each call with another name is the client's.
        on_error: The text of an error for the client; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> lines = rx.from_iterable(reply).pipe(rd.to_ollama("house"))
        >>> lines.subscribe(lambda line: print(line["message"], line["done"])).dispose()
        {'role': 'assistant', 'content': 'Hi'} False
        {'role': 'assistant', 'content': ''} True
    """
    from rxdelta.wire import OllamaEncoder  # with the format, when it is named

    make = partial(
        OllamaEncoder,
        now=time,
        model=model,
        tools=tools,
        on_error=on_error,
        reasoning=reasoning,
    )
    return encode("to_ollama", make)


@operator_maker
def to_openai_chat(
    model: str | None = None,
    *,
    tools: Collection[str] | None = None,
    on_error: Masked = masked,
    reasoning: bool = True,
    include_usage: bool = True,
) -> Callable[[Observable[Event]], Observable[OpenAiChatFrame | Done]]:
    """Encode a streamed chat completion, which every client of OpenAI's Chat Completions reads.

    ::

        events  Hm           -(call:look{})--|
                to_openai_chat()
        frames  [<start><Hm>]--            --[<call look>…<DONE>|]

    In: events of one message, of a conversation, or of several runs. Out: chunks for `to_sse()`; then `DONE`, always. Texts
    are encoded at once, all choices by their `index`; media when they are complete. All messages are one completion: a blank
    line separates their texts, and the usage is that of all.

    The client runs every call that it sees. So it sees the calls of the last message, without those that somebody
    has begun to run, those that wait for an approval and those that are known to be invalid. This is certain at the end of the
    source only, so they wait for it, as the finish reasons do. With `tools` the calls of all other tools are sent piece by piece.

    Messages of runs that overlap follow one another. A sub-agent's words aren't sent. docs/reference/frames-openai.md
    has the table of what else a completion has no place for.

    If the source fails, or completes before its message has finished, or the reply takes back a text that the client
    has, there is no finish reason and no usage but an `{"error": …}`; also after a `MessageInterrupted`, whose reason is the
    error's text. Then the output completes; it never fails.

    Args:
        model: The model's name for the client, such as the one that it asked for; by default the reply's own.
        tools: The names of the tools that the server runs, such as the mapping that `run_tools` has. Their calls are
            never sent. `()` if the server runs none. Each call with another name is the client's.
        on_error: The text of an error for the client; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server.
        include_usage: Whether the last chunk is one with the usage, as a client asks by `stream_options`.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> chunks = rx.from_iterable(reply).pipe(rd.to_openai_chat("house"))
        >>> chunks.subscribe(lambda chunk: print(chunk and chunk is not rd.wire.DONE and chunk["choices"])).dispose()
        [{'index': 0, 'delta': {'role': 'assistant', 'content': ''}, 'finish_reason': None}]
        [{'index': 0, 'delta': {'content': 'Hi'}, 'finish_reason': None}]
        [{'index': 0, 'delta': {}, 'finish_reason': 'stop'}]
        False
    """
    from rxdelta.wire import OpenAiChatEncoder  # with the format, when it is named

    def make(limits: Limits, **_: int) -> OpenAiChatEncoder:  # which encodes all choices
        return OpenAiChatEncoder(
            now=time,
            new_id=partial(made_id, "chatcmpl-"),
            model=model,
            tools=tools,
            include_usage=include_usage,
            on_error=on_error,
            reasoning=reasoning,
            limits=limits,
        )

    return encode("to_openai_chat", make)


@operator_maker
def to_openai_responses(
    model: str | None = None,
    *,
    tools: Collection[str] | None = None,
    custom: Collection[str] | Mapping[str, Mapping[str, str]] = (),
    on_error: Masked = masked,
    reasoning: bool = True,
) -> Callable[[Observable[Event]], Observable[NamedFrame]]:
    """Encode a streamed response, which every client of OpenAI's Responses API reads: Codex, the Agents SDK, OpenAI's packages.

    ::

        events  Hm                             -(call:look{})                                            --|
                to_openai_responses()
        frames  [<created>…<output_text.delta>]-[<output_text.done><content_part.done><output_item.done>]--[<output_item.added>…<completed>|]

    In: events of one message, of a conversation, or of several runs. Out: events of the API for `to_sse()`, which writes
    their names, too. Each block is an item: a text, a refusal, a reasoning, a call for the client. Items follow one another,
    and a block that begins while an item is open waits for its end. Texts are encoded at once. All messages are one
    response, with the usage of all of them together.

    The client runs every call whose item is done. So it sees the calls of the last message, without those that somebody has
    begun to run, those that wait for an approval and those that are known to be invalid. This is certain at the end of the
    source only, so they wait for it. With `tools` the calls of all other tools are sent piece by piece.

    What OpenAI's own tools did is passed on in its place, and encrypted reasoning that only OpenAI can read, too. Those of
    another provider are left out. docs/reference/frames-openai.md has the table of what else a response has no place for.

    If the source fails, or completes before its message has finished, or the reply takes back what the client has, the item
    that is open isn't done, and the output ends with `error` and `response.failed`; also after a `MessageInterrupted`, whose
    reason is the error's text. Then the output completes; it never fails.

    Args:
        model: The model's name for the client, such as the one that it asked for; by default the reply's own.
        tools: The names of the tools that the server runs, such as the mapping that `run_tools` has. Their calls are
            never sent. `()` if the server runs none. Each call with another name is the client's.
        custom: The names of the client's tools that take a text instead of JSON, such as Codex' `apply_patch`; or what
            `rd.requests.custom_tools_from_openai_responses` finds in the client's request, which has namespaces, too.
            Another provider's model calls such a tool as a function, a custom one with the argument `input`. The client
            gets the call that it asked for.
        on_error: The text of an error for the client; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_openai_responses("house"))
        >>> frames.subscribe(lambda frame: print(frame["type"])).dispose()
        response.created
        response.in_progress
        response.output_item.added
        response.content_part.added
        response.output_text.delta
        response.output_text.done
        response.content_part.done
        response.output_item.done
        response.completed
    """
    from rxdelta.wire import OpenAiResponsesEncoder  # with the format, when it is named

    make = partial(
        OpenAiResponsesEncoder,
        now=time,
        new_id=partial(made_id, "resp_"),
        model=model,
        tools=tools,
        custom=custom,
        on_error=on_error,
        reasoning=reasoning,
    )
    return encode("to_openai_responses", make)
