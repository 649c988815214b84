"""A reply is spoken sentence by sentence while the rest still comes."""

import asyncio

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider(
    "High water is at 6.40 a.m. in Brest. Dr. Le Gall will wait at pier no. 2! Is that early enough?"
)


async def speak(sentence: str) -> None:
    print("speak:", sentence.strip())  # in your code: await text_to_speech(sentence)


async def main() -> None:
    chunks = provider.stream("openai-chat")  # in your code: the stream of your client
    async with rd.stream(chunks) as reply:
        await rd.for_each(reply.events.pipe(rd.sentences()), speak)


asyncio.run(main())
