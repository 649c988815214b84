"""What the package promises by name."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import get_origin

import pytest
from support.api import DOORS

import rxdelta as rd

FIXED = {
    "values": "Snapshot MessageDelta Message ContentPart ToolCall ToolResult TokenUsage Citation",
    "functions": "merge_delta merge_deltas apply_event to_events thaw",
    "operators": "decode validate scan_deltas to_message throttle_latest debounce_latest conflate compact_deltas smooth parse_sse parse_ndjson "
    "share_latest share_events stall_timeout until_stopped retry_stream on_settled tap_metrics tap_otel is_transient exponential_backoff",
    "asyncio": "from_async_iterable from_iterable for_each to_async_iterable to_iterable iterate first_value last_value",
    "errors": "RxDeltaError InvalidValueError MalformedChunkError ProtocolError MergeError ProviderError "
    "IncompleteMessageError InvalidToolCallError StreamInterrupted StallTimeoutError EmptyStreamError "
    "BufferOverflowError LimitExceededError UnknownWireFormatError ToolError",
}
EVENTS = (
    "MessageStart BlockStart TextDelta ReasoningDelta DataDelta ToolCallDelta BlockDelta BlockFinish UsageUpdate "
    "MessageFinish StreamError ProviderEvent ToolUpdate MessageInterrupted AttemptReset from_dict"
)


@pytest.mark.parametrize("name", " ".join(FIXED.values()).split())
def test_a_fixed_name_is_public(name: str) -> None:
    assert name in rd.__all__
    assert hasattr(rd, name)


@pytest.mark.parametrize("name", EVENTS.split())
def test_an_event_is_public(name: str) -> None:
    assert hasattr(rd.events, name)


@pytest.mark.parametrize("door", DOORS[1:])
def test_a_door_is_also_a_module_to_import_from(door: str) -> None:
    module = import_module(f"rxdelta.{door}")
    assert getattr(rd, door) is module


def test_each_event_is_one_class_wherever_it_is_imported_from() -> None:
    assert [getattr(rd.events, name) for name in rd.events.__all__] == [
        getattr(rd.core.events, name) for name in rd.core.events.__all__
    ]


@pytest.mark.parametrize("door", [rd, rd.core, rd.events, rd.operators, rd.providers, rd.requests, rd.wire])
def test_a_door_lists_each_of_its_names_once(door: ModuleType) -> None:
    assert len(door.__all__) == len(set(door.__all__))
    assert all(hasattr(door, name) for name in door.__all__)


@pytest.mark.parametrize("door", [rd, rd.events, rd.providers, rd.requests])
def test_a_door_shows_nothing_else(door: ModuleType) -> None:
    assert {name for name in dir(door) if not name.startswith("_")} <= {*door.__all__}


def test_each_operator_stands_in_the_same_place_in_both_lists() -> None:
    mine = [name for name in rd.__all__ if name in rd.operators.__all__]
    assert mine == [name for name in rd.operators.__all__ if name in mine]


def test_the_snapshot_keeps_its_name_of_old() -> None:
    assert rd.MessageDelta is rd.Snapshot


def test_the_version_is_that_of_the_distribution() -> None:
    assert rd.__version__ == version("rxdelta")


@pytest.mark.parametrize("name", [name for name in rd.__all__ if callable(getattr(rd, name))])
def test_a_public_thing_says_what_it_does(name: str) -> None:
    is_alias = get_origin(getattr(rd, name)) is not None  # whose text is known to editors only
    assert is_alias or inspect.getdoc(getattr(rd, name))


@pytest.mark.parametrize("name", FIXED["errors"].split())
def test_errors_have_one_root(name: str) -> None:
    assert issubclass(getattr(rd, name), rd.RxDeltaError)


@pytest.mark.parametrize("name", FIXED["operators"].split())
def test_an_operator_has_its_home(name: str) -> None:
    assert getattr(rd.operators, name) is getattr(rd, name)
