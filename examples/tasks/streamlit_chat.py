"""A chat in Streamlit: streamlit run streamlit_chat.py"""

import streamlit as st

import rxdelta as rd
from rxdelta.testing import sample_chunks


def get_forecast(city: str, **more: object) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 17}


TOOLS = {"get_forecast": get_forecast}


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages", tools=TOOLS)
    #               return client.messages.create(stream=True, **request)
    sample = "weather" if messages[-1].role == "user" else "forecast"
    return sample_chunks(sample, pause=0.02)


def show_calls(message: rd.Message) -> None:
    for call in message.tool_calls:
        failed = call.execution_status() == "failed"
        with st.status(call.name, state="error" if failed else "complete"):
            st.json([dict(call.arguments), call.result and call.result.content])


messages: list[rd.Message] = st.session_state.setdefault("messages", [])
for message in messages:
    with st.chat_message(message.role):
        st.markdown(message.text)
        show_calls(message)

if question := st.chat_input("Ask …"):
    messages.append(rd.Message.of("user", question))
    st.chat_message("user").markdown(question)
    for _ in range(5):  # a model may ask for ever
        chunks = ask(messages)
        with st.chat_message("assistant"), rd.stream(chunks, tools=TOOLS) as reply:
            st.write_stream(reply.text_deltas)
            messages.append(reply.result())
            show_calls(reply.message)
        if reply.message.finish_reason != "tool_use":
            break
