"""Replies as values, and how they grow. Pure: no I/O, no clock, no reactivex."""

# Values: `snapshot` (the reply so far), `message` (the finished one), `content_part`, `tool_call`, `values`; `blocks` is both ways
# between a block and its wire form. Events: `event_classes`, `event_reading`; `events` passes both on.
# Growing: `walk` has the law of a message's life, from an event to the changes that it makes. `fold` shows the changes as
# snapshots, `block_fold` grows one block, `call_identity` knows each call for its whole life, `protocol_checker` counts broken rules.
# `message_delta` merges small deltas instead. `so_far` gives the events of a reply to a late subscriber; `runs` names lanes.
# Below all of these: `errors`, `options` (with limits), `json_values`, `partial_json_parser`, `text`, `literals`.
# At run time no file imports one above it. For type checkers alone there is a circle: an error has a snapshot, whose class has errors,
# and a message, a snapshot and the events name one another.

# `__all__` lists the public names. Other packages also import the names below that have the form `X as X`.

from rxdelta.core import events
from rxdelta.core.block_fold import (
    JOINABLE as JOINABLE,
    PIECE_FIELDS as PIECE_FIELDS,
    BlockFold,
    Joined as Joined,
    grows_by as grows_by,
)
from rxdelta.core.blocks import (
    ARGUMENT_FIELDS as ARGUMENT_FIELDS,
    TEXT_FIELDS as TEXT_FIELDS,
    Block,
    block_from_wire as block_from_wire,
    block_to_wire as block_to_wire,
    is_call as is_call,
)
from rxdelta.core.call_identity import CallIdentity as CallIdentity
from rxdelta.core.content_part import ContentPart, raw_text as raw_text
from rxdelta.core.errors import (
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
    redact as redact,
    visible as visible,
    with_snapshot as with_snapshot,
)
from rxdelta.core.event_classes import (
    Event,
    reasoning_delta,
    text_delta,
    tool_call_delta,
    usage_update as usage_update,
)
from rxdelta.core.fast_constructor import fast_constructor as fast_constructor
from rxdelta.core.fold import Fold, Tail as Tail, apply_event, merge_delta, merge_deltas
from rxdelta.core.json_values import (
    FrozenDict,
    FrozenList,
    InvalidJson,
    clean_text as clean_text,
    freeze,
    is_list as is_list,
    is_mapping as is_mapping,
    parse_json as parse_json,
    parse_object as parse_object,
    thaw,
)
from rxdelta.core.lazily import lazily as lazily
from rxdelta.core.literals import (
    FINISH_REASONS as FINISH_REASONS,
    TERMINAL as TERMINAL,
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
from rxdelta.core.message import Message, Reply as Reply
from rxdelta.core.message_delta import MessageDelta
from rxdelta.core.options import (
    DEFAULT_LIMITS as DEFAULT_LIMITS,
    ByChoice as ByChoice,
    ByRun as ByRun,
    Limits,
    Seconds as Seconds,
    alternatives as alternatives,
    check_function as check_function,
    check_members as check_members,
    check_pace as check_pace,
    check_place as check_place,
    check_seconds as check_seconds,
    check_word as check_word,
    did_you_mean as did_you_mean,
)
from rxdelta.core.partial_json_parser import PartialJsonParser
from rxdelta.core.protocol_checker import ProtocolChecker
from rxdelta.core.refusal import (
    Reads as Reads,
    is_readable as is_readable,
    refusal as refusal,
    wrong_value as wrong_value,
)
from rxdelta.core.runs import (
    PerRun as PerRun,
    another_run as another_run,
    concerns_any_run as concerns_any_run,
    concerns_choice as concerns_choice,
    in_run as in_run,
)
from rxdelta.core.snapshot import Snapshot, is_over as is_over, is_settled as is_settled
from rxdelta.core.so_far import EventsSoFar as EventsSoFar, to_events
from rxdelta.core.text import (
    SPACELESS as SPACELESS,
    GrowingText as GrowingText,
    extend as extend,
    join_when_read as join_when_read,
    read_text as read_text,
)
from rxdelta.core.tool_call import (
    DENIED as DENIED,
    Approval,
    CompleteToolCall,
    InvalidToolCall,
    ToolCall,
    approved_result as approved_result,
    decision_of as decision_of,
    denied_result as denied_result,
    is_asked as is_asked,
    is_waiting as is_waiting,
    parse_arguments as parse_arguments,
    raw_arguments as raw_arguments,
    real_id as real_id,
    with_news as with_news,
)
from rxdelta.core.values import (
    USAGE_DETAILS as USAGE_DETAILS,
    Citation,
    TokenUsage,
    ToolResult,
    free_name as free_name,
    make_usage as make_usage,
    message_order as message_order,
    usage_from_wire as usage_from_wire,
    usage_or_none as usage_or_none,
)
from rxdelta.core.walk import (
    CallIndex as CallIndex,
    Change,
    ChangeReader as ChangeReader,
    Walk,
    Walks,
    call_id_of as call_id_of,
)

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
