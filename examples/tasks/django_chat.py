"""A reply from Django, asynchronous and synchronous, as a project of one file."""

import json
import sys
from collections.abc import Iterator

import reactivex as rx
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management import execute_from_command_line
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

import rxdelta as rd
from rxdelta.testing import sample_chunks

settings.configure(DEBUG=True, SECRET_KEY="any", ROOT_URLCONF=__name__)


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


def pieces_for(request: HttpRequest) -> rx.Observable[bytes]:
    messages = rd.from_ai_sdk(json.loads(request.body)["messages"])
    chunks = rd.from_async_iterable(lambda: ask(messages))
    events = chunks.pipe(rd.decode("anthropic-messages"))
    return events.pipe(rd.to_ai_sdk(), rd.to_sse(keep_alive=5))


@csrf_exempt
async def chat(request: HttpRequest) -> StreamingHttpResponse:  # behind ASGI
    body = rd.iterate(pieces_for(request))
    return StreamingHttpResponse(body, headers=rd.wire.AI_SDK_HEADERS)


@csrf_exempt
def chat_sync(request: HttpRequest) -> StreamingHttpResponse:  # behind WSGI
    def body() -> Iterator[bytes]:
        with rd.to_iterable(pieces_for(request)) as pieces:
            yield from pieces

    return StreamingHttpResponse(body(), headers=rd.wire.AI_SDK_HEADERS)


urlpatterns = [path("chat", chat), path("chat-sync", chat_sync)]
application = get_asgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
