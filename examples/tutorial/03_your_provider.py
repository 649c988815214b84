import asyncio

from openai import AsyncOpenAI

import rxdelta as rd
from rxdelta.testing import FakeProvider


async def ask(client: AsyncOpenAI) -> None:
    question = {"role": "user", "content": "Lisbon or Oslo?"}
    chunks = client.chat.completions.create(model="gpt-5", messages=[question], stream=True)
    print((await rd.stream(chunks)).text)  # or draw it, as in the step before


async def main() -> None:
    with FakeProvider("Lisbon, if you like to walk.").serve() as server:
        async with AsyncOpenAI(base_url=server.base_url("openai-chat"), api_key="none") as client:
            await ask(client)  # with a key: ask(AsyncOpenAI())


asyncio.run(main())
