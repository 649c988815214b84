"""Pipeline 1: draw a reply while it grows, at most 20 times a second, and never lose its last state."""

import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    chunks = sample_chunks("overloaded")  # in your code: the stream of the provider's SDK
    try:
        async with rd.stream(chunks, every=0.05) as reply:
            async for snapshot in reply:
                print(snapshot.text)
    except rd.ProviderError as error:
        print(f"{error.type} after {len(error.snapshot.text)} characters, all of which are kept")


if __name__ == "__main__":
    asyncio.run(main())
