"""Pipeline 2: the finished message, its tool calls parsed."""

import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    chunks = sample_chunks("tides")
    message = await rd.last_value(
        rd.from_async_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas(), rd.to_message())
    )
    print(message.text)
    for call in message.tool_calls:
        print(call.name, dict(call.arguments))
    print(message.finish_reason, message.usage)


if __name__ == "__main__":
    asyncio.run(main())
