import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> str:
    return {"Lisbon": "17 °C", "Oslo": "-4 °C and snow"}[city]


def ask(conversation: list[rd.Message]):
    request = rd.to_request(conversation, "anthropic-messages")  # in your program: create(**request)
    return sample_chunks("weather" if len(request["messages"]) == 1 else "forecast")


async def main() -> None:
    conversation = [rd.Message.of("user", "Lisbon or Oslo?")]
    for _ in range(5):  # a model may ask for ever
        conversation.append(await rd.stream(ask(conversation), tools={"get_forecast": get_forecast}))
        print(conversation[-1].text.splitlines()[0])
        if not conversation[-1].tool_calls:
            return


asyncio.run(main())
