"""Recorded errors: what comes back as itself, and that the others are judged as the originals were."""

from __future__ import annotations

import json
import pickle
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from support.security_page import says

import rxdelta as rd
from rxdelta.recording import read_lines

if TYPE_CHECKING:
    from pathlib import Path

ev = rd.events


@pytest.fixture
def back(tmp_path: Path) -> Any:
    """A function that records an error, and returns the one that is replayed."""

    def through_a_file(error: Exception) -> Exception:
        path = tmp_path / "a.jsonl"
        rx.throw(error).pipe(rd.record(path)).subscribe(on_error=lambda _: None)
        found: list[Exception] = []
        rd.from_recording(path, 0).subscribe(on_error=found.append)
        (replayed,) = found
        return replayed

    return through_a_file


PYTHON = (
    ConnectionResetError(104, "Connection reset by peer"),
    TimeoutError("too slow"),
    OSError("no route"),
    RuntimeError("broken"),
    ValueError("wrong"),
    KeyError("missing"),
    IndexError(),
    NotImplementedError("later"),
)


@pytest.mark.parametrize("error", PYTHON, ids=lambda error: type(error).__name__)
def test_an_error_of_python_comes_back_as_itself(back: Any, error: Exception) -> None:
    found = back(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert getattr(found, "errno", None) == getattr(error, "errno", None)


OURS = (
    rd.errors.StallTimeoutError("silent", limit="idle", seconds=5.0),
    rd.ProviderError("slow down", type="overloaded_error", code="529", transient=True),
    rd.ProviderError("no"),
    rd.errors.MalformedChunkError("wrong", wire_format="gemini", path="a.b", found="5"),
    rd.ProtocolError("late", violation="delta_before_start"),
    rd.errors.LimitExceededError("long", limit="line_bytes", maximum=5),
    rd.StreamInterrupted("broke off"),
    rd.GuardError("refused"),
    rd.InvalidValueError("wrong", field="speed", value=object()),
)


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
def test_an_error_of_ours_comes_back_as_itself_with_its_facts(back: Any, error: rd.RxDeltaError) -> None:
    found = back(error)
    assert (type(found), str(found)) == (type(error), str(error))
    facts = {name: value for name, value in vars(error).items() if name not in ("snapshot", "value")}
    assert {name: getattr(found, name) for name in facts} == facts


def test_the_cause_of_an_interruption_comes_back_too(back: Any) -> None:
    error = rd.StreamInterrupted("broke off")
    error.__cause__ = ConnectionError("reset")
    found = back(error)
    assert isinstance(found.__cause__, ConnectionError)
    assert rd.errors.is_transient(found)


class Response:
    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        self.status_code, self.headers = status_code, headers


def made(
    name: str, bases: tuple[type[Any], ...] = (Exception,), /, module: str = "sdk", **fields: Any
) -> Exception:
    """An error of a class that only an SDK has."""
    error: Exception = type(name, bases, {"__module__": module})(f"of {name}")
    for field, value in fields.items():
        setattr(error, field, value)
    return error


Timeout = type("TimeoutException", (Exception,), {"__module__": "httpx"})
CLIENTS = {
    "a 429": made("RateLimitError", status_code=429),
    "a quota": made("RateLimitError", status_code=429, body={"error": {"code": "insufficient_quota"}}),
    "a 400": made("BadRequestError", status_code=400),
    "a 401": made("AuthenticationError", status_code=401),
    "a 501": made("InternalServerError", status_code=501),
    "a 529": made(
        "APIStatusError", status_code=529, body={"type": "error", "error": {"type": "overloaded_error"}}
    ),
    "a 500 of a response": made("HTTPStatusError", response=Response(500, {})),
    "a header that says no": made("APIError", response=Response(500, {"x-should-retry": "false"})),
    "a header that says yes": made("APIError", response=Response(400, {"x-should-retry": "true"})),
    "an error in the stream": made("APIError", type=None, body={"type": "server_error"}),
    "an unknown error in the stream": made("APIError", type=None, body=None),
    "a timeout by its class": made("ReadTimeout", (Timeout,)),
    "a connection": made("APIConnectionError"),
    "a protocol": made("RemoteProtocolError"),
    "another TimeoutError": made("TimeoutError", module="redis.exceptions"),
    "an unknown class": made("Oops"),
    "boto": made("ClientError", response={"Error": {"Code": "ThrottlingException"}}),
    "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
}
CLIENTS["a cause"] = made("Wrapped")
CLIENTS["a cause"].__cause__ = ConnectionResetError("reset")


@pytest.mark.parametrize("error", CLIENTS.values(), ids=CLIENTS)
def test_any_other_error_is_a_recorded_one_that_is_judged_as_the_original_was(
    back: Any, error: Exception
) -> None:
    found = back(error)
    assert type(found) is rd.RecordedError
    assert not isinstance(found, rd.RxDeltaError)
    assert (found.type, str(found)) == (type(error).__name__, str(error))
    assert rd.errors.is_transient(found) is rd.errors.is_transient(error)
    again = back(found)
    assert vars(again) == vars(found)
    assert vars(pickle.loads(pickle.dumps(found))) == vars(found)


SDKS = {
    "openai": (
        "RateLimitError APITimeoutError APIConnectionError InternalServerError BadRequestError NotFoundError"
    ),
    "anthropic": (
        "RateLimitError APITimeoutError APIConnectionError InternalServerError PermissionDeniedError"
    ),
}


@pytest.mark.parametrize(
    ("sdk", "name"), [(sdk, name) for sdk, names in SDKS.items() for name in names.split()]
)
def test_the_errors_of_sdks_are_judged_as_the_originals_were(back: Any, sdk: str, name: str) -> None:
    module, httpx = pytest.importorskip(sdk), import_module("httpx")
    request = httpx.Request("POST", "https://api.test/v1")
    status = {"RateLimit": 429, "Internal": 503, "BadReque": 400, "NotFound": 404, "Permissi": 403}
    code = next((code for start, code in status.items() if name.startswith(start)), None)
    if code is None:
        error = getattr(module, name)(request=request)
    else:
        response = httpx.Response(code, request=request, headers={"retry-after": "7"})
        error = getattr(module, name)("said no", response=response, body=None)
    found = back(error)
    assert (found.type, found.status_code) == (name, code)
    assert rd.errors.is_transient(found) is rd.errors.is_transient(error)
    wait = rd.exponential_backoff(random=lambda: 0)
    assert wait(1, found) == wait(1, error)


@pytest.mark.parametrize("name", ["ReadTimeout", "ConnectError", "RemoteProtocolError", "DecodingError"])
def test_the_errors_of_httpx_are_judged_as_the_originals_were(back: Any, name: str) -> None:
    error = getattr(pytest.importorskip("httpx"), name)("broke")
    found = back(error)
    assert (type(found), found.type) == (rd.RecordedError, name)
    assert rd.errors.is_transient(found) is rd.errors.is_transient(error)


def test_a_recorded_429_is_retried_and_the_next_recording_is_read(tmp_path: Path) -> None:
    begun = [ev.MessageStart(id="m"), ev.BlockStart(0, {"type": "text", "text": ""}), ev.TextDelta(0, "He")]
    whole = [*begun, ev.TextDelta(0, "llo"), ev.BlockFinish(0), ev.MessageFinish(reason="stop")]
    limited = made("RateLimitError", status_code=429, headers={"retry-after": "0"})
    attempts = iter([rx.concat(rx.from_iterable(begun), rx.throw(limited)), rx.from_iterable(whole)])
    operator = rd.record(tmp_path / "run-{n}.jsonl")

    first = rd.retry_stream(lambda: next(attempts).pipe(operator), attempts=2, backoff=lambda *_: 0)
    original = first.pipe(rd.scan_deltas()).run()
    names = iter(["run-1.jsonl", "run-2.jsonl"])
    again = rd.retry_stream(
        lambda: rd.from_recording(tmp_path / next(names), 0), attempts=2, backoff=lambda *_: 0
    )
    replay = again.pipe(rd.scan_deltas()).run()
    assert replay.text == original.text == "Hello"
    *_, last = read_lines(tmp_path / "run-1.jsonl")
    assert (type(last.value), last.value.status_code) == (rd.RecordedError, 429)


HOSTILE: dict[str, dict[str, Any]] = {
    "a class of another module": {"type": "Popen", "module": "subprocess", "message": "x"},
    "a builtin that is no error": {"type": "eval", "message": "x"},
    "an exit": {"type": "SystemExit", "message": "x"},
    "a function of ours": {"type": "redact", "module": "rxdelta", "message": "x"},
    "a word for a number": {
        "type": "StallTimeoutError",
        "module": "rxdelta",
        "fields": {"seconds": [], "x": 1},
    },
    "nothing": {},
    "no words": {"type": 5, "message": [], "status_code": "x", "headers": 5, "transient": "yes", "cause": 5},
}


@says("It runs no code that it receives")
@pytest.mark.parametrize("error", HOSTILE.values(), ids=HOSTILE)
def test_a_file_makes_no_class_of_a_name(tmp_path: Path, error: dict[str, Any]) -> None:
    path = tmp_path / "a.jsonl"
    head = '{"rxdelta": "recording", "version": 1}\n'
    path.write_text(head + json.dumps({"t": 0, "error": error}) + "\n")
    (line,) = read_lines(path)
    assert isinstance(line.value, (rd.RecordedError, rd.errors.StallTimeoutError))


def test_an_endless_chain_of_causes_ends(back: Any) -> None:
    error = RuntimeError("a")
    error.__cause__ = RuntimeError("b")
    error.__cause__.__cause__ = error
    found, depth = back(error), 0
    while found is not None:
        found, depth = found.__cause__, depth + 1
    assert depth < 20
