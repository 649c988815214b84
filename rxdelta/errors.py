"""The errors of the library, and the test of which are worth another attempt.

Every error is an `RxDeltaError`, so `except rd.RxDeltaError` catches all of them. Each says what to do, and has the reply so far
in `.snapshot` if there is one. Those that programs name most often also stand on `rd`.
"""

from rxdelta.core import (
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
)
from rxdelta.operators import is_transient

__all__ = [
    "AccessDeniedError",
    "BufferOverflowError",
    "EmptyStreamError",
    "GuardError",
    "IncompleteMessageError",
    "InvalidToolCallError",
    "InvalidValueError",
    "LimitExceededError",
    "MalformedChunkError",
    "MergeError",
    "ProtocolError",
    "ProviderError",
    "RxDeltaError",
    "StallTimeoutError",
    "StreamInterrupted",
    "ToolError",
    "UnknownWireFormatError",
    "is_transient",
]
