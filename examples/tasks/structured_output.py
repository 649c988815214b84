"""A Pydantic model, filled while the JSON streams."""

import asyncio

from pydantic import BaseModel

import rxdelta as rd
from rxdelta.testing import FakeProvider


class Recipe(BaseModel):
    name: str
    steps: list[str]


provider = FakeProvider('{"name": "Soup", "steps": ["Chop leeks.", "Boil."]}')


async def main() -> None:
    recipe: Recipe | None = None
    problem: str | None = None
    chunks = provider.stream("openai-chat")  # in your code: a request with response_format
    async with rd.stream(chunks) as reply:
        async for partial in rd.iterate(reply.events.pipe(rd.partial_json(into=Recipe))):
            print(partial.so_far)  # draw this
            recipe, problem = partial.value, partial.error
    print(repr(recipe) if recipe else f"no recipe: {problem or reply.message.finish_reason}")


asyncio.run(main())
