"""Where the replies come from: a search of the application, a model, and a tool that the model may ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import rxdelta as rd
from rxdelta.events import Custom
from rxdelta.testing import sample_chunks

PACE = float(os.environ.get("PACE", "0.03"))  # seconds between two recorded chunks
FORECASTS = {"Lisbon": (17, "dry"), "Oslo": (-4, "snow, 10 cm")}
GUIDES = {
    "Lisbon": ("Walking in Sintra", "https://example.com/sintra", "The palace walk is open all winter."),
    "Oslo": ("Nordmarka on skis", "https://example.com/nordmarka", "The trails open with the first snow."),
}
TOOL = {
    "name": "get_forecast",
    "description": "The weather of a city on some days.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"],
    },
}
open_requests = 0  # to the provider


async def get_forecast(city: str, days: list[str] | None = None, **more: Any) -> AsyncIterator[Any]:
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(10 * PACE)
    degrees, sky = FORECASTS.get(city, (21, "sunny"))
    yield {"city": city, "days": days, "celsius": degrees, "sky": sky}


async def ask(conversation: list[rd.Message]) -> AsyncIterator[Any]:
    """The chunks of the model's next message."""
    global open_requests
    open_requests += 1
    try:
        if "ANTHROPIC_API_KEY" in os.environ:
            from anthropic import AsyncAnthropic

            request: dict[str, Any] = rd.to_request(conversation, "anthropic-messages") | {"tools": [TOOL]}
            model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
            client = AsyncAnthropic()
            async with await client.messages.create(
                model=model, max_tokens=2000, stream=True, **request
            ) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            answered = conversation[-1].tool_calls
            async for chunk in sample_chunks("forecast" if answered else "weather", pause=PACE):
                yield chunk
    finally:
        open_requests -= 1


async def reply(conversation: list[rd.Message]) -> AsyncIterator[rd.Event]:
    """The events of a reply: of the search, then of the model's messages. While the model asks for tools, they run."""
    question = conversation[-1].text
    yield Custom("search", {"query": question}, id="search")
    await asyncio.sleep(10 * PACE)
    guides = [guide for city, guide in GUIDES.items() if city in question]
    documents = [{"title": title, "url": url} for title, url, _ in guides]
    yield Custom("search", {"query": question, "documents": documents}, id="search")
    if guides:
        context = rd.ContentPart("text", "\n".join(text for _, _, text in guides))
        conversation = [rd.Message(role="system", blocks=[context]), *conversation]
    for _ in range(5):  # a model may ask for ever
        message = rd.Fold()
        events = rd.from_async_iterable(ask(conversation)).pipe(
            rd.decode("anthropic-messages"), rd.run_tools({"get_forecast": get_forecast}, timeout=30)
        )
        async with rd.to_async_iterable(events, overflow="block") as told:
            async for event in told:
                message.step(event)
                yield event
        conversation = [*conversation, message.snapshot.to_message()]
        if message.snapshot.finish_reason != "tool_use":
            return
