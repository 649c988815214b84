"""`to_request(…, tools=…)`: what a model may call, in each provider's form."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import attrs
import pytest

import rxdelta as rd

SCHEMA = {
    "type": "object",
    "properties": {"port": {"type": "string", "description": "Its name."}, "days": {"type": "integer"}},
    "required": ["port"],
}
TIDES = rd.ToolDefinition("tides", "The next high tides of a port.", SCHEMA)
NOW = rd.ToolDefinition("now")
NOTHING = {"type": "object", "properties": {}}
DESCRIBED = {"name": "tides", "description": "The next high tides of a port."}
FUNCTIONS = [
    {"type": "function", "function": {**DESCRIBED, "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "parameters": NOTHING}},
]


def tools_of(wire_format: str, tools: Any) -> Any:
    written = rd.to_request("Hi", wire_format, tools=tools)
    return written["toolConfig"]["tools"] if wire_format == "bedrock-converse" else written["tools"]


@pytest.mark.parametrize(
    ("wire_format", "written"),
    [
        ("anthropic-messages", [{**DESCRIBED, "input_schema": SCHEMA}, {"name": "now", "input_schema": NOTHING}]),
        ("bedrock-converse", [{"toolSpec": {**DESCRIBED, "inputSchema": {"json": SCHEMA}}},
                              {"toolSpec": {"name": "now", "inputSchema": {"json": NOTHING}}}]),
        ("gemini", [{"functionDeclarations": [{**DESCRIBED, "parametersJsonSchema": SCHEMA}, {"name": "now"}]}]),
        ("gemini-interactions", [{"type": "function", **DESCRIBED, "parameters": SCHEMA},
                                 {"type": "function", "name": "now", "parameters": NOTHING}]),
        ("openai-responses", [{"type": "function", **DESCRIBED, "parameters": SCHEMA, "strict": False},
                              {"type": "function", "name": "now", "parameters": NOTHING, "strict": False}]),
        *((name, FUNCTIONS) for name in ("cohere", "langchain", "mistral", "ollama", "openai-chat")),
    ],
)  # fmt: skip
def test_definitions_in_each_providers_form(wire_format: str, written: Any) -> None:
    assert tools_of(wire_format, [TIDES, NOW]) == written
    assert tools_of(wire_format, {"tides": TIDES, "now": NOW}) == written


def test_every_format_that_writes_requests_writes_tools() -> None:
    assert all(tools_of(wire_format, [NOW]) for wire_format in rd.requests.REQUEST_FORMATS)


def _anthropic() -> Any:
    from anthropic.types import ToolUnionParam

    return list[ToolUnionParam]


def _bedrock(tools: Any) -> None:
    loader = pytest.importorskip("botocore.loaders").Loader()
    model = pytest.importorskip("botocore.model").ServiceModel(
        loader.load_service_model("bedrock-runtime", "service-2")
    )
    shape = model.operation_model("ConverseStream").input_shape.members["toolConfig"]
    report = pytest.importorskip("botocore.validate").ParamValidator().validate({"tools": tools}, shape)
    assert not report.has_errors(), report.generate_report()


def _gemini() -> Any:
    from google.genai.types import Tool

    return list[Tool]


def _interactions() -> Any:
    from google.genai.interactions import ToolParam

    return list[ToolParam]


def _responses() -> Any:
    from openai.types.responses import ToolParam

    return list[ToolParam]


def _chat() -> Any:
    from openai.types.chat import ChatCompletionToolParam

    return list[ChatCompletionToolParam]


def _cohere() -> Any:
    from cohere import ToolV2

    return list[ToolV2]


def _mistral() -> Any:
    from mistralai.client.models import Tool

    return list[Tool]


def _ollama() -> Any:
    from ollama import Tool

    return list[Tool]


TYPES: dict[str, tuple[str, Callable[[], Any]]] = {
    "anthropic-messages": ("anthropic", _anthropic),
    "gemini": ("google.genai", _gemini),
    "gemini-interactions": ("google.genai", _interactions),
    "openai-responses": ("openai", _responses),
    "openai-chat": ("openai", _chat),
    "cohere": ("cohere", _cohere),
    "mistral": ("mistralai", _mistral),
    "ollama": ("ollama", _ollama),
}


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", [*TYPES, "bedrock-converse"])
def test_the_sdks_types_take_the_tools(wire_format: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    tools = tools_of(wire_format, [tides, rd.ToolDefinition("plain", "", SCHEMA), NOW])
    if wire_format == "bedrock-converse":
        _bedrock(tools)
        return
    package, types = TYPES[wire_format]
    pytest.importorskip(package)
    read = pydantic.TypeAdapter(types()).validate_python(tools)
    dumped = pydantic.TypeAdapter(types()).dump_python(read, mode="json", by_alias=True, exclude_none=True)
    assert "integer" in str(dumped), "the schema is there"


@pytest.mark.slow
def test_langchain_binds_the_tools() -> None:
    function_calling = pytest.importorskip("langchain_core.utils.function_calling")
    assert [
        function_calling.convert_to_openai_tool(tool) for tool in tools_of("langchain", [TIDES, NOW])
    ] == FUNCTIONS


# Functions.


def tides(port: str, days: int = 1, *, unit: Literal["m", "ft"] = "m") -> str:
    """The next high tides
    of a port.

    Args:
        port: Its name.
    """
    return f"{port}: {days} {unit}"


def parameters_of(tool: Any) -> Any:
    (written,) = tools_of("openai-chat", tool)
    return written["function"]["parameters"]


@dataclasses.dataclass
class Place:
    port: str


class Port:
    """Knows a port."""

    def __call__(self, days: int) -> None:
        """Its tides."""

    def tides(self, days: int) -> None:
        """Its tides, too."""


def test_whatever_can_be_called_by_names() -> None:
    pydantic = pytest.importorskip("pydantic")
    days = {"type": "integer", "title": "Days"}
    cached = functools.lru_cache(Port().tides)
    for tool in (
        Port().tides,
        {"tides": Port()},
        {"tides": lambda days: days},
        cached,
        {"high-tides": cached},
    ):
        made = parameters_of([tool] if callable(tool) else tool)
        assert made["required"] == ["days"]
    assert parameters_of({"tides": functools.partial(Port(), days=2)})["properties"] == {
        "days": {**days, "default": 2}
    }
    assert parameters_of([Port().tides])["properties"] == {"days": days}
    assert parameters_of([functools.partial(Port().tides)])["properties"] == {"days": days}
    model = pydantic.create_model("Forecast", __doc__="A forecast.", days=(int, ...))
    (written,) = tools_of("anthropic-messages", [model])
    assert (written["name"], written["description"]) == ("Forecast", "A forecast.")
    assert written["input_schema"] == {"type": "object", "properties": {"days": days}, "required": ["days"]}


def test_a_function_that_pydantic_calls_gets_what_its_hints_say() -> None:
    pydantic = pytest.importorskip("pydantic")

    def tides(at: Place) -> str:
        return at.port

    checked = pydantic.validate_call(tides)
    call = {"id": "c", "function": {"name": "tides", "arguments": '{"at": {"port": "Brest"}}'}}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    for tool, content in ((checked, "Brest"), (tides, "The tool failed.")):
        assert parameters_of([tool])["$defs"]["Place"]["required"] == ["port"]
        message = asyncio.run(answered(body, {"tides": tool}))
        assert [call.result.content for call in message.tool_calls if call.result] == [content]


async def answered(body: Any, tools: Any) -> rd.Message:
    async def chunks() -> AsyncIterator[Any]:
        yield body

    message = await rd.stream(chunks(), tools=tools)
    assert message is not None
    return message


def test_a_providers_own_tools_stay_as_they_are() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    assert tools_of("anthropic-messages", [search, NOW])[0] == search
    own = {"googleSearch": {}}
    assert tools_of("gemini", [own, NOW]) == [{"functionDeclarations": [{"name": "now"}]}, own]
    assert tools_of("gemini", [own]) == [own]
    assert search == {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (3, "tools"),
        ("tides", "tools"),
        ([3], r"tools\[0\]"),
        ({"a": 3}, r"tools\['a'\]"),
        ({"a": {"type": "function"}}, r"tools\['a'\]"),
        ([lambda: 1], r"name.*get_forecast"),
        ({"no name": lambda: 1}, "name"),
        ([NOW, NOW], "two tools"),
        ([lambda *, broken: broken, NOW], "name"),
    ],
)
def test_what_is_no_tool_is_refused(tools: Any, named: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=f"(?s){named}") as refused:
        rd.to_request("Hi", "openai-chat", tools=tools)
    assert refused.value.field.startswith("tools")


def test_hints_without_a_schema_are_refused() -> None:
    pytest.importorskip("pydantic")

    def odd(port: Port) -> None: ...

    def by_place(port: str, /) -> None: ...

    for tool in (odd, by_place):
        with pytest.raises(rd.InvalidValueError, match=r"tools\[0\]") as refused:
            rd.to_request("Hi", "openai-chat", tools=[tool])
        assert "For further information" not in str(refused.value)
    with pytest.raises(rd.InvalidValueError, match="pass a ToolDefinition with the schema"):
        rd.to_request("Hi", "openai-chat", tools=[odd])


def test_a_format_that_takes_no_tools_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from rxdelta.formats import registry

    known = registry.find("openai-chat")
    assert known is not None
    monkeypatch.setattr(registry, "find", lambda _: attrs.evolve(known, name="harbour", tools=None))
    assert rd.to_request("Hi", "harbour", tools=[])
    with pytest.raises(rd.InvalidValueError, match="harbour takes none"):
        rd.to_request("Hi", "harbour", tools=[TIDES])
    monkeypatch.undo()
    with pytest.raises(rd.errors.UnknownWireFormatError, match="without turns"):
        rd.to_request("Hi", "openai-completions", tools=[TIDES])


def test_a_definition_is_a_value() -> None:
    assert rd.ToolDefinition("tides", "The next high tides of a port.", SCHEMA) == TIDES
    assert len({TIDES, NOW, rd.ToolDefinition("now")}) == 2
    for wrong in (
        {"name": ""},
        {"name": "a", "parameters": {"type": "string"}},
        {"name": "a", "description": 3},
        {"name": "a", "parameters": [1]},
    ):
        with pytest.raises(rd.InvalidValueError):
            rd.ToolDefinition(**wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
