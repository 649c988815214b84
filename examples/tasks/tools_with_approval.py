"""A person allows each tool call before it runs."""

import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> dict[str, object]:
    return {"city": city, "celsius": 17}


def ask_person(question: str) -> str:
    print(question)
    return "y" if "Lisbon" in question else "n"  # in your code: input(question)


one_at_a_time = asyncio.Lock()


async def approve(call: rd.ToolCall) -> rd.Approval:
    async with one_at_a_time:
        answer = await asyncio.to_thread(ask_person, f"Run {call.name} with {call.arguments}? (y/n)")
    return rd.Approval(answer == "y", reason=None if answer == "y" else "Not this city.")


async def main() -> None:
    tools = {"get_forecast": get_forecast}
    message = await rd.stream(sample_chunks("weather"), tools=tools, approve=approve)
    for call in message.tool_calls:
        print(call.execution_status(), call.result.content if call.result else "")


asyncio.run(main())
