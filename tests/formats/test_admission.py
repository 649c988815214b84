"""What a browser may bring into the next request: nothing that only the server's key can read."""

from __future__ import annotations

import contextlib
import json
import unicodedata
from typing import Any
from urllib.parse import quote

import pytest
from core.strategies import json_values
from hypothesis import assume, given, strategies as st
from support.ag_ui import frames_of, read
from support.cost import lines_run
from support.security_page import says
from support.shared import recordings

import rxdelta as rd

Json = dict[str, Any]
HERS = "https://x.example/y.png"
SECRET = "not-yours"
"""What no request may hold."""


def of_ai_sdk(*parts: Json, role: str = "user", **options: Any) -> list[rd.Message]:
    return rd.from_ai_sdk([{"id": "1", "role": role, "parts": [*parts]}], **options)


def of_ag_ui(*messages: Json, **options: Any) -> list[rd.Message]:
    return rd.from_ag_ui({"messages": [*messages]}, **options)


def file_part(url: Any, **ours: Any) -> Json:
    metadata = {"providerMetadata": {"rxdelta": ours}} if ours else {}
    return {"type": "file", "mediaType": "application/pdf", "url": url, **metadata}


def ag_ui_part(kind: str, value: str) -> Json:
    source = {"type": kind, "value": value, "mimeType": "application/pdf"}
    return {"id": "1", "role": "user", "content": [{"type": "document", "source": source}]}


def requests_of(messages: list[rd.Message]) -> str:
    """What all formats make of them; one that has no place for a thing refuses it."""
    told: list[Any] = []
    for wire_format in rd.requests.REQUEST_FORMATS:
        try:
            told.append(rd.to_request(messages, wire_format))
        except rd.RxDeltaError:
            continue
    return json.dumps(told, default=str)


# What a person says.

STORE = "generativelanguage.googleapis.com"
SPELLINGS = [
    "\uff47enerativelanguage.googleapis.com",  # a full-width letter
    "generativelanguage\u3002googleapis\u3002com",  # ideographic full stops, wide ones, halves of them
    "generativelanguage\uff0egoogleapis\uff0ecom",
    "generativelanguage\uff61googleapis\uff61com",
    "generative\u00adlanguage.googleapis.com",  # characters that are left out
    "generative\u200blanguage.google\ufe0fapis.com",
    "generative\u115flanguage.google\U000e0101apis.com",
    "\u24d6enerativelanguage.googleapis.com",  # a letter in a circle, a bold one, an old one
    "\U0001d420enerativelanguage.googleapis.com",
    "generativelanguage.googleapi\u017f.com",
    "%EF%BD%87enerativelanguage.googleapis.com",
    "generativelanguage%E3%80%82googleapis.com",
    "xn--generativelanguage-.googleapis.com",
    "u:p@GENERATIVE\u00adLANGUAGE.googleapis.com\u3002:443",
    "eu.generativelanguage.googleapis.com",
]
REFUSED = [
    (f"s3://bucket/{SECRET}.pdf", "s3"),
    (f"S3://bucket/{SECRET}", "s3"),
    (f"gs://bucket/{SECRET}", "gs"),
    (f"file:///etc/{SECRET}", "file"),
    (f"FILE:/etc/{SECRET}", "file"),
    (f"ftp://x/{SECRET}", "ftp"),
    (f"blob:https://x/{SECRET}", "blob"),
    (f"javascript:{SECRET}", "javascript"),
    (f"vscode+s3:{SECRET}", r"vscode\+s3"),
    (f"//host/{SECRET}", "begins with its scheme"),
    (f"/etc/{SECRET}", "begins with its scheme"),
    (f"files/{SECRET}", "begins with its scheme"),
    (f" https://x/{SECRET}", "begins with its scheme"),
    (f" s3://bucket/{SECRET}", "begins with its scheme"),
    (f"\u00a0s3://bucket/{SECRET}", "begins with its scheme"),
    (f"\u200bs3://bucket/{SECRET}", "begins with its scheme"),
    (f"\ufeffhttps://x/{SECRET}", "begins with its scheme"),
    (f"s3\n://bucket/{SECRET}", "begins with its scheme"),
    (f"s\t3://bucket/{SECRET}", "begins with its scheme"),
    (f"\0s3://bucket/{SECRET}", "begins with its scheme"),
    (f"https://x/{SECRET}\r\nHost: y", "begins with its scheme"),
    (f"%73%33://bucket/{SECRET}", "begins with its scheme"),
    (f"s3%3A//bucket/{SECRET}", "begins with its scheme"),
    (f"\uff533://bucket/{SECRET}", "begins with its scheme"),
    (f"https:{SECRET}", "a host"),
    (f"https:///{SECRET}", "a host"),
    (f"https://[{SECRET}", "a host"),
    (f"https://generativelanguage.googleapis.com\\@x.example/{SECRET}", "a host"),
    (f"https://generativelanguage.googleapis.com%00/{SECRET}", "a host"),
    (f"https://generativelanguage.googleapis.com/v1beta/files/{SECRET}", "file_id"),
    (f"HTTPS://u@GenerativeLanguage.GoogleAPIs.com.:443/v1beta/files/{SECRET}", "file_id"),
    (f"https://generativelanguage.googleapis.com%2fv1beta/files/{SECRET}", "a host"),
    (f"https://generativelanguage%252Egoogleapis.com/v1beta/files/{SECRET}", "a host"),
    (f"https:/generativelanguage.googleapis.com/{SECRET}", "a host"),
    (f"https:/\\generativelanguage.googleapis.com/{SECRET}", "a host"),
    (f"https://generativelanguage.googleapis.com\uff0f{SECRET}", "a host"),
    (f"https://{'x' * 2000}.example/{SECRET}", "a host"),
    (f"https://generativelanguage%2Egoogleapis.com/v1beta/files/{SECRET}", "file_id"),
    *((f"https://{host}/v1beta/files/{SECRET}", "file_id") for host in SPELLINGS),
]


