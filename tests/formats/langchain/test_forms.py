"""The forms in which messages come."""

from __future__ import annotations

import copy

import pytest
from formats.langchain.chunks import BODY, STREAM, Chunk, chunk, folded

import rxdelta as rd


def stored(message: Chunk) -> Chunk:
    name = "AIMessage" if message["type"] == "ai" else "AIMessageChunk"
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", name],
        "kwargs": message,
    }


FORMS = {
    "stored in Python": stored,
    "stored in JavaScript": lambda message: {
        **stored(
            {name: value for name, value in message.items() if name != "type"} | {"type": message["type"]}
        ),
        "id": ["langchain_core", "messages", stored(message)["id"][-1]],
        "kwargs": {name: value for name, value in message.items() if name != "type"},
    },
    "with its type beside it": lambda message: {"type": message["type"], "data": message},
    "in a generation": lambda message: {"text": "", "message": message, "generation_info": None},
    "in a run": lambda message: {"event": "on_chat_model_stream", "data": {"chunk": message}},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form: str) -> None:
    dressed = [FORMS[form](copy.deepcopy(message)) for message in STREAM]
    assert folded(*dressed) == folded(*STREAM)
    assert rd.providers.detect(dressed[0]) == "langchain"
    if form != "in a run":
        assert folded(FORMS[form](BODY)).to_message() == folded(BODY).to_message()


def test_what_a_generation_knows_belongs_to_the_message() -> None:
    reply = folded(
        {"message": chunk("Hi"), "generation_info": {"finish_reason": "length", "model_name": "m"}}
    )
    assert (reply.finish_reason, reply.model) == ("length", "m")


def test_langchains_own_objects() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    load = pytest.importorskip("langchain_core.load")
    outputs = pytest.importorskip("langchain_core.outputs")
    made = [messages.AIMessageChunk(**message) for message in STREAM]
    wanted = folded(*STREAM)
    assert folded(*made) == wanted
    assert folded(*(one.model_dump() for one in made)) == wanted
    assert folded(*(load.dumpd(one) for one in made)) == wanted
    assert folded(*messages.messages_to_dict(made)) == wanted
    assert folded(*(outputs.ChatGenerationChunk(message=one) for one in made)) == wanted
    total = made[0]
    for one in made[1:]:
        total += one
    whole = messages.message_chunk_to_message(total)
    assert folded(whole).to_message() == wanted.to_message()
    for one in (made[0], load.dumpd(made[0]), messages.AIMessageChunk(content="Hi"), whole):
        assert rd.providers.detect(one) == "langchain"
