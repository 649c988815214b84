"""The next worker goes on with a reply: one of several wins, answers of people reach it, and pages see the whole way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from relay.conftest import Opener
from relay.going_on import finish, reply
from support.loops import run
from support.runs import call, text, turn

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events
CALLS = ("c1", "c2", "c3")
REPLY = turn(text(0, "I look."), *(call(n, one, one) for n, one in enumerate(CALLS, 1)), reason="tool_use")


class Tools:
    """A tool that counts its calls, and waits until it may go on."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.go_on = asyncio.Event()

    async def look(self, at: str) -> str:
        self.ran[at] += 1
        await self.go_on.wait()
        return f"seen {at}"

    def run(self, **options: Any) -> Any:
        return rd.run_tools({"look": self.look}, **options)


def broken_off(*events: rd.Event) -> rx.Observable[rd.Event]:
    """A source that breaks off, as one of a worker that dies does for the readers of its log."""
    return rx.concat(rx.from_iterable(events), rx.throw(RuntimeError("dead")))


def statuses(snapshot: rd.Snapshot) -> dict[str | None, str | None]:
    return {call.call_id: call.execution_status() for call in snapshot.tool_calls}


STATES: dict[str, list[rd.Event]] = {
    "identified": [ev.ToolUpdate("c1", "identified")],
    "awaiting": [ev.ToolUpdate("c1", "identified"), ev.ToolUpdate("c1", "awaiting_approval")],
    "executing": [ev.ToolUpdate("c1", "identified"), ev.ToolUpdate("c1", "executing")],
    "completed": [ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "known"))],
    "failed": [ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "no", is_error=True))],
}


async def yes(_: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("state", "options", "ran", "ends"),
    [
        ("identified", {}, 1, "completed"),
        ("identified", {"start": "message"}, 1, "completed"),
        ("awaiting", {}, 0, "awaiting_approval"),
        ("awaiting", {"approve": yes}, 1, "completed"),
        ("awaiting", {"approve": {}}, 0, "awaiting_approval"),
        ("executing", {}, 0, "failed"),
        ("executing", {"approve": yes}, 0, "failed"),
        ("executing", {"rerun": {"other"}}, 0, "failed"),
        ("executing", {"rerun": {"look"}}, 1, "completed"),
        ("executing", {"rerun": {"look"}, "approve": yes}, 1, "completed"),
        ("completed", {"rerun": {"look"}}, 0, "completed"),
        ("failed", {"rerun": {"look"}}, 0, "failed"),
    ],
)
def test_what_the_next_worker_does_with_a_call(
    open_relay: Opener, state: str, options: dict[str, Any], ran: int, ends: str
) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()
        async with open_relay() as relay:
            one = turn(call(1, "c1", "c1"), reason="tool_use")
            await relay.start("reply.1", broken_off(*one, *STATES[state]))
            stream_id, ended = await finish(relay, "reply", tools.run(**options))
            assert (stream_id, tools.ran["c1"]) == ("reply.2", ran)
            assert statuses(ended) == {"c1": ends}
            if (state, ends) == ("executing", "failed"):
                result = ended.tool_calls[0].result
                assert result is not None
                assert "its outcome isn't known" in str(result.content)

    run(main)


@pytest.mark.parametrize(("start", "ran"), [("ready", 1), ("message", 0)])
def test_a_call_of_a_message_without_an_end_is_run_unless_the_next_worker_waits_for_messages(
    open_relay: Opener, start: Any, ran: int
) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()
        async with open_relay() as relay:
            await relay.start("reply.1", broken_off(*turn(call(1, "c1", "c1"), call(2, "c2", "c2"))[:-3]))
            _, ended = await finish(relay, "reply", tools.run(start=start))
            assert tools.ran["c1"] == ran
            assert tools.ran["c2"] == 0
            assert ended.tool_calls[-1].result is not None

    run(main)


