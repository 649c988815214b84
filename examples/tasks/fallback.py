"""Another model answers when the first one fails."""

import asyncio
import logging
import sys

from reactivex import Observable

import rxdelta as rd
from rxdelta.testing import FakeProvider

logging.basicConfig(stream=sys.stdout, format="log: %(message)s")
busy = rd.RecordedError("slow down", "RateLimitError", status_code=429)
PROVIDERS = {
    "large": FakeProvider(busy),
    "small": FakeProvider("High water is at six."),
}  # in your code: clients


def ask(name: str) -> Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: PROVIDERS[name].stream("openai-chat"))
    return chunks.pipe(rd.stall_timeout(first=10), rd.decode("openai-chat"))


async def main() -> None:
    async with rd.stream(rd.fallback(ask("large"), ask("small"))) as reply:
        async for piece in reply.text_deltas:
            print(piece, end="", flush=True)
    print()


asyncio.run(main())
