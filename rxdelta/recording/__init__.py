"""A stream in a file: written as it passes, and replayed with its times.

**The file** is UTF-8, newline-delimited JSON: one object a line. Its name usually ends in `.jsonl`.

The first line says what it is:

| field | value |
| --- | --- |
| `rxdelta` | `"recording"` |
| `version` | the version of this form, a whole number: 1 |
| `recorded` | the date and time of the subscription, in UTC as ISO 8601 writes it; for people, nothing reads it |

Each other line has `t`, the seconds since the subscription, rounded to microseconds, and one of these fields:

| field | value |
| --- | --- |
| `chunk` | an item of the provider's stream: a JSON value. An SDK's object has the fields that were sent. Bytes within are in base64. `"[DONE]"` is `rd.wire.DONE`, the end of a stream as an item |
| `event` | an event, as its `to_dict()` gives it |
| `text` | a text |
| `bytes` | bytes, in base64 |
| `error` | the error that ended the stream; no line follows |
| `end` | `true`: the stream completed; no line follows |

A file without `error` or `end` is that of a stream whose reader left early, of a program that crashed, or of a recording that
broke off because a line couldn't be written. It replays as an error, never as complete. Half a line at the end is dropped.

An `error` is an object:

| field | value |
| --- | --- |
| `type` | the name of the error's class |
| `module` | the module of the class; missing for Python's own, `"rxdelta"` for ours |
| `message` | the text, with apparent secrets removed |
| `status_code` | the HTTP status, if there is one |
| `transient` | whether another try might have succeeded, see `rd.errors.is_transient` |
| `headers` | those of the response that say when to try again: `retry-after`, `retry-after-ms`, `x-should-retry`, `date` |
| `errno` | the number of an `OSError` |
| `fields` | of our own errors: their attributes, such as the `limit` of a `StallTimeoutError` |
| `cause` | the error that has caused one of ours or of Python's, as an object of this kind |

**Masks.** A value is written as `"[redacted]"` where a name says that it is a key, a password, a cookie or an authorization,
such as a header of a server that a response names. Names are not looked at in what the model wrote and in what tools answered
(below `arguments`, `input`, `content`, `delta`, …), so a call with an argument `password` replays equal. Texts and bytes are
written as they are.
"""

from rxdelta.recording.errors import RecordedError
from rxdelta.recording.reading import (
    LONGEST_WAIT as LONGEST_WAIT,
    Line as Line,
    check_speed as check_speed,
    from_recording,
    read_lines as read_lines,
)
from rxdelta.recording.recorder import (
    Mask as Mask,
    Recorder as Recorder,
    RecordingFile as RecordingFile,
    record,
)

# `__all__` lists the names on `rd`. Other packages also import the names above that have the form `X as X`.
__all__ = ["RecordedError", "from_recording", "record"]
