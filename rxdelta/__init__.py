"""A model's streamed reply as immutable snapshots: Observable operators for every provider's chunks."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rxdelta import building, core, errors, events, providers, requests, types, wire
    from rxdelta.aio import (
        ReaderMeter,
        first_value,
        for_each,
        from_async_iterable,
        from_iterable,
        iterate,
        last_value,
        stream,
        to_async_iterable,
        to_iterable,
    )
    from rxdelta.core import (
        Approval,
        Citation,
        ContentPart,
        Event,
        Fold,
        GuardError,
        IncompleteMessageError,
        InvalidValueError,
        Limits,
        Message,
        MessageDelta,
        ProtocolError,
        ProviderError,
        RxDeltaError,
        Snapshot,
        StreamInterrupted,
        TokenUsage,
        ToolCall,
        ToolError,
        ToolResult,
        apply_event,
        merge_delta,
        merge_deltas,
        to_events,
    )
    from rxdelta.operators import (
        ToolProgress,
        compact_deltas,
        completed_tool_calls,
        conflate,
        cut_text,
        debounce_latest,
        decode,
        exponential_backoff,
        fallback,
        group_by_block,
        group_by_choice,
        group_by_message,
        group_by_run,
        guard,
        json_items,
        map_text,
        on_settled,
        only_choice,
        parse_ndjson,
        parse_sse,
        partial_arguments,
        partial_json,
        per_block,
        race,
        redact,
        retry_stream,
        run_tools,
        scan_deltas,
        sentences,
        share_events,
        share_latest,
        smooth,
        stable_blocks,
        stall_timeout,
        tap_metrics,
        tap_otel,
        text_deltas,
        throttle_latest,
        to_ag_ui,
        to_ai_sdk,
        to_anthropic_messages,
        to_langchain_events,
        to_message,
        to_ndjson,
        to_ollama,
        to_openai_chat,
        to_openai_responses,
        to_resumable_sse,
        to_sse,
        until_all_tools_terminal,
        until_sequence,
        until_stopped,
        validate,
        with_custom,
        with_limits,
        with_run,
    )
    from rxdelta.recording import RecordedError, from_recording, record
    from rxdelta.requests import (
        ToolDefinition,
        from_ag_ui,
        from_ai_sdk,
        to_request,
    )

__version__ = "0.1.0"

__all__ = [
    # values
    "Snapshot",
    "MessageDelta",
    "Message",
    "ContentPart",
    "ToolCall",
    "ToolResult",
    "Citation",
    "TokenUsage",
    # events, and what folds them
    "events",
    "Event",
    "Fold",
    "apply_event",
    "merge_delta",
    "merge_deltas",
    "to_events",
    "Limits",
    "with_limits",
    # in and out of Rx
    "stream",
    "from_async_iterable",
    "from_iterable",
    "for_each",
    "iterate",
    "to_async_iterable",
    "to_iterable",
    "first_value",
    "last_value",
    # operators, by step
    # … in
    "parse_sse",
    "parse_ndjson",
    "decode",
    # … events that go on
    "retry_stream",
    "exponential_backoff",
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
    "Approval",
    "smooth",
    "compact_deltas",
    "share_events",
    # … events → one panel
    "text_deltas",
    "sentences",
    "stable_blocks",
    "partial_json",
    "partial_arguments",
    "json_items",
    "completed_tool_calls",
    # … events → a stream for each part
    "group_by_block",
    "per_block",
    "group_by_choice",
    "only_choice",
    "group_by_message",
    "group_by_run",
    "with_custom",
    "with_run",
    # … events → snapshots → a message
    "scan_deltas",
    "throttle_latest",
    "debounce_latest",
    "conflate",
    "share_latest",
    "until_all_tools_terminal",
    "to_message",
    # … watching
    "on_settled",
    "tap_metrics",
    "tap_otel",
    "ReaderMeter",
    "record",
    "from_recording",
    # … out
    "to_ai_sdk",
    "to_ag_ui",
    "to_langchain_events",
    "to_openai_chat",
    "to_openai_responses",
    "to_anthropic_messages",
    "to_ollama",
    "to_sse",
    "to_resumable_sse",
    "to_ndjson",
    # a conversation, to the provider and from the browser
    "ToolDefinition",
    "to_request",
    "from_ai_sdk",
    "from_ag_ui",
    # errors
    "RxDeltaError",
    "GuardError",
    "IncompleteMessageError",
    "InvalidValueError",
    "ProtocolError",
    "ProviderError",
    "RecordedError",
    "StreamInterrupted",
    "ToolError",
    # the other modules
    "building",
    "core",
    "errors",
    "providers",
    "requests",
    "types",
    "wire",
]


_MODULES = ("building", "core", "errors", "events", "providers", "requests", "types", "wire")
_PACKAGES = ("core", "requests", "aio", "operators", "recording")
"""Where the other names are: in the first of these that has one."""


def __dir__() -> list[str]:
    return [*__all__]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used. An unknown name is refused, with the place where it is."""
        if name not in __all__:
            hint = "" if name.startswith("_") else _whereabouts(name)
            raise AttributeError(f"module 'rxdelta' has no attribute {name!r}{hint}", name=name)
        if name in _MODULES:
            return import_module(f"rxdelta.{name}")
        found = next(
            home for package in _PACKAGES if name in (home := import_module(f"rxdelta.{package}")).__all__
        )
        globals()[name] = getattr(found, name)
        return globals()[name]

    def _whereabouts(name: str) -> str:
        said = {
            "reasoning_deltas": 'rd.text_deltas(of="reasoning")',
            "usage_updates": "the `usage` of a snapshot",
        }
        if name in said:
            return f"; it is {said[name]}"
        homes = {
            word: f"rd.{module}.{word}"
            for module in ("core", "wire", "events", "requests", "providers", "types", "building", "errors")
            for word in import_module(f"rxdelta.{module}").__all__
        } | {word: f"rd.{word}" for word in __all__}
        if name in homes:
            return f"; it is {homes[name]}"
        meant = import_module("rxdelta.core").did_you_mean(name, homes)
        for word, place in homes.items():
            meant = meant.replace(repr(word), place)
        return f"; {meant}" if meant else ""