@says("A person's file has")
@pytest.mark.parametrize(("address", "word"), REFUSED)
def test_an_address_that_not_everybody_may_read_is_refused_and_named(address: str, word: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=rf"messages\[0\].*{word}"):
        of_ai_sdk(file_part(address))
    with pytest.raises(rd.InvalidValueError, match=rf"messages\[0\].*{word}"):
        of_ai_sdk(file_part(address, type="image_url"))
    with pytest.raises(rd.InvalidValueError, match=rf"messages\[0\].*{word}"):
        of_ai_sdk(file_part(HERS, type="image", options={"url": address}))
    with pytest.raises(rd.InvalidValueError, match=rf"messages\[0\].*{word}"):
        of_ag_ui(ag_ui_part("url", address))


def spelled(character: str) -> st.SearchStrategy[str]:
    """The spellings of a character that a resolver reads as it, with others around them that it leaves out."""
    left_out = st.text("\u00ad\u200b\u2060\ufe0f\U000e0100\u034f", max_size=2)
    return st.builds(lambda one, more: one + more, st.sampled_from(SPELLED[character]), left_out)


SPELLED = {
    character: [
        one
        for one in map(chr, (*range(0x110), *range(0x1D00, 0x3400), *range(0xA700, 0xAB70), *range(0xFF00, 0xFF70), *range(0x1D400, 0x1D800)))
        if unicodedata.normalize("NFKC", one).casefold().replace("\u3002", ".") == character
    ]
    for character in set(STORE)
}  # fmt: skip


@says("A host counts as")
@given(st.tuples(*map(spelled, STORE)).map("".join), st.booleans())
def test_a_host_that_a_resolver_reads_as_that_of_stored_files_is_refused(host: str, quoted: bool) -> None:
    idna = pytest.importorskip("idna")
    try:
        assume(idna.encode(host, uts46=True).decode().rstrip(".") == STORE)
    except idna.IDNAError:
        assume(False)
    address = f"https://{quote(host) if quoted else host}/v1beta/files/{SECRET}"
    with pytest.raises(rd.InvalidValueError, match=r"file_id|a host"):
        of_ai_sdk(file_part(address))


