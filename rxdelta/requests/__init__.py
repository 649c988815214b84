"""A conversation → what a provider's next request takes; a browser's messages → a conversation. No I/O."""

from rxdelta.formats.ag_ui.interrupts import approvals_from_ag_ui
from rxdelta.formats.ag_ui.messages import from_ag_ui
from rxdelta.formats.ai_sdk.messages import from_ai_sdk
from rxdelta.formats.ai_sdk.tool_parts import approvals_from_ai_sdk
from rxdelta.formats.conversation import Native, Turn
from rxdelta.formats.openai_chat.messages import from_openai_chat
from rxdelta.formats.tool_definitions import ToolDefinition
from rxdelta.requests._to_request import RequestFormat, request_formats, to_request
from rxdelta.requests._tools import Tools

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


def __getattr__(name: str) -> object:
    """`REQUEST_FORMATS` when it is first asked for: installed formats are looked up then, not at every import."""
    if name == "REQUEST_FORMATS":
        globals()[name] = request_formats()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
