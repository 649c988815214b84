"""A Django page, and a Celery worker that asks the model: the reply comes through a relay in Django's own database."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from uuid import uuid4

from asgiref.sync import sync_to_async
from celery import Celery
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management import execute_from_command_line
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.template import engines
from django.urls import path
from django.views.decorators.http import require_POST
from psycopg.conninfo import conninfo_to_dict

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

DATABASE = os.environ.get("DATABASE", "postgresql://postgres@127.0.0.1/postgres")
LEASE = 30.0  # seconds that a reader waits for a worker to begin, and for one that has died

settings.configure(
    DEBUG=True,
    SECRET_KEY="any",
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": None,  # it's among the options
            "OPTIONS": conninfo_to_dict(DATABASE),
        }
    },
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
application = get_asgi_application()


# The worker.

QUEUE = Path("queue")  # without a BROKER, such as amqp:// or redis://: a folder, which is enough to try this
QUEUE.mkdir(exist_ok=True)
FOLDERS = dict.fromkeys(("data_folder_in", "data_folder_out", "control_folder"), str(QUEUE))
app = Celery("chat", broker=os.environ.get("BROKER", "filesystem://"), broker_transport_options=FOLDERS)


def ask(question: str):
    # in your code: request = rd.to_request([question], "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


async def publish(stream: str, question: str) -> None:
    chunks = rd.from_async_iterable(lambda: ask(question))
    events = chunks.pipe(rd.decode("anthropic-messages"))
    async with Relay.open(DATABASE, lease=LEASE) as relay:
        await rd.for_each(events.pipe(relay.publish(stream)), lambda event: None)


@app.task
def answer(stream: str, question: str) -> None:
    asyncio.run(publish(stream, question))


# The web.

PAGE = """<!doctype html><meta charset="utf-8"><title>Chat</title>
<form method="post" action="ask">{% csrf_token %}<input name="question" required autofocus> <button>Ask</button></form>
{% if question %}<h3>{{ question }}</h3><p id="reply" style="white-space: pre-wrap"></p><script>
const reply = document.getElementById("reply"), source = new EventSource("reply");
source.onmessage = ({ data }) => {
  if (data === "[DONE]") return source.close();
  const chunk = JSON.parse(data);
  if (chunk.type === "text-delta") reply.append(chunk.delta);
  if (chunk.type === "error") reply.append(` (${chunk.errorText})`);
};
source.onerror = () => source.readyState === EventSource.CLOSED && reply.append(" (no worker answers)");
</script>{% endif %}"""
open_here, opening, relays = AsyncExitStack(), asyncio.Lock(), list[Relay]()


async def this_relay() -> Relay:
    """The relay of this process. The first request opens it, and it closes with the server's loop."""
    async with opening:
        if not relays:
            relays.append(await open_here.enter_async_context(Relay.open(DATABASE, lease=LEASE)))
    return relays[0]


async def page(request: HttpRequest) -> HttpResponse:
    shown = {"question": await request.session.aget("question", "")}
    return HttpResponse(engines["django"].from_string(PAGE).render(shown, request))


@require_POST
async def begin(request: HttpRequest) -> HttpResponse:
    stream, question = str(uuid4()), request.POST["question"]
    await request.session.aupdate({"stream": stream, "question": question})  # only this browser reads it
    await asyncio.to_thread(answer.delay, stream, question)
    return HttpResponseRedirect("/")


async def reply(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    stream, after = await request.session.aget("stream"), request.headers.get("last-event-id")
    if stream is None:
        return HttpResponse(status=204)
    await sync_to_async(connections.close_all)()  # Django would keep its connection until the reader leaves
    relay = await this_relay()
    try:
        entries = relay.entries(stream, split_at=after)
        pieces = rd.iterate(entries.pipe(rd.to_resumable_sse(rd.to_ai_sdk(), after)))
        first = await anext(pieces)
    except (rd.errors.EmptyStreamError, rd.InvalidValueError):  # no worker began; or an id of another reply
        return HttpResponse(status=404)
    return StreamingHttpResponse(both(first, pieces), headers=rd.wire.AI_SDK_HEADERS)


async def both(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


urlpatterns = [path("", page), path("ask", begin), path("reply", reply)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
