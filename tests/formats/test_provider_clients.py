"""Every recorded reply to clients of OpenAI's Responses API and of Anthropic's Messages API: they have what our fold has.

Whole, and cut behind each event: then no client has a whole reply, or a call that has ended, which isn't one.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import attrs
import pytest
from support.front_ends import ENDINGS, LEAK, Ending, Reply, endings, recorded_replies, sse
from support.http_server import Reply as Answer, Server
from support.provider_clients import WAYS, Said, Way, said_by_message, said_by_response
from support.provider_frames import Reader, check_types

import rxdelta as rd

ev = rd.events
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
streamed = pytest.mark.parametrize(
    "tools", [pytest.param(None, id="held", marks=pytest.mark.soak), pytest.param((), id="streamed")]
)
"""By default only the way in which calls come piece by piece."""
each_split = pytest.mark.parametrize(
    "tools", [pytest.param(None, id="held"), pytest.param((), id="streamed")]
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def replies() -> Sequence[Reply]:
    return recorded_replies() or pytest.skip("no recordings")


def said(reply: Reply) -> rd.Snapshot:
    return reply.folded(len(reply.events), cut=False)


def whole_replies() -> Iterator[tuple[Reply, rd.Snapshot]]:
    for reply in replies():
        message = said(reply)
        if message.status != "incomplete":
            yield reply, message


def items_of(reply: Reply, way: Way) -> list[Any]:
    """The items that the vendor of this protocol has sent, if the reply is its own."""
    if reply.wire_format != way.wire_format:
        return []
    items = (chunk.get("item", chunk.get("content_block")) for chunk in reply.chunks)
    return [item for item in items if item is not None]


# Whole.


@each_way
@each_split
def test_a_recorded_reply_is_shown_as_it_was_said(way: Way, tools: Any) -> None:
    for reply in replies():
        message, reader = said(reply), way.read(reply.events, tools=tools)
        assert reader.over, reply.name
        if message.status == "incomplete":
            assert reader.error is not None, reply.name
            assert not reader.runnable() or tools is not None, reply.name
        else:
            shown = way.shown(reader)
            assert shown == way.wanted(message), reply.name
            assert len({call[0] for call in shown.calls}) == len(shown.calls), reply.name


@each_way
@streamed
def test_reasoning_that_is_not_wanted_is_not_there(way: Way, tools: Any) -> None:
    for reply, message in whole_replies():
        if any(block.type == "reasoning" for block in message.blocks):
            shown = way.shown(way.read(reply.events, tools=tools, reasoning=False))
            assert shown == way.wanted(message, reasoning=False), reply.name


@each_way
@streamed
def test_each_frame_is_one_of_the_vendors_own_types(way: Way, tools: Any) -> None:
    for reply in replies():
        check_types(way.wire_format, way.frames(reply.events, tools=tools), items_of(reply, way))


@each_way
@streamed
def test_a_recorded_reply_comes_back_as_it_was_said(way: Way, tools: Any) -> None:
    for reply, message in whole_replies():
        back = way.back(way.frames(reply.events, tools=tools))
        assert way.wanted(back) == way.wanted(message), reply.name
        assert (back.id, back.model or "") == (message.id or "made", message.model or ""), reply.name
        own = reply.wire_format == way.wire_format
        assert ran(back) == (ran(message) if own else []), reply.name


def ran(message: rd.Snapshot) -> list[Any]:
    """What the provider's own tools were asked, and what they found, in order."""
    found: list[Any] = []
    for block in message.blocks:
        if isinstance(block, rd.ToolCall):
            if block.type == "server_tool_call":
                found.append([block.call_id, block.name, block.arguments])
        elif block.type == "server_tool_result":
            found.append([block.options.get("tool_call_id"), block.options.get("output")])
    return found


