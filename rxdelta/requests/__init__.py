"""A conversation → what a provider's next request takes; a client's request → a conversation and tools. No I/O."""

from typing import TYPE_CHECKING

from rxdelta.core import lazily
from rxdelta.formats.conversation import Native, ToolDefinition, Turn
from rxdelta.requests.to_request import RequestFormat, Tools, request_formats, to_request

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.messages import from_ag_ui
    from rxdelta.formats.ag_ui.run_input import approvals_from_ag_ui
    from rxdelta.formats.ai_sdk.messages import from_ai_sdk
    from rxdelta.formats.ai_sdk.tool_parts import approvals_from_ai_sdk
    from rxdelta.formats.anthropic_messages.messages import from_anthropic_messages
    from rxdelta.formats.client_requests import (
        custom_tools_from_openai_responses,
        tools_from_anthropic_messages,
        tools_from_openai_chat,
        tools_from_openai_responses,
    )
    from rxdelta.formats.ollama.messages import from_ollama
    from rxdelta.formats.openai_chat.messages import from_openai_chat
    from rxdelta.formats.openai_responses.messages import from_openai_responses
else:
    _format_name = lazily(
        __name__,
        {
            "rxdelta.formats.ag_ui.run_input": ["approvals_from_ag_ui"],
            "rxdelta.formats.ag_ui.messages": ["from_ag_ui"],
            "rxdelta.formats.ai_sdk.messages": ["from_ai_sdk"],
            "rxdelta.formats.ai_sdk.tool_parts": ["approvals_from_ai_sdk"],
            "rxdelta.formats.anthropic_messages.messages": ["from_anthropic_messages"],
            "rxdelta.formats.client_requests": [
                "custom_tools_from_openai_responses",
                "tools_from_anthropic_messages",
                "tools_from_openai_chat",
                "tools_from_openai_responses",
            ],
            "rxdelta.formats.ollama.messages": ["from_ollama"],
            "rxdelta.formats.openai_chat.messages": ["from_openai_chat"],
            "rxdelta.formats.openai_responses.messages": ["from_openai_responses"],
        },
    )

__all__ = [
    "REQUEST_FORMATS",
    "Native",
    "RequestFormat",
    "ToolDefinition",
    "Tools",
    "Turn",
    "approvals_from_ag_ui",
    "approvals_from_ai_sdk",
    "custom_tools_from_openai_responses",
    "from_ag_ui",
    "from_ai_sdk",
    "from_anthropic_messages",
    "from_ollama",
    "from_openai_chat",
    "from_openai_responses",
    "to_request",
    "tools_from_anthropic_messages",
    "tools_from_openai_chat",
    "tools_from_openai_responses",
]

REQUEST_FORMATS: tuple[str, ...]
"""The names that `to_request` takes."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """`REQUEST_FORMATS`, for which installed formats are looked up, and what belongs to one format: when first asked for."""
        if name != "REQUEST_FORMATS":
            return _format_name(name)
        globals()[name] = request_formats()
        return globals()[name]


def __dir__() -> list[str]:
    return [*__all__]
