"""Which failures pass, as clients and providers report them; and how long to wait."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

import rxdelta as rd

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

REQUEST = httpx.Request("POST", "https://api.example/v1")


def response(status: int, headers: dict[str, str] | None = None, body: Any = None) -> httpx.Response:
    return httpx.Response(status, headers=headers, request=REQUEST, content=json.dumps(body or {}))


def http_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.HTTPStatusError("no", request=REQUEST, response=response(status, named))


def openai_error(status: int, code: str | None = None) -> openai.APIStatusError:
    return openai.APIStatusError("no", response=response(status), body={"code": code})


def anthropic_error(status: int, kind: str) -> anthropic.APIStatusError:
    body = {"type": "error", "error": {"type": kind, "message": "no"}}
    return anthropic.APIStatusError("no", response=response(status, body=body), body=body)


class Botocore(Exception):
    def __init__(self, code: str, status: int) -> None:
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class Google(Exception):
    def __init__(self, code: int, status: str) -> None:
        self.code, self.status = code, status


class Aiohttp(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


class Hostile(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("not yet")


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        rd.ProviderError("", type="overloaded_error"),
        rd.ProviderError("", code="invalid_request_error", transient=True),
        rd.ProviderError("", type="rate_limit_error"),
        rd.ProviderError("", type="api_error"),
        rd.ProviderError("", type="server_error", code="rate_limit_exceeded"),
        rd.ProviderError("", code="503"),
        rd.ProviderError("", code="RESOURCE_EXHAUSTED"),
        rd.ProviderError("", type="throttlingException"),
        rd.ProviderError("", type="modelStreamErrorException"),
        rd.ProviderError("", type="internalServerException"),
        rd.errors.StallTimeoutError("no"),
        caused(rd.StreamInterrupted("no"), ConnectionResetError()),
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError(),
        httpx.ReadError("no"),
        httpx.ConnectTimeout("no"),
        httpx.RemoteProtocolError("peer closed connection"),
        openai.APIConnectionError(request=REQUEST),
        openai.APITimeoutError(request=REQUEST),
        anthropic.APIConnectionError(request=REQUEST),
        *(http_error(status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        openai_error(429),
        openai_error(500),
        anthropic_error(529, "overloaded_error"),
        anthropic_error(200, "overloaded_error"),  # in the middle of a stream
        http_error(400, x_should_retry="true"),
        Botocore("ThrottlingException", 400),
        Botocore("Whatever", 503),
        Google(503, "UNAVAILABLE"),
        Aiohttp(502),
        caused(ValueError("wrapped"), httpx.ReadTimeout("no")),
    ],
    ids=repr,
)
def test_these_pass(error: Exception) -> None:
    assert rd.errors.is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        rd.ProviderError("who knows"),
        rd.ProviderError("", type="invalid_request_error"),
        rd.ProviderError("", type="overloaded_error", transient=False),
        rd.ProviderError("", type="authentication_error"),
        rd.ProviderError("", type="not_found_error"),
        rd.ProviderError("", type="request_too_large"),
        rd.ProviderError("", type="insufficient_quota", code="429"),
        rd.ProviderError("", type="validationException"),
        rd.ProviderError("", code="400"),
        rd.StreamInterrupted("no"),
        caused(rd.StreamInterrupted("no"), ValueError()),
        rd.errors.MalformedChunkError("no"),
        rd.IncompleteMessageError("no"),
        rd.errors.LimitExceededError("no"),
        rd.ProtocolError("no"),
        caused(rd.InvalidValueError("no"), ConnectionResetError()),
        *(http_error(status) for status in (400, 401, 403, 404, 413, 422, 501)),
        openai_error(400),
        openai_error(401),
        openai_error(429, "insufficient_quota"),
        anthropic_error(401, "authentication_error"),
        anthropic_error(200, "invalid_request_error"),
        http_error(503, x_should_retry="false"),
        httpx.UnsupportedProtocol("no"),
        Botocore("AccessDeniedException", 403),
        Google(400, "INVALID_ARGUMENT"),
        ValueError(),
        KeyError("status_code"),
        Hostile(),
        KeyboardInterrupt(),
        SimpleNamespace,
    ],
    ids=repr,
)
def test_these_stay(error: Any) -> None:
    assert not rd.errors.is_transient(error if isinstance(error, BaseException) else Exception(error))


@pytest.mark.parametrize("says", [True, False])
def test_an_exception_may_say_it_itself(says: bool) -> None:
    class Own(ConnectionError if not says else Exception):  # type: ignore[misc]
        transient = says

    assert rd.errors.is_transient(Own()) is says


def test_causes_that_go_in_a_circle_end() -> None:
    one, other = ValueError(), KeyError()
    one.__cause__, other.__cause__ = other, one
    assert not rd.errors.is_transient(one)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 1),
        ({"retry_after": "7"}, 7),
        ({"retry_after": "7.5"}, 7.5),
        ({"retry_after_ms": "2500", "retry_after": "7"}, 2.5),
        ({"retry_after": "0.1"}, 1),
        ({"retry_after": "3600"}, 20),
        ({"retry_after": "inf"}, 1),
        ({"retry_after": "-3"}, 1),
        ({"retry_after": "soon"}, 1),
        ({"retry_after": "Sat, 21 Nov 2026 10:00:09 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 9),
        ({"retry_after": "Sat, 21 Nov 2026 10:00:09 GMT"}, 1),
    ],
)
def test_the_servers_word_counts(headers: dict[str, str], seconds: float) -> None:
    backoff = rd.exponential_backoff(1, 2, 20, random=lambda: 1)
    error = http_error(429, **headers)
    assert backoff(1, error) == seconds
    assert backoff(1, caused(rd.StreamInterrupted("no"), error)) == seconds


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_waits_grow_within_bounds(failures: int, luck: float) -> None:
    wait = rd.exponential_backoff(1, 2, 30, random=lambda: luck)(failures, TimeoutError())
    most = min(30, 2.0 ** min(failures - 1, 10))
    assert most / 2 <= wait <= most
