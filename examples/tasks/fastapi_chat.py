"""A reply from FastAPI: as text for `curl`, and as events for a page."""

import logging

import reactivex as rx
from fastapi import FastAPI
from pydantic import BaseModel

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse, TextResponse
from rxdelta.testing import sample_chunks

app = FastAPI()
log = logging.getLogger("uvicorn.error")


class Question(BaseModel):
    text: str


def ask(question: str):
    # in your code: request = rd.to_request([question], "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


def keep(snapshot: rd.Snapshot, outcome: rd.types.StreamOutcome) -> None:
    # in your code: store it
    log.info("%s after %d characters", outcome.kind, len(snapshot.text))


def reply_to(question: Question) -> rx.Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: ask(question.text))
    events = chunks.pipe(rd.stall_timeout(30), rd.decode("anthropic-messages"))
    return events.pipe(rd.on_settled(keep))


@app.post("/text")
async def text(question: Question) -> TextResponse:
    return TextResponse(reply_to(question))


@app.post("/events")
async def events(question: Question) -> EventStreamResponse:
    return EventStreamResponse(reply_to(question), rd.to_ai_sdk())
