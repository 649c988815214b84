import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> str:
    return {"Lisbon": "17 °C and dry", "Oslo": "-4 °C and snow"}[city]


async def ask_the_person(call: rd.ToolCall) -> rd.Approval:
    print("May I look up", call.arguments["city"] + "?")  # in your program: a dialog
    if call.arguments["city"] == "Oslo":
        return rd.Approval(False, "Too cold, don't bother.")
    return rd.Approval(True)


async def main() -> None:
    tools = {"get_forecast": get_forecast}
    message = await rd.stream(sample_chunks("weather"), tools=tools, approve=ask_the_person)
    for call in message.tool_calls:
        print(call.arguments["city"], call.execution_status(), call.result.content)


asyncio.run(main())
