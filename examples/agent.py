"""An agent: the model asks for tools, they run in parallel while it still talks, and it gets their results.

Without a key it plays recorded streams. With ANTHROPIC_API_KEY set (and `pip install anthropic`) it is live.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import rxdelta as rd
from rxdelta.testing import sample_chunks

FORECASTS = {"Lisbon": (17, "dry"), "Oslo": (-4, "snow, 10 cm")}
QUESTION = "Lisbon or Oslo for a weekend of walking?"
SCHEMA = {
    "name": "get_forecast",
    "description": "The weather of a city on some days.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"],
    },
}


async def get_forecast(city: str, days: list[str] | None = None, **more: Any) -> AsyncIterator[Any]:
    """A tool may tell how it gets on before it gives its result."""
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(0.1)
    degrees, sky = FORECASTS[city]
    yield {"city": city, "days": days, "celsius": degrees, "sky": sky}


TOOLS = {"get_forecast": get_forecast}


async def ask(conversation: list[dict[str, Any]]) -> AsyncIterator[Any]:
    """The chunks of the model's next reply."""
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return sample_chunks("weather" if len(conversation) == 1 else "forecast", pause=0.005)
    from anthropic import AsyncAnthropic

    stream: Any = await AsyncAnthropic().messages.create(
        model=os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
        max_tokens=2000,
        messages=conversation,  # type: ignore[arg-type]
        tools=[SCHEMA],  # type: ignore[list-item]
        stream=True,
    )
    return stream


async def reply_to(conversation: list[dict[str, Any]]) -> rd.Message:
    """One turn: it is drawn as it grows, and over when the last of its tools has ended."""
    snapshots = rd.from_async_iterable(lambda: ask(conversation)).pipe(
        rd.decode("anthropic-messages"),
        rd.run_tools(TOOLS, max_concurrency=4, timeout=30),
        rd.scan_deltas(),
        rd.until_all_tools_terminal(),
    )
    snapshot, shown = rd.MessageDelta(), ""
    async with rd.to_async_iterable(snapshots, overflow="latest") as latest:
        async for snapshot in latest:
            if (line := line_of(snapshot)) != shown:
                shown = line
                print(line)
    return snapshot.to_message()


def line_of(snapshot: rd.MessageDelta) -> str:
    """What has changed that is worth a line: how far the calls are."""
    calls = [f"{call.display_text or call.name}: {call.execution_status()}" for call in snapshot.tool_calls]
    return "  ".join(calls)


def as_turn(message: rd.Message) -> list[dict[str, Any]]:
    """The reply and its tools' results as the next request takes them."""
    said: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, rd.ToolCall) and block.result is not None:
            given = rd.thaw(block.arguments) if block.type == "tool_call" else {}
            said.append({"type": "tool_use", "id": block.call_id, "name": block.name, "input": given})
            answer = {"tool_use_id": block.call_id, "content": str(rd.thaw(block.result.content))}
            results.append({"type": "tool_result", "is_error": block.result.is_error, **answer})
        elif isinstance(block, rd.ContentPart) and block.type == "reasoning":
            said.append(
                {"type": "thinking", "thinking": block.text, "signature": block.options.get("signature", "")}
            )
        elif isinstance(block, rd.ContentPart) and block.text:
            said.append({"type": "text", "text": block.text})
    turn = [{"role": "assistant", "content": said}]
    return [*turn, {"role": "user", "content": results}] if results else turn


async def main() -> None:
    conversation: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    print(QUESTION)
    for _ in range(5):
        message = await reply_to(conversation)
        print(message.text)
        conversation += as_turn(message)
        if message.finish_reason != "tool_use":
            break


if __name__ == "__main__":
    asyncio.run(main())
