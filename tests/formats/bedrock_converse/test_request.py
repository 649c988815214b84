"""What `to_request` writes for Amazon Bedrock's Converse, and whether botocore takes it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from support.conversations import call, invalid, recorded, reply, system, text, thought, user, whole

import rxdelta as rd

DATA = base64.b64encode(b"ABC").decode()


def bedrock(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "bedrock-converse", **more)["messages"]
    return written


@pytest.mark.slow
@pytest.mark.parametrize("message", recorded())
def test_botocore_takes_every_recorded_reply_and_nothing_is_there_that_bedrock_refuses(
    message: rd.Message,
) -> None:
    validate = pytest.importorskip("botocore.validate")
    session = pytest.importorskip("botocore.session").get_session()
    converse = session.get_service_model("bedrock-runtime").operation_model("Converse")
    request = rd.to_request(whole(message), "bedrock-converse")
    report = validate.ParamValidator().validate({"modelId": "m", **request}, converse.input_shape)
    assert not report.has_errors(), report.generate_report()
    roles = [one["role"] for one in request["messages"]]
    assert roles in (["user", "assistant", "user"], ["user"])
    for one in request["messages"]:
        assert one["content"]
        assert all(block["text"].strip() for block in one["content"] if "text" in block)
        assert any("reasoningContent" not in block for block in one["content"])


def test_a_conversation_whole() -> None:
    request = rd.to_request(
        [
            system(text("Be brief.")),
            "2 + 2?",
            reply(thought("Hm.", signature="s"), text("Let me see."), call("a", "add", {"x": 2}), call("b", "now")),
            rd.ToolResult("b", "noon", is_error=True),
            rd.ToolResult("a", {"sum": 4}),
            "And?",
            reply(text("4")),
        ],
        "bedrock-converse",
    )  # fmt: skip
    assert request == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "2 + 2?"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
                    {"text": "Let me see."},
                    {"toolUse": {"toolUseId": "a", "name": "add", "input": {"x": 2}}},
                    {"toolUse": {"toolUseId": "b", "name": "now", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "a", "content": [{"json": {"sum": 4}}]}},
                    {"toolResult": {"toolUseId": "b", "content": [{"text": "noon"}], "status": "error"}},
                    {"text": "And?"},
                ],
            },
            {"role": "assistant", "content": [{"text": "4"}]},
        ],
    }


@pytest.mark.parametrize(("content", "written"), [([1, 2], "[1, 2]"), (4, "4"), (None, ""), ("x", "x")])
def test_a_result_that_is_no_object_is_a_text(content: Any, written: str) -> None:
    (_, answer) = bedrock(reply(call("a")), rd.ToolResult("a", content))
    assert answer["content"][0]["toolResult"]["content"] == [{"text": written}]


def test_an_invalid_call_goes_back_as_an_object_and_is_answered() -> None:
    (said, answer) = bedrock(reply(invalid("a", '{"x": ')))
    assert said["content"][0]["toolUse"]["input"] == {"invalid_arguments": '{"x": '}
    assert answer["content"][0]["toolResult"]["status"] == "error"


def test_encrypted_reasoning_is_bytes_and_unsigned_reasoning_is_left_out() -> None:
    message = reply(thought("", redacted=True, data=DATA), thought("Hm."), text("Hi"))
    assert bedrock(message)[0]["content"] == [
        {"reasoningContent": {"redactedContent": b"ABC"}},
        {"text": "Hi"},
    ]
    assert bedrock(message, reasoning=False)[0]["content"] == [{"text": "Hi"}]
    assert bedrock(reply(thought("", redacted=True, data="no base64!"), text("Hi")))[0]["content"] == [
        {"text": "Hi"}
    ]


def test_a_message_of_reasoning_alone_is_left_out() -> None:
    assert bedrock("Hi", reply(thought("Hm.", signature="s")), "Well?") == [
        {"role": "user", "content": [{"text": "Hi"}, {"text": "Well?"}]}
    ]


def test_blank_texts_go_with_the_text_beside_them_or_are_left_out() -> None:
    said = bedrock(reply(text("\n"), text("a"), text(" "), call("c"), text(" ")))[0]["content"]
    assert [block.get("text") for block in said] == ["\na ", None]
    assert bedrock(user(text(" ")), system(text(""))) == []


def test_messages_of_one_role_are_written_as_one_but_those_in_bedrock_s_own_form_stay() -> None:
    own = {"role": "user", "content": [{"text": "own"}]}
    written = bedrock("a", "b", own, "c", reply(text("d")), reply(text("e")))
    assert [(one["role"], [block["text"] for block in one["content"]]) for one in written] == [
        ("user", ["a", "b"]),
        ("user", ["own"]),
        ("user", ["c"]),
        ("assistant", ["d", "e"]),
    ]
    assert own == {"role": "user", "content": [{"text": "own"}]}


def test_the_provider_s_own_tools_go_back_with_what_they_gave() -> None:
    asked = rd.ToolCall(
        call_id="t", name="nova_grounding", arguments={"query": "x"}, status="complete",
        type="server_tool_call", metadata={"provider_type": "server_tool_use"},
    )  # fmt: skip
    given = {"tool_call_id": "t", "status": "success", "provider_type": "nova_grounding_result"}
    result = rd.ContentPart("server_tool_result", None, {**given, "output": [{"text": "[HIDDEN]"}]})
    web = {"location": {"web": {"url": "https://x", "domain": "x"}}}
    cited = rd.ContentPart("text", "", citations=[rd.Citation(url="https://x", raw=web)])
    assert bedrock(reply(asked, result, text("So:"), cited))[0]["content"] == [
        {
            "toolUse": {
                "toolUseId": "t",
                "name": "nova_grounding",
                "input": {"query": "x"},
                "type": "server_tool_use",
            }
        },
        {
            "toolResult": {
                "toolUseId": "t",
                "content": [{"text": "[HIDDEN]"}],
                "status": "success",
                "type": "nova_grounding_result",
            }
        },
        {"text": "So:"},
        {"citationsContent": {"citations": [web]}},
    ]
    assert bedrock(reply(asked, text("So:")))[0]["content"] == [{"text": "So:"}]
    others = rd.ContentPart(
        "server_tool_result", None, {**given, "output": [{"type": "web_search_result", "url": "https://x"}]}
    )
    assert bedrock(reply(asked, others, text("So:")))[0]["content"] == [{"text": "So:"}]


def test_pictures_in_a_result_of_the_provider_s_own_tool_are_bytes_again() -> None:
    asked = call("t", type="server_tool_call", metadata={"provider_type": "server_tool_use"})
    image = {"image": {"format": "png", "source": {"bytes": DATA}}}
    result = rd.ContentPart("server_tool_result", None, {"tool_call_id": "t", "output": [image]})
    (found,) = bedrock(reply(asked, result))[0]["content"][1]["toolResult"]["content"]
    assert found["image"]["source"] == {"bytes": b"ABC"}


def test_citations_go_back_if_they_are_bedrock_s() -> None:
    page = {
        "title": "T",
        "sourceContent": [{"text": "x"}],
        "location": {"documentPage": {"start": 1}},
        "new": 1,
    }
    ours = rd.ContentPart("text", "Hi", citations=[rd.Citation(raw=page)])
    del page["new"]
    assert bedrock(reply(ours))[0]["content"] == [
        {"citationsContent": {"content": [{"text": "Hi"}], "citations": [page]}}
    ]
    other = rd.ContentPart("text", "Hi", citations=[rd.Citation(raw={"type": "char_location"})])
    assert bedrock(reply(other))[0]["content"] == [{"text": "Hi"}]


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (rd.ContentPart("image", DATA, {"mime_type": "image/jpeg"}),
         {"image": {"format": "jpeg", "source": {"bytes": b"ABC"}}}),
        (rd.ContentPart("image_url", f"data:image/webp;base64,{DATA}"),
         {"image": {"format": "webp", "source": {"bytes": b"ABC"}}}),
        (rd.ContentPart("image_url", "s3://bucket/x.png", {"bucket_owner": "123456789012"}),
         {"image": {"format": "png",
                    "source": {"s3Location": {"uri": "s3://bucket/x.png", "bucketOwner": "123456789012"}}}}),
        (rd.ContentPart("file", DATA, {"filename": "a b.pdf", "citations": {"enabled": True}}),
         {"document": {"format": "pdf", "name": "a b-pdf", "source": {"bytes": b"ABC"},
                       "citations": {"enabled": True}}}),
        (rd.ContentPart("file", DATA, {"mime_type": "text/csv"}),
         {"document": {"format": "csv", "name": "document", "source": {"bytes": b"ABC"}}}),
        (rd.ContentPart("video", None, {"format": "mkv", "source": {"s3Location": {"uri": "s3://b/x"}}}),
         {"video": {"format": "mkv", "source": {"s3Location": {"uri": "s3://b/x"}}}}),
        (rd.ContentPart("audio", DATA, {"mime_type": "audio/mpeg"}),
         {"audio": {"format": "mp3", "source": {"bytes": b"ABC"}}}),
        (rd.ContentPart("unsupported", None, {"cachePoint": {"type": "default"}}),
         {"cachePoint": {"type": "default"}}),
    ],
)  # fmt: skip
def test_media_are_bytes(part: rd.ContentPart, written: Any) -> None:
    assert bedrock(user(text("See:"), part))[0]["content"] == [{"text": "See:"}, written]


def test_system_instructions_are_texts_and_cache_points() -> None:
    point = rd.ContentPart("unsupported", None, {"cachePoint": {"type": "default"}})
    request = rd.to_request([system(text("a"), point), "Hi"], "bedrock-converse")
    assert request["system"] == [{"text": "a"}, {"cachePoint": {"type": "default"}}]
    with pytest.raises(rd.InvalidValueError, match="from the system"):
        bedrock(system(rd.ContentPart("image", DATA)))


def test_what_the_model_drew_is_left_out_and_what_only_bedrock_has_is_kept() -> None:
    found = rd.ContentPart(
        "unsupported", None, {"searchResult": {"source": "s", "title": "t", "content": []}}
    )
    other = rd.ContentPart("unsupported", None, {"type": "new"})
    drawn = rd.ContentPart("image", DATA)
    refused = rd.ContentPart("refusal", "No.")
    assert bedrock(reply(found, other, drawn, refused))[0]["content"] == [
        {"searchResult": {"source": "s", "title": "t", "content": []}},
        {"text": "No."},
    ]


@pytest.mark.parametrize("call_id", ["functions.f:0", "call|" + "x" * 90, "x" * 64, None])
def test_an_id_and_a_name_that_bedrock_refuses_are_made_ones_it_takes(call_id: str | None) -> None:
    (said, answer) = bedrock(reply(call(call_id, "my.tool", result=rd.ToolResult(None, "x"))))
    used = said["content"][0]["toolUse"]
    assert used["toolUseId"] == answer["content"][0]["toolResult"]["toolUseId"]
    assert used["toolUseId"].replace("_", "").isalnum()
    assert len(used["toolUseId"]) <= 64
    assert used["name"] == "my_tool"
    assert used["toolUseId"] == call_id or call_id != "x" * 64
