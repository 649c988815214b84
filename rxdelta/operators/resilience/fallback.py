"""One reply from the first of several sources that has something to say, asked one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.operators.resilience.contest import Source, contest

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.core import Event


def fallback(*sources: Source) -> Observable[Event]:
    """Emit the reply of the first source that has content, asking the next one when a source fails or ends before.

    ::

        first   (start)--#
        second           (start)-Yes _sir|
                fallback(first, second)
        events  -      ---      -Yes _sir|

    The subscription asks the first source. Its events are held until the first content: text, reasoning, a call, media,
    the result of a tool, or a `ToolUpdate`. Starts, usage, pings, `ProviderEvent` and `Custom` are no content, and neither are
    an empty delta or a block that has only begun. With the first content the source has won. All its events are
    emitted unchanged, the held ones first, and no other source is asked.

    Before its first content a source loses by an error, by a `StreamError`, and by an empty reply: it completes, or a
    message finishes without content, as a refused one may. The next source is then asked at once, and nothing of a
    failed one is seen. When another one has won, the log `rxdelta` names the type of each error.

    A source with an empty message is still read: another choice or message of it may have content. A source
    that is silent doesn't fail. Put `stall_timeout` into it, or use `race` with `after`.

    If all fail, the last error ends the stream; the others are its notes (`__notes__`). If some replies are empty and the rest
    fail, the first empty reply is emitted, since there is no better one. With several choices or runs, the content of any
    of them wins. Behind the first content an error is the reply's own. `retry_stream` around this, or around a source,
    may try again.

    Each subscription asks afresh. A function is called only when its source is asked, in the context of the subscriber.
    Put this in the place of one request, in front of `redact`, `guard`, `run_tools` and `share_events`; it is no operator
    for `pipe`. Put `until_stopped` behind it: stopped inside a source, an empty reply would ask the next one.

    Completes with the source that has won.

    Args:
        *sources: Observables of events, or functions without arguments that return one, in the order of preference.

    Raises:
        InvalidValueError: At once, without a source, or for one that is neither.

    Errors: The winner's own, or if all fail, the last one's. A function fails by what it raises, or with `InvalidValueError`
    if it returns no Observable. A source fails with `InvalidValueError` for a value that is no event, and with
    `LimitExceededError` for more events before the first content than `Limits.blocks`, and than 1,000.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> ev = rd.events
        >>> busy = rx.of(ev.MessageStart("m1"), ev.StreamError("Overloaded"))
        >>> small = rx.of(ev.MessageStart("m2"), ev.BlockStart(0, {"type": "text", "text": "Hello"}))
        >>> rd.fallback(busy, lambda: small).subscribe(print).dispose()
        MessageStart(id='m2', model=None, usage=None, metadata={}, choice=0)
        BlockStart(index=0, content={'type': 'text', 'text': 'Hello'}, choice=0)
    """
    return contest("fallback", sources, None)
