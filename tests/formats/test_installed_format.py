"""Formats that other distributions bring: a real one, installed by pip, and those that are broken in some way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.security_page import says

pytestmark = pytest.mark.slow

DISTRIBUTION = Path(__file__).parent / "installed"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "extend" / "formats.md"
CHUNKS = [
    {"op": "say", "text": "Let me "},
    {"op": "say", "text": "look."},
    {"op": "call", "id": "c1", "name": "tides", "args": {"port": "Brest"}},
    {"op": "done", "why": "stop", "tokens": [9, 12]},
]
HARBOUR = (DISTRIBUTION / "rxdelta_harbour.py").read_text("utf-8")


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the distribution."""
    pytest.importorskip("pip")
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("site")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", str(target), str(DISTRIBUTION)], check=True, capture_output=True)
    return target


def place(site: Path, distribution: str, *entries: str, **modules: str) -> Path:
    """A distribution as pip leaves it in a folder: its modules, and its entry points of our group."""
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[rxdelta.formats]", *entries]))
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)
    return site


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, and what is installed in this folder."""
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
    )


def python(site: Path, code: str) -> Any:
    """What this code puts into `result`; beside it, the lines of the log."""
    prelude = (
        f"import json, logging, rxdelta as rd, reactivex as rx\nlogging.basicConfig()\nCHUNKS = {CHUNKS}\n"
    )
    done = run(site, "-c", f"{prelude}{code}\nprint(json.dumps(result))")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def error_of(site: Path, call: str) -> str:
    """The text of the `UnknownWireFormatError` that this call raises."""
    code = f"try:\n    {call}\nexcept rd.errors.UnknownWireFormatError as error:\n    result = str(error)"
    return str(python(site, code)[0])


DECODED = """
message = rx.from_iterable(CHUNKS).pipe(
    rd.decode("harbour", model="pilot-1"), rd.validate(), rd.scan_deltas(), rd.to_message()
).run()
result = [message.text, message.model, message.status, message.usage.output_tokens]
result += [[call.name, rd.core.thaw(call.arguments)] for call in message.tool_calls]
"""


@says("Your program is trusted")
def test_its_stream_is_decoded_with_its_own_option(harbour: Path) -> None:
    calls = [["tides", {"port": "Brest"}]]
    assert python(harbour, DECODED)[0] == ["Let me look.", "pilot-1", "complete", 12, *calls]


def test_an_option_that_it_does_not_know_is_refused(harbour: Path) -> None:
    code = "try: rd.decode('harbour', speed=2)\nexcept rd.InvalidValueError as error: result = str(error)"
    said = "the wire format 'harbour' has no option 'speed'; there are cumulative, model, reasoning_tags"
    assert python(harbour, code)[0] == said


def test_it_is_known_by_its_name_and_by_a_first_chunk(harbour: Path) -> None:
    names, log = python(
        harbour,
        "result = [rd.providers.FORMATS[-1], rd.requests.REQUEST_FORMATS[-1], rd.providers.detect(CHUNKS[0])]",
    )
    assert names == ["harbour", "harbour", "harbour"]
    assert log == ""


def test_its_request_is_written(harbour: Path) -> None:
    code = """
message = rd.Message(blocks=[
    rd.ContentPart("text", "Let me look."),
    rd.ToolCall(call_id="c1", name="tides", arguments={"port": "Brest"}, status="complete"),
])
result = rd.to_request(["When?", message, rd.ToolResult("c1", "18:40"), {"text": "as it is"}], "harbour")
"""
    assert python(harbour, code)[0] == {
        "log": [
            {"by": "user", "text": "When?"},
            {"by": "assistant", "text": "Let me look."},
            {"call": "c1", "name": "tides", "args": {"port": "Brest"}},
            {"result": "18:40", "of": "c1", "failed": False},
            {"text": "as it is"},
        ]
    }


@pytest.mark.parametrize("options", [(), ("--format", "harbour")], ids=["detected", "named"])
def test_the_command_line_replays_its_recording(
    options: tuple[str, ...], harbour: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "reply.jsonl"
    recording.write_text("".join(f"{json.dumps(chunk)}\n" for chunk in CHUNKS))
    done = run(harbour, "-m", "rxdelta", "replay", "--json", *options, str(recording))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks"][0] == {"type": "text", "text": "Let me look."}


def test_the_page_shows_this_very_module() -> None:
    shown = re.search(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert shown[1].startswith(HARBOUR)
    assert (DISTRIBUTION / "pyproject.toml").read_text("utf-8") in PAGE.read_text("utf-8")


PASSES_ALL_ON = """
import rxdelta as rd