def test_a_host_of_a_hundred_thousand_marks_takes_no_time() -> None:
    """To normalise them would take time in proportion to the square of their number."""
    for host in ("a" + "\u0300\u0327" * 50_000, "%CC%80%CC%A7" * 50_000, "xn--" + "a" * 100_000):
        with pytest.raises(rd.InvalidValueError, match="a host"):
            of_ai_sdk(file_part(f"https://{host}/x"))


@pytest.mark.parametrize("address", ["", 3, ["s3://x/y"], {"url": HERS}])
def test_an_address_that_is_none_is_refused(address: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"messages\[0\]"):
        of_ai_sdk(file_part(HERS, type="image", options={"url": address}))


@says("A person's file has")
@pytest.mark.parametrize(
    "address",
    [HERS, "HTTPS://X.example/y", "https://b\u00fccher.example/y", "https://\u4f8b\u3048.jp", "https://xn--bcher-kva.example", "https://xn--!.example", "https://u@x.example?a", "http://x.example:8080/y?a=s3://z", "https://[::1]/y", "data:image/png;base64,AAAA", "DATA:,x"],
)  # fmt: skip
def test_what_everybody_may_read_is_admitted(address: str) -> None:
    assert of_ai_sdk(file_part(address))
    assert of_ag_ui(ag_ui_part("url", address))


@pytest.mark.parametrize("allow", [("s3",), ["gs", "s3"], {"s3"}])
def test_a_scheme_that_the_application_allows_is_admitted(allow: Any) -> None:
    address = "s3://bucket/a.pdf"
    for messages in (
        of_ai_sdk(file_part(address), allow=allow),
        of_ag_ui(ag_ui_part("url", address), allow=allow),
    ):
        (message,) = rd.to_request(messages, "bedrock-converse")["messages"]
        assert message["content"][0]["document"]["source"] == {"s3Location": {"uri": address}}


@pytest.mark.parametrize("allow", ["s3", b"s3", None, 3, ("S3",), ("s3:",), ("",), (3,), ("file id",)])
def test_what_allows_nothing_that_there_is_is_refused(allow: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="allow"):
        rd.from_ai_sdk([], allow=allow)
    with pytest.raises(rd.InvalidValueError, match="allow"):
        rd.from_ag_ui([], allow=allow)


@says("A person's file has")
def test_a_file_that_is_stored_with_the_provider_is_named_only_where_that_is_allowed() -> None:
    reference = {**file_part("https://x/y"), "providerReference": {"openai": SECRET}}
    ours = file_part(HERS, type="file", options={"file_id": SECRET})
    for part in (reference, ours):
        with pytest.raises(rd.InvalidValueError, match="allow=\\('file_id',\\)"):
            of_ai_sdk(part)
        assert SECRET in requests_of(of_ai_sdk(part, allow=["file_id"]))
    part = ag_ui_part("file", SECRET)
    with pytest.raises(rd.InvalidValueError, match="allow=\\('file_id',\\)"):
        of_ag_ui(part)
    assert SECRET in requests_of(of_ag_ui(part, allow=["file_id"]))
    binary = {"type": "binary", "mimeType": "application/pdf", "id": SECRET}
    with pytest.raises(rd.InvalidValueError, match="file_id"):
        of_ag_ui({"id": "1", "role": "user", "content": [binary]})


