"""Events for every client of Anthropic's Messages API."""

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
    from rxdelta.wire import AnthropicMessagesEncoder, Masked, NamedFrame

__all__ = ["to_anthropic_messages"]


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

    def make(limits: Limits, choice: int) -> AnthropicMessagesEncoder:
        return AnthropicMessagesEncoder(
            now=time,
            new_id=_random_id,
            model=model,
            tools=tools,
            on_error=on_error,
            reasoning=reasoning,
            limits=limits,
            choice=choice,
        )

    return encode("to_anthropic_messages", make)


def _random_id() -> str:
    return f"msg_{made_id()}"
