"""A pipeline as the response of a Starlette or FastAPI application. Needs `rxdelta[asgi]`, or FastAPI alone."""

try:
    from rxdelta.asgi._event_stream import EventStreamResponse
    from rxdelta.asgi._open_streams import end_streams
    from rxdelta.asgi._relay_response import RelayResponse
    from rxdelta.asgi._text_response import TextResponse
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("starlette"):
        raise
    raise ImportError("rxdelta.asgi needs starlette: pip install 'rxdelta[asgi]'") from error

__all__ = ["EventStreamResponse", "RelayResponse", "TextResponse", "end_streams"]
