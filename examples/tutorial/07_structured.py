import asyncio

from pydantic import BaseModel

import rxdelta as rd
from rxdelta.testing import FakeProvider


class Trip(BaseModel):
    city: str
    days: list[str]


ANSWER = 'Here it is:\n```json\n{"city": "Lisbon", "days": ["Saturday", "Sunday"]}\n```'


async def main() -> None:
    async with rd.stream(FakeProvider(ANSWER).stream("openai-chat")) as reply:
        values = reply.events.pipe(rd.partial_json(Trip, find=True))
        async for partial in rd.iterate(values):
            print(partial.so_far)
        print(repr(partial.value))


asyncio.run(main())
