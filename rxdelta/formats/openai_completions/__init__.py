"""OpenAI's legacy Completions: `decoder` reads them, `writer` writes and serves them."""

from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.openai_completions.decoder import OpenAICompletionsDecoder, recognises

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-completions",
    decoder=OpenAICompletionsDecoder,
    recognises=recognises,
    why_no_request=(
        # How a prompt would tell the turns of a conversation apart is a matter of each model's own template, so any
        # transcript made here would be wrong for most of them.
        "its prompt is one text without turns"
    ),
    writer=later("openai_completions"),
    endpoint=endpoint_of("openai_completions", module="writer"),
    carries={"text"},
    loses={
        "finish_reason",
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "borders",
        "empty_blocks",
        "order",
        "other_signatures",
        "signatures",
    },
)
