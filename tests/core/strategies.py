"""What Hypothesis draws from: JSON, text that comes in pieces, and events, legal or not."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

import attrs
from hypothesis import strategies as st

import rxdelta as rd

ev = rd.events

# Surrogates among them, as providers send them and as a cut leaves them.
text = st.text(
    st.sampled_from(["a", "b", " ", '"', "\\", "{", "é", "漢", "😀", "\ud83d", "\ude00"]), max_size=6
).map(lambda value: json.loads(json.dumps(value)))  # two halves side by side are one character to JSON
plain = st.text("abcdé😀 ", max_size=6)
word = st.text("abc", min_size=1, max_size=3)
maybe = st.none() | word


def json_of(strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | strings,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
        max_leaves=8,
    )


json_values, clean_json = json_of(text), json_of(plain)
json_objects = st.dictionaries(st.text("abc", max_size=2), json_values, max_size=3)
metadata = st.dictionaries(
    st.sampled_from(["a", "model", "model_name", "finish_reason", "interrupted"]), json_values, max_size=3
)
details = st.dictionaries(
    st.sampled_from(["a", "signature", "filename", "execution_status", "citations"]), json_values, max_size=2
)

usages = st.builds(
    rd.TokenUsage, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), json_objects, st.booleans()
)
decisions = st.fixed_dictionaries(
    {}, optional={"approved": st.just(True), "denied": st.just(True), "reason": maybe}
)
results = st.builds(
    rd.ToolResult,
    maybe,
    json_values,
    st.booleans(),
    st.none() | st.floats(0, 9) | st.integers(0, 9),
    metadata=json_objects | decisions,
)

ARGUMENTS = ["", "{}", '{"a": 1}', '{"a": "😀"}', '{"a":', "[1]", "x", '{"a": 1} tail']
indexes = st.integers(0, 3) | st.sampled_from(["a", "b"])
ids = st.sampled_from(["c1", "c2", "", "null", None])

part_contents = st.builds(
    lambda kind, own, said, more: {
        "type": kind,
        **({} if said is None else {own.get(kind, "data"): said}),
        **more,
    },
    st.sampled_from(
        ["text", "reasoning", "thinking", "refusal", "image", "audio", "file", "server_tool_result", "new"]
    ),
    st.just({"text": "text", "reasoning": "reasoning", "thinking": "thinking", "refusal": "refusal"}),
    st.none() | text,
    details,
)
call_contents = st.builds(
    lambda kind, call_id, name, args, more: {"type": kind, "id": call_id, "name": name, "args": args, **more},
    st.sampled_from(
        ["tool_call_chunk", "tool_call", "tool_use", "server_tool_call_chunk", "invalid_tool_call"]
    ),
    ids,
    st.sampled_from(["f", "g", "", None]),
    st.sampled_from(ARGUMENTS) | st.none() | json_objects,
    details,
)
outputs = st.fixed_dictionaries(
    {"type": st.just("server_tool_result"), "tool_call_id": ids},
    optional={"output": json_values, "status": st.sampled_from(["success", "error"])},
)
contents = part_contents | call_contents | outputs


own = st.sampled_from([None, 0])
"""The choice of an event that may concern any choice."""


def events(indexes: st.SearchStrategy[Any] = indexes) -> st.SearchStrategy[rd.Event]:
    """Any event of choice 0, the terminal ones less often than the growing ones."""
    update = st.builds(
        ev.ToolUpdate,
        st.sampled_from(["c1", "c2", "nobody"]),
        st.sampled_from([None, *get_args(rd.core.ExecutionStatus)]),
        st.sampled_from([None, "", "Reading", "Read"]),
        st.none() | results,
        choice=own,
    )
    growth = [
        st.builds(ev.BlockStart, indexes, contents),
        st.builds(ev.TextDelta, indexes, text),
        st.builds(ev.ReasoningDelta, indexes, text),
        st.builds(ev.DataDelta, indexes, plain),
        st.builds(ev.ToolCallDelta, indexes, st.sampled_from(ARGUMENTS)),
        st.builds(ev.BlockFinish, indexes, st.none() | contents),
        update,
    ]
    rest = st.one_of(
        st.builds(ev.MessageStart, maybe, maybe, st.none() | usages, metadata),
        st.builds(ev.BlockDelta, indexes, contents),
        st.builds(ev.UsageUpdate, usages),
        st.builds(
            ev.MessageFinish,
            st.sampled_from([None, *get_args(rd.core.FinishReason), "end_turn"]),
            maybe,
            st.none() | usages,
            metadata,
        ),
        st.builds(ev.ProviderEvent, word, word, json_objects),
        st.builds(ev.Custom, word.filter(bool), json_objects, maybe, st.booleans()),
        st.builds(ev.MessageInterrupted, maybe, choice=own),
        st.builds(ev.AttemptReset, st.integers(0, 3), maybe, st.none() | usages, choice=own),
    )
    return st.one_of(*growth, *growth, rest)


every_event = st.one_of(
    events(),
    st.builds(ev.TextDelta, indexes, text, choice=st.integers(0, 2)),
    st.builds(
        ev.StreamError, text, maybe, maybe, transient=st.none() | st.booleans(), choice=st.integers(0, 2)
    ),
)

event_of_any_run = st.builds(
    lambda event, run_id: attrs.evolve(event, run_id=run_id), every_event, st.sampled_from([None, "a", "b"])
)


def fold(*events: rd.Event | rd.Snapshot) -> rd.Snapshot:
    """The snapshot after these events."""
    folding = rd.Fold()
    for event in events:
        folding.step(event)
    return folding.snapshot


def fold_leniently(events: list[rd.Event]) -> list[rd.Snapshot]:
    """The snapshots of a list of events, of which those that are refused are left out."""
    folding = rd.Fold()
    snapshots = []
    for event in events:
        try:
            snapshots.append(folding.step(event))
        except rd.RxDeltaError:
            folding = rd.Fold(folding.snapshot)
    return snapshots


def pieces(value: str, cuts: list[int]) -> list[str]:
    """The text cut at these places."""
    places = sorted({min(cut, len(value)) for cut in cuts} | {0, len(value)})
    return [value[a:b] for a, b in pairwise(places)]
