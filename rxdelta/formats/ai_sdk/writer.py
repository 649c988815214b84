"""A reply as a UI message stream of the AI SDK."""

from __future__ import annotations

from rxdelta.formats.ai_sdk.encoder import AiSdkEncoder
from rxdelta.formats.encoding import Masked

__all__ = ["writer"]


def writer(on_error: Masked) -> AiSdkEncoder:
    return AiSdkEncoder(on_error=on_error, provider_items=True)