BODIES: dict[str, Callable[[Any], Any]] = {
    "openai-responses": lambda frames: rd.wire.openai_response(frames),
    "anthropic-messages": lambda frames: rd.wire.anthropic_message(frames),
}
SAID: dict[str, Callable[[Any], Said]] = {
    "openai-responses": said_by_response,
    "anthropic-messages": said_by_message,
}


def body_type(wire_format: str) -> Any:
    pydantic = pytest.importorskip("pydantic")
    if wire_format == "openai-responses":
        return pydantic.TypeAdapter(pytest.importorskip("openai.types.responses").Response)
    stable = pytest.importorskip("anthropic.types").Message
    beta = pytest.importorskip("anthropic.types.beta").BetaMessage
    return pydantic.TypeAdapter(stable | beta)


@each_way
def test_the_whole_body_says_what_the_frames_say(way: Way) -> None:
    of_type, make = body_type(way.wire_format), BODIES[way.wire_format]
    for reply, message in whole_replies():
        body = make(way.frames(reply.events, tools=()))
        assert SAID[way.wire_format](body) == way.wanted(message), reply.name
        sent = items_of(reply, way)
        field = "output" if "output" in body else "content"
        known = {**body, field: [item for item in body[field] if item not in sent]}
        of_type.validate_python(known, strict=True)


# The vendors' own packages.


def ask_openai(server: Server, count: int) -> Iterator[Said]:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        for _ in range(count):
            snapshots: dict[str, str] = {}
            with client.responses.stream(model="house", input="Well?") as stream:
                for event in stream:
                    if event.type == "response.output_text.delta":
                        snapshots[event.item_id] = event.snapshot
            response = event.response.to_dict(warnings=False)
            if event.type == "response.completed":
                assert stream.get_final_response().to_dict(warnings=False) == response
            texts = {
                item["id"]: item["content"][0].get("text")
                for item in response["output"]
                if item["type"] == "message" and item["content"][0]["type"] == "output_text"
            }
            assert snapshots == texts
            yield said_by_response(response)


def ask_anthropic(server: Server, count: int) -> Iterator[Said]:
    anthropic = pytest.importorskip("anthropic")
    asked: Any = {"model": "house", "max_tokens": 9, "messages": [{"role": "user", "content": "Well?"}]}
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        for _ in range(count):
            with client.messages.stream(**asked) as stream:
                message = stream.get_final_message().to_dict(warnings=False)
            yield said_by_message(message)


ASK: dict[str, Callable[[Server, int], Iterator[Said]]] = {
    "openai-responses": ask_openai,
    "anthropic-messages": ask_anthropic,
}


def check_official_client(way: Way, chosen: Sequence[tuple[Reply, rd.Snapshot]]) -> None:
    bodies = [sse_of(way.frames(reply.events, tools=())) for reply, _ in chosen]
    with Server(*(Answer([body]) for body in bodies)) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of items that the packages' types don't know
        told = ASK[way.wire_format](server, len(bodies))
        for (reply, message), shown in zip(chosen, told, strict=True):
            if shown.reason == "max_tokens":
                shown.calls = []  # Anthropic's package repairs arguments that were cut off
            assert shown == way.wanted(message), reply.name


def sse_of(frames: Sequence[Any]) -> bytes:
    return "".join(map(sse, frames)).encode()


@each_way
def test_the_vendors_own_client_has_what_we_have(way: Way) -> None:
    short = [one for one in whole_replies() if len(one[0].events) < 60]
    check_official_client(way, Random(7).sample(short, 15))


@pytest.mark.soak
@each_way
def test_the_vendors_own_client_has_what_we_have_of_every_reply(way: Way) -> None:
    check_official_client(way, [*whole_replies()])


# Cut.


ERROR = "An error."


