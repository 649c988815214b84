"""Events → the stream of OpenAI's Responses API, which Codex, the Agents SDK and OpenAI's packages read.

    stream = created in_progress item* (completed | incomplete | error failed)
    item   = output_item.added part* output_item.done

A block is an item, and one item is open at a time. The last frame has the whole response, with all items that have ended.
Items are those that a request would send back, so what goes out and what comes back have one spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from rxdelta.core import DEFAULT_LIMITS, InvalidValueError, Limits, is_mapping
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.openai_responses.item_frames import Response
from rxdelta.formats.openai_responses.response_frames import ResponseFrames
from rxdelta.formats.reply import ReplyEncoder
from rxdelta.formats.reply.writer import are_names
from rxdelta.framing import NamedFrame

__all__ = ["OpenAiResponsesEncoder"]


class OpenAiResponsesEncoder(ReplyEncoder[NamedFrame]):
    """The frames of one response.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model, tools, custom, on_error, reasoning, limits: As for `rxdelta.to_openai_responses`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OpenAiResponsesEncoder(now=lambda: 1.5, new_id=lambda: "resp_1")
        >>> frames = [frame for event in rd.to_events(rd.Message.of("assistant", "Hi")) for frame in encoder.encode(event)]
        >>> [frame["type"] for frame in frames][:3]
        ['response.created', 'response.in_progress', 'response.output_item.added']
        >>> [(frame["type"], frame["response"]["output"][0]["content"][0]["text"]) for frame in encoder.close()]
        [('response.completed', 'Hi')]
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        custom: Collection[str] | Mapping[str, Mapping[str, str]] = (),
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = ResponseFrames(
            _tools(custom), now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning
        )
        super().__init__(writer, Response, on_error=on_error, limits=limits, choice=choice)


def _tools(custom: Any) -> Mapping[str, Mapping[str, str]]:
    """The client's tools that aren't plain functions, by their names."""
    if not are_names(custom) or (is_mapping(custom) and not all(map(is_mapping, custom.values()))):
        wanted = "must be the names of the client's tools that take a text, such as apply_patch"
        advice = "custom_tools_from_openai_responses(body) has them"
        raise InvalidValueError.of([("custom", custom, wanted, advice)])
    if is_mapping(custom):
        return {name: {**found} for name, found in custom.items()}
    return {name: {"type": "custom"} for name in cast("Collection[str]", custom)}
