"""`tap_otel`, told to OpenTelemetry's own SDK, which keeps it in memory."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex.disposable import SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import Stream, run as run_loop, turns
from support.replies import ANTHROPIC, REPLIES

import rxdelta as rd

pytest.importorskip("opentelemetry.sdk")
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.lines import through, whole

from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events


class Backend:
    """What an application has set up, and what has arrived there."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def tap(self, provider: str = "openai", model: str | None = "gpt-5", **options: Any) -> Any:
        return rd.tap_otel(
            provider, model, tracer_provider=self.tracers, meter_provider=self.meters, **options
        )

    @property
    def spans(self) -> list[Any]:
        return list(self._spans.get_finished_spans())

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def units(self) -> dict[str, str]:
        data: Any = self._reader.get_metrics_data()
        return {
            metric.name: metric.unit
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


EVENTS: dict[str, rd.Event] = {
    "s": ev.MessageStart("m1", "gpt-5-mini"),
    "b": ev.BlockStart(0, {"type": "text", "text": ""}),
    "t": ev.TextDelta(0, "Hel"),
    "u": ev.UsageUpdate(
        rd.TokenUsage(
            30,
            12,
            {
                "prompt_tokens_details": {"cached_tokens": 20},
                "completion_tokens_details": {"reasoning_tokens": 7, "audio": True},
            },
        )
    ),
    "f": ev.MessageFinish("stop"),
}


def told(line: str, *, until: float = 60, **options: Any) -> tuple[Backend, list[marbles.Record]]:
    backend = Backend()
    records, _ = through(line, backend.tap(**options), values=EVENTS, error=BOOM, until=until)
    return backend, records


WHOLE = "--s-b-t----t-uf|"


def test_the_span_of_a_reply() -> None:
    backend, _ = told(WHOLE)
    (span,) = backend.spans
    assert (span.name, span.kind, span.status.status_code) == (
        "chat gpt-5",
        trace.SpanKind.CLIENT,
        trace.StatusCode.UNSET,
    )
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "m1",
        "gen_ai.response.model": "gpt-5-mini",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 2.0,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "rxdelta.outcome": "completed",
    }


def test_the_span_has_what_is_billed_as_the_conventions_count_it() -> None:
    scheduler, backend = TestScheduler(), Backend()
    usage = {"input_tokens": 9, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 1}
    message = {"id": "m", "role": "assistant", "content": [], "usage": usage}
    later = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}
    chunks = [
        {"type": "message_start", "message": message},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": later},
        {"type": "message_stop"},
    ]
    source = rx.from_iterable(chunks).pipe(rd.decode("anthropic-messages"), backend.tap())
    scheduler.start(lambda: source)
    (span,) = backend.spans
    told = {name: count for name, count in span.attributes.items() if ".usage." in name}
    assert told == {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 90,
        "gen_ai.usage.cache_write.input_tokens": 1,
        "gen_ai.usage.cache_creation.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }
    counted = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in backend.points("gen_ai.client.token.usage")
    }
    assert counted == {"input": 100, "output": 7}


def test_the_metrics_of_a_reply() -> None:
    backend, _ = told(WHOLE)
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
    }
    answered = {**common, "gen_ai.response.model": "gpt-5-mini"}
    found = {
        name: [(point.sum, point.count, dict(point.attributes)) for point in backend.points(name)]
        for name in (
            "gen_ai.client.operation.duration",
            "gen_ai.client.operation.time_to_first_chunk",
            "gen_ai.client.operation.time_per_output_chunk",
            "gen_ai.client.token.usage",
        )
    }
    assert found == {
        "gen_ai.client.operation.duration": [(15.0, 1, answered)],
        "gen_ai.client.operation.time_to_first_chunk": [(2.0, 1, common)],
        "gen_ai.client.operation.time_per_output_chunk": [(5.0, 1, answered)],
        "gen_ai.client.token.usage": [
            (30, 1, {**answered, "gen_ai.token.type": "input"}),
            (12, 1, {**answered, "gen_ai.token.type": "output"}),
        ],
    }
    assert backend.units()["gen_ai.client.token.usage"] == "{token}"
    assert backend.units()["gen_ai.client.operation.duration"] == "s"


def test_the_histograms_have_the_conventions_bounds() -> None:
    backend, _ = told(WHOLE)
    (point,) = backend.points("gen_ai.client.operation.duration")
    assert point.explicit_bounds[:3] == (0.01, 0.02, 0.04)
    assert point.explicit_bounds[-1] == pytest.approx(81.92)
    assert backend.points("gen_ai.client.token.usage")[0].explicit_bounds[-1] == 67108864


