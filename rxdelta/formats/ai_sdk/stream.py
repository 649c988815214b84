"""The UI message stream: its start and its steps, and what all runs and all parts of messages have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rxdelta.core import Block, BlockFold, Citation, LimitExceededError, Limits, TokenUsage, Walk, free_name
from rxdelta.formats.ai_sdk.marks import (
    AGAIN,
    CITED,
    CUSTOM_KIND,
    METADATA,
    MODEL,
    OPTIONS,
    WHOLE_BLOCK,
    marked,
)
from rxdelta.formats.ai_sdk.tables import usage_figures, write_data
from rxdelta.formats.front_ends import sources_in
from rxdelta.formats.notes import without_signatures
from rxdelta.formats.runs import RunIdentity

if TYPE_CHECKING:
    from rxdelta.core.events import Custom, MessageFinish, MessageStart
    from rxdelta.formats.ai_sdk.chunks import ProviderMetadata

SOURCE: Final = "source-"
"""The beginning of the id of a source."""


class Shown(NamedTuple):
    """The options that say what the client gets.

    Attributes:
        reasoning: Whether reasoning, and signatures.
        provider_items: Whether the provider's items that no part fits.
        found_sources: Whether sources that no text cites.
    """

    reasoning: bool
    provider_items: bool
    found_sources: bool


class Stream:
    """The state that all runs of one stream share: ids, the current step, options.

    The client is in one step at a time. A message that begins while another one is open joins its step, which ends with
    the last of them: the client would lose the open parts of a step that ends.

    Args:
        sdk_version: The client's major version.
        start: The frame that starts the stream; a message's model is added to its metadata.
        limits: Bounds the number of parts that are kept for a reset.
        shown: The options that say what the client gets.

    Attributes:
        out: The frames of the event that is being encoded. `chunks.py` has their types, which only readers need.
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
        self.out: list[Any] = []
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
        found = free_name(run_id or "run", self._names.__contains__, iter(self.new_id, None))
        self._names.add(found)
        return found

    def start(self, model: str | None = None) -> None:
        """Start the stream, unless it has started."""
        if self.started:
            if model and self._owes_model:
                self._owes_model = False
                self.out.append({"type": "message-metadata", "messageMetadata": {MODEL: model}})
            return
        self.started = True
        frame = dict(self._start)
        if model:
            frame["messageMetadata"] = {**frame.get("messageMetadata", {}), MODEL: model}
        self.out.append(frame)

    def start_early(self) -> None:
        """Start the stream before its first message, whose model is sent when it begins."""
        if not self.started:
            self.start()
            self._owes_model = True

    def enter(self, step: Step) -> None:
        """A message begins: the client is in its step from now on."""
        if not any(one.open for one in self._steps):
            self._steps, self._data = [], {}
            self.out.append({"type": "start-step"})
        step.open = True
        self._steps.append(step)

    def leave(self, step: Step) -> None:
        """The message has ended, and so does the step, unless another message is open in it."""
        step.open = False
        if not any(one.open for one in self._steps):
            self.out.append({"type": "finish-step"})

    def say(self, event: Custom, marks: Mapping[str, Any]) -> None:
        """Send data of the application, wherever the client is.

        Those of the step that the client is in, or was in last, are kept: `reset-step` would take them back.

        Args:
            event: The data.
            marks: The marks of their run, for clients that know more fields than the protocol has.

        Raises:
            LimitExceededError: There are too many.
        """
        self.start_early()
        known = None if event.id is None or event.transient else self._data.get((event.name, event.id))
        part = known or DataPart(self, marks if self.has_custom else {})
        part.send(event)
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
        parts: The parts of the message at the client, in the order in which they began.
        count: How many of them the client can see.
        sources: The keys of the sources that were sent with it.
        pending: The calls of the provider's tools, also of earlier messages, that may have no output yet.
        note: The id of the message's `data-run`; `None` if the client has none.
        status: How the message ended; `None` until then.
        reason: Why it ended.
    """

    def __init__(self, run: Run, *, open: bool = False) -> None:
        self.run = run
        self.open = open
        self.parts: dict[Part, None] = {}
        self.count = 0
        self.sources: list[str] = []
        self.pending: list[Pending] = []
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

    def conclude(self, *, is_last: bool) -> None:
        """Send which of the provider's tools have run without an output, see `CallPart.conclude`."""
        if self.pending:
            self.pending = [call for call in self.pending if not call.conclude(is_last=is_last)]

    def finish(self, event: MessageFinish) -> None:
        self.model = self.model or event.model
        if event.usage is not None:
            self.usage = event.usage


class Part:
    """A block and what the client has of it. This base class is a block that the client never sees.

    Args:
        step: The message that the part belongs to.
        fold: The block's content so far.

    Attributes:
        ended: Whether the client has the end of the part.
        place: How many parts of the message, and outputs of the provider's tools, the client has before it.
    """

    def __init__(self, step: Step, fold: BlockFold) -> None:
        self.step = step
        self.run = step.run
        self.stream = step.run.stream
        self.fold = fold
        self.ended = False
        self.place = step.count

    @property
    def must_stay(self) -> bool:
        """Whether the client keeps the part when its block continues in another one."""
        return False

    @property
    def is_acted_on(self) -> bool:
        """Whether the part can't be reset and sent again, as its tool would run, or a person be asked, again."""
        return False

    def begin(self) -> None:
        """Send the block so far."""

    def grow(self, _piece: str, /) -> None:
        """Send the piece of a delta that continues the block, which needn't have it yet."""

    def follow(self, _before: Block, _fields: Mapping[str, Any], /) -> bool:
        """Send what follows from a change of the block.

        Args:
            before: The block as it was.
            fields: The fields that were replaced.

        Returns:
            `False` if the client has text that is not the block's any more.
        """
        return True

    def restart(self) -> None:
        """Send the block as another part, where the part that the client has can't be taken back."""

    def send_again(self) -> None:
        """Send the whole part again, after the client has dropped it."""
        if self.ended:
            self._close(None)

    def release_id(self) -> None:
        """The client has dropped the part, and another attempt begins."""

    def end(self, cut: str | None, /) -> None:
        """Nothing more of the block comes.

        Args:
            cut: Why the block was cut off; `None` if it has ended.
        """
        if not self.ended:
            self.ended = True
            self.fold.finish(cut=cut)
            self._close(cut)

    def _close(self, _cut: str | None, /) -> None: ...

    def take_back(self) -> None:
        """Another end has overruled that of a call."""

    def abandon(self) -> None:
        """End this part; the block continues in another one."""
        if not self.ended:
            self.ended = True
            self._drop()

    def _drop(self) -> None: ...


