"""How OpenAI's Responses API is served."""

from __future__ import annotations

from typing import Final

from rxdelta.formats.endpoint import Endpoint, by_body, named_sse_frame, typed_error
from rxdelta.formats.openai_responses.whole_response import openai_response

__all__ = ["ENDPOINT"]

ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/responses"],
    streams=by_body(),
    frame=named_sse_frame,
    error=typed_error,
    whole=openai_response,
)