def test_of_several_workers_one_goes_on_and_all_learn_the_same(open_relay: Opener) -> None:
    async def main() -> None:
        tools, won = Tools(), list[str]()
        tools.go_on.set()
        async with open_relay() as first, open_relay() as second:
            relays = [first, second] if first._store.__class__.__name__ != "Memory" else [first, first]
            await first.start("reply.1", broken_off(*REPLY))
            finishing = [
                finish(relay, "reply", tools.run(), won.append) for relay in relays for _ in range(3)
            ]
            ends = await asyncio.gather(*finishing)
            assert won == ["reply.2"]
            assert tools.ran == Counter(CALLS)
            assert [stream_id for stream_id, _ in ends] == ["reply.2"] * 6
            assert [statuses(ended) for _, ended in ends] == [dict.fromkeys(CALLS, "completed")] * 6

    run(main)


def test_a_reply_is_finished_whichever_workers_die_on_the_way(open_relay: Opener) -> None:
    async def main() -> None:
        first, second, third = Tools(), Tools(), Tools()
        third.go_on.set()
        async with open_relay() as relay:
            await relay.start("reply.1", broken_off(*REPLY[:-3]))
            with pytest.raises(rd.StreamInterrupted) as died:
                await rd.for_each(relay.watch("reply.1"), lambda _: None)
            left = died.value.snapshot
            assert left is not None
            events = rd.from_async_iterable(reply(left, second.run(max_concurrency=1), rx.empty))
            dies = rx.concat(events.pipe(ops.take_until(rx.timer(0.2))), rx.throw(RuntimeError("dead")))
            assert await relay.start("reply.2", dies)
            stream_id, ended = await finish(relay, "reply", third.run())
            assert stream_id == "reply.3"
            ran = first.ran + second.ran + third.ran
            assert ran == {"c1": 1, "c2": 1}
            assert statuses(ended) == {"c1": "failed", "c2": "completed", "c3": "failed"}

    run(main)


def test_a_reader_whose_server_is_away_does_not_go_on_with_the_reply() -> None:
    from relay.later import Later

    async def main() -> None:
        later = Later(asyncio.get_running_loop(), ("read",))
        relay, tools = Relay(later, 0.1, 10**6), Tools()
        source = rx.concat(rx.from_iterable(REPLY), rx.never())
        assert await Relay(later.memory, 0.1, 10**6).start("reply.1", source)
        finishing = asyncio.create_task(finish(relay, "reply", tools.run()))
        await asyncio.sleep(0.05)
        later.fail(rd.StreamInterrupted("the server can't be reached"))
        with pytest.raises(rd.StreamInterrupted, match="can't be reached"):
            await finishing
        assert await relay.streams() == ["reply.1"]
        await relay._close()

    run(main)


def test_a_worker_that_is_stopped_in_order_leaves_an_end_and_no_death(open_relay: Opener) -> None:
    async def main() -> None:
        tools = Tools()
        async with open_relay() as relay:
            source = rx.concat(rx.from_iterable(turn(call(1, "c1", "c1"), reason="tool_use")), rx.never())
            await relay.start("reply.1", source.pipe(tools.run()))
            while not tools.ran:
                await asyncio.sleep(0.01)
            assert await relay.cancel("reply.1", "deployed anew")
            stream_id, ended = await finish(relay, "reply", tools.run())
            assert (stream_id, tools.ran) == ("reply.1", {"c1": 1})
            assert statuses(ended) == {"c1": "executing"}

    run(main)


# A person decides.


async def answered(relay: Relay, call_id: str) -> bool:
    """What a person has said about a call, at any worker, however long that takes."""
    while True:
        try:
            answer = await rd.first_value(relay.watch(f"answer/{call_id}"))
        except rd.errors.EmptyStreamError:
            continue  # nobody has answered for a lease
        assert isinstance(answer, ev.Custom)
        return bool(answer.data)


async def say(relay: Relay, call_id: str, allowed: bool) -> bool:
    return await relay.start(f"answer/{call_id}", rx.of(ev.Custom("approval", allowed)))


def asks(relay: Relay) -> Any:
    return lambda call: answered(relay, call.call_id)


