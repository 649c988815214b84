"""All readers of what comes from outside, each with what its fuzzing begins with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import attrs
from fuzz import bodies, laws, mutation, replies, seeds, values
from support.front_end_bodies import ENCODERS

import rxdelta as rd
from rxdelta.providers import NdjsonParser, SseParser

__all__ = ["TARGETS", "Target"]


@attrs.frozen
class Target:
    """A reader.

    Attributes:
        name: Its name, for the command line.
        read: Reads an input and checks the laws of this reader. What it raises is a find.
        seeds: The inputs to begin with.
        code: Folders and files of the package in which the words stand that this reader knows.
        is_json: Whether an input is lines of JSON, else it is text or bytes.
        costs: Reads an input without more work than the package has with it, if `read` has more. Returns how much was told.
    """

    name: str
    read: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    code: tuple[str, ...] = ()
    is_json: bool = True
    costs: Callable[[bytes], int] | None = None

    def holds(self, data: bytes) -> None:
        """Read an input, within the time that it may take and without an error on a thread."""
        with laws.none_on_a_thread():
            laws.in_proportion(self.read, data)

    def holds_for(self, *given: Any) -> None:
        """The same for these documents, or for one text in bytes."""
        self.holds(mutation.lines(given) if self.is_json else b"".join(given))

    def holds_in_bulk(self, data: bytes, seed: int) -> None:
        """Its memory and the growth of its time, with one thing in the input many times."""
        grown = partial(mutation.grown, data, seed=seed)
        read = self.costs or self.read
        with laws.none_on_a_thread():
            laws.nothing_dear(self.read, data)
            laws.does_not_grow(read, lambda count: grown(count=count))

    def corpus(self) -> list[bytes]:
        """The seeds, in silence: some replies break off."""
        logging.disable()
        try:
            return [*self.seeds()]
        finally:
            logging.disable(logging.NOTSET)

    def mutator(self, changed: mutation.Bytes | None = None) -> mutation.Mutator:
        words = mutation.words_of(*self.code)
        return mutation.Mutator(words, self.corpus(), changed=changed, is_json=self.is_json)

    def program(self, data: bytes) -> str:
        """A program of a few lines that shows what is wrong with an input."""
        given: Iterable[Any] = mutation.values(data) if self.is_json else [data]
        arguments = (
            "".join(f"    {one!r},\n" for one in given)
            .replace(" inf", ' float("inf")')
            .replace(" nan", ' float("nan")')
        )
        return f"from fuzz.targets import TARGETS  # PYTHONPATH=.:tests\n\nTARGETS[{self.name!r}].holds_for(\n{arguments})\n"


def _decoder(wire_format: str) -> Target:
    code = (f"formats/{wire_format.replace('-', '_')}", "formats/decoding.py")
    seeds_of = partial(seeds.chunks, wire_format)
    return Target(wire_format, replies.decodes(wire_format), seeds_of, code, costs=replies.costs(wire_format))


def _body(name: str, read: Callable[..., Any], *others: Callable[[Any], Any], code: str) -> Target:
    documents = seeds.BODIES[code]
    folders = (
        f"formats/{code.replace('-', '_')}",
        "formats/admission.py",
        "formats/conversation.py",
        "core/content_part.py",
    )
    return Target(
        f"{name}-body",
        bodies.body(read, *others),
        lambda: [mutation.lines([one]) for one in documents],
        folders,
        costs=bodies.costs(read, *others),
    )


_ask = rd.requests
_ON_THE_WIRE = (
    "core/event_classes.py",
    "core/event_reading.py",
    "core/blocks.py",
    "core/values.py",
    "core/literals.py",
)
_STORED = (
    *_ON_THE_WIRE,
    "core/message.py",
    "core/values.py",
    "core/tool_call.py",
    "core/content_part.py",
)

_ALL = [
    *map(_decoder, rd.providers.FORMATS),
    Target("auto", replies.auto, seeds.auto, ("providers", "formats/gateways.py"), is_json=False),
    Target(
        "sse-to-reply",
        replies.bytes_to_reply(rd.parse_sse, SseParser),
        partial(seeds.as_bytes, "sse", named=True),
        ("framing",),
        is_json=False,
    ),
    Target(
        "ndjson-to-reply",
        replies.bytes_to_reply(rd.parse_ndjson, NdjsonParser),
        partial(seeds.as_bytes, "ndjson", named=True),
        ("framing",),
        is_json=False,
    ),
    Target("sse", replies.sse, partial(seeds.as_bytes, "sse"), ("framing",), is_json=False),
    Target("ndjson", replies.ndjson, partial(seeds.as_bytes, "ndjson"), ("framing",), is_json=False),
    Target(
        "partial-json",
        replies.partial_json,
        seeds.json_texts,
        ("core/partial_json_parser.py",),
        is_json=False,
    ),
    Target("events", values.events, seeds.stored_events, _ON_THE_WIRE),
    Target("encoders", replies.encodes(ENCODERS), seeds.stored_events, _ON_THE_WIRE),
    Target("replies", values.replies, seeds.replies, _STORED, costs=values.cost_of_replies),
    Target("parts", values.parts, seeds.parts, _STORED),
    Target(
        "recording",
        values.recording,
        seeds.recordings,
        ("recording", "providers/auto.py", "core/errors.py"),
    ),
    Target("recording-bytes", values.recording, seeds.recordings, ("recording",), is_json=False),
    _body("ai-sdk", rd.from_ai_sdk, _ask.approvals_from_ai_sdk, code="ai-sdk"),
    _body("ag-ui", rd.from_ag_ui, _ask.approvals_from_ag_ui, code="ag-ui"),
    _body("openai-chat", _ask.from_openai_chat, _ask.tools_from_openai_chat, code="openai-chat"),
    _body(
        "openai-responses",
        _ask.from_openai_responses,
        _ask.tools_from_openai_responses,
        _ask.custom_tools_from_openai_responses,
        code="openai-responses",
    ),
    _body(
        "anthropic-messages",
        _ask.from_anthropic_messages,
        _ask.tools_from_anthropic_messages,
        code="anthropic-messages",
    ),
    _body("ollama", _ask.from_ollama, code="ollama"),
    Target(
        "relay-records",
        values.records,
        seeds.stored_in_relay,
        (*_ON_THE_WIRE, "core/errors.py", "relay/replay.py"),
    ),
    Target("relay-bytes", values.relay_values, seeds.relay_bytes, _ON_THE_WIRE, is_json=False),
    Target("relay-ids", values.relay_ids, seeds.header_texts, ("relay/scope.py",), is_json=False),
    Target("marbles", values.line_of_marbles, seeds.marble_lines, ("testing/marbles",), is_json=False),
    Target(
        "store-url",
        values.store_url,
        seeds.urls,
        ("relay/valkey/urls.py", "relay/places.py", "relay/postgres.py"),
        is_json=False,
    ),
]
TARGETS = {target.name: target for target in _ALL}
