"""A conversation → what a provider's next request takes; a browser's messages → a conversation. No I/O."""

from typing import TYPE_CHECKING

from rxdelta.core import lazily
from rxdelta.formats.conversation import Native, Turn
from rxdelta.formats.tool_definitions import ToolDefinition
from rxdelta.requests._to_request import RequestFormat, request_formats, to_request
from rxdelta.requests._tools import Tools

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.interrupts import approvals_from_ag_ui
    from rxdelta.formats.ag_ui.messages import from_ag_ui
    from rxdelta.formats.ai_sdk.messages import from_ai_sdk
    from rxdelta.formats.ai_sdk.tool_parts import approvals_from_ai_sdk
    from rxdelta.formats.openai_chat.messages import from_openai_chat
else:
    _format_name = lazily(
        __name__,
        {
            "rxdelta.formats.ag_ui.interrupts": ["approvals_from_ag_ui"],
            "rxdelta.formats.ag_ui.messages": ["from_ag_ui"],
            "rxdelta.formats.ai_sdk.messages": ["from_ai_sdk"],
            "rxdelta.formats.ai_sdk.tool_parts": ["approvals_from_ai_sdk"],
            "rxdelta.formats.openai_chat.messages": ["from_openai_chat"],
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
    "from_ag_ui",
    "from_ai_sdk",
    "from_openai_chat",
    "to_request",
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