def test_a_person_says_of_a_file_only_what_it_is() -> None:
    source = {"s3Location": {"uri": f"s3://bucket/{SECRET}"}}
    options = {
        "source": source,
        "cache_control": {"type": "ephemeral", "more": {"url": SECRET}},
        "citations": [SECRET],
        "partMetadata": {"a": SECRET},
        "detail": "low",
    }
    messages = of_ai_sdk(file_part("data:application/pdf;base64,AAAA", type="file", options=options))
    assert SECRET not in requests_of(messages)
    kept = {"detail": "low", "cache_control": {"type": "ephemeral"}}
    assert messages[0].blocks[0].options == kept  # type: ignore[union-attr]
    read = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    (message,) = of_ai_sdk(file_part("data:application/pdf;base64,AAAA", type="file", options=read))
    assert message.blocks[0].options == read  # type: ignore[union-attr]
    text = {"type": "text", "text": "Hi", "providerMetadata": {"rxdelta": {"options": options}}}
    assert SECRET not in requests_of(of_ai_sdk(text))


# What is said to be the model's.

RAW: list[Json] = [
    {"type": "container_upload", "file_id": SECRET},
    {"type": "tool_addition", "tool": SECRET},
    {"type": "document", "source": {"type": "file", "file_id": SECRET}},
    {"type": "image", "source": {"type": "url", "url": f"s3://{SECRET}"}},
    {"type": "search_result", "source": SECRET, "content": []},
    {"fileData": {"fileUri": f"gs://bucket/{SECRET}"}},
    {"inlineData": {"data": SECRET}},
    {"functionResponse": {"name": SECRET}},
    {"guardContent": {"text": {"text": SECRET}}},
    {"searchResult": {"source": SECRET}},
    {"document": {"source": {"s3Location": {"uri": f"s3://bucket/{SECRET}"}}}},
    {"type": "item_reference", "id": SECRET},
    {"type": "computer_call_output", "id": "1", "output": {"type": "computer_screenshot", "file_id": SECRET}},
    {"type": "function_call_output", "id": "1", "output": [{"type": "input_file", "file_id": SECRET}]},
    {"type": "mcp_approval_response", "id": "1", "approval_request_id": SECRET, "approve": True},
    {"type": "input_file", "item_id": "msg_1", "file_id": SECRET},
    {"type": "model_output", "content": [{"type": "document", "uri": f"gs://bucket/{SECRET}"}]},
    {"type": "user_input", "content": [{"type": "image", "uri": f"gs://bucket/{SECRET}"}]},
    {"type": {"a": 1}, "id": SECRET},
    {"type": None, "id": SECRET},
    {"type": None, "item_id": "msg_1", "file_id": SECRET},
]
MEDIA: list[Json] = [
    {"type": "image", "url": f"s3://bucket/{SECRET}"},
    {"type": "file", "file_id": SECRET},
    {"type": "image", "data": "AAAA", "source": {"type": "url", "url": f"s3://bucket/{SECRET}"}},
    {"type": "file_url", "data": f"gs://bucket/{SECRET}"},
    {"type": "video", "url": f"https://generativelanguage.googleapis.com/v1beta/files/{SECRET}"},
]
RUNS: list[tuple[Json, Json]] = [
    ({"provider_type": "item_reference", "item_id": SECRET}, {}),
    ({"provider_type": "message", "item_id": SECRET}, {}),
    ({"provider_type": 3, "item_id": SECRET}, {}),
    ({"provider_type": "toolCall", "fileData": {"fileUri": f"gs://{SECRET}"}}, {"provider_type": "toolResponse"}),
    (
        {"provider_type": "server_tool_use"},
        {"provider_type": "tool_result", "output": [{"type": "document", "source": {"type": "file", "file_id": SECRET}}]},
    ),
    (
        {"provider_type": "server_tool_use"},
        {
            "provider_type": "web_fetch_tool_result",
            "output": {"type": "web_fetch_result", "content": {"source": {"type": "file", "file_id": SECRET}}},
        },
    ),
    (
        {"provider_type": "server_tool_use"},
        {"provider_type": "nova_grounding_result", "output": [{"image": {"source": {"s3Location": {"uri": f"s3://{SECRET}"}}}}]},
    ),
    (
        {"provider_type": "url_context_call"},
        {"provider_type": "user_input", "content": [{"type": "image", "uri": f"gs://{SECRET}"}]},
    ),
    (
        {"provider_type": "url_context_call"},
        {"provider_type": "url_context_result", "output": [{"type": "image", "uri": f"gs://{SECRET}"}]},
    ),
    (
        {"provider_type": "tool_search_call", "item_id": "ts_1"},
        {
            "provider_type": "tool_search_output",
            "item_id": "to_1",
            "output": [{"type": "file_search", "vector_store_ids": [SECRET]}],
        },
    ),
    ({"provider_type": "computer_call", "item_id": "1"}, {"provider_type": "computer_call_output", "item_id": "2", "output": SECRET}),
]  # fmt: skip
TEXT: Json = {"type": "text", "text": "Hi"}