@pytest.mark.parametrize(
    ("source", "outcome", "status"),
    [
        ("-s-|", "completed", "UNSET"),
        ("-s-#", "failed", "ERROR"),
        ("-s---", "disposed", "UNSET"),
        ("|", "completed", "UNSET"),
        ("#", "failed", "ERROR"),
        ("---", "disposed", "UNSET"),
        ("[sbtuf|]", "completed", "UNSET"),
    ],
)
def test_the_stream_is_untouched_and_each_end_ends_the_span_once(
    source: str, outcome: str, status: str
) -> None:
    backend, records = told(source)
    assert records == marbles.parse(source, values=EVENTS, frame=1, error=BOOM)
    (span,) = backend.spans
    assert span.attributes["rxdelta.outcome"] == outcome
    assert span.status.status_code.name == status
    (duration,) = backend.points("gen_ai.client.operation.duration")
    assert duration.sum == span_seconds(source)
    assert duration.attributes.get("error.type") == ("ValueError" if outcome == "failed" else None)


def span_seconds(source: str) -> float:
    ((_, end),) = whole(source)
    return min(end, 60)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (rd.ProviderError("No", type="overloaded_error"), "overloaded_error"),
        (rd.ProviderError("No", type="server_error", code="500"), "server_error"),
        (rd.ProviderError("No", code="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL"),
        (rd.ProviderError("No"), "rxdelta.core.errors.ProviderError"),
        (BOOM, "ValueError"),
    ],
)
def test_what_ended_it_is_told(error: Exception, kind: str) -> None:
    backend = Backend()
    rx.throw(error).pipe(backend.tap()).subscribe(on_error=lambda _: None)
    (span,) = backend.spans
    assert span.attributes["error.type"] == kind
    assert [event.name for event in span.events] == ["exception"]


def test_no_secret_that_an_error_names_is_told() -> None:
    backend = Backend()
    cause = ValueError("postgres://admin:canary@db with password='canary'")
    error = rd.ProviderError("Incorrect key: sk-canary123456", type="authentication_error")
    error.__cause__ = cause
    rx.throw(error).pipe(backend.tap()).subscribe(on_error=lambda _: None)
    body = b'data: {"token": "canary"\n\n'
    rx.of(body).pipe(rd.parse_sse(), backend.tap()).subscribe(on_error=lambda _: None)
    said = " ".join(span.to_json() for span in backend.spans)
    assert "canary" not in said
    (event,) = backend.spans[0].events
    assert event.attributes["exception.type"] == "rxdelta.core.errors.ProviderError"
    assert event.attributes["exception.message"].endswith("Incorrect key: [redacted]")
    assert (
        "ValueError: postgres://[redacted]@db with password='[redacted]'"
        in event.attributes["exception.stacktrace"]
    )
    assert backend.spans[0].status.description == event.attributes["exception.message"]


def test_an_error_whose_text_raises_ends_the_span() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    backend = Backend()
    rx.throw(Mute()).pipe(backend.tap()).subscribe(on_error=lambda _: None)
    assert backend.spans[0].attributes["error.type"].endswith("Mute")
    assert backend.spans[0].status.status_code == trace.StatusCode.ERROR


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_a_providers_reply(wire_format: str) -> None:
    backend = Backend()
    rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format), backend.tap("x", "small")).subscribe()
    attributes = backend.spans[0].attributes
    assert attributes["gen_ai.response.model"] == "small"
    assert attributes["gen_ai.response.finish_reasons"] == ("tool_use",)
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (3, 5)
    assert backend.points("gen_ai.client.operation.time_per_output_chunk")[0].count == 3


def test_no_text_of_the_reply_is_told() -> None:
    backend = Backend()
    rx.from_iterable(ANTHROPIC).pipe(rd.decode("anthropic-messages"), backend.tap()).subscribe()
    said = " ".join(span.to_json() for span in backend.spans)
    assert "Let me" not in said
    assert "sea" not in said


@pytest.mark.parametrize("fails", [False, True])
def test_a_tool_behind_run_tools_has_a_span_and_a_measure(fails: bool) -> None:
    backend = Backend()

    def look(at: str) -> str:
        if fails:
            raise BOOM
        return at

    scheduler = TestScheduler()
    events = rx.from_iterable(ANTHROPIC).pipe(
        rd.decode("anthropic-messages"), rd.run_tools({"look": look}), backend.tap(attributes={"team": "sea"})
    )
    events.subscribe(scheduler=scheduler)
    scheduler.start()
    tool, reply = backend.spans
    assert (tool.name, reply.name) == ("execute_tool look", "chat gpt-5")
    assert tool.parent.span_id == reply.context.span_id
    expected: dict[str, Any] = {
        "team": "sea",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
    } | ({"error.type": "tool_error"} if fails else {})
    assert dict(tool.attributes) == {**expected, "gen_ai.tool.call.id": "call_1"}
    (point,) = backend.points("gen_ai.execute_tool.duration")
    assert (point.count, dict(point.attributes)) == (1, expected)
    assert reply.attributes["team"] == "sea"


def test_a_tools_end_that_is_told_twice_is_measured_once() -> None:
    backend = Backend()
    ended = ev.ToolUpdate("call_1", "completed", None, rd.ToolResult("call_1", "calm", duration=2))
    rx.of(EVENTS["s"], ended, ended).pipe(backend.tap()).subscribe()
    assert [(point.count, point.sum) for point in backend.points("gen_ai.execute_tool.duration")] == [(1, 2)]
    tool, _ = backend.spans
    assert (tool.name, tool.end_time - tool.start_time) == ("execute_tool", 2_000_000_000)


