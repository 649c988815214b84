"""A request that breaks off is made again, and no text is shown twice."""

import asyncio

from reactivex import Observable

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider(["High wa", ConnectionResetError()], ["High water ", "is at six."])


def ask() -> Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: provider.stream("openai-chat"))  # in your code: a request
    return chunks.pipe(rd.decode("openai-chat"))


def soon(failures: int, error: Exception) -> float:
    return 0.01 * failures  # in your code: leave `backoff` out


async def main() -> None:
    async with rd.stream(rd.retry_stream(ask, attempts=3, backoff=soon)) as reply:
        shown = ""
        async for snapshot in rd.iterate(reply.events.pipe(rd.scan_deltas())):
            line = f"attempt {snapshot.attempt}: {snapshot.text!r}"
            if line != shown:
                print(line)
            shown = line
    print(reply.message.status)


asyncio.run(main())
