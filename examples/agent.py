"""An agent: the model asks for tools, they run in parallel while it still talks, and it gets their results.

Without a key it plays recorded streams. It is live with ANTHROPIC_API_KEY set (and `pip install anthropic`) or with
OPENAI_API_KEY (and `pip install openai`): what differs between providers is one call and the name of its format.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import rxdelta as rd
from rxdelta.testing import sample_chunks

FORECASTS = {"Lisbon": (17, "dry"), "Oslo": (-4, "snow, 10 cm")}
QUESTION = "Lisbon or Oslo for a weekend of walking?"
FORECAST = rd.ToolDefinition(
    "get_forecast",
    "The weather of a city on some days.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"],
    },
)
OPENAI = "OPENAI_API_KEY" in os.environ and "ANTHROPIC_API_KEY" not in os.environ
WIRE_FORMAT = "openai-chat" if OPENAI else "anthropic-messages"


async def get_forecast(city: str, days: list[str] | None = None, **more: Any) -> AsyncIterator[Any]:
    """A tool may tell how it gets on before it gives its result."""
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(0.1)
    degrees, sky = FORECASTS[city]
    yield {"city": city, "days": days, "celsius": degrees, "sky": sky}


TOOLS = {"get_forecast": get_forecast}


async def ask(conversation: list[str | rd.Message]) -> AsyncIterator[Any]:
    """The chunks of the model's next reply."""
    request: dict[str, Any] = rd.to_request(conversation, WIRE_FORMAT, tools=[FORECAST]) | {"stream": True}
    stream: Any
    if OPENAI:
        from openai import AsyncOpenAI

        stream = await AsyncOpenAI().chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"), **request
        )
    elif "ANTHROPIC_API_KEY" in os.environ:
        from anthropic import AsyncAnthropic

        stream = await AsyncAnthropic().messages.create(
            model=os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
            max_tokens=2000,
            **request,
        )
    else:
        stream = sample_chunks("weather" if len(conversation) == 1 else "forecast", pause=0.005)
    chunks: AsyncIterator[Any] = stream
    return chunks


async def reply_to(conversation: list[str | rd.Message]) -> rd.Message:
    """One turn: it is drawn as it grows, and over when the last of its tools has ended."""
    snapshots = rd.from_async_iterable(lambda: ask(conversation)).pipe(
        rd.decode(WIRE_FORMAT),
        rd.run_tools(TOOLS, max_concurrency=4, timeout=30),
        rd.scan_deltas(),
        rd.until_all_tools_terminal(),
    )
    snapshot, shown = rd.Snapshot(), ""
    async with rd.to_async_iterable(snapshots, overflow="latest") as latest:
        async for snapshot in latest:
            if (line := line_of(snapshot)) != shown:
                shown = line
                print(line)
    return snapshot.to_message()


def line_of(snapshot: rd.Snapshot) -> str:
    """What has changed that is worth a line: how far the calls are."""
    calls = [f"{call.display_text or call.name}: {call.execution_status()}" for call in snapshot.tool_calls]
    return "  ".join(calls)


async def main() -> None:
    conversation: list[str | rd.Message] = [QUESTION]
    print(QUESTION)
    for _ in range(5):
        message = await reply_to(conversation)
        print(message.text)
        conversation.append(message)  # its calls have their results with them
        if message.finish_reason != "tool_use":
            break


if __name__ == "__main__":
    asyncio.run(main())
