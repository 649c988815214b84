"""Observable → Observable: one operator a file, named after it."""

from rxdelta.operators._compact_deltas import JOINABLE as JOINABLE
from rxdelta.operators._compact_deltas import Joined as Joined
from rxdelta.operators._compact_deltas import compact_deltas
from rxdelta.operators._completed_tool_calls import completed_tool_calls
from rxdelta.operators._conflate import conflate
from rxdelta.operators._debounce_latest import debounce_latest
from rxdelta.operators._decode import decode
from rxdelta.operators._failures import exponential_backoff, is_transient
from rxdelta.operators._group_by_block import BlockStream, group_by_block
from rxdelta.operators._group_by_choice import ChoiceStream, group_by_choice
from rxdelta.operators._group_by_message import MessageStream, group_by_message
from rxdelta.operators._json_items import json_items
from rxdelta.operators._metrics import StreamMetrics
from rxdelta.operators._on_settled import Outcome, on_settled
from rxdelta.operators._paced import dropped as dropped
from rxdelta.operators._parse_ndjson import parse_ndjson
from rxdelta.operators._parse_sse import parse_sse
from rxdelta.operators._partial import Partial
from rxdelta.operators._partial_arguments import partial_arguments
from rxdelta.operators._partial_json import partial_json
from rxdelta.operators._per_block import per_block
from rxdelta.operators._retry_stream import retry_stream
from rxdelta.operators._run_tools import run_tools
from rxdelta.operators._scan_deltas import scan_deltas
from rxdelta.operators._session import Pump as Pump
from rxdelta.operators._session import Room as Room
from rxdelta.operators._session import current_session as current_session
from rxdelta.operators._share_events import share_events
from rxdelta.operators._share_latest import share_latest
from rxdelta.operators._smooth import smooth
from rxdelta.operators._stable_blocks import stable_blocks
from rxdelta.operators._stall_timeout import stall_timeout
from rxdelta.operators._stray import is_interrupt as is_interrupt
from rxdelta.operators._stray import report as report
from rxdelta.operators._tap_metrics import tap_metrics
from rxdelta.operators._tap_otel import tap_otel
from rxdelta.operators._text_deltas import reasoning_deltas, text_deltas
from rxdelta.operators._throttle_latest import throttle_latest
from rxdelta.operators._to_ag_ui import to_ag_ui
from rxdelta.operators._to_ai_sdk import to_ai_sdk
from rxdelta.operators._to_langchain_events import to_langchain_events
from rxdelta.operators._to_message import to_message
from rxdelta.operators._to_sse import to_sse
from rxdelta.operators._tool_execution import ToolProgress
from rxdelta.operators._until_all_tools_terminal import until_all_tools_terminal
from rxdelta.operators._until_stopped import until_stopped
from rxdelta.operators._usage_updates import usage_updates
from rxdelta.operators._validate import validate

__all__ = [
    "BlockStream",
    "ChoiceStream",
    "MessageStream",
    "Outcome",
    "Partial",
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
