"""The ends of replies that didn't end well: a provider's error in the stream, and a reply without a finish reason.

Most providers have a field `error`. Others, and the gateways in front of servers, have forms of their own: `_FORMS` is their
table. Some report a failure by the reply's finish reason alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from rxdelta.core import Event, TokenUsage, finish_reason, is_list, is_mapping
from rxdelta.core.events import MessageFinish, ProviderEvent, StreamError, UsageUpdate
from rxdelta.formats.decoding import NOTHING, Json, kept, word
from rxdelta.formats.notes import FINISH_REASON_ASSUMED

PROVIDER_ERROR: Final = "error"
"""The name of the provider's event with the whole object of an error, in front of the `StreamError`."""


@attrs.frozen
class Broken:
    """What a finish reason means with which a provider says that it failed.

    Attributes:
        sentence: What went wrong.
        transient: Whether another try may succeed.
    """

    sentence: str
    transient: bool


OF_OPEN_SERVERS: Mapping[str, Broken] = {
    "error": Broken("the server failed while it wrote the reply", True),
    "abort": Broken("the server gave the reply up", True),
}
"""The words of vLLM and SGLang, servers of open models that speak several formats."""


def broken_off(word: str, broken: Broken, choice: int = 0) -> StreamError:
    """The end of a reply whose finish reason says that the provider failed.

    Example:
        >>> broken_off("network_error", Broken("the connection to the model broke", True))
        StreamError(message='the connection to the model broke', type=None, code='network_error', transient=True, choice=0)
    """
    return StreamError(broken.sentence, None, word, transient=broken.transient, choice=choice)


def error_in(source: object) -> Json | None:
    """The error that an object has in its field `error`, as an object; `None` if it has none."""
    if not isinstance(source, Mapping):
        return None
    error: Any = source.get("error")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not error:
        return None
    if isinstance(error, Mapping):
        return None if _says_nothing(error) else error  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if not isinstance(error, str):
        return {"error": error}
    sentence, code = word(source.get("message")), _code(source, _CODES)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    found: dict[str, Any] = {"message": error} if sentence is None else {"message": sentence, "type": error}
    return found if code is None or _means_success(code) else {**found, "code": code}


def _says_nothing(error: Json) -> bool:
    """Whether it has no more than a code that means success: `{"code": 0, "message": ""}`."""
    return _means_success(_code(error, _CODES)) and all(
        name in _CODES or value in NOTHING for name, value in error.items()
    )


def failure_in(chunk: Json, *answers: str) -> Json | None:
    """The chunk itself, if it is an error by another name than `error`; `None` if it is none.

    Args:
        chunk: The chunk.
        answers: The fields with the model's answer. A chunk with a part of the answer is no error.

    Example:
        >>> failure_in({"detail": "Not Found"}, "choices")
        {'detail': 'Not Found'}
        >>> failure_in({"code": 0, "message": "ok"}, "choices")
        >>> failure_in({"code": 1, "message": "…", "choices": [{"delta": {}}]}, "choices")
    """
    if any(chunk.get(name) for name in answers):
        return None
    return chunk if chunk.get("_event") == "error" or _reading(chunk) is not None else None


def is_surely_an_error(chunk: Json, *answers: str) -> bool:
    """Whether a chunk is an error by a name other than `error` and by more than a sentence, which anything may have."""
    found = None if any(chunk.get(name) for name in answers) else _reading(chunk)
    return found is not None and found.is_sure


def error_code(value: object) -> str | None:
    """An error's code as text: a string, or a number that is not too large to be a code."""
    if type(value) is int:
        return str(value) if abs(value) < 2**31 else None
    return word(value)


def error_events(provider: str, error: Mapping[str, Any], kind: object, read: frozenset[str]) -> list[Event]:
    """The event of an error, with which a stream ends. If fields are not read, the provider's object goes before it."""
    message, code, transient = word(error.get("message")), error_code(error.get("code")), None
    found = _reading(error)
    if found is not None:
        message, transient, read = found.sentence, found.transient, read | found.read
        code = code or (None if found.code == kind else found.code)
    more = any(value not in NOTHING for name, value in error.items() if name not in read)
    before: list[Event] = []
    if more or message is None:  # such as Groq's `failed_generation`
        before.append(ProviderEvent(provider, PROVIDER_ERROR, kept(error)))
    return [*before, StreamError(message or "unknown error", word(kind), code, transient=transient)]


# Errors by other names.


def _words(written: str) -> tuple[str, ...]:
    return tuple(written.split())


@attrs.frozen
class _Form:
    """A form of an error.

    Attributes:
        sentence: The places of the sentence: the names on the way to it with dots between.
        code: The places of the code.
        again: Codes by which another try may succeed, where the code alone doesn't show it.
        alone: Whether this is an error without a code only where the chunk says nothing else.
    """

    sentence: Sequence[str] = attrs.field(converter=_words)
    code: Sequence[str] = attrs.field(converter=_words)
    again: Sequence[str] = attrs.field(default="", converter=_words)
    alone: bool = False


_CODES = ("code", "status_code", "statusCode", "status")

_FORMS = (
    # MiniMax: infiniflow/ragflow#17292, https://platform.minimax.io/docs/api-reference/errorcode
    _Form("base_resp.status_msg", "base_resp.status_code", "1000 1001 1002 1024 1033"),
    # Baidu: https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh
    _Form("error_msg", "error_code", "1 2 4 15 18 336000 336100 336501 336502"),
    # Cloudflare: https://developers.cloudflare.com/workers-ai/platform/errors
    _Form("errors", "errors.code", "3007 3008 3040"),
    # Apigee
    _Form(
        "fault.faultstring",
        "fault.detail.errorcode",
        "policies.ratelimit.QuotaViolation policies.ratelimit.SpikeArrestViolation "
        "messaging.adaptors.http.flow.GatewayTimeout messaging.adaptors.http.flow.ServiceUnavailable",
    ),
    # FastAPI, and RFC 9457
    _Form("detail", " ".join(_CODES), alone=True),
    # DashScope, SiliconFlow (code and message); Zhipu (code and msg); gateways of AWS (message alone)
    _Form("message msg Message", " ".join(_CODES), "50505", alone=True),
)