class Decoder:
    def decode(self, chunk):
        return [rd.events.ProviderEvent("post", "odd", chunk)]

    def close(self):
        return []

FORMAT = rd.providers.Format(name="post", decoder=Decoder, recognises=lambda chunk: "letter" in chunk)
"""


def test_a_stream_of_which_it_reads_nothing_is_an_error(tmp_path: Path) -> None:
    place(tmp_path, "post", "post = post:FORMAT", post=PASSES_ALL_ON)
    code = """
result = []
for name, chunk in (("post", {"letter": 1}), ("auto", {"letter": 1}), ("post", {"card": 1})):
    try:
        rx.of(chunk).pipe(rd.decode(name)).run()
    except rd.errors.MalformedChunkError as error:
        result.append(str(error))
"""
    *letters, card = python(tmp_path, code)[0]
    assert (
        letters
        == ["nothing of this stream could be read as post: no chunk begins a reply (seen: letter)"] * 2
    )
    assert "known: ag-ui, " in card
    assert "seen: card" in card


BROKEN = {
    "not importable": ("morse = morse:FORMAT", "raise RuntimeError('no cable')", "can't be loaded: .*no cable"),
    "not there": ("morse = morse:NOTHING", "", "can't be loaded: .*NOTHING"),
    "no format": ("morse = morse:FORMAT", "FORMAT = object()", "must be an rxdelta.providers.Format"),
    "another name": (
        "morse = morse:FORMAT",
        HARBOUR,
        "'morse' .* must be an rxdelta.providers.Format of this name",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "module", "wrong"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_says_what_is_wrong_and_disturbs_no_other(
    entry: str, module: str, wrong: str, tmp_path: Path
) -> None:
    place(tmp_path, "cable", entry, morse=module)
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=HARBOUR)
    assert re.search(wrong, error_of(tmp_path, "rd.decode('morse')"))
    code = f"{DECODED}\nresult = [result[0], rd.providers.detect(CHUNKS[0]), 'morse' in rd.requests.REQUEST_FORMATS]"
    found, log = python(tmp_path, code)
    assert found == ["Let me look.", "harbour", False]
    assert len(re.findall(wrong, log)) == 1


def test_one_that_fails_to_look_at_a_chunk_disturbs_no_other(tmp_path: Path) -> None:
    failing = """
import rxdelta as rd
def recognises(chunk): raise KeyError("op")
FORMAT = rd.providers.Format(name="cable", decoder=list, recognises=recognises)
"""
    place(tmp_path, "cable", "cable = rxdelta_cable:FORMAT", rxdelta_cable=failing)
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=HARBOUR)
    found, log = python(tmp_path, "result = rd.providers.detect(CHUNKS[0])")
    assert found == "harbour"
    assert "the installed format 'cable' failed to look at a chunk" in log
    assert "KeyError: 'op'" in log


def test_the_librarys_own_names_stay_its_own(tmp_path: Path) -> None:
    place(tmp_path, "usurper", "openai-chat = usurper:FORMAT", usurper="raise SystemExit('imported')")
    code = "rd.decode('openai-chat'); result = rd.providers.FORMATS.count('openai-chat')"
    assert python(tmp_path, code) == (1, "")


def test_two_distributions_with_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    place(tmp_path, "first", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=HARBOUR)
    place(tmp_path, "second", "harbour = other:FORMAT", other=HARBOUR)
    error = error_of(tmp_path, "rd.decode('harbour')")
    assert "several installed formats are called 'harbour'" in error
    assert "rxdelta_harbour:FORMAT" in error
    assert "other:FORMAT" in error
    assert python(tmp_path, "result = rd.providers.FORMATS.count('harbour')")[0] == 1


def test_importing_the_library_looks_for_no_formats(tmp_path: Path) -> None:
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=HARBOUR)
    code = """
