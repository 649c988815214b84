"""A reply that has fallen into a loop is ended, and its request closed."""

import asyncio

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider("I will now check the tide table again. " * 1000)


def is_new(text: str) -> bool:
    """Whether the end of the text isn't there three times, for 600 characters at least."""
    if len(text) < 600:
        return True
    period = len(text) - 60 - text.rfind(text[-60:], 0, -1)  # how far back the last 60 characters stand
    return not text.endswith(text[-period:] * max(3, 600 // period))


async def main() -> None:
    no_loops = rd.guard(is_new, by=200, context=4000, arguments=False)
    message = await rd.stream(provider.stream("openai-chat"), through=[no_loops])
    print(len(message.text), message.finish_reason)


asyncio.run(main())