_SAYING = frozenset(place.partition(".")[0] for form in _FORMS for place in (*form.sentence, *form.code))
"""The fields in which a chunk can say that it is an error."""

_ASIDE = frozenset(
    [
        "_event",
        "type",
        "title",
        "instance",
        "path",
        "timestamp",
        "success",
        "data",
        "result",
        "messages",
        "choices",
        "id",
        "request_id",
        "requestId",
        "RequestId",
        "trace_id",
        "connectionId",
    ]
).union(_CODES)
"""Fields that say nothing of a reply, so that an error may have them."""


@attrs.frozen
class _Reading:
    """What a form finds. `read` are the fields that it has used up; it `is_sure` by more than a sentence."""

    sentence: str | None
    code: str | None
    transient: bool | None
    read: frozenset[str]
    is_sure: bool


def _reading(chunk: Json) -> _Reading | None:
    """The error that a chunk is by one of the forms."""
    if _SAYING.isdisjoint(chunk) or chunk.get("success") is True:
        return None
    for form in _FORMS:
        found = next((one for place in form.sentence if (one := _at(chunk, place)) is not None), None)
        sentence, code = _sentence(found), _code(chunk, form.code)
        if _means_success(code) or _means_success(sentence):
            continue
        says_so = code is not None or (sentence is not None and _is_alone(chunk, form))
        if says_so and not (form.alone and sentence is None):
            used = [name for name in (*form.sentence, *form.code) if isinstance(chunk.get(name), (str, int))]
            read = frozenset([*used, "_event", "type", "success"])
            transient = True if code in form.again else None
            return _Reading(sentence, code, transient, read, code is not None or not form.alone)
    return None


def _is_alone(chunk: Json, form: _Form) -> bool:
    return (
        not form.alone
        or "error" in (chunk.get("type"), chunk.get("_event"))
        or all(name in _ASIDE or name in form.sentence or value in NOTHING for name, value in chunk.items())
    )


def _at(found: Any, place: str) -> Any:
    """The value at a place. A list has it in its first item."""
    for name in place.split("."):
        if is_list(found):
            found = found[0] if found else None
        found = found.get(name) if is_mapping(found) else None
    return None if found in NOTHING else found


def _code(chunk: Any, places: Sequence[str]) -> str | None:
    return next((code for place in places if (code := error_code(_at(chunk, place))) is not None), None)


def _means_success(said: str | None) -> bool:
    """Whether a code, or a sentence that is no more than a word, says that nothing went wrong."""
    known = (said or "").strip().casefold()
    if known.isdecimal() and len(known) < 10:
        return int(known) == 0 or 200 <= int(known) < 300
    return known in ("ok", "success", "successful", "succeeded", "true")


def _sentence(found: Any) -> str | None:
    """The sentence that a field has: a text, an object with a text, or a list of such."""
    items = found if is_list(found) else [found]
    return "; ".join(sentence for one in items for sentence in _sentences(one)) or None


def _sentences(found: Any) -> Iterator[str]:
    if isinstance(found, str) and found:
        yield found
    elif is_mapping(found):
        said = next((text for name in _TEXTS if (text := word(found.get(name)))), None)
        inner = found.get("error")
        if said is None and is_mapping(inner):
            said = word(inner.get("message"))
        if said is not None:
            place = found.get("loc")  # where FastAPI found a fault in the request
            where = ".".join(filter(None, map(error_code, place))) if is_list(place) else ""
            yield f"{where}: {said}" if where else said


_TEXTS = ("message", "msg", "detail", "error", "reason", "title")


def assumed_finish(
    usage: TokenUsage | None, metadata: Mapping[str, Any], *, asked: bool, choice: int = 0
) -> MessageFinish:
    """The finish of a message whose provider gave no reason.

    Args:
        usage: The usage, if it is known.
        metadata: What the message has beyond its fields.
        asked: Whether the message has calls for the client.
        choice: The choice.

    Example:
        >>> assumed_finish(None, {}, asked=True).to_dict()
        {'event': 'message-finish', 'reason': 'tool_use', 'metadata': {'finish_reason_assumed': True}}
    """
    reason = finish_reason(None, asked=asked)
    return MessageFinish(reason, None, usage, {**metadata, FINISH_REASON_ASSUMED: True}, choice=choice)


def broken_events(
    provider: str,
    word: str,
    broken: Broken,
    usage: TokenUsage | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    choice: int = 0,
) -> list[Event]:
    """The events in place of the finish, if the finish reason says that the provider failed.

    Args:
        provider: The provider's name.
        word: The finish reason.
        broken: What it means.
        usage: The usage, unless it has been emitted.
        metadata: What the message has beyond its fields. No error has a place for it, so that it is passed on.
        choice: The choice.

    Example:
        >>> [event.event for event in broken_events("google", "OTHER", Broken("unknown", True), metadata={"a": 1})]
        ['provider', 'error']
    """
    found: list[Event] = [] if usage is None else [UsageUpdate(usage, choice=choice)]
    if metadata:
        found.append(ProviderEvent(provider, word, metadata))
    return [*found, broken_off(word, broken, choice)]
