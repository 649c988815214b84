"""The judge: what must hold of a world that was played.

It knows what the provider was made to say, and counts by itself what the tools did; it doesn't fold events.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import reduce
from typing import Any

import attrs

import rxdelta as rd
from simulation.lane import END, Lane
from simulation.pipeline import Played
from simulation.provider import USAGE, SourceError, arguments_of, heard, recording
from simulation.readers import FRONTS, OF_EVENTS, Log, ReaderError
from simulation.stages import STAGES, Stage
from simulation.tools import outcome
from simulation.world import Thought, World

LAWS = {
    "one end": "Each subscription ends at most once, and gets nothing behind its end or its dispose.",
    "text": "A complete reply has the text that was said, any other a beginning of it.",
    "calls": "A complete reply has the calls that were made, any other some of them, unchanged.",
    "usage": "A complete reply has the provider's usage.",
    "whole": "A stream without a fault ends without an error, and its reply is complete.",
    "shown": "What was shown is a beginning of what is final, within an attempt.",
    "outcome": "A call has one outcome, the one that its tool must have, and no news behind it.",
    "once": "A call's tool is called at most once.",
    "last": "The last value of the source is the last one that a reader gets, also with an error.",
    "own errors": "A reader gets no exception but those of rxdelta, its own, and those that nobody may swallow.",
    "ends": "A reader that waits for nothing comes to its end.",
    "settled": "`on_settled` is told once how its subscription ended.",
    "nothing left": "No task, timer, thread, request or tool is left, and nothing was reported to the loop.",
    "stored": "A snapshot comes back from its stored form as it was.",
    "same": "The same world gives the same run.",
}


SILENT = ("calls", "per_block", "arguments")
"""Through these doors comes no snapshot."""
LEAVING = ("stream: left", "stream: stopped", "blocking: left")
"""These end the reply."""


@attrs.define
class Verdict:
    """What was judged."""

    judged: Counter[str] = attrs.field(factory=Counter)
    broken: list[tuple[str, str]] = attrs.field(factory=list)

    def law(self, name: str, holds: bool, *details: object) -> None:
        assert name in LAWS
        self.judged[name] += 1
        if not holds:
            self.broken.append((name, " ".join(str(each)[:300] for each in details)))


@attrs.frozen
class Truth:
    """What must be seen of a world.

    Attributes:
        said: The text that the provider says.
        stages: The operators on events, in their order.
        calls: The tool and the arguments of each call.
        is_whole: Nothing goes wrong or ends the reply early.
    """

    said: str
    stages: tuple[Stage, ...]
    calls: list[tuple[str, Any]]
    is_whole: bool

    @classmethod
    def of(cls, world: World) -> Truth:
        stages = tuple(STAGES[name] for name in (*world.before, *world.after))
        if world.recorded:  # it may end badly
            expected = recording(world.recorded)[1]
            calls = [(name, arguments) for _, name, arguments in expected["tool_calls"]]
            return cls(expected["text"], stages, calls, is_whole=False)
        said = "".join(part for part in world.says if isinstance(part, str))
        calls = [(call.tool, arguments_of(number)) for number, call in enumerate(world.calls)]
        only = world.attempts[0]
        is_sent = (
            len(world.attempts) == 1 and only.ends == "whole" and not only.faults and only.closes != "raises"
        )
        is_cut = any(stage.ends for stage in stages) or world.readers[0].door in LEAVING
        return cls(said, stages, calls, is_sent and not is_cut)

    def passed(self, text: str) -> str:
        """The text behind the operators."""
        return reduce(lambda text, stage: stage.text(text), self.stages, text)

    @property
    def text(self) -> str:
        """That of the whole reply."""
        return self.passed(self.said)

    def may_begin(self, text: str) -> bool:
        """Whether it is a beginning of what comes of some beginning of the reply."""
        ends = range(len(self.said), -1, -1)
        return any(self.passed(self.said[:end]).startswith(text) for end in ends)


def judge(world: World, played: Played, logs: list[Log]) -> Verdict:
    out, truth = Verdict(), Truth.of(world)
    for seen in (*(lane.events for lane in played.lanes), *played.shown):
        out.law("one end", len(seen.ends) <= 1 and not seen.is_told_late, seen.ends)
    for lane in played.lanes:
        _judge_tools(out, world, truth, lane)
        if lane.to_settle:
            out.law("settled", lane.settled == lane.to_settle, lane.settled, "of", lane.to_settle)
        out.law(
            "nothing left", lane.requests == lane.closed, lane.requests, "requests,", lane.closed, "closed"
        )
        out.law("nothing left", lane.at_work == 0, lane.at_work, "tools at work")
    for log in logs:
        out.law("one end", not log.wrong, log.reader.door, log.wrong)
        out.law("ends", log.end != "hangs" or _may_wait(world), log.reader, "hangs")
        _judge_error(out, world, truth, log)
        _judge_values(out, world, truth, played, log)
    return out


def _may_wait(world: World) -> bool:
    tools = world.tools
    if tools is None or not world.calls:
        return False
    return any(outcome(call.tool, tools) is None for call in world.calls)


def _judge_error(out: Verdict, world: World, truth: Truth, log: Log) -> None:
    error = log.end
    if not isinstance(error, BaseException):
        return
    allowed: tuple[type[BaseException], ...] = (rd.RxDeltaError, SourceError)
    if log.reader.door == "raises":
        allowed = (*allowed, ReaderError)
    if log.reader.door in OF_EVENTS:
        allowed = (*allowed, OSError)  # no fold has made it one of rxdelta's
    out.law("own errors", isinstance(error, allowed), log.reader.door, repr(error))
    if truth.is_whole and not isinstance(error, ReaderError):
        may_be_left = world.share in ("events", "latest") and len(world.readers) > 1
        is_left = log.reader.door in FRONTS or "all readers had left" in str(error)
        out.law("whole", is_left and may_be_left, log.reader.door, repr(error))


def _judge_values(out: Verdict, world: World, truth: Truth, played: Played, log: Log) -> None:
    texts = [item for item in log.got if isinstance(item, str)]
    if log.reader.door in ("texts", "sentences", "stream: text_deltas", "blocking: text_deltas", "markdown"):
        if not world.is_garbled and not world.is_asked_again:
            text = "".join(texts[-1:] if log.reader.door == "markdown" else texts)
            whole = truth.is_whole and log.end == END
            out.law("text", text == truth.text if whole else truth.may_begin(text), log.reader, repr(text))
        return
    snapshots = [item for item in log.got if isinstance(item, (rd.Snapshot, rd.Message))]
    if not snapshots:
        if log.end == END and truth.is_whole and log.reader.door not in SILENT:
            out.law("last", False, log.reader.door, "got nothing")
        return
    final = snapshots[-1]
    if log.reader.door in FRONTS:
        _judge_front(out, world, truth, log, final)
        return
    _judge_final(out, world, truth, log, final)
    for shown in [] if world.is_garbled else snapshots[:-1]:  # a block's end may overrule what came garbled
        if isinstance(final, rd.Snapshot) and shown.attempt == final.attempt:
            out.law("shown", final.text.startswith(shown.text), repr(shown.text), repr(final.text))
    if log.reader.door not in OF_EVENTS and not log.reader.door.startswith(("stream", "blocking")):
        _judge_last(out, world, played, log, final)
    if isinstance(final, rd.Snapshot):
        stored = json.loads(json.dumps(final.to_dict(), allow_nan=False))
        out.law("stored", rd.Snapshot.from_dict(stored) == final, repr(final))


def _judge_front(out: Verdict, world: World, truth: Truth, log: Log, final: rd.Snapshot) -> None:
    """A reply that a front end reads in another wire format."""
    if world.is_garbled or world.is_asked_again or world.recorded:
        return
    if truth.is_whole and log.end == END:
        out.law("text", final.text == truth.text, log.reader, repr(final.text), repr(truth.text))
        calls = [(call.name, rd.core.thaw(call.arguments)) for call in final.tool_calls]
        wanted = truth.calls if world.tools is None else [call for call in truth.calls if call in calls]
        out.law("calls", calls == wanted, log.reader, calls)
    else:
        out.law("text", truth.may_begin(final.text), log.reader, repr(final.text), repr(truth.text))


def _judge_last(out: Verdict, world: World, played: Played, log: Log, final: Any) -> None:
    if log.end == END:
        newest = None if world.tail == "until_all_tools_terminal" else -1  # it may end before its source
        holds = any(final in seen.values[newest:] for seen in played.shown)
        out.law("last", holds, log.reader.door, repr(final))
    elif isinstance(log.end, rd.StreamInterrupted) and log.reader.door != "last":
        known = log.end.snapshot
        out.law("last", known is None or known == final, log.reader.door, repr(known), repr(final))


def _judge_final(out: Verdict, world: World, truth: Truth, log: Log, final: Any) -> None:
    """The last snapshot, or the message, of a reader that may have left."""
    is_complete = final.status == "complete"
    if truth.is_whole and log.end == END:
        out.law("whole", is_complete, log.reader.door, final.status)
    if world.is_garbled:
        _judge_heard(out, world, log, final)
        return
    early = any(STAGES[name].ends for name in (*world.before, *world.after))
    early = early or (
        bool(world.recorded) and log.end != END
    )  # some providers say in each chunk that it is the last
    if is_complete and not early:
        out.law("text", final.text == truth.text, log.reader.door, repr(final.text), repr(truth.text))
    elif not world.repeats:  # what may be a repetition is emitted at an end that comes too early
        out.law("text", truth.may_begin(final.text), log.reader.door, repr(final.text), repr(truth.text))
    calls = [
        (call.name, rd.core.thaw(call.arguments)) for call in final.tool_calls if call.status == "complete"
    ]
    if truth.is_whole and is_complete and log.end == END:
        thoughts = "".join(part.text for part in world.says if isinstance(part, Thought))
        out.law(
            "text",
            final.reasoning == truth.passed(thoughts),
            log.reader.door,
            "reasoning",
            repr(final.reasoning),
        )
    if is_complete and not early:
        out.law("calls", calls == truth.calls, log.reader.door, calls)
        if truth.is_whole:
            usage = final.usage and (final.usage.input_tokens, final.usage.output_tokens)
            out.law("usage", usage == USAGE, log.reader.door, usage)
    else:
        out.law("calls", all(call in truth.calls for call in calls), log.reader.door, calls)


def _judge_heard(out: Verdict, world: World, log: Log, final: Any) -> None:
    """Also of chunks that come twice, not at all or in another order, nothing but their text is shown."""
    texts = None if (*world.before, *world.after) else heard(world)
    if texts is None:
        return
    if final.status == "complete":
        out.law("text", final.text == texts[-1], log.reader.door, repr(final.text), repr(texts[-1]))
    else:
        may_begin = any(text.startswith(final.text) for text in texts)
        out.law("text", may_begin, log.reader.door, repr(final.text), repr(texts))


def _judge_tools(out: Verdict, world: World, truth: Truth, lane: Lane) -> None:
    tools = world.tools
    if tools is None:
        return
    messages = 1
    if world.is_garbled:  # a message that begins once more is another one, with calls of its own
        messages = sum(isinstance(event, rd.events.MessageStart) for event in lane.events.values)
    for number, runs in lane.ran.items():
        out.law("once", runs <= max(messages, 1), "call", number, "was run", runs, "times")
    if messages > 1:
        return
    outcomes: dict[str, str] = {}
    statuses: dict[str, str] = {}
    for event in lane.events.values:
        if isinstance(event, (rd.events.AttemptReset, rd.events.MessageStart)):
            outcomes, statuses = {}, {}
        if not isinstance(event, rd.events.ToolUpdate) or event.call_id is None:
            continue
        done = outcomes.get(event.call_id)
        # Two calls that wait get one id if that of the second comes last; when the stream breaks off, both fail.
        both_fail = world.is_garbled and done == event.execution_status == "failed"
        out.law("outcome", done is None or both_fail, event.call_id, "is", done, "and then", event)
        if event.execution_status:
            again = (
                event.execution_status == statuses.get(event.call_id) == "executing" and event.content is None
            )
            out.law("outcome", not again, event.call_id, "executes twice")
            statuses[event.call_id] = event.execution_status
        if event.execution_status in ("completed", "failed"):
            outcomes[event.call_id] = event.execution_status
    if lane.events.ends != [END] or any(STAGES[name].ends for name in world.after):
        return  # what ends a reply behind the tools stops them
    out.law("outcome", "executing" not in statuses.values(), statuses)
    if truth.is_whole:
        for number, call in enumerate(world.calls):
            must = outcome(call.tool, tools)
            got = statuses.get(f"c{number}", "")
            out.law("outcome", must is None or got == must, call, "is", got, "and must be", must)