def test_an_answer_given_at_any_worker_reaches_the_call_that_waits_and_its_page_watches_on(
    open_relay: Opener,
) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()
        async with open_relay(lease=0.5) as relay:
            told: list[rd.Event] = []
            waits = asyncio.Event()

            def see(event: rd.Event) -> None:
                told.append(event)
                if isinstance(event, ev.ToolUpdate) and event.execution_status == "awaiting_approval":
                    waits.set()

            one = turn(call(1, "c1", "c1"), reason="tool_use")
            await relay.start("reply.1", rx.from_iterable(one).pipe(tools.run(approve=asks(relay))))
            watching = asyncio.create_task(rd.for_each(relay.watch("reply.1"), see))
            await waits.wait()
            await asyncio.sleep(1.2)  # longer than two leases: nobody is taken for dead, and the page stays
            assert (tools.ran, watching.done(), await relay.is_live("reply.1")) == ({}, False, True)
            assert await say(relay, "c1", True)
            assert not await say(relay, "c1", False)  # the first answer counts
            await watching
            updates = [e.execution_status for e in told if isinstance(e, ev.ToolUpdate)]
            assert updates == ["identified", "awaiting_approval", "executing", "completed"]
            assert tools.ran == {"c1": 1}

    run(main)


@pytest.mark.parametrize("allowed", [True, False])
def test_an_answer_given_while_no_worker_lives_counts_for_the_next_one(
    open_relay: Opener, allowed: bool
) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()
        async with open_relay(lease=0.5) as relay:
            one = rx.from_iterable(turn(call(1, "c1", "c1"), reason="tool_use"))
            waiting = one.pipe(tools.run(approve=asks(relay)), ops.take_until(rx.timer(0.2)))
            await relay.start("reply.1", rx.concat(waiting, rx.throw(RuntimeError("dead"))))
            with pytest.raises(rd.StreamInterrupted):
                await rd.for_each(relay.watch("reply.1"), lambda _: None)
            assert await say(relay, "c1", allowed)
            _, ended = await finish(relay, "reply", tools.run(approve=asks(relay)))
            assert tools.ran == ({"c1": 1} if allowed else {})
            assert statuses(ended) == {"c1": "completed" if allowed else "failed"}

    run(main)


def test_a_reply_that_ended_because_a_person_is_asked_goes_on_where_the_answer_comes(
    open_relay: Opener,
) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()
        async with open_relay() as relay:
            source = rx.from_iterable(turn(call(1, "c1", "c1"), reason="tool_use"))
            await relay.start("reply.1", source.pipe(tools.run(approve={})))
            waits = await rd.last_value(relay.watch("reply.1").pipe(rd.scan_deltas()))
            assert [call.call_id for call in waits.waiting_calls] == ["c1"]

            async def answer(answers: dict[str, bool]) -> bool:
                following = rx.from_iterable(rd.to_events(waits)).pipe(tools.run(approve=answers))
                return await relay.start("reply.2", following)

            assert sorted(await asyncio.gather(*(answer({"c1": True}) for _ in range(4)))) == [False] * 3 + [
                True
            ]
            ended = await rd.last_value(relay.watch("reply.2").pipe(rd.scan_deltas()))
            assert (tools.ran, statuses(ended)) == ({"c1": 1}, {"c1": "completed"})

    run(main)


# An agent of several turns.


def test_an_agent_of_several_turns_goes_on_with_its_newest_message(open_relay: Opener) -> None:
    async def main() -> None:
        tools = Tools()
        tools.go_on.set()

        async def agent(*turns: list[rd.Event]) -> AsyncIterator[rd.Event]:
            for events in turns:
                async with rd.to_async_iterable(rx.from_iterable(events).pipe(tools.run())) as told:
                    async for event in told:
                        yield event

        async with open_relay() as relay:
            first = turn(call(1, "c1", "c1"), id="m1", reason="tool_use")
            second = turn(call(1, "c2", "c2"), id="m2", reason="tool_use")
            events = rd.from_async_iterable(lambda: agent(first, second[:-1]))
            await relay.start("reply.1", rx.concat(events, rx.throw(RuntimeError("dead"))))
            stream_id, ended = await finish(relay, "reply", tools.run())
            assert (stream_id, ended.id) == ("reply.2", "m2")
            assert tools.ran == {"c1": 1, "c2": 1}
            messages = relay.watch("reply.1").pipe(
                rd.group_by_message(), ops.flat_map(lambda one: one.pipe(rd.scan_deltas(), rd.to_message()))
            )
            found: list[str | None] = []
            with pytest.raises(rd.StreamInterrupted):
                await rd.for_each(messages, lambda message: found.append(message.id))
            assert found == ["m1"]

    run(main)
