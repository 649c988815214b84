"""A reply as OpenTelemetry knows it: a span, and the metrics of generative AI."""

from __future__ import annotations

import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import InvalidValueError, ProviderError, is_mapping, redact
from rxdelta.core.events import ToolUpdate
from rxdelta.operators.watching.tap import Listener, tap

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import TracerProvider
    from reactivex import Observable, abc

    from rxdelta.core import Snapshot, TokenUsage
    from rxdelta.operators.watching.metrics import StreamMetrics

__all__ = ["tap_otel"]

T = TypeVar("T")

# The conventions call these names unstable, and their package marks its constants for removal: so they stand here.
_DURATION = "gen_ai.client.operation.duration"
_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
_NEXT_CHUNK = "gen_ai.client.operation.time_per_output_chunk"
_TOKENS = "gen_ai.client.token.usage"
_TOOL_DURATION = "gen_ai.execute_tool.duration"

_LONG = [0.01 * 2**power for power in range(14)]
_SHORT = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0]
_GAPS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5]
_COUNTS = [float(4**power) for power in range(14)]
_HISTOGRAMS = (
    (_DURATION, "s", "How long a reply took.", _LONG),
    (_FIRST_CHUNK, "s", "How long the first chunk took.", _SHORT),
    (_NEXT_CHUNK, "s", "How long each further chunk took.", _GAPS),
    (_TOKENS, "{token}", "How many tokens were used.", _COUNTS),
    (_TOOL_DURATION, "s", "How long a tool took.", _LONG),
)

# The figures of a usage that the conventions ask for, and what providers call them.
_DETAILS = {
    "gen_ai.usage.cache_read.input_tokens": (
        "cache_read_input_tokens",
        "cached_tokens",
        "cachedContentTokenCount",
        "cached_content_token_count",
        "cacheReadInputTokens",
    ),
    "gen_ai.usage.reasoning.output_tokens": (
        "reasoning_tokens",
        "thoughtsTokenCount",
        "thoughts_token_count",
    ),
}


