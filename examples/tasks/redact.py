"""A key is replaced before anybody sees it, also when it comes in two pieces."""

import asyncio

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider(["Your key is s", "k-4f8a", "91c2d7. Keep it ", "safe."])
hide_keys = rd.redact(r"\bsk-\w{8,}", "[key]")


async def main() -> None:
    chunks = provider.stream("openai-chat")  # in your code: the stream of your client
    async with rd.stream(chunks, through=[hide_keys]) as reply:
        async for piece in reply.text_deltas:
            print(repr(piece))
    print(reply.message.text)


asyncio.run(main())
