"""The sources that texts cite or, if they are wanted, that the provider's tools have found. Each is sent once in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rxdelta.formats.ai_sdk.marks import CITED
from rxdelta.formats.found_sources import sources_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.core import Citation
    from rxdelta.formats.ai_sdk.parts import Out
    from rxdelta.formats.ai_sdk.stream import Step

__all__ = ["SOURCE", "Sources"]

SOURCE: Final = "source-"
"""What the id of a source begins with."""


class Sources:
    """The sources of a run that the client has.

    Args:
        new_id: Makes the id of a source.
        wants_found: Whether sources are sent that no text cites.
    """

    def __init__(self, new_id: Callable[[], str], *, wants_found: bool) -> None:
        self._new_id = new_id
        self._wants_found = wants_found
        self._ids: dict[str, str] = {}  # by address or title

    def send(self, out: Out, step: Step, citation: Citation) -> dict[str, Any] | None:
        """Send the source of a citation, unless the client has it.

        Returns:
            The source as a text's citation repeats it; `None` if the citation names none.
        """
        if not citation.url and not citation.title:
            return None
        key = f"url {citation.url}" if citation.url else f"title {citation.title}"
        known = self._ids.get(key)
        source_id = known or f"{SOURCE}{self._new_id()}"
        where: dict[str, Any] = {"url": citation.url} if citation.url else {"mediaType": "text/plain"}
        if citation.title:
            where["title"] = citation.title
        kind = "url" if citation.url else "document"
        if known is None:
            self._ids[key] = source_id
            step.sources.append(key)
            out.append(
                {"type": f"source-{kind}", "sourceId": source_id, **where, **step.run.marked({CITED: True})}
            )
        return {"type": "source", "sourceType": kind, "id": source_id, **where}

    def send_found(self, out: Out, step: Step, found: Any) -> None:
        """Send the sources in what a provider's tool was asked for or has found, if they are wanted."""
        if self._wants_found:
            for source in sources_in(found):
                self.send(out, step, source)

    def cite(self, out: Out, step: Step, citation: Citation) -> dict[str, Any] | None:
        """Send the source of a citation if needed, and return the citation for the end of its text.

        Returns:
            The citation; `None` if it names no source.
        """
        source = self.send(out, step, citation)
        if source is None:
            return None
        fields = {
            "startIndex": citation.start_index,
            "endIndex": citation.end_index,
            "citedText": citation.cited_text,
        }
        return {"source": source, **{name: value for name, value in fields.items() if value is not None}}

    def forget(self, step: Step) -> None:
        """The client has dropped the sources of a step."""
        for key in step.sources:
            self._ids.pop(key, None)
        step.sources.clear()
