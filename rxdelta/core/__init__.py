"""Replies as values, and how they grow. Pure: no I/O, no clock, no reactivex."""

# `__all__` lists the public names. Other rooms also import the names below that have the form `X as X`.

from rxdelta.core import events
from rxdelta.core._apply import apply_event, merge_delta, merge_deltas
from rxdelta.core._approval import (
    DENIED as DENIED,
    Approval,
    approved_result as approved_result,
    decision_of as decision_of,
    denied_result as denied_result,
    is_asked as is_asked,
    is_waiting as is_waiting,
)
from rxdelta.core._block_fold import BlockFold, grows_by as grows_by
from rxdelta.core._block_key import message_order as message_order
from rxdelta.core._block_wire import (
    ARGUMENT_FIELDS as ARGUMENT_FIELDS,
    TEXT_FIELDS as TEXT_FIELDS,
    block_from_wire as block_from_wire,
    is_call as is_call,
    block_to_wire as block_to_wire,
)
from rxdelta.core._blocks import Block
from rxdelta.core._call_identity import CallIdentity as CallIdentity
from rxdelta.core._call_index import CallIndex as CallIndex, call_id_of as call_id_of
from rxdelta.core._content_part import ContentPart, raw_text as raw_text
from rxdelta.core._errors import (
    AccessDeniedError,
    BufferOverflowError,
    EmptyStreamError,
    GuardError,
    IncompleteMessageError,
    InvalidToolCallError,
    InvalidValueError,
    LimitExceededError,
    MalformedChunkError,
    MergeError,
    ProtocolError,
    ProviderError,
    RxDeltaError,
    StallTimeoutError,
    StreamInterrupted,
    ToolError,
    UnknownWireFormatError,
    as_exception as as_exception,
    described as described,
    quote as quote,
    with_snapshot as with_snapshot,
)
from rxdelta.core._events import (
    Event,
    reasoning_delta,
    text_delta,
    tool_call_delta,
    usage_update as usage_update,
)
from rxdelta.core._events_so_far import EventsSoFar as EventsSoFar
from rxdelta.core._execution_status import TERMINAL as TERMINAL
from rxdelta.core._fast_constructor import fast_constructor as fast_constructor
from rxdelta.core._fold import Fold
from rxdelta.core._frozen import (
    FrozenDict,
    FrozenList,
    freeze,
    is_list as is_list,
    is_mapping as is_mapping,
    thaw,
)
from rxdelta.core._joined import JOINABLE as JOINABLE, PIECE_FIELDS as PIECE_FIELDS, Joined as Joined
from rxdelta.core._lazily import lazily as lazily
from rxdelta.core._limits import (
    DEFAULT_LIMITS as DEFAULT_LIMITS,
    ByChoice as ByChoice,
    ByRun as ByRun,
    Limits,
    check_members as check_members,
    check_place as check_place,
)
from rxdelta.core._literals import (
    FINISH_REASONS as FINISH_REASONS,
    CallStatus,
    CallType,
    ExecutionStatus,
    FinishReason,
    MessageRole,
    MessageStatus,
    SnapshotRole,
    SnapshotStatus,
    both_finish_reasons as both_finish_reasons,
    finish_reason as finish_reason,
)
from rxdelta.core._message import Message, Reply as Reply
from rxdelta.core._options import (
    alternatives as alternatives,
    check_function as check_function,
    check_word as check_word,
    did_you_mean as did_you_mean,
)
from rxdelta.core._partial_json_parser import PartialJsonParser
from rxdelta.core._protocol_checker import ProtocolChecker
from rxdelta.core._redact import redact as redact
from rxdelta.core._refusal import (
    Reads as Reads,
    is_readable as is_readable,
    refusal as refusal,
    wrong_value as wrong_value,
)
from rxdelta.core._runs import (
    PerRun as PerRun,
    another_run as another_run,
    concerns_any_run as concerns_any_run,
    in_run as in_run,
)
from rxdelta.core._scripts import SPACELESS as SPACELESS
from rxdelta.core._seconds import Seconds as Seconds
from rxdelta.core._seconds import check_pace as check_pace
from rxdelta.core._seconds import check_seconds as check_seconds
from rxdelta.core._message_delta import MessageDelta
from rxdelta.core._snapshot import Snapshot, is_over as is_over, is_settled as is_settled
from rxdelta.core._strict_json import (
    InvalidJson,
    clean_text as clean_text,
    parse_json as parse_json,
    parse_object as parse_object,
)
from rxdelta.core._tail import Tail as Tail
from rxdelta.core._text import (
    GrowingText as GrowingText,
    extend as extend,
    join_when_read as join_when_read,
    read_text as read_text,
)
from rxdelta.core._to_events import to_events
from rxdelta.core._tool_call import (
    CompleteToolCall,
    InvalidToolCall,
    ToolCall,
    parse_arguments as parse_arguments,
    raw_arguments as raw_arguments,
    real_id as real_id,
    with_news as with_news,
)
from rxdelta.core._usage_wire import usage_from_wire as usage_from_wire
from rxdelta.core._values import (
    USAGE_DETAILS as USAGE_DETAILS,
    Citation,
    TokenUsage,
    ToolResult,
    make_usage as make_usage,
    usage_or_none as usage_or_none,
)
from rxdelta.core._visible import visible as visible
from rxdelta.core._walk import Change, Walk, Walks

__all__ = [
    "AccessDeniedError",
    "Approval",
    "Block",
    "BlockFold",
    "BufferOverflowError",
    "CallStatus",
    "CallType",
    "Change",
    "Citation",
    "CompleteToolCall",
    "ContentPart",
    "EmptyStreamError",
    "GuardError",
    "Event",
    "ExecutionStatus",
    "FinishReason",
    "Fold",
    "FrozenDict",
    "FrozenList",
    "IncompleteMessageError",
    "InvalidJson",
    "InvalidToolCall",
    "InvalidToolCallError",
    "InvalidValueError",
    "LimitExceededError",
    "Limits",
    "MalformedChunkError",
    "MergeError",
    "Message",
    "MessageDelta",
    "MessageRole",
    "MessageStatus",
    "PartialJsonParser",
    "ProtocolChecker",
    "ProtocolError",
    "ProviderError",
    "RxDeltaError",
    "Snapshot",
    "SnapshotRole",
    "SnapshotStatus",
    "StallTimeoutError",
    "StreamInterrupted",
    "TokenUsage",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "UnknownWireFormatError",
    "Walk",
    "Walks",
    "apply_event",
    "events",
    "freeze",
    "merge_delta",
    "merge_deltas",
    "reasoning_delta",
    "text_delta",
    "thaw",
    "to_events",
    "tool_call_delta",
]
