"""The words of chat completions that several files of this folder know.

Objects whose methods are called for every chunk, sets of fields and `Fields`, stand in the file that calls them: CPython
3.11 is slow at methods of imported names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.json_values import by_word
from rxdelta.formats.signatures import ANTHROPIC, GOOGLE
from rxdelta.formats.tool_calls import BROKEN_OFF, CUT_OFF

FORMAT: Final = "openai-chat"

# The fields in which vendors send reasoning. A block notes its own as SENT_AS, since the vendor wants it back there.
REASONING_NAMES: Final = ("reasoning_content", "reasoning")
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
        "tool_use": "tool_calls tool_call tool_use function_call",
        "length": "length max_tokens model_length max_output_tokens max_length",
        "content_filter": "content_filter content_filtered safety recitation blocklist prohibited_content spii"
        " sensitive guardrail_intervened",
    }
)
CUT: Mapping[str, str] = {
    "length": CUT_OFF,
    "error": BROKEN_OFF,
    "network_error": BROKEN_OFF,
    "abort": "broken off by the provider",
    "insufficient_system_resource": "broken off by the provider",
}
"""The finish reasons after which an open call isn't complete."""
