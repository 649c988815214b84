"""Observable → Observable: one operator a file, named after it."""

from rxdelta.operators.edges.decode import decode
from rxdelta.operators.edges.parse_ndjson import parse_ndjson
from rxdelta.operators.edges.parse_sse import parse_sse
from rxdelta.operators.edges.to_ag_ui import to_ag_ui
from rxdelta.operators.edges.to_ai_sdk import to_ai_sdk
from rxdelta.operators.edges.to_langchain_events import to_langchain_events
from rxdelta.operators.edges.to_sse import to_sse
from rxdelta.operators.folding.scan_deltas import scan_deltas
from rxdelta.operators.folding.to_message import to_message
from rxdelta.operators.folding.validate import validate
from rxdelta.operators.grouping.group_by_block import BlockStream, group_by_block
from rxdelta.operators.grouping.group_by_choice import ChoiceStream, group_by_choice
from rxdelta.operators.grouping.group_by_message import MessageStream, group_by_message
from rxdelta.operators.grouping.per_block import per_block
from rxdelta.operators.pacing.compact_deltas import compact_deltas
from rxdelta.operators.pacing.conflate import conflate
from rxdelta.operators.pacing.debounce_latest import debounce_latest
from rxdelta.operators.pacing.smooth import smooth
from rxdelta.operators.pacing.throttle_latest import throttle_latest
from rxdelta.operators.projections.completed_tool_calls import completed_tool_calls
from rxdelta.operators.projections.json_items import json_items
from rxdelta.operators.projections.markdown import MarkdownSplitter, StableMarkdown
from rxdelta.operators.projections.partial import Partial
from rxdelta.operators.projections.partial_arguments import partial_arguments
from rxdelta.operators.projections.partial_json import partial_json
from rxdelta.operators.projections.stable_blocks import stable_blocks
from rxdelta.operators.projections.text_deltas import reasoning_deltas, text_deltas
from rxdelta.operators.projections.usage_updates import usage_updates
from rxdelta.operators.resilience.failures import exponential_backoff, is_transient
from rxdelta.operators.resilience.retry_stream import retry_stream
from rxdelta.operators.resilience.stall_timeout import stall_timeout
from rxdelta.operators.resilience.until_stopped import until_stopped
from rxdelta.operators.sharing.share_events import share_events
from rxdelta.operators.sharing.share_latest import share_latest
from rxdelta.operators.tools.run_tools import run_tools
from rxdelta.operators.tools.tool_execution import ToolProgress
from rxdelta.operators.tools.until_all_tools_terminal import until_all_tools_terminal
from rxdelta.operators.watching.metrics import StreamMetrics
from rxdelta.operators.watching.on_settled import Outcome, on_settled
from rxdelta.operators.watching.tap_metrics import tap_metrics
from rxdelta.operators.watching.tap_otel import tap_otel

__all__ = [
    "BlockStream",
    "ChoiceStream",
    "MarkdownSplitter",
    "MessageStream",
    "Outcome",
    "Partial",
    "StableMarkdown",
    "StreamMetrics",
    "ToolProgress",
    "compact_deltas",
    "completed_tool_calls",
    "conflate",
    "debounce_latest",
    "decode",
    "exponential_backoff",
    "group_by_block",
    "group_by_choice",
    "group_by_message",
    "is_transient",
    "json_items",
    "on_settled",
    "parse_ndjson",
    "parse_sse",
    "partial_arguments",
    "partial_json",
    "per_block",
    "reasoning_deltas",
    "retry_stream",
    "run_tools",
    "scan_deltas",
    "share_events",
    "share_latest",
    "smooth",
    "stable_blocks",
    "stall_timeout",
    "tap_metrics",
    "tap_otel",
    "text_deltas",
    "throttle_latest",
    "to_ag_ui",
    "to_ai_sdk",
    "to_langchain_events",
    "to_message",
    "to_sse",
    "until_all_tools_terminal",
    "until_stopped",
    "usage_updates",
    "validate",
]
