"""Every event of a reply is printed, and its measurements are logged."""

import asyncio
import logging
import sys
from typing import Any

from reactivex import operators as ops

import rxdelta as rd
from rxdelta.testing import FakeProvider

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("chat")
provider = FakeProvider("At six.")


def measured(metrics: rd.types.StreamMetrics) -> None:
    log.info("chunks: %s, %s", metrics.chunks, metrics.usage)
    log.debug("first token after %s s", metrics.time_to_first_token)


async def main() -> None:
    watch: list[Any] = [ops.do_action(print), rd.tap_metrics(measured)]
    await rd.stream(provider.stream("openai-chat"), through=watch)


asyncio.run(main())
