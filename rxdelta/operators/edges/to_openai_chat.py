"""Events for every client of OpenAI's Chat Completions."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from rxdelta.operators.edges.encode import encode
from rxdelta.operators.edges.made_ids import made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import Done, Masked, OpenAiChatEncoder, OpenAiChatFrame

__all__ = ["to_openai_chat"]


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

    Messages of runs that overlap follow one another. What a sub-agent says isn't sent. docs/reference/frames-openai.md
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

    def make(limits: Limits, _: int) -> OpenAiChatEncoder:
        return OpenAiChatEncoder(
            now=time,
            new_id=_random_id,
            model=model,
            tools=tools,
            include_usage=include_usage,
            on_error=on_error,
            reasoning=reasoning,
            limits=limits,
        )

    return encode("to_openai_chat", make)


def _random_id() -> str:
    return f"chatcmpl-{made_id()}"
