"""The operators, in a folder for each family: one file each, but for those of `edges`, of which a file has all of one subject."""

from rxdelta.operators.edges.decode import decode
from rxdelta.operators.edges.framing import parse_ndjson, parse_sse, to_ndjson, to_sse
from rxdelta.operators.edges.to_clients import (
    to_anthropic_messages,
    to_ollama,
    to_openai_chat,
    to_openai_responses,
)
from rxdelta.operators.edges.to_front_ends import to_ag_ui, to_ai_sdk, to_langchain_events
from rxdelta.operators.edges.to_resumable_sse import LogEntry, to_resumable_sse
from rxdelta.operators.edges.with_limits import with_limits
from rxdelta.operators.folding.scan_deltas import Scan as Scan, scan_deltas
from rxdelta.operators.folding.to_message import to_message
from rxdelta.operators.folding.validate import validate
from rxdelta.operators.grouping.group_by_block import BlockStream, group_by_block
from rxdelta.operators.grouping.group_by_choice import ChoiceStream, group_by_choice
from rxdelta.operators.grouping.group_by_message import MessageStream, group_by_message
from rxdelta.operators.grouping.group_by_run import RunStream, group_by_run
from rxdelta.operators.grouping.only_choice import only_choice
from rxdelta.operators.grouping.per_block import per_block
from rxdelta.operators.grouping.with_custom import with_custom
from rxdelta.operators.grouping.with_run import with_run
from rxdelta.operators.pacing.compact_deltas import compact_deltas
from rxdelta.operators.pacing.conflate import conflate
from rxdelta.operators.pacing.debounce_latest import debounce_latest
from rxdelta.operators.pacing.smooth import smooth
from rxdelta.operators.pacing.throttle_latest import throttle_latest
from rxdelta.operators.projections.completed_tool_calls import completed_tool_calls
from rxdelta.operators.projections.json_items import json_items
from rxdelta.operators.projections.markdown import MarkdownSplitter, StableMarkdown
from rxdelta.operators.projections.partial import PartialValue
from rxdelta.operators.projections.partial_arguments import partial_arguments
from rxdelta.operators.projections.partial_json import partial_json
from rxdelta.operators.projections.stable_blocks import stable_blocks
from rxdelta.operators.projections.text_deltas import text_deltas
from rxdelta.operators.resilience.failures import (
    exponential_backoff,
    header_of as header_of,
    is_transient,
    status_of as status_of,
)
from rxdelta.operators.resilience.fallback import fallback
from rxdelta.operators.resilience.race import race
from rxdelta.operators.resilience.retry_stream import retry_stream
from rxdelta.operators.resilience.stall_timeout import stall_timeout
from rxdelta.operators.resilience.until_stopped import until_stopped
from rxdelta.operators.sharing.share_events import share_events, share_kept as share_kept
from rxdelta.operators.sharing.share_latest import share_latest
from rxdelta.operators.text.cut_text import cut_text
from rxdelta.operators.text.guard import guard
from rxdelta.operators.text.map_text import map_text
from rxdelta.operators.text.redact import redact
from rxdelta.operators.text.sentences import sentences
from rxdelta.operators.text.until_sequence import until_sequence
from rxdelta.operators.tools.approvals import Answers as Answers, Approve as Approve
from rxdelta.operators.tools.run_tools import run_tools
from rxdelta.operators.tools.tool_execution import ToolProgress
from rxdelta.operators.tools.until_all_tools_terminal import until_all_tools_terminal
from rxdelta.operators.watching.on_settled import StreamOutcome, on_settled
from rxdelta.operators.watching.tap import StreamMetrics
from rxdelta.operators.watching.tap_metrics import tap_metrics
from rxdelta.operators.watching.tap_otel import tap_otel

__all__ = [
    "Answers",
    "Approve",
    # in
    "parse_sse",
    "parse_ndjson",
    "decode",
    # events that go on
    "retry_stream",
    "exponential_backoff",
    "is_transient",
    "fallback",
    "race",
    "stall_timeout",
    "until_stopped",
    "validate",
    "redact",
    "map_text",
    "cut_text",
    "until_sequence",
    "guard",
    "run_tools",
    "ToolProgress",
    "smooth",
    "compact_deltas",
    "share_events",
    # events → one panel
    "text_deltas",
    "sentences",
    "stable_blocks",
    "StableMarkdown",
    "MarkdownSplitter",
    "partial_json",
    "partial_arguments",
    "PartialValue",
    "json_items",
    "completed_tool_calls",
    # events → a stream for each part
    "group_by_block",
    "BlockStream",
    "only_choice",
    "per_block",
    "group_by_choice",
    "ChoiceStream",
    "group_by_message",
    "MessageStream",
    "group_by_run",
    "RunStream",
    "with_custom",
    "with_limits",
    "with_run",
    # events → snapshots → a message
    "scan_deltas",
    "throttle_latest",
    "debounce_latest",
    "conflate",
    "share_latest",
    "until_all_tools_terminal",
    "to_message",
    # watching
    "on_settled",
    "StreamOutcome",
    "tap_metrics",
    "StreamMetrics",
    "tap_otel",
    # out
    "to_ai_sdk",
    "to_anthropic_messages",
    "to_ag_ui",
    "to_langchain_events",
    "to_ndjson",
    "to_ollama",
    "to_openai_chat",
    "to_openai_responses",
    "to_sse",
    "to_resumable_sse",
    "LogEntry",
]
