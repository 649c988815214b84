"""What a LangChain model streams, read as snapshots."""

import asyncio

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

import rxdelta as rd

# in your code: init_chat_model("anthropic:claude-sonnet-4-5")
model = GenericFakeChatModel(messages=iter([AIMessage("High water is at six.")]))


async def main() -> None:
    async with rd.stream(model.astream("When is high water?")) as reply:
        async for piece in reply.text_deltas:
            print(piece, end="", flush=True)
    print()
    print(reply.message.status)


asyncio.run(main())