def told_in_ai_sdk(*blocks: Json) -> list[rd.Message]:
    customs = [
        {"type": "custom", "kind": "rxdelta.block", "providerMetadata": {"rxdelta": block}}
        for block in blocks
    ]
    return of_ai_sdk(TEXT, *customs, role="assistant")


def told_in_ag_ui(*blocks: Json) -> list[rd.Message]:
    activities = [
        {"id": f"m~{n}", "role": "activity", "activityType": "rxdelta.x", "content": block}
        for n, block in enumerate(blocks, 1)
    ]
    return of_ag_ui({"id": "m", "role": "assistant", "content": "Hi"}, *activities)


@says("Items in the provider's own form")
@pytest.mark.parametrize("tell", [told_in_ai_sdk, told_in_ag_ui])
@pytest.mark.parametrize("raw", RAW)
def test_an_item_that_no_model_makes_is_left_out(tell: Any, raw: Json) -> None:
    in_ai_sdk = tell is told_in_ai_sdk
    (message,) = tell(
        {"type": "unsupported", "options": raw} if in_ai_sdk else {"type": "non_standard", "value": raw}
    )
    assert [block.type for block in message.blocks] == ["text"]
    assert SECRET not in requests_of([message])


@pytest.mark.parametrize("tell", [told_in_ai_sdk, told_in_ag_ui])
@pytest.mark.parametrize("medium", MEDIA)
def test_a_medium_that_the_model_cannot_have_made_is_left_out(tell: Any, medium: Json) -> None:
    options = {name: value for name, value in medium.items() if name not in ("type", "data")}
    whole = {"type": medium["type"], "text": medium.get("data"), "options": options}
    (message,) = tell(whole if tell is told_in_ai_sdk else medium)
    assert [block.type for block in message.blocks] == ["text"]


