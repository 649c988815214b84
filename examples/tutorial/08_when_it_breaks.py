import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime

BROKEN = ["Take the train to Lis", ConnectionResetError()]
STALLED = ["Take the train", 60.0, " to Lisbon."]  # a minute of silence
WHOLE = "Take the train to Lisbon."
provider = FakeProvider(BROKEN, STALLED, WHOLE)


def ask():
    chunks = provider.observable("anthropic-messages")
    return chunks.pipe(rd.stall_timeout(10), rd.decode("anthropic-messages"))


async def main() -> None:
    async with rd.stream(rd.retry_stream(ask, attempts=3)) as reply:
        async for snapshot in reply:
            print(snapshot.status, snapshot.attempt, repr(snapshot.text))


VirtualTime().run(main())  # ten seconds of waiting take none
