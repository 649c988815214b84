"""A pipeline as the response of a web application, on Starlette's own. Needs `rxdelta[asgi]`; FastAPI has it."""

from rxdelta.asgi._event_stream import EventStreamResponse
from rxdelta.asgi._open_streams import end_streams

__all__ = ["EventStreamResponse", "end_streams"]
