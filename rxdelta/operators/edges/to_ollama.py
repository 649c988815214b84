"""Events for every client of Ollama's API."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.encode import encode
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import Masked, OllamaEncoder

__all__ = ["to_ollama"]


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

    def make(limits: Limits, choice: int) -> OllamaEncoder:
        return OllamaEncoder(
            now=time,
            model=model,
            tools=tools,
            on_error=on_error,
            reasoning=reasoning,
            limits=limits,
            choice=choice,
        )

    return encode("to_ollama", make)
