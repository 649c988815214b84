"""Errors that aren't called `error`: they end the reply with their own sentence, and `is_transient` knows them."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

Json = dict[str, Any]

CHAT = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
START = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
BEGUN: dict[str, list[Json]] = {
    "openai-chat": [CHAT],
    "anthropic-messages": [
        START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
    ],
}
MISSING = {"type": "missing", "loc": ["body", "messages", 0], "msg": "Field required", "input": {}}

# the chunk -> its sentence, its code, whether another try may succeed
FORMS: dict[str, tuple[Json, str, str | None, bool]] = {
    # infiniflow/ragflow#17292
    "MiniMax": (
        {"id": "x", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        "insufficient balance", "1008", False,
    ),
    # https://platform.minimax.io/docs/api-reference/errorcode
    "MiniMax, too often": ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, "rate limit", "1002", True),
    # https://help.aliyun.com/zh/dashscope/response-status-codes
    "DashScope": (
        {"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded", "request_id": "r"},
        "Requests rate limit exceeded", "Throttling.RateQuota", True,
    ),
    "DashScope, within": ({"code": "InternalError.Algo", "message": "Oh"}, "Oh", "InternalError.Algo", True),
    "DashScope, unpaid": ({"code": "Arrearage", "message": "Access denied"}, "Access denied", "Arrearage", False),
    # SiliconFlow: TJZine/LangAlpha#396 has its form
    "SiliconFlow": ({"code": 50505, "message": "Model service overloaded", "data": None}, "Model service overloaded", "50505", True),
    "SiliconFlow, no such model": ({"code": 20012, "message": "Model does not exist", "data": None}, "Model does not exist", "20012", False),
    # Zhipu, and gateways in Java
    "code and msg": ({"code": 1261, "msg": "Prompt too long", "success": False}, "Prompt too long", "1261", False),
    "a status": ({"message": "busy", "statusCode": 503}, "busy", "503", True),
    # FastAPI's HTTPException says the phrase of its status
    "FastAPI": ({"detail": "Service Unavailable"}, "Service Unavailable", None, True),
    "FastAPI, no": ({"detail": "Not Found"}, "Not Found", None, False),
    "FastAPI, a wrong request": ({"detail": [MISSING, MISSING | {"loc": ["body", "model"]}]}, "body.messages.0: Field required; body.model: Field required", None, False),
    "FastAPI, an object": ({"detail": {"error": {"message": "No room", "code": 1}}}, "No room", None, False),
    "RFC 9457": ({"type": "about:blank", "title": "Busy", "status": 429, "detail": "Later"}, "Later", "429", True),
    # https://developers.cloudflare.com/workers-ai/platform/errors
    "Cloudflare": (
        {"errors": [{"code": 3040, "message": "No more data centers"}], "success": False, "result": None, "messages": []},
        "No more data centers", "3040", True,
    ),
    "Cloudflare, used up": ({"errors": [{"code": 3036, "message": "Daily free allocation"}]}, "Daily free allocation", "3036", False),
    "sentences": ({"errors": ["One.", "Two."]}, "One.; Two.", None, False),
    # https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh
    "Baidu": ({"error_code": 110, "error_msg": "Access token invalid"}, "Access token invalid", "110", False),
    "Baidu, too often": ({"error_code": 18, "error_msg": "Open api qps request limit reached", "id": "as-1"}, "Open api qps request limit reached", "18", True),
    # Amazon's API Gateway
    "a message alone": ({"message": "Forbidden"}, "Forbidden", None, False),
    "a message with ids": ({"message": "Internal server error", "connectionId": "c", "requestId": "r"}, "Internal server error", None, True),
    "a timeout": ({"message": "Endpoint request timed out"}, "Endpoint request timed out", None, True),
    # Apigee
    "a fault": (
        {"fault": {"faultstring": "Quota violation", "detail": {"errorcode": "policies.ratelimit.QuotaViolation"}}},
        "Quota violation", "policies.ratelimit.QuotaViolation", True,
    ),
    # `event: error` of an event stream
    "the name of an event": ({"_event": "error", "message": "Away", "hint": "wait"}, "Away", None, False),
    "the name of an event, and a status": ({"_event": "error", "code": 529}, "unknown error", "529", True),
    # OpenAI's own form, in openai-chat as in anthropic-messages
    "OpenAI": ({"error": {"message": "Slow down", "type": "rate_limit_error", "code": None}}, "Slow down", None, True),
    # LangGraph's server, Spring, NestJS
    "a kind and a sentence": ({"error": "ServerError", "message": "No worker", "status": 500}, "No worker", "500", True),
}  # fmt: skip


def ended(wire_format: str, chunks: list[Json]) -> rd.ProviderError:
    errors: list[Exception] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(on_error=errors.append)
    (error,) = errors
    assert isinstance(error, rd.ProviderError), error
    return error


@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "first"])
@pytest.mark.parametrize("wire_format", BEGUN)
@pytest.mark.parametrize("form", FORMS)
def test_it_ends_the_reply_with_its_own_sentence(form: str, wire_format: str, begun: bool) -> None:
    chunk, sentence, code, transient = FORMS[form]
    if wire_format == "anthropic-messages" and "type" in chunk:
        pytest.skip("its type is that of an event")
    error = ended(wire_format, [*(BEGUN[wire_format] if begun else []), chunk])
    assert (error.message, error.code, rd.errors.is_transient(error)) == (sentence, code, transient)
    assert error.snapshot is not None
    assert error.snapshot.text == ("Hi" if begun else "")


@pytest.mark.parametrize(
    ("chunk", "type_", "code", "transient"),
    [
        ({"type": "error", "message": "m"}, None, None, False),
        ({"type": "error", "message": "m", "code": 503}, None, "503", True),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "m", "code": "1302"}}, "rate_limit_error", "1302", True),
        ({"type": "overloaded_error", "message": "m"}, "overloaded_error", None, True),
        # MiniMax-AI/MiniMax-M2#62
        ({"type": "error", "error": {"type": "api_error", "message": "insufficient balance (1008)"}}, "api_error", None, False),
        ({"type": "error", "base_resp": {"status_code": 1002, "status_msg": "m"}}, None, "1002", True),
    ],
)  # fmt: skip
def test_other_servers_of_anthropic_s_format_have_more(
    chunk: Json, type_: str | None, code: str | None, transient: bool
) -> None:
    error = ended("anthropic-messages", [START, chunk])
    assert (error.type, error.code, rd.errors.is_transient(error)) == (type_, code, transient)
    assert error.message.startswith(("m", "insufficient balance"))


@pytest.mark.parametrize(
    "chunk",
    [
        *({"code": code, "message": "m"} for code in (0, "0", 200, "200", "Success", "ok", "00000")),
        {"base_resp": {"status_code": 0, "status_msg": "success"}},
        {"error_code": 0, "error_msg": "m"},
        {"errors": [], "success": True},
        {"success": True, "message": "m"},
        {"message": "OK"},
        {"message": "m", "model": "a reply of something else"},
        {"message": {"content": "m"}},
        {"error": None, "message": None},
    ],
)
def test_a_code_that_means_success_and_a_message_of_something_else_are_none(chunk: Json) -> None:
    errors: list[Exception] = []
    events: list[rd.Event] = []
    rx.from_iterable([CHAT, chunk]).pipe(rd.decode("openai-chat")).subscribe(events.append, errors.append)
    assert errors == []
    assert not [event for event in events if isinstance(event, rd.events.StreamError)]


def test_an_error_of_no_more_than_success_is_none() -> None:
    said: list[rd.Snapshot] = []
    nothing = {"error": {"code": 0, "message": ""}}
    chunks = [CHAT | nothing, {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas()).subscribe(said.append)
    assert (said[-1].text, said[-1].status) == ("Hi", "complete")


@pytest.mark.parametrize("form", FORMS)
def test_without_the_name_of_a_format_it_is_that_error_too(form: str) -> None:
    chunk, sentence, _, transient = FORMS[form]
    errors: list[Exception] = []
    rx.from_iterable([chunk]).pipe(rd.decode("auto"), rd.scan_deltas()).subscribe(on_error=errors.append)
    (error,) = errors
    assert isinstance(error, rd.ProviderError)
    assert (error.message, rd.errors.is_transient(error)) == (sentence, transient)


def test_what_a_form_has_beyond_its_sentence_and_code_goes_before_the_error() -> None:
    chunk = {"code": "x", "message": "m", "request_id": "r"}
    for wire_format in BEGUN:
        decoded = rd.providers.decoder(wire_format).decode(chunk)
        before, error = decoded
        assert isinstance(before, rd.events.ProviderEvent)
        assert before.payload == chunk
        assert error == rd.events.StreamError("m", None, "x")


def test_an_application_s_item_in_front_of_langgraph_s_is_no_error() -> None:
    custom = ("custom", {"code": "x", "message": "Looking it up"})
    said = ("messages", ({"type": "AIMessageChunk", "id": "m", "content": "Hi"}, {"langgraph_node": "a"}))
    snapshots: list[rd.Snapshot] = []
    rx.from_iterable([custom, said]).pipe(rd.decode("auto"), rd.scan_deltas()).subscribe(snapshots.append)
    assert snapshots[-1].text == "Hi"