import importlib.metadata, sys
def refuse(**_): raise AssertionError("looked for entry points")
importlib.metadata.entry_points = refuse
import rxdelta
rxdelta.decode("openai-chat")
assert "rxdelta_harbour" not in sys.modules
"""
    done = run(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr


def test_one_whose_chunks_name_a_run_is_read_run_by_run(tmp_path: Path) -> None:
    addressed = HARBOUR.replace("recognises=recognises,", "recognises=recognises, address=lambda: address,")
    assert addressed != HARBOUR
    addressed += """
def address(chunk):
    berth = chunk.get("berth")
    return berth and rd.providers.Address(berth, "port", last=chunk["op"] == "done")
"""
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=addressed)
    code = """
chunks = [{**chunk, "berth": berth} for chunk in CHUNKS for berth in "ab"]
events = rx.from_iterable(chunks + CHUNKS).pipe(rd.decode("harbour"), rx.operators.to_list()).run()
starts = [event for event in events if isinstance(event, rd.events.MessageStart)]
texts = {}
for event in events:
    if isinstance(event, rd.events.TextDelta):
        texts[event.run_id or ""] = texts.get(event.run_id or "", "") + event.text
result = [[[start.run_id, start.parent_run_id] for start in starts], texts]
"""
    starts, texts = python(tmp_path, code)[0]
    assert starts == [["a", "port"], ["b", "port"], [None, None]]
    assert texts == dict.fromkeys(["a", "b", ""], "Let me look.")


SERVED = """
class Lines:
    def __init__(self, on_error):
        self._on_error = on_error

    def encode(self, event):
        match event:
            case ev.TextDelta(text=text):
                return [{"op": "say", "text": text}]
            case ev.MessageFinish(reason=why, usage=usage):
                return [{"op": "done", "why": why, "tokens": [usage.input_tokens, usage.output_tokens]}]
        return []

    def close(self):
        return []


ENDPOINT = rd.providers.Endpoint(
    paths=["/harbour/chat"],
    headers=rd.wire.NDJSON_HEADERS,
    frame=rd.wire.ndjson_line,
    error=lambda error, status: {"why": error.message, "status": status},
    streams=lambda path, body: body["live"],
    environment={"HARBOUR_URL": "{url}"},
)


def recognises("""
ASK = """
import urllib.error, urllib.request
from rxdelta.testing import FakeProvider

def ask(body):
    try:
        with urllib.request.urlopen(server.environment["HARBOUR_URL"] + path, body, timeout=30) as answer:
            return [json.loads(line) for line in answer]
    except urllib.error.HTTPError as error:
        return json.load(error)

path = "/harbour/chat"
with FakeProvider("Hello world", rd.events.StreamError("Full", "overloaded_error")).serve() as server:
    result = [ask(b'{"live": true}'), ask(b'{"live": false}'), ask(b'{"live": true}'), ask(b'{"live": true}')]
with FakeProvider("Hello world").serve("harbour") as server:  # its path begins with its name
    result.append(ask(b'{"live": true}'))
"""


def test_one_that_says_how_it_is_served_is_served(tmp_path: Path) -> None:
    more = 'recognises=recognises, writer=Lines, carries={"text"}, endpoint=lambda: ENDPOINT,'
    served = HARBOUR.replace("recognises=recognises,", more).replace("\ndef recognises(", SERVED)
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=served)
    (streamed, whole, full, too_many, by_default), _ = python(tmp_path, ASK)
    assert streamed == by_default
    assert streamed == [
        {"op": "say", "text": "Hello "},
        {"op": "say", "text": "world"},
        {"op": "done", "why": "stop", "tokens": [1, 2]},
    ]
    assert whole["status"] == 400
    assert "can only stream harbour" in whole["why"]
    assert full == {"why": "Full", "status": 529}
    assert "was asked once more" in too_many["why"]


def test_one_that_does_not_say_how_it_is_served_is_not(tmp_path: Path) -> None:
    place(tmp_path, "harbour", "harbour = rxdelta_harbour:FORMAT", rxdelta_harbour=HARBOUR)
    code = """
from rxdelta.testing import FakeProvider
try:
    FakeProvider().serve("harbour")
except rd.InvalidValueError as error:
    result = str(error)
"""
    assert "wire_format: must be a format that has an endpoint" in python(tmp_path, code)[0]
