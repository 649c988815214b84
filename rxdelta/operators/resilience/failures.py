"""Which failures of a request are worth another try, and when.

The exceptions of HTTP clients and providers' SDKs are known by what they carry (`status_code`, `response`, `code`,
`body`) and by their classes' names; nothing is imported for it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from rxdelta.core import (
    InvalidValueError,
    ProviderError,
    RxDeltaError,
    StallTimeoutError,
    StreamInterrupted,
    is_mapping,
)
from rxdelta.runtime import check_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["check_wait", "exponential_backoff", "is_transient"]

_DEPTH = 8  # causes of causes

# What providers call it, as `_plain` has it.
_TRANSIENT = frozenset(
    {"api", "badgateway", "deadline", "engineoverloaded", "gatewaytimeout", "internal", "internalfailure"}
    | {"internalserver", "modelnotready", "modelstream", "modeltimeout", "overloaded", "ratelimit", "server"}
    | {"resourceexhausted", "serviceunavailable", "slowdown", "throttling", "timeout", "toomanyrequests"}
    | {"unavailable"}
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
    | {"contentpolicyviolation", "contextlength", "failedprecondition", "insufficientquota", "invalidapikey"}
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
    """Whether another try may well succeed: `retry_stream`'s own answer.

    Yes: overloaded, rate limited, a server's own failure (status 408, 409, 425, 429, 5xx), a connection that broke
    or timed out, a stall. No: an invalid request, a refused key, a used-up quota, and everything that isn't known
    to pass. What the server says in `x-should-retry` decides.

    An exception is judged by what it carries, whichever client raised it, and one that says nothing by its cause.

    Example:
        >>> import rxdelta as rd
        >>> rd.is_transient(rd.ProviderError("Overloaded", type="overloaded_error"))
        True
        >>> rd.is_transient(rd.ProviderError("No such model", type="not_found_error"))
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
    """Yes, no, or nothing that could be told by this exception."""
    if isinstance(error, StallTimeoutError):
        return True
    if isinstance(error, RxDeltaError) and not isinstance(error, (ProviderError, StreamInterrupted)):
        return False
    header = _header(error, "x-should-retry")
    if header in ("true", "false"):
        return header == "true"
    names = {_normalized(word) for word in _error_names(error)}
    if names & _PERMANENT:
        return False
    if names & _TRANSIENT:
        return True
    status = _status(error)
    if status is not None and status >= 400:
        return status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505))
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return True if _CONNECTION_ERRORS.intersection(kind.__name__ for kind in type(error).__mro__) else None


def _normalized(word: str) -> str:
    """`rate_limit_exceeded`, `RateLimitError` and `RATE_LIMIT` are one word."""
    normalized = "".join(letter for letter in word.lower() if letter.isalnum())
    for ending in _ENDINGS:
        normalized = normalized.removesuffix(ending) or normalized
    return normalized


def _error_names(error: BaseException) -> Iterator[str]:
    """What the provider calls it."""
    response = _get(error, "response")
    body = _get(error, "body")
    for source in (error, body, _get(body, "error"), _get(response, "Error")):
        for name in ("type", "code", "status", "Code"):
            word = _get(source, name)
            if isinstance(word, str):
                yield word


def _status(error: BaseException) -> int | None:
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


def _header(error: BaseException, name: str) -> str | None:
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
    """A field of an object or of a mapping. Reading one may run anybody's code (httpx raises for some)."""
    try:
        return source.get(name) if is_mapping(source) else getattr(source, name, None)
    except Exception:
        return None


def exponential_backoff(
    first: float = 0.5,
    factor: float = 2.0,
    longest: float = 30.0,
    *,
    random: Callable[[], float] = random.random,
) -> Callable[[int, BaseException], float]:
    """A backoff for `retry_stream`: waits grow by `factor`, with jitter, and the server's own word counts.

    After the nth failure it is anything from half of `first * factor ** (n - 1)` to all of that. Where the error
    carries a `retry-after-ms` or `retry-after` header, as seconds or as a date, it is that, if it is longer. Never
    longer than `longest`.

    Args:
        first: The most seconds after the first failure.
        factor: By how much it grows with each.
        longest: The most that is ever waited.
        random: A number from 0 to 1.

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
            value = _header(known, name)
            if value is not None:
                return max(0.0, _seconds(value, known) * unit)
        known = known.__cause__
    return 0.0


def _seconds(value: str, error: BaseException) -> float:
    """A number, or a date, which counts from the response's own."""
    try:
        seconds = float(value)
        return seconds if 0 <= seconds < float("inf") else 0.0
    except ValueError:
        pass
    try:
        return (
            parsedate_to_datetime(value) - parsedate_to_datetime(_header(error, "date") or "")
        ).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def check_wait(seconds: object) -> float:
    """What a backoff gave, as a number of seconds that may be 0."""
    if not isinstance(seconds, bool) and isinstance(seconds, (int, float)) and 0 <= seconds < float("inf"):
        return float(seconds)
    raise InvalidValueError.of([("backoff", seconds, "must give a number of seconds, 0 or more")])
