"""The words of chat completions that several files of this folder know.

Sets of fields and `Fields` are in the file that calls their methods for every chunk: CPython is slower at methods of imported
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.decoding import by_word
from rxdelta.formats.endings import OF_OPEN_SERVERS, Broken
from rxdelta.formats.notes import ANTHROPIC, GOOGLE

FORMAT: Final = "openai-chat"

# The fields in which vendors send reasoning. A block notes its own as SENT_AS, since the vendor wants it back there.
REASONING_NAMES: Final = ("reasoning_content", "reasoning", "reasoning_text")
REASONING_OPAQUE: Final = "reasoning_opaque"
"""GitHub Copilot's field for what signs `reasoning_text`."""
REASONING_DETAILS: Final = "reasoning_details"
THINKING_BLOCKS: Final = "thinking_blocks"
THINKING: Final = "thinking"
"""A part of a `content` that is a list: Mistral's way."""

SIGNERS: Mapping[str, str] = {"anthropic-claude-v1": ANTHROPIC, "google-gemini-v1": GOOGLE}
"""By the `format` of an entry of `reasoning_details`, the vendors whose signatures not only the gateway can send back.
What OpenAI encrypts is for the account that asked, and that is the gateway's."""

# Types of entries of `reasoning_details`, and of calls, that a block notes as PROVIDER_TYPE.
REASONING_TEXT: Final = "reasoning.text"
REASONING_SUMMARY: Final = "reasoning.summary"
REASONING_ENCRYPTED: Final = "reasoning.encrypted"
CUSTOM_CALL: Final = "custom"

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "stop eos eos_token stop_sequence end_turn completed complete",
        "pause": "pause pause_turn",
        "tool_use": "tool_calls tool_call tool_use function_call",
        "length": "length max_tokens model_length max_output_tokens max_length model_context_window_exceeded",
        "content_filter": "content_filter content_filtered safety recitation blocklist prohibited_content spii"
        " sensitive guardrail_intervened",
    }
)

BROKEN: Mapping[str, Broken] = {
    **OF_OPEN_SERVERS,  # also the words of OpenRouter and Mistral
    "insufficient_system_resource": Broken("the servers ran out of resources", True),  # DeepSeek
    "network_error": Broken("the model's inference failed", True),  # Z.ai
    # Gemini, by its own server and by gateways. The model wrote something else than a call of one of the tools.
    "function_call_filter": Broken("the model's function call was refused as malformed or unexpected", True),
    "malformed_function_call": Broken("the model's function call was malformed", True),
}
"""The finish reasons with which a vendor says that it failed. The format's page names the sources."""
