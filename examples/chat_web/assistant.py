"""Where the replies come from: a search of the application, a model, and tools that the model may ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import attrs
import reactivex as rx
from played import played

import rxdelta as rd
from rxdelta.events import Custom, ToolUpdate

IS_LIVE = "ANTHROPIC_API_KEY" in os.environ
if IS_LIVE:  # at the start, because it takes a second or more, in which nothing else happens
    from anthropic import AsyncAnthropic

PACE = float(os.environ.get("PACE", "0.03"))  # seconds between two recorded chunks
FORECASTS = {"Lisbon": (17, "dry"), "Oslo": (-4, "snow, 10 cm")}
GUIDES = {
    "Lisbon": ("Walking in Sintra", "https://example.com/sintra", "The palace walk is open all winter."),
    "Oslo": ("Nordmarka on skis", "https://example.com/nordmarka", "The trails open with the first snow."),
}
open_requests = 0  # to the provider
booked: list[str] = []  # what the hotel knows


async def get_forecast(
    city: str, country: str = "", days: list[str] | None = None, units: str = "metric"
) -> AsyncIterator[Any]:
    """The weather of a city on some days."""
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(10 * PACE)
    degrees, sky = FORECASTS.get(city, (21, "sunny"))
    yield {"city": city, "days": days, "celsius": degrees, "sky": sky}


async def book_room(city: str, nights: int) -> dict[str, Any]:
    """Book a hotel room. The person is asked first."""
    await asyncio.sleep(10 * PACE)
    booked.append(city)
    return {"city": city, "nights": nights, "confirmation": f"R-{len(booked)}"}


def get_time_zone() -> None:
    """The time zone in which the person is."""


FREE = {"get_forecast": get_forecast}
ASKED = {"book_room": book_room}  # a person decides whether it runs
IN_THE_PAGE = {"get_time_zone": get_time_zone}  # `page/src/chat.js` runs it
TOOLS = FREE | ASKED | IN_THE_PAGE


@attrs.frozen
class Answers:
    """What was answered to calls that wait: a person's decisions, and the results of the page's own tools, by call id."""

    decisions: dict[str, rd.Approval]
    results: dict[str, rd.ToolResult]

    @classmethod
    def to(cls, waiting: rd.Message, message: Any) -> Answers:
        """Those in a message of the page. Nothing else of it is read, because a browser may write anything."""
        decisions = rd.requests.approvals_from_ai_sdk([message])
        shown = rd.from_ai_sdk([message])[-1:]  # an earlier step may have a call with the same id
        to_person = {call.call_id for call in waiting.waiting_calls}
        pairs = zip(waiting.tool_calls, (call for said in shown for call in said.tool_calls))
        results = {
            call.call_id: attrs.evolve(theirs.result, call_id=call.call_id)
            for call, theirs in pairs  # by place: the page has an id of its own where the provider uses one again
            if call.name == theirs.name in IN_THE_PAGE and call.result is None and theirs.result is not None
        }
        return cls(
            {call_id: decisions[call_id] for call_id in to_person & decisions.keys()},
            results,
        )

    def __bool__(self) -> bool:
        return bool(self.decisions or self.results)

    def events(self, waiting: rd.Message) -> list[rd.Event]:
        """The message as the model said it, and the page's results."""
        results = [
            ToolUpdate(call_id, "failed" if result.is_error else "completed", result=result)
            for call_id, result in self.results.items()
        ]
        return [*rd.to_events(waiting), *results]


async def ask(conversation: list[rd.Message]) -> AsyncIterator[Any]:
    """The chunks of the model's next message."""
    global open_requests
    open_requests += 1
    try:
        if IS_LIVE:
            fields: Any = rd.to_request(conversation, "anthropic-messages", tools=TOOLS)
            model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
            client = AsyncAnthropic()
            async with await client.messages.create(
                model=model, max_tokens=2000, stream=True, **fields
            ) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            for chunk in played(conversation):
                await asyncio.sleep(PACE)
                yield chunk
    finally:
        open_requests -= 1


async def reply(conversation: list[rd.Message], answers: Answers | None = None) -> AsyncIterator[rd.Event]:
    """The events of a reply: of the search, then of the model's messages. While the model asks for tools, they run.

    With `answers` the reply goes on whose calls wait in the conversation's last message: the events are what becomes of
    these calls, then those of the model's next messages.
    """
    question = next(message.text for message in reversed(conversation) if message.role == "user")
    guides = [guide for city, guide in GUIDES.items() if city in question]
    if guides:
        context = rd.ContentPart("text", "\n".join(text for _, _, text in guides))
        conversation = [rd.Message.of("system", context), *conversation]
    if answers is None:
        yield Custom("search", {"query": question}, id="search")
        await asyncio.sleep(10 * PACE)
        documents = [{"title": title, "url": url} for title, url, _ in guides]
        yield Custom("search", {"query": question, "documents": documents}, id="search")
    for _ in range(5):  # a model may ask for ever
        if answers is None:
            events = rd.from_async_iterable(ask(conversation)).pipe(rd.decode("anthropic-messages"))
        else:
            *conversation, waiting = conversation
            events = rx.from_iterable(answers.events(waiting))
        message = rd.Fold()
        async with rd.to_async_iterable(events.pipe(run_tools(answers)), overflow="block") as told:
            async for event in told:
                message.step(event)
                if answers is None or isinstance(event, ToolUpdate):  # the rest was told before
                    yield event
        for call in message.snapshot.tool_calls:
            if call.name not in TOOLS:  # one that the model has made up; nobody else would answer it
                result = rd.ToolResult(call.call_id, "There is no such tool.", is_error=True)
                event = ToolUpdate(call.call_id, "failed", result=result)
                message.step(event)
                yield event
        conversation = [*conversation, message.snapshot.to_message()]
        if message.snapshot.finish_reason != "tool_use" or not message.snapshot.all_tools_terminal():
            return
        answers = None


def run_tools(answers: Answers | None) -> Any:
    """A call that has no answer yet stays as it is, and so does a call of a tool of the page: the reply ends, and waits."""
    decisions = {} if answers is None else answers.decisions
    return rx.compose(
        rd.run_tools(FREE, timeout=30, unknown="leave"),
        rd.run_tools(ASKED, timeout=30, unknown="leave", approve=decisions),
    )
