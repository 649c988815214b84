"""A conversation is kept in a file, and goes on after a restart."""

import asyncio
import json
from pathlib import Path

import rxdelta as rd
from rxdelta.testing import FakeProvider

FILE = Path("conversation.json")  # in your code: a row of your database
provider = FakeProvider("High water is at six.", "Low water is at noon.")


def restore() -> list[rd.Message]:
    stored = json.loads(FILE.read_text("utf-8")) if FILE.exists() else []
    return [rd.Message.from_dict(message) for message in stored]


def store(conversation: list[rd.Message]) -> None:
    FILE.write_text(json.dumps([message.to_dict() for message in conversation]), "utf-8")


async def answer(question: str) -> None:
    conversation = [*restore(), rd.Message.of("user", question)]
    request = rd.to_request(conversation, "openai-chat")
    print(f"asked with {len(request['messages'])} messages")
    # in your code: client.chat.completions.create(stream=True, **request, …)
    reply = await rd.stream(provider.stream("openai-chat"))
    store([*conversation, reply])


asyncio.run(answer("When is high water?"))
asyncio.run(answer("And low water?"))
print([message.text for message in restore()])
