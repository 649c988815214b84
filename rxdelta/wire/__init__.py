"""Events → what a front end understands. Encoders without I/O; their operators are `rxdelta.to_…`."""

from typing import TYPE_CHECKING

from rxdelta.core import lazily
from rxdelta.formats.encoding import MASKED, Encoder, Masked, masked
from rxdelta.framing import DONE, KEEP_ALIVE, SSE_HEADERS, Done, sse_frame

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.encoder import AG_UI_HEADERS, AgUiEncoder
    from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
    from rxdelta.formats.ai_sdk.encoder import AI_SDK_HEADERS, AiSdkEncoder, ShownSources
    from rxdelta.formats.langchain.encoder import (
        LANGCHAIN_HEADERS,
        LangChainEncoder,
        LangChainFrame,
        LangChainParams,
    )
    from rxdelta.formats.openai_chat.chunks import OpenAiChatFrame
    from rxdelta.formats.openai_chat.completion import openai_chat_completion
    from rxdelta.formats.openai_chat.encoder import OpenAiChatEncoder
else:
    __getattr__ = lazily(
        __name__,
        {
            "rxdelta.formats.ag_ui.encoder": ["AG_UI_HEADERS", "AgUiEncoder"],
            "rxdelta.formats.ai_sdk.chunks": ["AiSdkFrame"],
            "rxdelta.formats.ai_sdk.encoder": ["AI_SDK_HEADERS", "AiSdkEncoder", "ShownSources"],
            "rxdelta.formats.langchain.encoder": [
                "LANGCHAIN_HEADERS",
                "LangChainEncoder",
                "LangChainFrame",
                "LangChainParams",
            ],
            "rxdelta.formats.openai_chat.chunks": ["OpenAiChatFrame"],
            "rxdelta.formats.openai_chat.completion": ["openai_chat_completion"],
            "rxdelta.formats.openai_chat.encoder": ["OpenAiChatEncoder"],
        },
    )

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
    "OpenAiChatEncoder",
    "OpenAiChatFrame",
    "ShownSources",
    "masked",
    "openai_chat_completion",
    "sse_frame",
]


def __dir__() -> list[str]:
    return [*__all__]
