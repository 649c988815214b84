"""The UI message stream: its start and its steps, and what all runs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import LimitExceededError
from rxdelta.formats.ai_sdk.data import DataPart
from rxdelta.formats.ai_sdk.marks import MODEL
from rxdelta.formats.ai_sdk.usage import usage_figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rxdelta.core import Limits, TokenUsage
    from rxdelta.core.events import Custom, MessageFinish, MessageStart
    from rxdelta.formats.ai_sdk.calls import CallPart
    from rxdelta.formats.ai_sdk.parts import Out, Part
    from rxdelta.formats.ai_sdk.run_parts import RunParts

__all__ = ["Shown", "Step", "Stream"]


class Shown(NamedTuple):
    """What the client gets.

    Attributes:
        reasoning: Whether reasoning, and signatures.
        provider_items: Whether the provider's items that no part fits.
        found_sources: Whether sources that no text cites.
    """

    reasoning: bool
    provider_items: bool
    found_sources: bool


class Stream:
    """What the runs of one stream share.

    The client is in one step at a time. A message that begins while another one is open joins its step, which ends with
    the last of them: the client would lose the open parts of a step that ends.

    Args:
        sdk_version: The client's major version.
        start: The frame that starts the stream; a message's model is added to its metadata.
        limits: Bounds the number of parts that are kept for a reset.
        shown: What the client gets.

    Attributes:
        started: Whether the client has the start of the stream.
        since_6: Whether the client knows the titles of calls, metadata of their starts and outputs, requests for approval,
            and why it is aborted.
        has_citations: Whether it knows the citations of a text.
        has_custom: Whether it knows `custom` parts.
        has_answers: Whether it knows the answer to a request for approval.
        used_call_ids: The ids of the calls that the client has.
        used_ids: The ids of the parts that the client has of an earlier stream: it would put another one in their place.
    """

    def __init__(self, sdk_version: int, start: Mapping[str, Any], limits: Limits, shown: Shown) -> None:
        self.started = False
        self.shown = shown
        self.since_6 = sdk_version >= 6
        self.has_citations = self.has_custom = self.has_answers = self._can_reset = sdk_version >= 7
        self.used_call_ids: set[str] = set()
        self.used_ids: set[str] = set()
        self._start = start
        self._limits = limits
        self._owes_model = False  # the stream has started before its first message
        self._data: dict[tuple[str, str], DataPart] = {}  # of the step, by name and id
        self._count = 0
        self._steps: list[Step] = []  # the messages in the step that the client is in, or was in last
        self._names: set[str] = set()

    def new_id(self) -> str:
        self._count += 1
        while str(self._count) in self.used_ids:
            self._count += 1
        return str(self._count)

    def run_name(self, run_id: str | None) -> str:
        """A name for a run that no other run has."""
        wanted = found = run_id or "run"
        while found in self._names:
            found = f"{wanted}-{self.new_id()}"
        self._names.add(found)
        return found

    def start(self, out: Out, model: str | None = None) -> None:
        """Start the stream, unless it has started."""
        if self.started:
            if model and self._owes_model:
                self._owes_model = False
                out.append({"type": "message-metadata", "messageMetadata": {MODEL: model}})
            return
        self.started = True
        frame = dict(self._start)
        if model:
            frame["messageMetadata"] = {**frame.get("messageMetadata", {}), MODEL: model}
        out.append(frame)

    def start_early(self, out: Out) -> None:
        """Start the stream before its first message, whose model is sent when it begins."""
        if not self.started:
            self.start(out)
            self._owes_model = True

    def enter(self, out: Out, step: Step) -> None:
        """A message begins: the client is in its step from now on."""
        if not any(one.open for one in self._steps):
            self._steps, self._data = [], {}
            out.append({"type": "start-step"})
        step.open = True
        self._steps.append(step)

    def leave(self, out: Out, step: Step) -> None:
        """The message has ended, and so does the step, unless another message is open in it."""
        step.open = False
        if not any(one.open for one in self._steps):
            out.append({"type": "finish-step"})

    def say(self, out: Out, event: Custom, marks: Mapping[str, Any]) -> None:
        """Send data of the application, wherever the client is.

        Those of the step that the client is in, or was in last, are kept: `reset-step` would take them back.

        Args:
            out: Where to append the frame.
            event: The data.
            marks: What says whose they are, for clients that know more fields than the protocol has.

        Raises:
            LimitExceededError: There are too many.
        """
        self.start_early(out)
        known = None if event.id is None or event.transient else self._data.get((event.name, event.id))
        part = known or DataPart(marks if self.has_custom else {})
        part.send(out, event)
        if known is not None or event.transient or not self._can_reset or not self._steps:
            return
        parts = self._steps[-1].parts
        if len(parts) >= self._limits.blocks:
            raise LimitExceededError.of("blocks", self._limits.blocks, "the number of parts in one step")
        parts[part] = None
        if event.id is not None:
            self._data[event.name, event.id] = part

    def resets(self, step: Step) -> bool:
        """Whether `reset-step` would take back this message, and nothing else."""
        return self._can_reset and self._steps == [step]

    def replace(self, step: Step, other: Step) -> None:
        """Another message has the place of this one in the client's step."""
        self._steps = [other if one is step else one for one in self._steps]


class Step:
    """One message of a run.

    Args:
        run: The run.
        open: Whether the client is in the message's step.

    Attributes:
        parts: What the client has of the message, in the order in which the parts began.
        count: How many of them the client can see.
        sources: The keys of the sources that were sent with it.
        pending: The calls of the provider's tools, also of earlier messages, that may have no output yet.
        note: The id of the message's `data-run`; `None` if the client has none.
        status: How the message ended; `None` until then.
        reason: Why it ended.
    """

    def __init__(self, run: RunParts, *, open: bool = False) -> None:
        self.run = run
        self.open = open
        self.parts: dict[Part, None] = {}
        self.count = 0
        self.sources: list[str] = []
        self.pending: list[CallPart] = []
        self.note: str | None = None
        self.id: str | None = None
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.status: str | None = None
        self.reason: str | None = None

    @property
    def figures(self) -> dict[str, int]:
        """The counts of the usage. They are looked at when the message ends; some providers send usage with each chunk."""
        return {} if self.usage is None else usage_figures(self.usage)

    def start(self, event: MessageStart) -> None:
        """Read the message's start, which may come in several events."""
        self.id = self.id or event.id
        self.model = self.model or event.model
        if event.usage is not None and not self.figures:
            self.usage = event.usage

    def conclude(self, out: Out, *, is_last: bool) -> None:
        """Tell the client which of the provider's tools have run without an output, see `CallPart.conclude`."""
        if self.pending:
            self.pending = [call for call in self.pending if not call.conclude(out, is_last=is_last)]

    def finish(self, event: MessageFinish) -> None:
        self.model = self.model or event.model
        if event.usage is not None:
            self.usage = event.usage
