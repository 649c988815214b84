"""An agent: while the model asks for tools, it is asked again with their results."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 17}


TOOLS = {"get_forecast": get_forecast}


def ask(conversation: list[rd.Message]) -> AsyncIterator[Any]:
    request = rd.to_request(conversation, "anthropic-messages", tools=TOOLS)
    # in your code: return client.messages.create(stream=True, **request, …)
    return sample_chunks("weather" if len(request["messages"]) == 1 else "forecast")


async def main() -> None:
    conversation = [rd.Message.of("user", "Lisbon or Oslo?")]
    for _ in range(5):  # a model may ask for ever
        async with rd.stream(ask(conversation), tools=TOOLS) as reply:
            async for piece in reply.text_deltas:
                print(piece, end="", flush=True)
        conversation.append(reply.message)
        if reply.message.finish_reason != "tool_use":
            break
    print(f"\n{len(conversation) - 1} turns")


asyncio.run(main())
