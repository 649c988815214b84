"""Two models get the question. The first that says something is the reply."""

import asyncio
import logging
import sys

from reactivex import Observable

import rxdelta as rd
from rxdelta.testing import FakeProvider

logging.basicConfig(stream=sys.stdout, format="log: %(message)s")
PROVIDERS = {  # in your code: clients
    "broken": FakeProvider(ConnectionResetError()),
    "slow": FakeProvider([0.5, "High water is at seven."]),
    "quick": FakeProvider([0.05, "High water is at six."]),
}


def ask(name: str) -> Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: PROVIDERS[name].stream("openai-chat"))
    return chunks.pipe(rd.decode("openai-chat"))


async def main() -> None:
    first = rd.race(ask("broken"), ask("slow"), ask("quick"))
    async with rd.stream(first) as reply:
        async for piece in reply.text_deltas:
            print(piece, end="", flush=True)
    print()


asyncio.run(main())