@pytest.mark.parametrize(("asked", "gave"), RUNS)
def test_a_run_of_the_providers_own_tool_that_cannot_be_is_left_out_with_call_and_result(
    asked: Json, gave: Json
) -> None:
    part = {
        "type": "tool-x",
        "toolCallId": "srvtoolu_1",
        "state": "output-available",
        "providerExecuted": True,
        "input": {},
        "output": gave.get("output", {}),
        "callProviderMetadata": {"rxdelta": {"metadata": asked}},
        "resultProviderMetadata": {"rxdelta": {"options": {"tool_call_id": "srvtoolu_1", **gave}}},
    }
    (message,) = of_ai_sdk(TEXT, part, role="assistant")
    assert [block.type for block in message.blocks] == ["text"]
    call = {"id": "srvtoolu_1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    call["metadata"] = {"rxdelta": {"type": "server_tool_call", "metadata": asked}}
    result = {"id": "r", "role": "tool", "toolCallId": "srvtoolu_1", "content": "", "metadata": {"rxdelta": {"block": gave}}}  # fmt: skip
    (message,) = of_ag_ui({"id": "m", "role": "assistant", "content": "Hi", "toolCalls": [call]}, result)
    assert SECRET not in requests_of([message])


# What a tool gave back.


def answered(content: Any, **metadata: Any) -> list[Json]:
    """A client's own tool has answered."""
    told = {"callProviderMetadata": {"rxdelta": {"metadata": metadata}}} if metadata else {}
    state = {"state": "output-available", "input": {}, "output": content}
    return [{"type": "tool-x", "toolCallId": "c1", **state, **told}]


@says("An image or a file in a tool's result")
@pytest.mark.parametrize(
    ("content", "metadata"),
    [
        ([{"type": "input_file", "file_id": SECRET}], {}),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": f"gs://{SECRET}"}], {}),
        ([{"type": "document", "uri": f"gs://bucket/{SECRET}"}], {}),
        ({"type": "image", "uri": f"gs://bucket/{SECRET}"}, {}),
        ({"type": "function_call_output", "output": [{"type": "input_file", "file_id": SECRET}]}, {}),
        (
            {"type": "tool_search_output", "tools": [{"type": "file_search", "vector_store_ids": [SECRET]}]},
            {},
        ),
        ([{"type": "mcp", "server_url": SECRET}], {"provider_type": "tool_search_call"}),
        ({"file_id": SECRET}, {"provider_type": "computer_call"}),
        ({"output": {"type": "computer_screenshot", "file_id": SECRET}}, {"provider_type": "computer_call"}),
        ({"output": {"file_id": SECRET}}, {"provider_type": "computer_call"}),
        ({"type": None, "file_id": SECRET}, {"provider_type": "computer_call"}),
    ],
)
def test_a_result_in_a_providers_words_may_not_name_what_only_the_server_may_read(
    content: Any, metadata: Json
) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"messages\[0\].*allow="):
        of_ai_sdk(*answered(content, **metadata), role="assistant")


TOOLS: list[Json] = [{"type": "mcp", "server_url": SECRET}]


@pytest.mark.parametrize("steps", [[0, 1], [1, 0]])
def test_a_result_is_read_as_any_call_of_its_id_has_it(steps: list[int]) -> None:
    """A request finds the call by its id, so the one that has the result may not hide behind another."""
    (plain,) = answered(TOOLS)
    metadata = {"provider_type": "tool_search_call", "item_id": "1"}
    (search,) = answered(None, **metadata)
    del search["output"]
    search["state"] = "input-available"
    calls = [plain, search]
    parts = [one for step in steps for one in ({"type": "step-start"}, calls[step])]
    with pytest.raises(rd.InvalidValueError, match="tool_definitions"):
        of_ai_sdk(*parts, role="assistant")
    function = {"name": "x", "arguments": "{}"}
    told: list[Json] = [
        {"id": "c1", "type": "function", "function": function},
        {
            "id": "c1",
            "type": "function",
            "function": function,
            "metadata": {"rxdelta": {"metadata": metadata}},
        },
    ]
    said = {"id": "m", "role": "assistant", "toolCalls": [told[step] for step in steps]}
    given = {"id": "r", "role": "tool", "toolCallId": "c1", "content": json.dumps(TOOLS), "metadata": {"rxdelta": {"json": True}}}  # fmt: skip
    with pytest.raises(rd.InvalidValueError, match="tool_definitions"):
        of_ag_ui(said, given)


@pytest.mark.parametrize(
    "content",
    [
        {"file_id": "1", "uri": "gs://a/b", "type": "file"},
        [{"type": "file", "url": "/docs/a.pdf"}, {"type": "file", "file_id": "2"}],
        [{"type": "image", "url": "/a.png"}],
        {"tools": [{"type": "hammer"}]},
        {"s3Location": {"uri": "s3://a/b"}},
        "s3://a/b",
        [],
        None,
    ],
)
def test_a_result_that_only_a_model_reads_says_what_it_likes(content: Any) -> None:
    (message,) = of_ai_sdk(*answered(content), role="assistant")
    (call,) = message.tool_calls
    assert call.result is not None
    assert call.result.content == content


