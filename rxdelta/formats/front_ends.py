"""What the encoders for front ends share: names of the application, ids of approvals, sources and results of tools.

- An application may choose a name that is one of ours. It then travels behind a prefix, so that nobody mistakes the
  application's data for ours. A name that is one of ours behind such prefixes gets another one, so each comes back as it was.
- A front end may know a call by another id than its provider, who began to number again with a later message. The answer
  to an approval must find the call in the server's storage, which has the provider's id. So an approval's id has both.
- A provider's tool may call another one, whose call and result then stand between its own. In protocols in which a browser
  keeps a call and its result together, such a result travels with its place: how many blocks of the message precede it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from rxdelta.core import Approval, Citation, is_list, is_mapping, thaw

_PREFIX: Final = "custom-"


class OwnNames:
    """The names of an encoder of ours.

    Example:
        >>> ours = OwnNames(["run", "block"])
        >>> [ours.write(name) for name in ("status", "run", "custom-run")]
        ['status', 'custom-run', 'custom-custom-run']
        >>> [ours.read(name) for name in ("status", "custom-run", "custom-custom-run")]
        ['status', 'run', 'custom-run']
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._is_taken = re.compile(f"(?:{_PREFIX})*(?:{'|'.join(map(re.escape, names))})").fullmatch

    def write(self, name: str) -> str:
        """The written form of a name of the application."""
        return _PREFIX + name if self._is_taken(name) else name

    def read(self, name: str) -> str:
        """The application's name for a written one."""
        return name.removeprefix(_PREFIX) if self._is_taken(name) else name


_FOR: Final = "~for~"


def approval_id(own_id: str, call_id: str | None) -> str:
    """The id of the approval of a call.

    Args:
        own_id: The call's id, as the client knows it.
        call_id: The id that its provider gave it.
    """
    return own_id if call_id is None or call_id == own_id else f"{own_id}{_FOR}{call_id}"


def ids_in(approval: str) -> tuple[str, str]:
    """The client's id of the call, and the provider's; twice the same if the approval names one only."""
    own_id, found, call_id = approval.partition(_FOR)
    return (own_id, call_id) if found and own_id and call_id else (approval, approval)


def by_call(answers: Iterable[tuple[str, str, Approval]]) -> dict[str, Approval]:
    """The answers by both ids of their calls, since the call may be stored, or have come from the client.

    The client's id is the one that can't be mistaken: the provider's counts only where no call has it as the client's.
    If several answers for one id differ, a refusal stands, whatever their order.

    Args:
        answers: The client's id, the provider's, and the answer.
    """
    known = [*answers]
    found: dict[str, Approval] = {}
    for own_id, _, answer in known:
        _add(found, own_id, answer)
    theirs: dict[str, Approval] = {}
    for own_id, call_id, _ in known:
        _add(theirs, call_id, found[own_id])
    return theirs | found


def _add(found: dict[str, Approval], name: str, answer: Approval) -> None:
    if name not in found or (found[name].approved and not answer.approved):
        found[name] = answer


_LISTS: Final = ("action", "sources", "results", "search_results", "groundingMetadata", "groundingChunks")
"""The fields that lead to a list of sources."""

_NO_SOURCES: Final = frozenset(["image", "input_image", "logs"])
"""The types of what has an address and is the tool's own work."""


def sources_in(found: Any) -> Iterator[Citation]:
    """The sources in a tool's arguments or output, or in a message's metadata, as the provider gives them.

    Example:
        >>> [one.url for one in sources_in({"action": {"sources": [{"type": "url", "url": "https://a"}]}})]
        ['https://a']
    """
    if is_list(found):
        for one in found:
            yield from sources_in(one)
    elif is_mapping(found):
        page = found.get("web")
        source = page if is_mapping(page) else found
        url = source.get("url") or source.get("uri")
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            if source.get("type") not in _NO_SOURCES:
                yield Citation(url=url, title=_title(source))
            return
        for name in _LISTS:
            if name in found:
                yield from sources_in(found[name])


def _title(source: Any) -> str | None:
    content = source.get("content")
    given = source.get("title") or (content.get("title") if is_mapping(content) else None)
    return given if isinstance(given, str) and given else None


def shown_metadata(metadata: Mapping[str, Any], *, reasoning: bool) -> dict[str, Any]:
    """The metadata of a tool's result, for a front end.

    Args:
        metadata: The metadata. A tool that is an agent has its messages there, with the results of its own tools, which
            may be agents, too.
        reasoning: Whether the messages keep their reasoning and signatures.

    Example:
        >>> blocks = [{"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "Hi"}]
        >>> shown_metadata({"messages": [{"blocks": blocks}]}, reasoning=False)
        {'messages': [{'blocks': [{'type': 'text', 'text': 'Hi'}]}]}
    """
    shown: dict[str, Any] = thaw(metadata)
    if not reasoning:
        _drop_reasoning(shown)
    return shown


def _drop_reasoning(metadata: dict[str, Any]) -> None:
    for message in _field(metadata, "messages", list):
        blocks = _field(message, "blocks", list)
        blocks[:] = [block for block in blocks if _field(block, "type", str) != "reasoning"]
        for block in blocks:
            for name in ("options", "metadata"):
                _field(block, name, dict).pop("signature", None)
            _drop_reasoning(_field(_field(block, "result", dict), "metadata", dict))


def _field(value: Any, name: str, kind: Callable[[], Any]) -> Any:
    """A field of a JSON object, if it is of this kind; else an empty one, also where there is no object."""
    found = value.get(name) if is_mapping(value) else None
    return found if type(found) is kind else kind()


T = TypeVar("T")

PLACE: Final = "place"
"""The mark of such a result."""


def place_marks(call: int, result: int) -> dict[str, int]:
    """The mark of a result, by the places of its call and its own; none for one that follows its call."""
    return {} if result == call + 1 else {PLACE: result}


def place_in(marks: Mapping[str, Any]) -> int | None:
    found = marks.get(PLACE)
    return found if type(found) is int and found >= 0 else None


def put_back(blocks: list[T], late: Iterable[tuple[int, T]]) -> list[T]:
    """The blocks, and the late ones at their places.

    Example:
        >>> put_back(["call a", "call b", "result b", "text"], [(3, "result a")])
        ['call a', 'call b', 'result b', 'result a', 'text']
    """
    for place, block in sorted(late, key=lambda one: one[0]):
        blocks.insert(min(place, len(blocks)), block)
    return blocks
