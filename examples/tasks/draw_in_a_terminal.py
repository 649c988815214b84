"""A reply drawn with rich while it comes, ten times a second at most."""

import asyncio

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.panel import Panel

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    chunks = sample_chunks("forecast", pause=0.02)  # in your code: client.messages.create(stream=True, …)
    with Live(console=Console(width=64), auto_refresh=False) as live:
        async with rd.stream(chunks, every=0.1) as reply:
            async for snapshot in reply:
                live.update(Panel(Markdown(snapshot.text)), refresh=True)
    print()


asyncio.run(main())
