"""How OpenAI's Chat Completions are served."""

from __future__ import annotations

from typing import Final

from rxdelta.formats.endpoint import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, typed_error
from rxdelta.formats.openai_chat.completion import openai_chat_completion
from rxdelta.formats.provider_reply import CREATED
from rxdelta.framing import DONE, sse_frame

__all__ = ["ENDPOINT"]

_MODEL: Final = {"id": FAKE_MODEL, "object": "model", "created": CREATED, "owned_by": "rxdelta"}

ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/chat/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=typed_error,
    whole=openai_chat_completion,
    lookups={"/models": {"object": "list", "data": [_MODEL]}, f"/models/{FAKE_MODEL}": _MODEL},
    environment={"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": FAKE_KEY},
)
