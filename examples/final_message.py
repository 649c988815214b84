"""Pipeline 2: the finished message, its tool calls parsed."""

import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    message = await rd.stream(sample_chunks("tides"))  # in your code: the stream of the provider's SDK
    print(message.text)
    for call in message.tool_calls:
        print(call.name, dict(call.arguments))
    print(message.finish_reason, message.usage)


if __name__ == "__main__":
    asyncio.run(main())