def test_metadata_that_would_go_to_the_provider_as_they_are_stay_here() -> None:
    metadata = {"additional_kwargs": {"audio": SECRET}, "mood": "good"}
    (message,) = rd.from_ai_sdk([{"id": "1", "role": "assistant", "parts": [TEXT], "metadata": metadata}])
    assert message.metadata == {"mood": "good"}


# What a model made comes back.

CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in rd.requests.REQUEST_FORMATS
    if wire_format != "langchain"  # of which nothing is recorded
    for case in recordings(wire_format)
]


def items(*output: Json) -> list[Any]:
    """A reply of OpenAI Responses that is there whole."""
    return [{"object": "response", "id": "resp_1", "model": "m", "status": "completed", "output": [*output]}]


def blocks(*content: Json) -> list[Any]:
    """A message of Anthropic that is there whole."""
    return [
        {"type": "message", "id": "m", "role": "assistant", "content": [*content], "stop_reason": "end_turn"}
    ]


def parts(*found: Json) -> list[Any]:
    return [
        {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": [*found]}, "finishReason": "STOP"}
            ]
        }
    ]


# As the providers' references show them.
OWN_TOOLS: dict[str, list[tuple[Json, ...]]] = {
    "openai-responses": [
        ({"type": "web_search_call", "id": "1", "status": "completed", "action": {"type": "search", "query": "x"}},),
        ({"type": "file_search_call", "id": "1", "status": "completed", "queries": ["x"], "results": None},),
        ({"type": "code_interpreter_call", "id": "1", "status": "completed", "code": "1", "container_id": "c", "outputs": []},),
        ({"type": "computer_call", "id": "1", "call_id": "c1", "status": "completed", "action": {"type": "wait"}, "pending_safety_checks": []},),
        ({"type": "local_shell_call", "id": "1", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},),
        ({"type": "apply_patch_call", "id": "1", "call_id": "c1", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},),
        ({"type": "mcp_call", "id": "1", "server_label": "s", "name": "f", "arguments": "{}", "output": "x", "error": None},),
        ({"type": "mcp_list_tools", "id": "1", "server_label": "s", "tools": []},),
        ({"type": "mcp_approval_request", "id": "1", "server_label": "s", "name": "f", "arguments": "{}"},),
        (
            {"type": "shell_call", "id": "1", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "id": "2", "call_id": "c1", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        ),
        (
            {"type": "tool_search_call", "id": "1", "call_id": "c1", "status": "completed", "execution": "server", "arguments": {}},
            {"type": "tool_search_output", "id": "2", "call_id": "c1", "status": "completed", "execution": "server", "tools": []},
        ),
    ],
    "anthropic-messages": [
        (
            {"type": call, "id": "s1", "name": result.removesuffix("_tool_result"), "input": {}, **more},
            {"type": result, "tool_use_id": "s1", "content": [], **told},
        )
        for call, result, more, told in [
            ("server_tool_use", "web_search_tool_result", {}, {}),
            ("server_tool_use", "web_fetch_tool_result", {}, {}),
            ("server_tool_use", "code_execution_tool_result", {}, {}),
            ("server_tool_use", "bash_code_execution_tool_result", {}, {}),
            ("server_tool_use", "text_editor_code_execution_tool_result", {}, {}),
            ("server_tool_use", "tool_search_tool_result", {}, {}),
            ("mcp_tool_use", "mcp_tool_result", {"server_name": "s"}, {"is_error": False}),
        ]
    ],
    "gemini": [
        (
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ),
    ],
}  # fmt: skip
WHOLE = {"openai-responses": items, "anthropic-messages": blocks, "gemini": parts}
SHOWN = [
    pytest.param(
        wire_format, WHOLE[wire_format](*told), id=f"{wire_format}-{next(map(str, told[-1].values())):.40}"
    )
    for wire_format, replies in OWN_TOOLS.items()
    for told in replies
]


def comes_back(events: list[rd.Event]) -> bool:
    """Whether a browser that got these events gives back all blocks. A reply that broke off isn't looked at."""
    fold = rd.Fold(choice=0)
    for event in events:
        if isinstance(event, rd.events.StreamError):
            return True
        fold.step(event)
    if fold.snapshot.status == "incomplete":
        return True
    whole = [block.type for block in fold.snapshot.blocks if block.type not in ("text", "reasoning")]
    encoder = rd.wire.AgUiEncoder(thread_id="t", run_id="r", provider_items=True)
    client = read(frames_of(encoder, events))
    found = [block.type for message in rd.from_ag_ui(client.messages) for block in message.blocks]
    return sorted(kind for kind in found if kind not in ("text", "reasoning")) == sorted(whole)


def decoded(wire_format: str, chunks: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


@pytest.mark.parametrize(("wire_format", "chunks"), SHOWN)
def test_a_run_of_a_providers_own_tool_comes_back(wire_format: str, chunks: list[Any]) -> None:
    events = decoded(wire_format, chunks)
    assert isinstance(events[-1], rd.events.MessageFinish)
    assert any(isinstance(event, rd.events.BlockFinish) for event in events)
    assert comes_back(events)


@says("Items in the provider's own form")
@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_nothing_of_a_recorded_reply_is_left_out(wire_format: str, chunks: list[Any]) -> None:
    assert comes_back(decoded(wire_format, chunks))


# Whatever it says.

FIELDS = st.sampled_from(
    ["type", "url", "uri", "file_id", "source", "tools", "output", "provider_type", "options"]
)
WORDS = st.sampled_from(
    ["file", "image", "url", "input_file", "server_tool_use", "compaction", "s3://a/b", HERS]
)
HOSTILE = st.recursive(
    WORDS | json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
)


@given(HOSTILE, st.sampled_from(["user", "assistant"]))
def test_whatever_a_browser_says_gives_messages_or_our_error(said: Any, role: str) -> None:
    parts = [{"type": "file", "url": HERS, "mediaType": "x", "providerMetadata": {"rxdelta": said}}]
    parts += [{"type": "custom", "kind": "x", "providerMetadata": {"rxdelta": said}}, *answered(said)]
    with contextlib.suppress(rd.RxDeltaError):
        of_ai_sdk(*parts, role=role)


@pytest.mark.parametrize(
    ("asked", "gave"),
    [
        ({"provider_type": "web_search_call", "item_id": "ws_1", "id": ["x"]}, {}),
        ({"provider_type": "web_search_call"}, {"provider_type": "web_search_call", "extras": "x"}),
    ],
)
def test_whatever_a_browser_says_of_a_providers_tool_no_format_breaks_over_it(
    asked: Json, gave: Json
) -> None:
    function = {"name": "x", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    call["metadata"] = {"rxdelta": {"type": "server_tool_call", "metadata": asked}}
    result = {"id": "r", "role": "tool", "toolCallId": "c1", "content": "", "metadata": {"rxdelta": {"block": gave}}}  # fmt: skip
    messages = of_ag_ui({"id": "m", "role": "assistant", "content": "Hi", "toolCalls": [call]}, result)
    for wire_format in rd.requests.REQUEST_FORMATS:
        rd.to_request(messages, wire_format)


def test_what_is_nested_as_deep_as_json_may_be_is_read_to_its_end() -> None:
    deep: Any = {"type": "container_upload", "file_id": SECRET}
    for _ in range(150):
        deep = {"a": [deep]} if isinstance(deep, dict) and len(str(deep)) < 700 else {"a": deep}
    (message,) = told_in_ai_sdk({"type": "unsupported", "options": {"type": "compaction", "content": deep}})
    assert SECRET not in requests_of([message])


def test_many_parts_that_are_left_out_cost_no_more_each() -> None:
    def cost(count: int) -> int:
        raw = {"type": "unsupported", "options": {"type": "container_upload", "file_id": SECRET}}
        return lines_run(lambda: told_in_ai_sdk(*[raw] * count))

    assert cost(400) < 5 * cost(100)
