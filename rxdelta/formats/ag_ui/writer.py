"""A reply as the events of an AG-UI run."""

from __future__ import annotations

from rxdelta.formats.ag_ui.encoder import AgUiEncoder
from rxdelta.formats.encoding import Masked

__all__ = ["writer"]


def writer(on_error: Masked) -> AgUiEncoder:
    return AgUiEncoder(
        thread_id="thread-1", run_id="run-1", on_error=on_error, provider_events=True, provider_items=True
    )
