"""Status lines and documents of the application, in the stream of the reply."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import rxdelta as rd
from rxdelta.testing import FakeProvider

Custom = rd.events.Custom
provider = FakeProvider("High water is at six.")


async def answer(question: str) -> AsyncIterator[Any]:
    yield Custom("status", "Searching", id="status")
    found = [{"title": "Tides of the Atlantic"}]  # in your code: await search(question)
    yield Custom("documents", found, id="found")
    yield Custom("status", "Writing", id="status")  # takes the place of the older one
    async for chunk in provider.stream("openai-chat"):  # in your code: the stream of your client
        yield chunk


async def main() -> None:
    async with rd.stream(answer("When is high water?")) as reply:
        reply.emit(Custom("title", "High water"))  # from any task or thread
        async for event in rd.iterate(reply.events):
            if isinstance(event, Custom):
                print(event.name, event.data)
    print(reply.message.text, [event.name for event in reply.message.custom_events])


asyncio.run(main())
