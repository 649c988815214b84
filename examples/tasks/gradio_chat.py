"""A chat in Gradio: the reasoning and each call have boxes of their own."""

from collections.abc import AsyncIterator

import gradio as gr

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 17}


TOOLS = {"get_forecast": get_forecast}


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages", tools=TOOLS)
    #               return client.messages.create(stream=True, **request)
    sample = "weather" if messages[-1].role == "user" else "forecast"
    return sample_chunks(sample, pause=0.02)


def boxes(reply: rd.Snapshot | rd.Message) -> list[gr.ChatMessage]:
    found = []
    for block in reply.blocks:
        if isinstance(block, rd.ToolCall):
            status = "pending" if block.result is None else "done"
            result = block.result.content if block.result else ""
            box = {"title": block.name, "status": status}
            content = f"{block.arguments_so_far}\n\n{result}"
            found.append(gr.ChatMessage(content, metadata=box))
        elif block.type == "reasoning":
            box = {"title": "Reasoning"}
            found.append(gr.ChatMessage(block.text or "", metadata=box))
        else:
            found.append(gr.ChatMessage(block.text or ""))
    return found


async def answer(question: str, history: list[dict]) -> AsyncIterator[list]:
    said = [one for one in history if not (one.get("metadata") or {}).get("title")]
    messages = [*rd.requests.from_openai_chat(said), rd.Message.of("user", question)]
    shown: list[gr.ChatMessage] = []
    for _ in range(5):  # a model may ask for ever
        async with rd.stream(ask(messages), tools=TOOLS, every=0.1) as reply:
            async for snapshot in reply:
                yield shown + boxes(snapshot)
        shown += boxes(reply.message)
        messages.append(reply.message)
        if reply.message.finish_reason != "tool_use":
            break


demo = gr.ChatInterface(answer, concurrency_limit=20)

if __name__ == "__main__":
    demo.launch()
