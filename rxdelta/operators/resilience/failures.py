"""The default answers to "is this failure worth another try?" and "when?".

The exceptions of HTTP clients and providers' SDKs are recognised by their attributes (`status_code`, `response`,
`code`, `body`) and their classes' names, without an import.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from rxdelta.core import (
    InvalidValueError,
    ProviderError,
    RxDeltaError,
    Seconds,
    StallTimeoutError,
    StreamInterrupted,
    check_seconds,
    is_mapping,
)

_DEPTH = 9  # the error, and causes of causes

# Providers' names of errors, as `_normalized` writes them.
_TRANSIENT = frozenset(
    {"api", "badgateway", "deadline", "engineoverloaded", "gatewaytimeout", "internal", "internalfailure"}
    | {"internalserver", "modelnotready", "modelstream", "modeltimeout", "overloaded", "ratelimit", "server"}
    | {"resourceexhausted", "serviceunavailable", "slowdown", "throttling", "timeout", "toomanyrequests"}
    | {"endpointrequesttimedout", "modelserving", "modelunavailable", "requesttimeout", "unavailable"}
)
_PERMANENT = frozenset(
    {
        "accessdenied",
        "authentication",
        "billing",
        "billinghardlimitreached",
        "billingnotactive",
        "contentfilter",
    }
    | {"arrearage", "contentpolicyviolation", "contextlength", "datainspectionfailed", "failedprecondition"}
    | {"insufficientbalance", "insufficientquota", "invalidapikey", "invalidparameter"}
    | {"invalidargument", "invalidprompt", "invalidrequest", "modelnotfound", "notfound", "permission"}
    | {"permissiondenied", "quota", "requesttoolarge", "unauthenticated", "unsupported", "validation"}
)
_ENDINGS = ("exception", "error", "exceeded")
_CONNECTION_ERRORS = frozenset(
    {
        "APIConnectionError",  # openai, anthropic and their kin
        "APITimeoutError",
        "NetworkError",  # httpx
        "RemoteProtocolError",
        "TimeoutException",
        "ClientConnectionError",  # aiohttp
        "ClientPayloadError",
        "ProtocolError",  # urllib3
        "IncompleteRead",
        "NewConnectionError",
        "ReadTimeoutError",
        "EndpointConnectionError",  # botocore
        "ConnectionClosedError",
        "HTTPClientError",
        "ResponseStreamingError",
    }
)


def is_transient(error: BaseException) -> bool:
    """Whether another try may succeed; the default of `retry_stream`.

    Yes: overloaded, rate limited, a failure of the server (status 408, 409, 425, 429, 5xx), a connection that broke
    or timed out, a stall. No: an invalid request, a refused key, an exhausted quota, and any unknown error. A header
    `x-should-retry` overrides this. For a finish reason that says that the provider failed, the table on the format's
    page decides (`ProviderError.transient`). An error without type and code is known if its sentence is the phrase of
    a status, such as "Service Unavailable".

    An exception of any client is judged by its attributes and its class; without an answer, its cause is judged. An
    exception of your own says it by an attribute `transient`, which is a bool.

    Example:
        >>> import rxdelta as rd
        >>> rd.errors.is_transient(rd.ProviderError("Overloaded", type="overloaded_error"))
        True
        >>> rd.errors.is_transient(rd.ProviderError("No such model", type="not_found_error"))
        False
    """
    known: BaseException | None = error
    for _ in range(_DEPTH):
        if known is None:
            break
        verdict = _verdict(known)
        if verdict is not None:
            return verdict
        known = known.__cause__
    return False


def _verdict(error: BaseException) -> bool | None:
    """Yes, no, or `None` if this exception has no answer."""
    if isinstance(error, StallTimeoutError):
        return True
    if isinstance(error, RxDeltaError) and not isinstance(error, (ProviderError, StreamInterrupted)):
        return False
    said = _get(error, "transient")
    if isinstance(said, bool):
        return said
    header = header_of(error, "x-should-retry")
    if header in ("true", "false"):
        return header == "true"
    names = {_normalized(word) for name in _error_names(error) for word in (name, name.partition(".")[0])}
    if names & _PERMANENT or "insufficient balance" in _sentence(error).lower():
        return False
    if names & _TRANSIENT:
        return True
    status = status_of(error)
    if status is not None and status >= 400:
        return status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505))
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return True if _CONNECTION_ERRORS.intersection(kind.__name__ for kind in type(error).__mro__) else None


def _normalized(word: str) -> str:
    """Write `rate_limit_exceeded`, `RateLimitError` and `RATE_LIMIT` in the same way."""
    normalized = "".join(letter for letter in word.lower() if letter.isalnum())
    for ending in _ENDINGS:
        normalized = normalized.removesuffix(ending) or normalized
    return normalized


def _error_names(error: BaseException) -> Iterator[str]:
    """The provider's names of the error."""
    response = _get(error, "response")
    body = _get(error, "body")
    for source in (error, body, _get(body, "error"), _get(response, "Error")):
        for name in ("type", "code", "status", "Code"):
            word = _get(source, name)
            if isinstance(word, str):
                yield word
    if isinstance(error, ProviderError) and error.type is error.code is None:
        yield error.message  # of frameworks and gateways often no more than a status' phrase


