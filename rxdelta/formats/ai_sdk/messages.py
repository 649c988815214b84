"""The messages that `useChat` sends with each turn → messages for the next request.

The parts of a UI message hold what the chunks of its stream held. They are turned into chunks again and decoded, so
there is one reading of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    Fold,
    InvalidValueError,
    LimitExceededError,
    MalformedChunkError,
    Message,
    MessageDelta,
    ToolCall,
    Walk,
    events,
    is_mapping,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder, json_text
from rxdelta.formats.ai_sdk.marks import (
    ATTEMPT_RESET,
    FINISH_REASON,
    FIRST,
    OWN_DATA,
    RUN,
    RUN_ID,
    STATUS,
    SUBAGENT,
    TOOL_UPDATE,
    WHOLE_BLOCK,
    is_invalid_call,
    is_without_output,
    marks_in,
    marks_of,
)
from rxdelta.formats.ai_sdk.tables import CUT_OFF, TOOL_FAILED, is_data
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.front_ends import place_in, put_back

_SAME_AS_CHUNK = frozenset(
    [
        "file", "reasoning-file", "custom", "source-url", "source-document",
        WHOLE_BLOCK, TOOL_UPDATE, ATTEMPT_RESET,
    ]
)  # fmt: skip
_FROM_A_PERSON = frozenset(["text", "file"])
_OUTPUTS = ("tool-output-available", "tool-output-error")
_NO_BLOCK = frozenset(["step-start", "source-url", "source-document", TOOL_UPDATE, ATTEMPT_RESET])
_REQUESTED_CALLS = frozenset(["tool_call", "invalid_tool_call"])
_MESSAGE_EVENTS = (
    events.MessageStart,
    events.UsageUpdate,
    events.MessageFinish,
    events.MessageInterrupted,
    events.AttemptReset,
)


def from_ai_sdk(
    messages: Iterable[Mapping[str, Any]], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The messages of a request by Vercel's AI SDK, for `to_request`; `decode` reads what `to_ai_sdk` writes.

    Each step of an assistant's message becomes a message, whose calls have their results, also those of the client's
    own tools. Content for which the protocol has no field comes back, if `to_ai_sdk` sent it: signatures, encrypted reasoning,
    citations. Each message of another run is a message, too. A call that was cut off is an invalid call; a call that was
    denied has failed. The application's `data-…` parts are a message's `custom_events`, which no request has. Left out are
    an attempt that failed, the parts of sub-agents, unknown parts, and all but text and files in the messages of a person
    or the system.

    The browser sends all messages, also the assistant's and the tools', and may have changed them. Where that matters,
    take only the last message from the browser and the others from your own storage. A browser can't make the provider
    read what the server's key may read: an address with a scheme other than `https`, `http` and `data`, or the id of a
    file, is refused in a person's message or a tool's result; in an assistant's message the part with it is left out.
    Items of a reply in the provider's own form come back only if a model makes such items.

    Args:
        messages: The UI messages of the client's request.
        system: Whether to accept messages of role `system`. Anybody who can send a request can add them.
        allow: Addresses that the browser may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the
            files that are stored with the provider; `tool_definitions`, the provider's tools that a client's tool
            search found.

    Raises:
        InvalidValueError: A message is not a UI message, names what isn't allowed, or is a system message without
            `system=True`. The error names the message.
        LimitExceededError: A message has too many parts, or too many of the application.

    Example:
        >>> import rxdelta as rd
        >>> messages = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]
        >>> rd.to_request(rd.from_ai_sdk(messages), "openai-chat")
        {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    admission = Admission(allow)
    found: list[tuple[Message, str]] = []
    if is_mapping(messages) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of UI messages")])
    for place, message in enumerate(messages):
        path = f"messages[{place}]"
        if not is_mapping(message):
            raise InvalidValueError.of([(path, message, "must be a UI message")])
        role, parts = message.get("role"), message.get("parts")
        if role not in ("user", "assistant", "system"):
            raise InvalidValueError.of([(f"{path}.role", role, "must be user, assistant or system")])
        if role == "system" and not system:
            raise InvalidValueError.of(
                [(f"{path}.role", role, "is allowed with system=True only: anybody could have written it")]
            )
        if not isinstance(parts, (list, tuple)):
            raise InvalidValueError.of([(f"{path}.parts", parts, "must be a list")])
        steps = [step for step in _steps(message, parts, path) if step.blocks]  # pyright: ignore[reportUnknownArgumentType]
        if role != "assistant":
            steps = [attrs.evolve(step, role=role, finish_reason=None) for step in steps]
        found += [(step, path) for step in steps]
    return admission.messages(found)


def _steps(message: Json, parts: Iterable[Any], path: str) -> list[Message]:
    """The messages that a UI message consists of."""
    decoder, replies = AiSdkDecoder(), [_Reply()]
    for place, chunk in _chunks(message, parts, path):
        try:
            decoded = decoder.decode(chunk)
        except MalformedChunkError as error:
            raise InvalidValueError.of([(place, chunk, f"is no part of a UI message: {error}")]) from error
        for event in decoded:
            if isinstance(event, events.MessageStart) and replies[-1].over:
                replies.append(_Reply())
            replies[-1].step(event)
    if len(replies) > 1 and replies[-1].is_empty:  # no message, but the application may have spoken
        empty = replies.pop()
        replies[-1].continue_with(empty)
    return [reply.message() for reply in replies]


class _Reply:
    """A message that is put together: a walk for its blocks, and a fold for the rest.

    One fold for everything would make a snapshot at each step. Here only the result is needed.
    """

    def __init__(self) -> None:
        self._rest = Fold()
        self._walk = Walk()
        self._custom: dict[object, tuple[int, events.Custom]] = {}  # by name and id, or by number
        self._placed: list[object] = []  # the keys of those that this attempt has added

    @property
    def over(self) -> bool:
        return self._walk.over

    @property
    def is_empty(self) -> bool:
        return not self._walk.blocks

    def continue_with(self, other: _Reply) -> None:
        """Keep what the application said in an empty reply behind this one."""
        for _, event in other._custom.values():
            self._keep(event)

    def step(self, event: Event) -> None:
        if isinstance(event, events.Custom):
            self._keep(event)
            return
        if isinstance(event, events.AttemptReset):  # it takes back the blocks alone
            for key in self._placed:
                self._custom[key] = 0, self._custom[key][1]
            self._placed = []
        self._walk.step(event)
        if isinstance(event, _MESSAGE_EVENTS):
            if isinstance(event, events.MessageFinish):  # its reason depends on the calls
                for call in islice(self._requested_calls(), 1):
                    self._rest.step(MessageDelta(tool_calls=[call]))
            self._rest.step(event)

    def _keep(self, event: events.Custom) -> None:
        key = len(self._custom) if event.id is None else (event.name, event.id)
        if key not in self._custom:
            self._placed.append(key)
        place, _ = self._custom.get(key, (len(self._walk.blocks) + self.over, event))
        self._custom[key] = place, event
        if len(self._custom) > DEFAULT_LIMITS.blocks:
            limit = DEFAULT_LIMITS.blocks
            raise LimitExceededError.of("blocks", limit, "the number of custom events in one message")

    def _requested_calls(self) -> Iterator[ToolCall]:
        blocks = (fold.block for fold in self._walk.blocks.values())
        return (block for block in blocks if isinstance(block, ToolCall) and block.type in _REQUESTED_CALLS)

    def message(self) -> Message:
        blocks = [fold.block for fold in self._walk.blocks.values()]
        return attrs.evolve(self._rest.snapshot.to_message(), blocks=blocks, custom=self._custom.values())


def _chunks(message: Json, parts: Iterable[Any], path: str) -> Iterator[tuple[str, Json]]:
    """The chunks of a stream with this message, each with the path of its part."""
    given = message.get("metadata")
    metadata: Json = given if is_mapping(given) else {}
    yield path, {"type": "start", "messageId": message.get("id"), "messageMetadata": metadata}
    step = _Step()
    for number, part in _run_by_run(list(enumerate(parts))):
        place = f"{path}.parts[{number}]"
        kind = part.get("type") if is_mapping(part) else None
        if not isinstance(kind, str):
            raise InvalidValueError.of([(place, part, "must be an object with a type")])
        if message.get("role") == "assistant" or kind in _FROM_A_PERSON:
            if kind in ("step-start", ATTEMPT_RESET):
                yield from step.chunks()
                step = _Step()
            step.add(kind, [(place, chunk) for chunk in _chunks_of(part, kind, f"{number}")])
    yield from step.chunks()
    if metadata.get(STATUS) in ("interrupted", "incomplete"):
        yield path, {"type": "abort"}
    else:
        yield path, {"type": "finish", "finishReason": metadata.get(FINISH_REASON)}


class _Step:
    """The chunks of a step, block by block. An output is a block where the provider ran the tool."""

    def __init__(self) -> None:
        self._blocks: list[list[tuple[str, Json]]] = [[]]
        self._late: list[tuple[int, list[tuple[str, Json]]]] = []

    def add(self, kind: str, chunks: list[tuple[str, Json]]) -> None:
        if kind in _NO_BLOCK or is_data(kind):
            self._blocks[-1] += chunks
            return
        last: Json = chunks[-1][1] if chunks else {}
        is_output = last.get("type") in _OUTPUTS and not is_without_output(last)
        if last.get("providerExecuted") is True and is_output:
            *chunks, output = chunks
            self._blocks.append(chunks)
            place = place_in(marks_of(output[1]))
            if place is not None:
                self._late.append((place + 1, [output]))
                return
            chunks = [output]
        self._blocks.append(chunks)

    def chunks(self) -> Iterator[tuple[str, Json]]:
        blocks = put_back(self._blocks, self._late)
        return chain.from_iterable(blocks)


def _run_by_run(parts: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The numbered parts, message by message, if they are of several runs. Those of sub-agents are left out."""
    if not any(is_mapping(part) and part.get("type") == RUN for _, part in parts):
        return parts
    groups: list[list[tuple[int, Any]]] = []
    newest: dict[object, list[tuple[int, Any]]] = {}  # by run
    noted = False
    for number, part in parts:
        marks = _run_marks(part)
        run = None if marks.get(FIRST) is True else marks.get(RUN_ID)
        if marks.get(SUBAGENT) is True or (run is not None and not isinstance(run, str)):
            continue
        kind = part.get("type") if is_mapping(part) else None
        late = kind == RUN and run is None and not noted  # the first run is noted when there is a second one
        noted = noted or late
        if run not in newest or (kind in (RUN, "step-start") and not late):
            newest[run] = [(number, {"type": "step-start"})]
            groups.append(newest[run])
        if kind not in (RUN, "step-start"):
            newest[run].append((number, part))
    return [one for group in groups for one in group]


