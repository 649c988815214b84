"""What the package promises by name."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from pkgutil import iter_modules
from types import ModuleType
from typing import get_origin

import pytest
from support.api import DOORS

import rxdelta as rd

FIXED = {
    "": "Snapshot MessageDelta Message ContentPart ToolCall ToolResult TokenUsage Citation Approval ToolDefinition ToolProgress Limits "
    "merge_delta merge_deltas apply_event to_events Fold Event ReaderMeter "
    "decode validate scan_deltas to_message throttle_latest debounce_latest conflate compact_deltas smooth parse_sse parse_ndjson "
    "redact map_text cut_text sentences until_sequence guard "
    "share_latest share_events stall_timeout until_stopped retry_stream exponential_backoff fallback race on_settled tap_metrics tap_otel record from_recording "
    "run_tools until_all_tools_terminal text_deltas stable_blocks partial_json partial_arguments json_items completed_tool_calls "
    "group_by_block per_block group_by_choice group_by_message group_by_run with_custom with_run only_choice with_limits "
    "to_ai_sdk to_ag_ui to_langchain_events to_openai_chat to_openai_responses to_anthropic_messages to_ollama "
    "to_sse to_resumable_sse to_ndjson "
    "stream from_async_iterable from_iterable for_each to_async_iterable to_iterable iterate first_value last_value "
    "to_request from_ai_sdk from_ag_ui "
    "RxDeltaError IncompleteMessageError ProviderError StreamInterrupted InvalidValueError ProtocolError ToolError GuardError RecordedError "
    "building core errors events providers requests types wire",
    "errors": "RxDeltaError InvalidValueError MalformedChunkError ProtocolError MergeError ProviderError AccessDeniedError "
    "IncompleteMessageError InvalidToolCallError StreamInterrupted StallTimeoutError EmptyStreamError "
    "BufferOverflowError LimitExceededError UnknownWireFormatError ToolError GuardError is_transient",
    "building": "lift lift_map lift_machine Sink State Machine Mapper Serial",
    "types": "Reply BlockingReply BlockStream ChoiceStream MessageStream RunStream PartialValue StableMarkdown StreamOutcome "
    "StreamMetrics ReaderMetrics CompleteToolCall InvalidToolCall",
    "core": "thaw PartialJsonParser",
    "requests": "from_openai_chat approvals_from_ai_sdk approvals_from_ag_ui REQUEST_FORMATS",
}
"""The names that other programs know, by their homes."""
EVENTS = (
    "MessageStart BlockStart TextDelta ReasoningDelta DataDelta ToolCallDelta BlockDelta BlockFinish UsageUpdate "
    "MessageFinish StreamError ProviderEvent ToolUpdate MessageInterrupted AttemptReset from_dict"
)


@pytest.mark.parametrize(("home", "name"), [(home, name) for home in FIXED for name in FIXED[home].split()])
def test_a_fixed_name_is_in_its_home(home: str, name: str) -> None:
    module = getattr(rd, home) if home else rd
    assert name in module.__all__
    assert hasattr(module, name)


def test_the_front_is_small() -> None:
    assert sorted(FIXED[""].split()) == sorted(rd.__all__), (
        "a new name is one more to choose among: has it another home?"
    )
    assert len(rd.__all__) <= 105


@pytest.mark.parametrize("name", EVENTS.split())
def test_an_event_is_public(name: str) -> None:
    assert hasattr(rd.events, name)


@pytest.mark.parametrize("door", DOORS[1:])
def test_a_door_is_also_a_module_to_import_from(door: str) -> None:
    module = import_module(f"rxdelta.{door}")
    assert attrgetter(door)(rd) is module


def test_each_event_is_one_class_wherever_it_is_imported_from() -> None:
    assert [getattr(rd.events, name) for name in rd.events.__all__] == [
        getattr(rd.core.events, name) for name in rd.core.events.__all__
    ]


@pytest.mark.parametrize(
    "door", [rd, rd.core, rd.errors, rd.events, rd.building, rd.types, rd.providers, rd.requests, rd.wire]
)
def test_a_door_lists_each_of_its_names_once(door: ModuleType) -> None:
    assert len(door.__all__) == len(set(door.__all__))
    assert all(hasattr(door, name) for name in door.__all__)


@pytest.mark.parametrize("package", [rd.providers, rd.requests, rd.wire])
def test_no_file_hides_a_name_once_all_files_are_imported(package: ModuleType) -> None:
    for file in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{file.name}")
    assert [name for name in package.__all__ if isinstance(getattr(package, name), ModuleType)] == []


@pytest.mark.parametrize("door", [rd, rd.events, rd.providers, rd.requests])
def test_a_door_shows_nothing_else(door: ModuleType) -> None:
    shown = {
        name for name in dir(door) if name.isidentifier() and not name.startswith("_")
    }  # pytest adds names of its own
    assert shown <= {*door.__all__}


def test_the_version_is_that_of_the_distribution() -> None:
    assert rd.__version__ == version("rxdelta")


@pytest.mark.parametrize("name", [name for name in rd.__all__ if callable(getattr(rd, name))])
def test_a_public_thing_says_what_it_does(name: str) -> None:
    is_alias = get_origin(getattr(rd, name)) is not None  # whose text is known to editors only
    assert is_alias or inspect.getdoc(getattr(rd, name))


@pytest.mark.parametrize("name", [name for name in rd.errors.__all__ if name != "is_transient"])
def test_errors_have_one_root(name: str) -> None:
    assert issubclass(getattr(rd.errors, name), rd.RxDeltaError)


@pytest.mark.parametrize("home", ["errors", "types"])
def test_what_stands_on_the_front_too_is_the_same_thing(home: str) -> None:
    module = getattr(rd, home)
    assert [
        name
        for name in module.__all__
        if getattr(rd, name, getattr(module, name)) is not getattr(module, name)
    ] == []
