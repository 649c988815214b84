"""Events → what a front end understands. Encoders without I/O; their operators are `rxdelta.to_…`."""

from typing import TYPE_CHECKING

from rxdelta.core import lazily
from rxdelta.formats.encoding import MASKED, Encoder, Masked, masked
from rxdelta.framing import (
    DONE,
    KEEP_ALIVE,
    NDJSON_HEADERS,
    NDJSON_KEEP_ALIVE,
    SSE_HEADERS,
    Done,
    NamedFrame,
    ndjson_line,
    sse_frame,
)

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.encoder import AG_UI_HEADERS, AgUiEncoder
    from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
    from rxdelta.formats.ai_sdk.encoder import AI_SDK_HEADERS, AiSdkEncoder, ShownSources
    from rxdelta.formats.anthropic_messages.encoder import AnthropicMessagesEncoder, anthropic_message
    from rxdelta.formats.langchain.encoder import LANGCHAIN_HEADERS, LangChainEncoder
    from rxdelta.formats.langchain.frames import LangChainFrame, LangChainParams
    from rxdelta.formats.ollama.encoder import OllamaEncoder, ollama_chat
    from rxdelta.formats.openai_chat.encoder import OpenAiChatEncoder, OpenAiChatFrame, openai_chat_completion
    from rxdelta.formats.openai_responses.encoder import OpenAiResponsesEncoder, openai_response
    from rxdelta.wire.writing import (
        carried_by as carried_by,  # for other packages
        write,
        write_each as write_each,  # for other packages
    )
else:
    __getattr__ = lazily(
        __name__,
        {
            "rxdelta.formats.ag_ui.encoder": ["AG_UI_HEADERS", "AgUiEncoder"],
            "rxdelta.formats.ai_sdk.chunks": ["AiSdkFrame"],
            "rxdelta.formats.ai_sdk.encoder": ["AI_SDK_HEADERS", "AiSdkEncoder", "ShownSources"],
            "rxdelta.formats.anthropic_messages.encoder": ["AnthropicMessagesEncoder", "anthropic_message"],
            "rxdelta.formats.langchain.encoder": ["LANGCHAIN_HEADERS", "LangChainEncoder"],
            "rxdelta.formats.langchain.frames": ["LangChainFrame", "LangChainParams"],
            "rxdelta.formats.ollama.encoder": ["OllamaEncoder", "ollama_chat"],
            "rxdelta.formats.openai_chat.encoder": [
                "OpenAiChatEncoder",
                "OpenAiChatFrame",
                "openai_chat_completion",
            ],
            "rxdelta.formats.openai_responses.encoder": ["OpenAiResponsesEncoder", "openai_response"],
            "rxdelta.wire.writing": ["carried_by", "write", "write_each"],
        },
    )

__all__ = [
    "AG_UI_HEADERS",
    "AI_SDK_HEADERS",
    "DONE",
    "KEEP_ALIVE",
    "LANGCHAIN_HEADERS",
    "MASKED",
    "NDJSON_HEADERS",
    "NDJSON_KEEP_ALIVE",
    "SSE_HEADERS",
    "AgUiEncoder",
    "AiSdkEncoder",
    "AiSdkFrame",
    "AnthropicMessagesEncoder",
    "Done",
    "Encoder",
    "LangChainEncoder",
    "LangChainFrame",
    "LangChainParams",
    "Masked",
    "NamedFrame",
    "OllamaEncoder",
    "OpenAiChatEncoder",
    "OpenAiChatFrame",
    "OpenAiResponsesEncoder",
    "ShownSources",
    "anthropic_message",
    "masked",
    "ndjson_line",
    "ollama_chat",
    "openai_chat_completion",
    "openai_response",
    "sse_frame",
    "write",
]


def __dir__() -> list[str]:
    return [*__all__]
