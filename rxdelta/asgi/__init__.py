"""A pipeline as the response of a Starlette or FastAPI application. Needs `rxdelta[asgi]`, or FastAPI alone."""

try:
    from rxdelta.asgi.open_response import end_streams
    from rxdelta.asgi.responses import EventStreamResponse, RelayResponse, TextResponse
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("starlette"):
        raise
    raise ImportError("rxdelta.asgi needs starlette: pip install 'rxdelta[asgi]'") from error

__all__ = ["EventStreamResponse", "RelayResponse", "TextResponse", "end_streams"]
