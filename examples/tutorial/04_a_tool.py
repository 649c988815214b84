import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> str:
    await asyncio.sleep(0.05)  # a slow service
    return {"Lisbon": "17 °C and dry", "Oslo": "-4 °C and snow"}[city]


async def main() -> None:
    tools = {"get_forecast": get_forecast}
    async with rd.stream(sample_chunks("weather"), tools=tools) as reply:
        async for piece in reply.text_deltas:
            print(piece, end="")
    for call in reply.message.tool_calls:  # the reply ends when the tools have ended
        print(call.arguments["city"], call.execution_status(), call.result.content)


asyncio.run(main())
