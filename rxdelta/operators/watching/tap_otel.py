"""A reply for OpenTelemetry: a span, and the metrics of generative AI."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import PIECE_FIELDS, TERMINAL, InvalidValueError, ProviderError, Snapshot, redact
from rxdelta.core.events import ToolUpdate
from rxdelta.operators.watching.tap import Listener, StreamMetrics, tap
from rxdelta.providers import completed
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import TracerProvider
    from reactivex import Observable, abc

    from rxdelta.operators.watching.reply_so_far import ReplySoFar


T = TypeVar("T")

# Literals, because the conventions call these names unstable and their package marks its constants for removal.
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

# The billed tokens, and the conventions' names of them. The totals include the details there too.
_USAGE = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cache_read_tokens",
    "gen_ai.usage.cache_write.input_tokens": "cache_write_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write_tokens",  # its earlier name
    "gen_ai.usage.reasoning.output_tokens": "output_reasoning_tokens",
    "gen_ai.usage.audio.input_tokens": "input_audio_tokens",
    "gen_ai.usage.audio.output_tokens": "output_audio_tokens",
}


@operator_maker
def tap_otel(
    provider: str,
    model: str | None = None,
    *,
    operation: str = "chat",
    attributes: Mapping[str, str | bool | int | float] | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values, reported to OpenTelemetry by the semantic conventions for generative AI.

    Each subscription has a span, such as `chat gpt-5`. It is current while the source is subscribed, so that the spans
    of the HTTP client and of tools upstream belong to it, and it ends with the stream. Its attributes are the request's
    model, the reply's id, model and finish reason, its usage, the time to the first chunk, and the error, if any.
    The histograms are `gen_ai.client.operation.duration`, `….time_to_first_chunk`, `….time_per_output_chunk` and
    `gen_ai.client.token.usage`. Behind `run_tools` there are also `gen_ai.execute_tool.duration` and a span for each
    tool.

    Put it behind `decode`, because the events contain all these facts; snapshots don't show tools. Disposing is no
    error: the attribute `rxdelta.outcome` is `completed`, `failed` or `disposed`. The reply's text is not reported. An
    error's text and traceback are, without apparent secrets. Exceptions of OpenTelemetry go to the asyncio
    loop's exception handler or the log, never to the observer.

    Needs the package `opentelemetry-api` (`pip install "rxdelta[otel]"`); its SDK is the application's choice.

    Completes with the source.

    Args:
        provider: The provider's name in the conventions, such as `openai`, `anthropic`, `gcp.gemini`, `aws.bedrock`.
        model: The requested model.
        operation: The operation's name in the conventions.
        attributes: Further attributes of the span and all metrics; each should have few different values.
        tracer_provider: By default the global one.
        meter_provider: By default the global one.
        scheduler: The scheduler of the measured times; see `tap_metrics`. A span's own times are the system clock's.

    Raises:
        ImportError: At once, if the package is missing.
        InvalidValueError: At once, without a provider's name.

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
    return tap("tap_otel", listener, scheduler, through=through)


class _Telemetry(Listener):
    """One subscription's span and metrics."""

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
        self._more = more  # the caller's own attributes
        self._model: str | None = None  # of the reply
        self._recorded_calls: set[tuple[str | None, int | None, str]] = set()
        self._span = tracer.start_span(
            name, kind=trace.SpanKind.CLIENT, attributes={**common, "gen_ai.request.stream": True}
        )

    @contextmanager
    def subscribing(self) -> Generator[None]:
        with self._trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    def arrived(self, value: Any, first: float | None, gap: float | None, reply: ReplySoFar) -> None:
        if first is not None:
            self._record(_FIRST_CHUNK, first)
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", first)
        if gap is not None:
            self._record(_NEXT_CHUNK, gap)
        if self._model is None and type(value) not in PIECE_FIELDS:  # no delta tells it
            self._model = None if reply.snapshot is None else reply.snapshot.model
        if type(value) is ToolUpdate and value.result is not None:
            done = value.execution_status in TERMINAL
            call = (value.run_id, value.choice, value.call_id)
            if done and call not in self._recorded_calls and value.result.duration is not None:
                self._recorded_calls.add(call)
                self._tool(value.call_id, value.result.duration, value.result.is_error, reply.snapshot)

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:
        outcome, more = metrics.outcome, dict[str, Any]()
        if outcome is None:
            return
        if outcome.error is not None:
            more["error.type"] = _kind(outcome.error)
            message = redact(_text_of(outcome.error))
            self._span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, message))
            self._span.add_event("exception", _exception(outcome.error, message))
        billed: Mapping[str, int] = {} if metrics.usage is None else completed(metrics.usage).billed
        for name in ("input", "output"):
            if (count := billed.get(f"{name}_tokens")) is not None:
                self._record(_TOKENS, count, {"gen_ai.token.type": name})
        usage = {name: billed[ours] for name, ours in _USAGE.items() if ours in billed}
        self._span.set_attributes({**_described(reply), **usage, **more, "rxdelta.outcome": outcome.kind})
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
    """The provider's type of the error, else its code, such as a finish reason that says that it failed, or the class."""
    named = (error.type or error.code) if isinstance(error, ProviderError) else None
    return named or _class(error)


def _class(error: Exception) -> str:
    named = type(error)
    return (
        named.__qualname__ if named.__module__ == "builtins" else f"{named.__module__}.{named.__qualname__}"
    )


def _exception(error: Exception, message: str) -> dict[str, str]:
    """The conventions' attributes of an exception, redacted; a span's own `record_exception` wouldn't redact."""
    trace = redact("".join(traceback.format_exception(error)))
    return {
        "exception.type": _class(error),
        "exception.message": message,
        "exception.stacktrace": trace,
    }


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an error whose text can't be read must still be reported
        return ""


def _described(reply: Snapshot | None) -> dict[str, Any]:
    """The span's attributes of the reply: of several, the last one's."""
    if reply is None:
        return {}
    reasons = None if reply.finish_reason is None else [reply.finish_reason]
    message: dict[str, Any] = {
        "gen_ai.response.id": reply.id,
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": reasons,
    }
    return {name: value for name, value in message.items() if value is not None}
