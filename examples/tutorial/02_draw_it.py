import asyncio

from rich.live import Live
from rich.markdown import Markdown
from rich.panel import Panel

import rxdelta as rd
from rxdelta.testing import sample_chunks


def picture(snapshot: rd.Snapshot) -> Panel:
    return Panel(Markdown(snapshot.text), title=snapshot.status, width=60)


async def main() -> None:
    chunks = sample_chunks("weather", pause=0.01)
    with Live() as live:
        async with rd.stream(chunks, every=0.1) as reply:
            async for snapshot in reply:
                live.update(picture(snapshot))


asyncio.run(main())
