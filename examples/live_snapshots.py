"""Pipeline 1: draw a reply while it grows, at most 20 times a second, and never lose its last state."""

import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    chunks = sample_chunks("overloaded")  # in your code: the stream of the provider's SDK
    snapshots = rd.from_async_iterable(chunks).pipe(
        rd.decode("anthropic-messages"), rd.scan_deltas(), rd.throttle_latest(0.05)
    )
    try:
        await rd.for_each(snapshots, lambda snapshot: print(snapshot.text))
    except rd.ProviderError as error:
        print(f"{error.type} after {len(error.snapshot.text)} characters, all of which are kept")


if __name__ == "__main__":
    asyncio.run(main())