def _run_marks(part: object) -> Json:
    """The marks of a part that may name its run."""
    if not is_mapping(part):
        return {}
    data = part.get("data")
    if is_mapping(data) and word(part.get("type")) in OWN_DATA:
        return data
    return {
        **marks_in(part.get("resultProviderMetadata")),
        **marks_in(part.get("callProviderMetadata")),
        **marks_in(part.get("providerMetadata")),
    }


def _chunks_of(part: Json, kind: str, own_id: str) -> Iterator[Json]:
    if kind == "step-start":
        yield {"type": "start-step"}
    elif kind in ("text", "reasoning"):
        metadata = _known(providerMetadata=part.get("providerMetadata"))
        yield {"type": f"{kind}-start", "id": own_id, **metadata}
        yield {"type": f"{kind}-delta", "id": own_id, "delta": part.get("text")}
        yield {"type": f"{kind}-end", "id": own_id, **_known(citations=part.get("citations")), **metadata}
    elif kind in _SAME_AS_CHUNK:
        yield part
    elif is_data(kind):
        yield {"type": kind, "id": part.get("id"), "data": part.get("data")}
    elif kind == "dynamic-tool" or kind.startswith("tool-"):
        name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        yield from _chunks_of_tool(part, name)


def _chunks_of_tool(part: Json, name: Any) -> Iterator[Json]:
    call = {
        "toolCallId": part.get("toolCallId"),
        **_known(providerExecuted=part.get("providerExecuted"), toolMetadata=part.get("toolMetadata")),
    }
    call_metadata, result_metadata = part.get("callProviderMetadata"), part.get("resultProviderMetadata")
    about = {"toolName": name, **_known(title=part.get("title"), providerMetadata=call_metadata), **call}
    result = {**_known(providerMetadata=result_metadata), **call}
    state, given = part.get("state"), part.get("input")
    approval = part.get("approval")
    if state == "input-streaming":
        raw = part.get("rawInput")
        text = raw if isinstance(raw, str) else json_text(given) if given is not None else ""
        yield {"type": "tool-input-error", "input": text, "errorText": CUT_OFF, **about}
        return
    failed = part.get("errorText") or TOOL_FAILED
    if state == "output-error" and (
        not is_mapping(given) or is_invalid_call(result_metadata) or is_invalid_call(call_metadata)
    ):
        raw = part.get("rawInput") if given is None else given
        yield {"type": "tool-input-error", "input": "" if raw is None else raw, "errorText": failed, **about}
        return
    yield {"type": "tool-input-available", "input": given, **about}
    if state == "output-available":
        preliminary = _known(preliminary=part.get("preliminary"))
        yield {"type": "tool-output-available", "output": part.get("output"), **preliminary, **result}
    elif state == "output-error":
        yield {"type": "tool-output-error", "errorText": failed, **result}
    elif is_mapping(approval):
        asked = {"approvalId": part.get("toolCallId")}
        yield {"type": "tool-approval-request", **asked, **call}
        if state == "output-denied" or approval.get("approved") is False:
            reason = {"reason": approval.get("reason")}
            yield {"type": "tool-approval-response", **asked, "approved": False, **reason}
    elif state == "output-denied":
        yield {"type": "tool-output-denied", **call}


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
