"""Three faults of a client that hide until a provider has a bad day."""

from collections.abc import Callable, Coroutine
from typing import Any

from reactivex import Observable

import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime

WHOLE = "High water is at six."
HALF: list[Any] = ["High wa", ConnectionResetError()]
BUSY = rd.RecordedError("slow down", "RateLimitError", status_code=429, headers={"retry-after": "7"})


async def answer(provider: FakeProvider) -> str:
    """The client, as its user sees it: put yours here."""

    def ask() -> Observable[rd.Event]:
        return rd.from_async_iterable(lambda: provider.stream("openai-chat")).pipe(rd.decode("openai-chat"))

    return (await rd.stream(rd.retry_stream(ask))).text


def judge(answer: Callable[[FakeProvider], Coroutine[Any, Any, str]]) -> None:
    time = VirtualTime()
    shown = time.run(answer(FakeProvider(BUSY, HALF, WHOLE)))
    assert shown != "High wa", "it takes half a reply for a whole one"
    assert shown == WHOLE, "it shows a text twice"
    assert time.elapsed >= 7.0, "it doesn't wait as long as Retry-After says"
    try:
        VirtualTime().run(answer(FakeProvider(HALF, repeat=True)))
    except (rd.RxDeltaError, OSError):
        return
    raise AssertionError("it takes half a reply for a whole one")


judge(answer)
print("passed")