class DataPart(Part):
    """Data of the application in the client's step. They are no block, and no reset takes them back.

    Args:
        stream: The stream.
        marks: The marks of the run that the data belong to.
    """

    def __init__(self, stream: Stream, marks: Mapping[str, Any]) -> None:
        self.stream = stream
        self._marks = marks
        self.ended = True

    def send(self, event: Custom) -> None:
        """Send the data, or newer ones in their place."""
        self._frame = write_data(event)
        self.stream.out.append({**self._frame, **marked(self._marks)})

    def send_again(self) -> None:
        self.stream.out.append({**self._frame, **marked({**self._marks, AGAIN: True})})


class Sources:
    """The sources of a run that the client has.

    Args:
        new_id: Makes the id of a source.
        wants_found: Whether sources are sent that no text cites.
    """

    def __init__(self, new_id: Callable[[], str], *, wants_found: bool) -> None:
        self._new_id = new_id
        self._wants_found = wants_found
        self._ids: dict[str, str] = {}  # by address or title

    def send(self, step: Step, citation: Citation) -> dict[str, Any] | None:
        """Send the source of a citation, unless the client has it.

        Returns:
            The source as a text's citation repeats it; `None` if the citation names none.
        """
        if not citation.url and not citation.title:
            return None
        key = f"url {citation.url}" if citation.url else f"title {citation.title}"
        known = self._ids.get(key)
        source_id = known or f"{SOURCE}{self._new_id()}"
        where: dict[str, Any] = {"url": citation.url} if citation.url else {"mediaType": "text/plain"}
        if citation.title:
            where["title"] = citation.title
        kind = "url" if citation.url else "document"
        if known is None:
            self._ids[key] = source_id
            step.sources.append(key)
            step.run.stream.out.append(
                {"type": f"source-{kind}", "sourceId": source_id, **where, **step.run.marked({CITED: True})}
            )
        return {"type": "source", "sourceType": kind, "id": source_id, **where}

    def send_found(self, step: Step, found: Any) -> None:
        """Send the sources in what a provider's tool was asked for or has found, if they are wanted."""
        if self._wants_found:
            for source in sources_in(found):
                self.send(step, source)

    def cite(self, step: Step, citation: Citation) -> dict[str, Any] | None:
        """Send the source of a citation if needed, and return the citation for the end of its text.

        Returns:
            The citation; `None` if it names no source.
        """
        source = self.send(step, citation)
        if source is None:
            return None
        fields = {
            "startIndex": citation.start_index,
            "endIndex": citation.end_index,
            "citedText": citation.cited_text,
        }
        return {"source": source, **{name: value for name, value in fields.items() if value is not None}}

    def forget(self, step: Step) -> None:
        """The client has dropped the sources of a step."""
        for key in step.sources:
            self._ids.pop(key, None)
        step.sources.clear()


class Run:
    """One run of the stream: the state that parts of its messages share.

    Args:
        stream: The stream that the run belongs to.
        walk: Follows the run's messages.
        first: The first run of the stream, whose parts have no marks; `None` if this is the first.

    Attributes:
        identity: Which run of the stream it is.
        marks: The marks of each part of the run.
        sources: The sources that the client has.
    """

    def __init__(self, stream: Stream, walk: Walk, first: Run | None) -> None:
        self.stream = stream
        self.walk = walk
        self.identity: RunIdentity = RunIdentity(None if first is None else first.identity)
        self.marks: dict[str, Any] = {}
        self.sources = Sources(stream.new_id, wants_found=stream.shown.found_sources)

    def marked(self, marks: Mapping[str, Any]) -> dict[str, ProviderMetadata]:
        """The field of a chunk that holds these marks and the run's."""
        return marked({**self._shown(marks), **self.marks})

    def whole_block(self, marks: dict[str, Any]) -> dict[str, Any]:
        """The frame of a block that no chunk of the protocol fits."""
        if self.stream.has_custom:
            return {"type": "custom", "kind": CUSTOM_KIND, **self.marked(marks)}
        return {"type": WHOLE_BLOCK, "id": self.stream.new_id(), "data": {**self._shown(marks), **self.marks}}

    def _shown(self, marks: Mapping[str, Any]) -> Mapping[str, Any]:
        """The marks without signatures, if reasoning stays on the server."""
        if self.stream.shown.reasoning:
            return marks
        signed = (OPTIONS, METADATA)
        return {
            name: rest
            for name, found in marks.items()
            if (rest := without_signatures(found) if name in signed else found)
        }


class Pending(Protocol):
    """A call whose tool the provider runs, and that may have no output yet."""

    @property
    def step(self) -> Step:
        """The message that the call belongs to."""
        ...

    def conclude(self, *, is_last: bool) -> bool:
        """Send that the provider has run the tool, where no output says so; `False` if one may still come."""
        ...
