"""How LangChain's agent protocol is served, which is the answer of an agent's own route."""

from __future__ import annotations

from typing import Final

from rxdelta.formats.endpoint import Endpoint, plain_error

__all__ = ["ENDPOINT"]

ENDPOINT: Final = Endpoint(error=plain_error)
