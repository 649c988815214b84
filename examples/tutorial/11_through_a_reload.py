import asyncio

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks


async def main() -> None:
    async with Relay.open() as relay:  # with "sqlite:///relay.db": in a file, for all workers
        chunks = rd.from_async_iterable(lambda: sample_chunks("weather", pause=0.001))
        await relay.start("chat-1", chunks.pipe(rd.decode("auto")))  # goes on without a reader

        seen = []
        async for entry in rd.iterate(relay.entries("chat-1")):  # the page
            seen.append(entry)
            if len(seen) == 10:
                break  # is reloaded here

        rest = [entry async for entry in rd.iterate(relay.entries("chat-1", after=seen[-1].id))]
        events = rd.from_iterable([entry.event for entry in [*seen, *rest]])
        message = await rd.last_value(events.pipe(rd.validate(), rd.scan_deltas(), rd.to_message()))
        print(message.status, len(message.text), "characters,", len(message.tool_calls), "calls")


asyncio.run(main())
