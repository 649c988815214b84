"""A stop button: the request is closed, and the text so far stays."""

import asyncio

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider(["High water is at six.", 60.0, " Low water is at noon."])


async def main() -> None:
    chunks = provider.stream("openai-chat")  # in your code: the stream of your client
    async with rd.stream(chunks) as reply:
        # in your code: button.on_click(reply.stop)
        timer = asyncio.get_running_loop().call_later(0.3, reply.stop, "The reader had enough.")
        async for snapshot in reply:
            print(snapshot.status, repr(snapshot.text))
        timer.cancel()
    message = reply.snapshot.to_message()  # to be stored
    print(message.text)


asyncio.run(main())
