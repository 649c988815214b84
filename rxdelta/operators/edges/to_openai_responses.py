"""Events for every client of OpenAI's Responses API."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from rxdelta.operators.edges.encode import encode
from rxdelta.operators.edges.made_ids import made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import Masked, NamedFrame, OpenAiResponsesEncoder

__all__ = ["to_openai_responses"]


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

    def make(limits: Limits, choice: int) -> OpenAiResponsesEncoder:
        return OpenAiResponsesEncoder(
            now=time,
            new_id=_random_id,
            model=model,
            tools=tools,
            custom=custom,
            on_error=on_error,
            reasoning=reasoning,
            limits=limits,
            choice=choice,
        )

    return encode("to_openai_responses", make)


def _random_id() -> str:
    return f"resp_{made_id()}"
