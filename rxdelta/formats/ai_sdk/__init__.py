"""The AI SDK's UI message stream."""

from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder, recognises
from rxdelta.formats.format import Format

__all__ = ["FORMAT"]

FORMAT = Format(name="ai-sdk", decoder=AiSdkDecoder, recognises=recognises)
