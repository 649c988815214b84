"""What a reply has cost, in dollars."""

import asyncio

from genai_prices import calc_price

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def main() -> None:
    message = await rd.stream(sample_chunks("weather"))  # in your code: the stream of your client
    if message.total_usage is None:
        raise SystemExit("The provider doesn't report its tokens.")
    billed = message.total_usage.billed
    print(billed["input_tokens"], "tokens in, of which the cache had", billed["cache_read_tokens"])
    print(billed["output_tokens"], "tokens out")
    price = calc_price(billed, "claude-sonnet-4-5", provider_id="anthropic")  # in your code: message.model
    print(f"{price.total_price:.4f} dollars")


asyncio.run(main())
