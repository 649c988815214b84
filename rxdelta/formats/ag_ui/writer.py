"""A reply as the events of an AG-UI run."""

from __future__ import annotations

from rxdelta.formats.ag_ui.encoder import AgUiEncoder
from rxdelta.formats.encoding import Masked, word_of

__all__ = ["writer"]


class _Writer(AgUiEncoder):
    def _code_of(self, error: Exception, /) -> str | None:
        return word_of(error)


def writer(on_error: Masked) -> AgUiEncoder:
    return _Writer(
        thread_id="thread-1", run_id="run-1", on_error=on_error, provider_events=True, provider_items=True
    )
