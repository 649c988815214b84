"""Finished messages → what a provider's next request takes: one file a wire format. No I/O."""

from rxdelta.requests._registry import REQUEST_FORMATS, to_request

__all__ = ["REQUEST_FORMATS", "to_request"]