def tap_otel(
    provider: str,
    model: str | None = None,
    *,
    operation: str = "chat",
    attributes: Mapping[str, str | bool | int | float] | None = None,
    choice: int = 0,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values, told to OpenTelemetry by the semantic conventions for generative AI.

    A span for each subscription, `chat gpt-5`: it is current while the source is subscribed, so that the spans of the
    HTTP client and of the tools in front of this belong to it, and it ends with the stream. On it: the request's model,
    the reply's id, model and finish reason, its usage, the time to the first chunk, and what ended it. And the
    histograms `gen_ai.client.operation.duration`, `….time_to_first_chunk` and `….time_per_output_chunk`,
    `gen_ai.client.token.usage` and, behind `run_tools`, `gen_ai.execute_tool.duration`, with a span for each tool.

    Stands behind `decode`, where events tell of all that; among snapshots it knows nothing of tools. A reader that
    leaves is no error: the attribute `rxdelta.outcome` says `completed`, `failed` or `disposed`. No text of the reply
    is told; of an error its text and traceback are, but for what looks like a secret in them. What OpenTelemetry raises
    goes to the asyncio loop's exception handler or the log, and never into the stream.

    Needs the package `opentelemetry-api` (`pip install "rxdelta[otel]"`); its SDK is the application's choice.

    Completes with the source.

    Args:
        provider: The conventions' name of who is asked, such as `openai`, `anthropic`, `gcp.gemini`, `aws.bedrock`.
        model: The model that is asked for.
        operation: What is done, in the conventions' words.
        attributes: More of them, for the span and every measure; few values each, as measures go.
        choice: Which of several alternative replies is told of.
        tracer_provider: By default the global one.
        meter_provider: By default the global one.
        scheduler: Whose time is measured; see `tap_metrics`. A span's own times are the clock's.

    Raises:
        ImportError: At once, where the package is missing.
        InvalidValueError: At once, for a provider that isn't named.

    Errors: The source's own.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> events = rx.of(rd.events.MessageStart("m1"), rd.events.MessageFinish("stop"))
        >>> watched = events.pipe(rd.tap_otel("openai", "gpt-5"), rd.scan_deltas())
        >>> watched.subscribe(lambda reply: print(reply.status)).dispose()
        incomplete
        complete
    """
    try:
        from opentelemetry import metrics, trace
    except ImportError as error:
        raise ImportError("tap_otel needs opentelemetry-api: pip install 'rxdelta[otel]'") from error
    if not isinstance(provider, str) or not provider:
        raise InvalidValueError.of([("provider", provider, "must be a name, such as 'openai'")])
    meter = metrics.get_meter("rxdelta", meter_provider=meter_provider)
    histograms = {
        name: meter.create_histogram(name, unit, message, explicit_bucket_boundaries_advisory=bounds)
        for name, unit, message, bounds in _HISTOGRAMS
    }
    tracer = trace.get_tracer("rxdelta", tracer_provider=tracer_provider)
    common: dict[str, Any] = {
        **(attributes or {}),
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        **({} if model is None else {"gen_ai.request.model": model}),
    }
    name = operation if model is None else f"{operation} {model}"

    def listener() -> Listener:
        return _Telemetry(trace, tracer, histograms, name, common, dict(attributes or {}))

    through: Callable[[Observable[T]], Observable[T]] | None = None
    return tap("tap_otel", listener, scheduler, choice, through=through)


class _Telemetry(Listener):
    """One subscription's span and measures."""

    def __init__(
        self,
        trace: Any,
        tracer: Any,
        histograms: Mapping[str, Histogram],
        name: str,
        common: dict[str, Any],
        more: dict[str, Any],
    ) -> None:
        self._trace = trace
        self._tracer = tracer
        self._histograms = histograms
        self._common = common
        self._more = more  # the caller's own
        self._model: str | None = None  # the one that answers
        self._recorded_calls: set[str] = set()  # tools
        self._span = tracer.start_span(
            name, kind=trace.SpanKind.CLIENT, attributes={**common, "gen_ai.request.stream": True}
        )

    @contextmanager
    def subscribing(self) -> Generator[None]:
        with self._trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    def first(self, seconds: float) -> None:
        self._record(_FIRST_CHUNK, seconds)
        self._span.set_attribute("gen_ai.response.time_to_first_chunk", seconds)

    def gap(self, seconds: float) -> None:
        self._record(_NEXT_CHUNK, seconds)

    def event(self, value: Any, reply: Snapshot | None) -> None:
        if self._model is None and reply is not None:
            self._model = reply.model
        if type(value) is ToolUpdate and value.result is not None:
            done = value.execution_status in ("completed", "failed")
            if done and value.call_id not in self._recorded_calls and value.result.duration is not None:
                self._recorded_calls.add(value.call_id)
                self._tool(value.call_id, value.result.duration, value.result.is_error, reply)

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:
        outcome, more = metrics.outcome, dict[str, Any]()
        if outcome is None:
            return
        if outcome.error is not None:
            more["error.type"] = _kind(outcome.error)
            message = redact(_text_of(outcome.error))
            self._span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, message))
            self._span.add_event("exception", _exception(outcome.error, message))
        for name, count in () if metrics.usage is None else _counts(metrics.usage):
            self._span.set_attribute(f"gen_ai.usage.{name}_tokens", count)
            self._record(_TOKENS, count, {"gen_ai.token.type": name})
        self._span.set_attributes({**_described(reply), **more, "rxdelta.outcome": outcome.kind})
        self._record(_DURATION, metrics.seconds, more)
        self._span.end()

    def _tool(self, call_id: str, seconds: float, failed: bool, reply: Snapshot | None) -> None:
        calls = () if reply is None else reply.tool_calls
        name = next((call.name for call in calls if call.call_id == call_id and call.name), None)
        known: dict[str, Any] = {**self._more, "gen_ai.operation.name": "execute_tool"}
        if name is not None:
            known["gen_ai.tool.name"] = name
        if failed:
            known["error.type"] = "tool_error"
        self._histograms[_TOOL_DURATION].record(seconds, known)
        end = time.time_ns()
        span = self._tracer.start_span(
            "execute_tool" if name is None else f"execute_tool {name}",
            context=self._trace.set_span_in_context(self._span),
            start_time=end - int(seconds * 1e9),
            attributes={**known, "gen_ai.tool.call.id": call_id},
        )
        if failed:
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end(end)

    def _record(self, name: str, value: float, more: Mapping[str, Any] | None = None) -> None:
        model = {} if self._model is None else {"gen_ai.response.model": self._model}
        self._histograms[name].record(value, {**self._common, **model, **(more or {})})


def _kind(error: Exception) -> str:
    """The provider's own word, or the class."""
    return error.type if isinstance(error, ProviderError) and error.type else _class(error)


def _class(error: Exception) -> str:
    named = type(error)
    return (
        named.__qualname__ if named.__module__ == "builtins" else f"{named.__module__}.{named.__qualname__}"
    )


def _exception(error: Exception, message: str) -> dict[str, str]:
    """What the conventions call an exception; a span's own `record_exception` would tell each text as it is."""
    trace = redact("".join(traceback.format_exception(error)))
    return {
        "exception.type": _class(error),
        "exception.message": message,
        "exception.stacktrace": trace,
    }


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # what an error says of itself must not hide that there was one
        return ""


def _counts(usage: TokenUsage) -> Iterator[tuple[str, int]]:
    for name, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        if count is not None:
            yield name, count


def _described(reply: Snapshot | None) -> dict[str, Any]:
    """What the span says of the reply."""
    if reply is None:
        return {}
    reasons = None if reply.finish_reason is None else [reply.finish_reason]
    message: dict[str, Any] = {
        "gen_ai.response.id": reply.id,
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": reasons,
    }
    usage = reply.total_usage
    if usage is not None:
        message |= {name: _find(usage.raw, words) for name, words in _DETAILS.items()}
    return {name: value for name, value in message.items() if value is not None}


def _find(raw: Any, words: tuple[str, ...], depth: int = 2) -> int | None:
    """A count, by any of the names that it goes by, also in one of the details inside."""
    for word in words:
        found = raw.get(word)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    inner = (value for value in raw.values() if is_mapping(value)) if depth > 1 else ()
    return next((count for value in inner if (count := _find(value, words, depth - 1)) is not None), None)
