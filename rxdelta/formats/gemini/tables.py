"""The words of generateContent that several files of this folder know.

Objects whose methods are called for every chunk, sets of fields and `Fields`, stand in the file that calls them: CPython
3.11 is slow at methods of imported names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.json_values import by_word
from rxdelta.formats.provider_errors import Broken

FORMAT: Final = "gemini"

# The parts of a tool that the provider runs itself. A block notes its own as PROVIDER_TYPE.
EXECUTABLE_CODE: Final = "executableCode"
CODE_RESULT: Final = "codeExecutionResult"
TOOL_CALL: Final = "toolCall"
TOOL_RESPONSE: Final = "toolResponse"
SERVER_TOOLS: Final = (EXECUTABLE_CODE, CODE_RESULT, TOOL_CALL, TOOL_RESPONSE)

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR ESCALATION"
        " IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION",
        "pause": "CONTINUATION",
    }
)

BROKEN: Mapping[str, Broken] = {
    "MALFORMED_FUNCTION_CALL": Broken("the model's function call could not be read", True),
    "MALFORMED_RESPONSE": Broken("the model's response could not be read", True),
    "UNEXPECTED_TOOL_CALL": Broken("the model called a function that the request doesn't have", True),
    "TOO_MANY_TOOL_CALLS": Broken("the model called too many of the provider's tools", False),
    "MISSING_THOUGHT_SIGNATURE": Broken("a thought signature is missing in the request", False),
    "PUP_LIMITED_DISABLED": Broken("the account is limited by the Prohibited Use Policy", False),
    "NO_IMAGE": Broken("the model made no image", True),
    "IMAGE_OTHER": Broken("the image broke off for an unknown reason", True),
    "OTHER": Broken("the reply broke off for an unknown reason", True),
}
"""The reasons that say that the model or Google failed. The provider's `finishMessage` wins over these.

https://ai.google.dev/api/generate-content#FinishReason and
https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#FinishReason
"""

_IN_ORDER = "STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL MODEL_ARMOR"
NUMBERED_REASONS: Mapping[int, str] = {0: "", **dict(enumerate(_IN_ORDER.split(), 1))}
"""The finish reasons by Vertex's numbers. AI Studio, whose numbers differ from 6 on, sends none."""

UNSPECIFIED: Final = (
    None,
    "",
    0,
    "FINISH_REASON_UNSPECIFIED",
    "BLOCKED_REASON_UNSPECIFIED",
    "OUTCOME_UNSPECIFIED",
)
"""The values of an enum that say nothing."""