def check_ending(way: Way, reply: Reply, end: Ending, tools: Any) -> None:
    where = f"{reply.name}, {end.how} behind {end.count}"
    encoder = way.new(tools=tools, on_error=lambda error: ERROR)
    reader = way.reader(frame for event in reply.events[: end.count] for frame in encoder.encode(event))
    assert not reader.over, where
    had = [item.done for item in reader.items]
    before = reader.texts("output_text", "text", "refusal")
    frames = ENDINGS[end.how](encoder)
    reader.read(*frames)
    assert LEAK not in json.dumps(frames), where
    assert reader.over, where
    failed = end.how not in ("completes", "stop") or not end.finished
    if not failed:
        assert reader.error is None, where
        return
    check_broken(way, reader, end, where)
    assert reader.error == ("user" if end.how == "stop" else ERROR), where
    assert [item.done for item in reader.items] == had, f"{where}: something has ended that hadn't"
    fold = [
        block.text or ""
        for block in end.snapshot.blocks
        if isinstance(block, rd.ContentPart) and block.type in ("text", "refusal") and block.text
    ]
    for piece in before:
        assert any(text.startswith(piece) for text in fold), where


def check_broken(way: Way, reader: Reader, end: Ending, where: str) -> None:
    """A reply that has broken off: it has no end, and only calls that the model had finished."""
    assert reader.end is reader.usage is None, where
    calls = way.wanted(end.snapshot).calls
    for call in way.shown(reader).calls:
        assert call in calls, where


def check_every_ending(way: Way, tools: Any, chosen: Callable[[Reply], Iterator[Ending]]) -> None:
    for reply in replies():
        for end in chosen(reply):
            check_ending(way, reply, end, tools)


@each_way
@each_split
def test_no_client_has_more_of_a_broken_reply_than_was_said(way: Way, tools: Any) -> None:
    draw = Random(11)

    def some(reply: Reply) -> Iterator[Ending]:
        if len(reply.events) < 200:
            found = [*endings(reply)]
            yield from draw.sample(found, min(3, len(found)))

    check_every_ending(way, tools, some)


@pytest.mark.soak
@each_way
@each_split
def test_no_client_has_more_of_any_broken_reply_than_was_said(way: Way, tools: Any) -> None:
    check_every_ending(way, tools, endings)


@each_way
@each_split
def test_what_a_client_has_is_not_taken_back(way: Way, tools: Any) -> None:
    """Another attempt begins: it is shown if the client has nothing of the one before; else the reply ends with an error."""
    draw, shown, failed = Random(13), 0, 0
    short = [one for one in whole_replies() if len(one[0].events) < 200]
    for reply, message in draw.sample(short, 40):
        last = max(place for place, event in enumerate(reply.events) if isinstance(event, ev.MessageFinish))
        tried = reply.events[: min(last, draw.choice([0, 1, *[draw.randrange(last + 1) for _ in range(3)]]))]
        encoder = way.new(tools=tools)
        first = way.reader(frame for event in tried for frame in encoder.encode(event))
        reader = way.read([*tried, ev.AttemptReset(1, LEAK, choice=0), *reply.events], tools=tools)
        kept = [item for item in first.items if item.kind not in ("reasoning", "thinking")]
        if kept:
            failed += 1
            assert reader.error is not None, reply.name
            assert not any(item.done for item in reader.items[len(first.items) :]), reply.name
        else:
            shown += 1
            again = attrs.evolve(way.shown(reader), usage=None)
            wanted = attrs.evolve(way.wanted(message), usage=None)
            thought = len(again.reasoning) - len(wanted.reasoning)
            again.reasoning = again.reasoning[thought:]  # a thought of the attempt that failed stays
            assert again == wanted, reply.name
    assert min(shown, failed) > 5


@each_way
@pytest.mark.parametrize("how", ENDINGS)
def test_a_stream_of_nothing_is_an_error(way: Way, how: str) -> None:
    reader = way.reader(ENDINGS[how](way.new(on_error=lambda error: ERROR)))
    assert reader.over
    assert reader.error == ("user" if how == "stop" else ERROR)
    assert not reader.items
