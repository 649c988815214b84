"""A LangGraph agent, served to CopilotKit and other clients of AG-UI."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse

replies = iter(lambda: AIMessage("High water in Brest is at six."), None)
model = GenericFakeChatModel(messages=replies)  # in your code: init_chat_model(…)


async def answer(state: MessagesState) -> dict:
    return {"messages": [await model.ainvoke(state["messages"])]}


building = StateGraph(MessagesState).add_node("answer", answer)
graph = building.add_edge(START, "answer").compile()


async def agent(request: Request) -> Response:
    run = await request.json()
    try:
        said = rd.to_request(rd.from_ag_ui(run), "langchain")
        encode = rd.to_ag_ui(run)
    except (rd.InvalidValueError, LookupError, TypeError):
        return JSONResponse({"error": "This is no run of AG-UI."}, 400)
    chunks = rd.from_async_iterable(lambda: graph.astream(said, stream_mode="messages"))
    return EventStreamResponse(chunks.pipe(rd.decode("langchain")), encode)


app = Starlette(routes=[Route("/agent", agent, methods=["POST"])])
