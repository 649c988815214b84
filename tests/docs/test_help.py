"""The messages that troubleshooting.md quotes are raised, and each of its headings with an error's name is tried here."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from reactivex import operators as ops

import rxdelta as rd
from rxdelta.testing import FakeProvider, sample_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

PAGE = Path(__file__).parents[2].joinpath("docs/help/troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### `(?:(\w+Error)`: (.+)|(\w+Error): (.+)`)$", PAGE, re.MULTILINE)
QUOTED = [(one or other, text or words) for one, text, other, words in HEADINGS]


def events() -> Any:
    return rd.from_async_iterable(lambda: sample_chunks("weather")).pipe(rd.decode("auto"))


async def read(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


async def no_await() -> object:
    return rd.stream(sample_chunks("tides")).text  # type: ignore[attr-defined]


async def content() -> object:
    return (await rd.stream(sample_chunks("tides"))).content  # type: ignore[attr-defined]


async def dumped() -> object:
    return json.dumps(await rd.stream(sample_chunks("tides")))


async def not_streamed() -> object:
    return await rd.stream({"object": "chat.completion", "choices": []})


async def read_twice() -> object:
    pipeline = rd.from_async_iterable(sample_chunks("tides")).pipe(rd.decode("auto"), rd.scan_deltas())
    await rd.last_value(pipeline)
    return await rd.last_value(pipeline)


async def events_throttled() -> object:
    return events().pipe(rd.throttle_latest(0.1))


async def events_sampled() -> object:
    return events().pipe(ops.sample(0.1), rd.scan_deltas())


async def tools_behind_the_fold() -> object:
    return await rd.last_value(events().pipe(rd.scan_deltas(), rd.run_tools({})))


async def plain_with() -> object:
    with rd.stream(sample_chunks("tides")) as reply:
        return reply


async def two_replies() -> object:
    async def both() -> AsyncIterator[Any]:
        for sample in ("weather", "forecast"):
            async for chunk in sample_chunks(sample):
                yield chunk

    return await rd.stream(both())


async def html() -> object:
    return await rd.stream(read(b"<html><body>502 Bad Gateway</body></html>"))


async def another_format() -> object:
    return await rd.stream(sample_chunks("weather"), "openai-chat")


async def no_format() -> object:
    return await rd.stream([{"foo": 1}])


async def too_long() -> object:
    return await rd.stream(sample_chunks("weather"), limits=rd.Limits(block_chars=10))


async def cut_off() -> object:
    return await rd.stream(FakeProvider(["High ", EOFError()]).stream("openai-chat"))


CASES: list[Callable[[], Awaitable[object]]] = [
    cut_off,
    no_await,
    content,
    dumped,
    not_streamed,
    read_twice,
    events_throttled,
    events_sampled,
    tools_behind_the_fold,
    plain_with,
    two_replies,
    html,
    another_format,
    no_format,
    too_long,
]


@pytest.mark.parametrize(
    ("case", "quoted"), [*zip(CASES, QUOTED, strict=True)], ids=[case.__name__ for case in CASES]
)
def test_a_quoted_message_is_raised(case: Callable[[], Awaitable[object]], quoted: tuple[str, str]) -> None:
    async def run() -> None:
        await case()

    with pytest.raises((rd.RxDeltaError, AttributeError, TypeError)) as caught:
        asyncio.run(run())
    name, text = quoted
    assert type(caught.value).__name__ == name
    assert text in str(caught.value)


def test_the_lines_of_the_log_are_written(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        await rd.stream(sample_chunks("weather"), tools={"x": print})
        await rd.stream(sample_chunks("weather"), tools={"get_forecast": lambda city: city})
        await rd.last_value(
            events().pipe(
                ops.filter(lambda event: not isinstance(event, rd.events.BlockStart)), rd.scan_deltas()
            )
        )

    asyncio.run(run())
    lines = re.findall(r"The log says \*(.+?)\*", " ".join(PAGE.split()))
    assert len(lines) == 3
    for line in lines:
        pattern = re.escape(line).replace("'x'", r"'\w+'").replace("the\\ reply\\ has", r"the\ reply.*\ has")
        assert re.search(pattern, caplog.text), line
