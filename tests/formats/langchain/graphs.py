"""Graphs of LangGraph whose nodes call scripted models, and what the graphs emit in each of its modes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import attrs
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolCallTransformer, ToolNode, tools_condition
from support.scripted_model import Reply, ScriptedModel

__all__ = ["GRAPHS", "MODES", "Case", "as_json", "items_of"]

A = Reply("msg_a", ("alpha ", "one ", "uno"), usage=(5, 7))
B = Reply("msg_b", ("beta ", "two ", "dos ", "tres"), usage=(4, 9))
ASKS = Reply("msg_1", ("let me ", "look"), ("c1", "tides", {"port": "Brest"}), usage=(3, 8))
WITHIN = Reply("msg_2", ("high ", "at six"), usage=(2, 2))
ANSWERS = Reply("msg_3", ("It is ", "high ", "at six."), usage=(9, 5))


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]


@attrs.frozen
class Case:
    """A graph, and the replies that its models give."""

    graph: Any
    replies: tuple[Reply, ...]


def graph(nodes: dict[str, Any], *edges: tuple[str, str]) -> Any:
    made = StateGraph(State)
    for name, node in nodes.items():
        made.add_node(name, node)
    for start, end in edges:
        made.add_edge(start, end)
    return made.compile()


def speaks(model: ScriptedModel) -> Any:
    async def node(state: State) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return node


def says(reply: Reply, provider: str) -> Any:
    return speaks(ScriptedModel(replies=[reply], provider=provider))


def one(provider: str) -> Case:
    return Case(graph({"a": says(A, provider)}, (START, "a"), ("a", END)), (A,))


def in_a_row(provider: str) -> Case:
    nodes = {"a": says(A, provider), "b": says(B, provider)}
    return Case(graph(nodes, (START, "a"), ("a", "b"), ("b", END)), (A, B))


def parallel(provider: str) -> Case:
    nodes = {"a": says(A, provider), "b": says(B, provider)}
    return Case(graph(nodes, (START, "a"), (START, "b"), ("a", END), ("b", END)), (A, B))


def parallel_in_one_node(provider: str) -> Case:
    models = [ScriptedModel(replies=[reply], provider=provider) for reply in (A, B)]

    async def node(state: State) -> Any:
        return {"messages": await asyncio.gather(*(model.ainvoke("Go") for model in models))}

    return Case(graph({"both": node}, (START, "both"), ("both", END)), (A, B))


def subgraph(provider: str) -> Case:
    nodes = {"inner": one(provider).graph, "b": says(B, provider)}
    return Case(graph(nodes, (START, "inner"), ("inner", "b"), ("b", END)), (A, B))


def tool_that_asks_a_model(provider: str) -> Case:
    """The loop of an agent: model, tool, model; the tool calls a model, too."""
    within = ScriptedModel(replies=[WITHIN], provider=provider)

    @tool
    async def tides(port: str) -> str:
        """When the tide is high."""
        return (await within.ainvoke(port)).text

    agent = ScriptedModel(replies=[ASKS, ANSWERS], provider=provider)
    made = StateGraph(State)
    made.add_node("agent", speaks(agent))
    made.add_node("tools", ToolNode([tides]))
    made.add_edge(START, "agent")
    made.add_conditional_edges("agent", tools_condition)
    made.add_edge("tools", "agent")
    return Case(made.compile(), (ASKS, WITHIN, ANSWERS))


GRAPHS: dict[str, Callable[[str], Case]] = {
    "one": one,
    "in a row": in_a_row,
    "parallel": parallel,
    "parallel in one node": parallel_in_one_node,
    "subgraph": subgraph,
    "tool": tool_that_asks_a_model,
}

ALL = ["messages", "updates", "values", "custom", "tasks", "checkpoints", "debug", "tools"]

MODES: dict[str, dict[str, Any]] = {
    "events v2": {"version": "v2"},
    "events v3": {"version": "v3"},
    "messages": {"stream_mode": "messages"},
    "messages of subgraphs": {"stream_mode": "messages", "subgraphs": True},
    "modes": {"stream_mode": ["messages", "updates"]},
    "all modes of subgraphs": {"stream_mode": ALL, "subgraphs": True},
    "parts": {"stream_mode": "messages", "version": "v2"},
    "all parts of subgraphs": {"stream_mode": ALL, "subgraphs": True, "version": "v2"},
}


def items_of(case: Case, mode: str) -> list[Any]:
    """What the graph emits."""
    more = MODES.get(mode) or {"version": "v3", "transformers": [ToolCallTransformer]}

    async def collect() -> list[Any]:
        asked = {"messages": [HumanMessage("When?", id="h1")]}
        if "events" not in mode:
            return [item async for item in case.graph.astream(asked, **more)]
        items = case.graph.astream_events(asked, **more)
        return [item async for item in (await items if "v3" in mode else items)]

    return asyncio.run(collect())


def as_json(items: list[Any]) -> list[Any]:
    """The items as a server sends them: no object is the same as another."""
    return [json.loads(json.dumps(item, default=lambda value: value.model_dump())) for item in items]