def test_the_source_is_subscribed_in_the_span_and_the_subscriber_is_not() -> None:
    backend = Backend()
    seen: list[Any] = []

    async def request() -> Any:
        seen.append(trace.get_current_span().get_span_context().span_id)
        for chunk in ANTHROPIC:
            await asyncio.sleep(0)
            yield chunk
        seen.append(trace.get_current_span().get_span_context().span_id)

    async def main() -> None:
        events = rd.from_async_iterable(request).pipe(rd.decode("anthropic-messages"), backend.tap())
        await rd.last_value(events)
        seen.append(trace.get_current_span().get_span_context().is_valid)

    run_loop(main)
    (span,) = backend.spans
    assert seen == [span.context.span_id, span.context.span_id, False]


def test_it_belongs_to_the_span_of_its_subscriber() -> None:
    backend = Backend()
    with backend.tracers.get_tracer("app").start_as_current_span("outer") as outer:
        rx.of(EVENTS["s"]).pipe(backend.tap("openai", None)).subscribe()
    inner, _ = backend.spans
    assert (inner.name, inner.parent.span_id) == ("chat", outer.get_span_context().span_id)
    assert "gen_ai.request.model" not in inner.attributes


def test_two_subscriptions_are_two_spans_and_a_retried_reply_is_one() -> None:
    backend = Backend()
    tapped = rx.of(EVENTS["s"]).pipe(backend.tap())
    tapped.subscribe()
    tapped.subscribe()
    assert len(backend.spans) == 2
    requests = iter(
        [rx.concat(rx.of(EVENTS["s"], EVENTS["u"]), rx.throw(ConnectionError())), rx.of(*EVENTS.values())]
    )
    again = rd.retry_stream(lambda: next(requests), backoff=lambda failures, error: 0)
    again.pipe(backend.tap()).subscribe()
    assert len(backend.spans) == 3
    assert backend.spans[-1].attributes["gen_ai.usage.output_tokens"] == 24


def test_a_reader_that_leaves_and_an_observer_that_raises() -> None:
    backend, source = Backend(), Subject[rd.Event]()
    subscription = SerialDisposable()
    subscription.disposable = source.pipe(backend.tap()).subscribe(lambda _: subscription.dispose())
    source.on_next(EVENTS["s"])
    assert backend.spans[0].attributes["rxdelta.outcome"] == "disposed"

    def draw(_: object) -> None:
        raise BOOM

    source.pipe(backend.tap()).subscribe(draw)
    with pytest.raises(ValueError, match="boom"):
        source.on_next(EVENTS["s"])
    assert backend.spans[1].attributes["error.type"] == "ValueError"
    assert source.observers == []

    async def main() -> None:
        stream = Stream(*ANTHROPIC, hold=True)
        events = rd.from_async_iterable(stream).pipe(rd.decode("anthropic-messages"), backend.tap())
        assert isinstance(await rd.first_value(events), ev.MessageStart)
        await turns()
        assert stream.closed == 1

    run_loop(main)
    assert backend.spans[2].attributes["rxdelta.outcome"] == "disposed"


def test_what_opentelemetry_raises_never_ends_the_stream(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.sdk.trace import Span

    def fails(*_: Any, **__: Any) -> None:
        raise BOOM

    backend, got = Backend(), list[Any]()
    monkeypatch.setattr(Span, "set_attribute", fails)
    monkeypatch.setattr(Span, "set_attributes", fails)
    with caplog.at_level(logging.ERROR, "rxdelta"):
        rx.of(*EVENTS.values()).pipe(backend.tap()).subscribe(got.append, got.append, lambda: got.append("|"))
    assert got == [*EVENTS.values(), "|"]
    assert {record.exc_info and record.exc_info[1] for record in caplog.records} == {BOOM}


def test_without_an_sdk_it_is_nothing_and_without_the_api_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    rx.of(*EVENTS.values()).pipe(rd.tap_otel("openai")).subscribe(got.append)
    assert got == [*EVENTS.values()]
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"rxdelta\[otel\]"):
        rd.tap_otel("openai")


@pytest.mark.slow
@given(
    marks=st.lists(st.sampled_from("sbtuf-"), max_size=20),
    end=st.sampled_from("|#-"),
    until=st.integers(1, 30),
)
def test_exactly_one_span_and_the_stream_as_it_was(marks: list[str], end: str, until: int) -> None:
    line = "-" + "".join(marks) + end
    backend, records = told(line, until=until)
    assert records == [
        record for record in marbles.parse(line, values=EVENTS, frame=1, error=BOOM) if record[0] < until
    ]
    assert len(backend.spans) == 1
    (duration,) = backend.points("gen_ai.client.operation.duration")
    assert duration.count == 1
