"""How a UI message stream of the AI SDK is served, which is the answer of an application's own route."""

from __future__ import annotations

from typing import Final

from rxdelta.formats.ai_sdk.encoder import AI_SDK_HEADERS
from rxdelta.formats.endpoint import Endpoint, plain_error
from rxdelta.framing import DONE, sse_frame

__all__ = ["ENDPOINT"]

ENDPOINT: Final = Endpoint(headers=AI_SDK_HEADERS, last=sse_frame(DONE), error=plain_error)