def _sentence(error: BaseException) -> str:
    return error.message if isinstance(error, ProviderError) else ""


def status_of(error: BaseException) -> int | None:
    """The HTTP status of an error, or of its response."""
    response = _get(error, "response")
    found = [
        _get(error, "status_code"),
        _get(response, "status_code"),
        _get(error, "status"),
        _get(error, "code"),
    ]
    found.append(_get(_get(response, "ResponseMetadata"), "HTTPStatusCode"))
    for status in found:
        if isinstance(status, str) and status.isdecimal() and len(status) == 3:
            return int(status)
        if isinstance(status, int) and 100 <= status < 600:
            return int(status)
    return None


def header_of(error: BaseException, name: str) -> str | None:
    """A header of an error's response, or of the error itself."""
    for source in (_get(error, "response"), error):
        headers = _get(source, "headers")
        if isinstance(headers, Mapping):
            named: Mapping[Any, Any] = headers  # pyright: ignore[reportUnknownVariableType]
            for key in (name, name.title()):
                value = named.get(key)
                if isinstance(value, str):
                    return value.strip()
    return None


def _get(source: Any, name: str) -> Any:
    """An object's attribute or a mapping's value; `None` if reading it raises, as some attributes in httpx do."""
    try:
        return source.get(name) if is_mapping(source) else getattr(source, name, None)
    except Exception:
        return None


def exponential_backoff(
    first: Seconds = 0.5,
    factor: float = 2.0,
    longest: Seconds = 30.0,
    *,
    random: Callable[[], float] = random.random,
) -> Callable[[int, BaseException], float]:
    """Make a backoff for `retry_stream`: waits grow by `factor`, with jitter, and respect the server's wish.

    The wait after the nth failure is between half of `first * factor ** (n - 1)` and the whole. It is longer if the
    error has a longer `retry-after-ms` or `retry-after` header (seconds or a date). It is never longer than `longest`.

    Args:
        first: The greatest number of seconds after the first failure.
        factor: The growth with each failure.
        longest: The greatest number of seconds after any failure.
        random: Returns a number from 0 to 1.

    Raises:
        InvalidValueError: At once, for seconds or a factor that aren't positive numbers.

    Example:
        >>> import rxdelta as rd
        >>> wait = rd.exponential_backoff(random=lambda: 1)
        >>> [wait(failures, TimeoutError()) for failures in range(1, 9)]
        [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    """
    first, factor, longest = (
        check_seconds("first", first),
        check_seconds("factor", factor),
        check_seconds("longest", longest),
    )

    def backoff(failures: int, error: BaseException) -> float:
        try:
            grown = first * factor ** (failures - 1)
        except OverflowError:
            grown = longest
        wait = min(grown, longest) * (1 + random()) / 2
        return min(max(wait, _retry_after(error)), longest)

    return backoff


def _retry_after(error: BaseException) -> float:
    known: BaseException | None = error
    for _ in range(_DEPTH):
        if known is None:
            break
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            value = header_of(known, name)
            if value is not None:
                return max(0.0, _seconds(value, known) * unit)
        known = known.__cause__
    return 0.0


def _seconds(value: str, error: BaseException) -> float:
    """Read a number of seconds, or a date, relative to the date of the response."""
    try:
        seconds = float(value)
        return seconds if 0 <= seconds < float("inf") else 0.0
    except ValueError:
        pass
    try:
        return (
            parsedate_to_datetime(value) - parsedate_to_datetime(header_of(error, "date") or "")
        ).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def check_wait(seconds: object) -> float:
    """Check a backoff's result: seconds, 0 or more."""
    if not isinstance(seconds, bool) and isinstance(seconds, (int, float)) and 0 <= seconds < float("inf"):
        return float(seconds)
    raise InvalidValueError.of([("backoff", seconds, "must give a number of seconds, 0 or more")])
