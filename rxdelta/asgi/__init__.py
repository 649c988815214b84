"""A pipeline as the response of a Starlette or FastAPI application. Needs `rxdelta[asgi]`, or FastAPI alone."""

from rxdelta.asgi._event_stream import EventStreamResponse
from rxdelta.asgi._open_streams import end_streams

__all__ = ["EventStreamResponse", "end_streams"]
