"""Events → what a front end understands. Encoders without I/O; their operators are `rxdelta.to_…`."""

from rxdelta.wire._ag_ui import AG_UI_HEADERS, AgUiEncoder
from rxdelta.wire._ai_sdk import AI_SDK_HEADERS, AiSdkEncoder
from rxdelta.wire._ai_sdk_chunks import AiSdkFrame
from rxdelta.wire._encoder import MASKED, Encoder, Masked, masked
from rxdelta.wire._langchain import LANGCHAIN_HEADERS, LangChainEncoder, LangChainFrame, LangChainParams
from rxdelta.wire._sse import DONE, KEEP_ALIVE, SSE_HEADERS, Done, sse_frame

__all__ = [
    "AG_UI_HEADERS",
    "AI_SDK_HEADERS",
    "DONE",
    "KEEP_ALIVE",
    "LANGCHAIN_HEADERS",
    "MASKED",
    "SSE_HEADERS",
    "AgUiEncoder",
    "AiSdkEncoder",
    "AiSdkFrame",
    "Done",
    "Encoder",
    "LangChainEncoder",
    "LangChainFrame",
    "LangChainParams",
    "Masked",
    "masked",
    "sse_frame",
]
