"""Attacks on terminals: what a model says must not drive the terminal of whoever looks at it, nor hide what it says."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.attacks import STEERING, each
from support.timed_recordings import timed, write

import rxdelta as rd
from rxdelta.cli import main, picture

ev = rd.events

PAYLOADS: dict[str, str] = {
    # Escape sequences, in seven bits and in eight.
    "clear the screen": "\x1b[2J\x1b[H",
    "clear the screen, in one byte": "\x9b2J\x9bH",
    "set the title": "\x1b]0;owned\x07",
    "set the title, in one byte": "\x9d0;owned\x9c",
    "write the clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "a link with another name": "\x1b]8;;http://evil.example\x1b\\bank\x1b]8;;\x1b\\",
    "a picture": "\x1b]1337;File=inline=1:AAAA\x07",
    "ask for the answerback": "\x05",
    "ask for the position": "\x1b[6n",
    "ask for the attributes": "\x1b[c\x1bZ",
    "a device's string": "\x1bP+q544e\x1b\\",
    "a device's string, in one byte": "\x90+q544e\x9c",
    "a program's command": "\x1b_Gowned\x1b\\\x1b^owned\x1b\\\x1bXowned\x1b\\",
    "switch to the other screen": "\x1b[?1049h",
    "report the mouse": "\x1b[?1003h",
    "bracketed paste": "\x1b[200~rm -rf ~\n\x1b[201~",
    "hide the text": "\x1b[8m\x1b[30;40m",
    "reset the terminal": "\x1bc\x1b[!p",
    "another set of letters": "\x0e\x1b(0",
    "half of a sequence": "\x1b[",
    "ESC alone": "\x1b",
    "a sequence over two pieces": "\x1b\x1b[[2J",
    # What overwrites.
    "CR": "harmless\rowned",
    "CR in front of LF": "harmless\r\r\nowned",
    "backspaces": "harmless\x08\x08\x08\x08owned",
    "DEL": "harmless\x7f\x7fowned",
    "vertical tab and form feed": "a\x0bowned\x0cowned",
    "NEL and IND": "a\x85owned\x84owned",
    "bells": "\x07" * 100,
    "NUL": "a\0b",
    "SUB and CAN": "\x1a\x18",
    # What turns the direction of writing.
    "from right to left": "\u202etxt.exe\u202c",
    "isolated": "\u2067owned\u2069\u2066\u2068",
    "marks": "\u200e\u200f\u061c",
    "embedded": "\u202a\u202b\u202d",
    # Markup of what draws.
    "markup": "[bold red]owned[/bold red][/]",
    "a link of markup": "[link=http://evil.example]bank[/link]",
    "an action of markup": "[@click=app.quit()]owned[/]",
    "markup that is broken": "[/owned][",
    "a name of a smile": ":smile::warning:",
    "an escape that markdown decodes": "<http://x/%1b[2J%07> &#27;[2J &#x9b;2J &#x202e;",
    # Half a letter, and long ones.
    "half a pair": "\ud83downed\ude00",
    "combining": "a" + "\u0301" * 500,
    "a line of 10,000": "a" * 10_000,
}


def events(text: str, run: str | None = None) -> list[Any]:
    """A reply that has a text everywhere."""
    name = text or "x"
    of: dict[str, Any] = {} if run is None else {"run_id": f"{run}{text}"}
    return [
        ev.MessageStart(text, text, metadata={name: text}, **of),
        ev.BlockStart(0, {"type": "reasoning"}, **of),
        ev.ReasoningDelta(0, text, **of),
        ev.BlockFinish(0, **of),
        ev.BlockStart(1, {"type": "text"}, **of),
        ev.TextDelta(1, f"{text} and", **of),
        ev.BlockFinish(1, **of),
        ev.BlockStart(2, {"type": "tool_call_chunk", "id": name, "name": name}, **of),
        ev.ToolCallDelta(2, json.dumps({name: text}, ensure_ascii=False), **of),
        ev.BlockFinish(2, **of),
        ev.BlockStart(3, {"type": "tool_call_chunk", "id": f"{name}2", "name": name}, **of),
        ev.ToolCallDelta(3, text, **of),
        ev.BlockFinish(3, **of),
        ev.BlockStart(4, {"type": name, name: text}, **of),
        ev.BlockFinish(4, **of),
        ev.ToolUpdate(name, "completed", text, rd.ToolResult(name, {name: text}), **of),
        ev.Custom(name, {name: text}, **of),
        ev.ProviderEvent(name, name, {name: text}, **of),
    ]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All payloads in the replies of one recording, and harmless replies to compare them with."""
    folder = tmp_path_factory.mktemp("recordings")
    texts = {"ALL": PAYLOADS, "OTHER": dict.fromkeys(PAYLOADS, "harmless")}
    return {
        name: write(
            folder / name,
            timed(
                [one for number, text in enumerate(rows.values()) for one in events(text, f"run {number} ")]
            ),
        )
        for name, rows in texts.items()
    }


COMMANDS: dict[str, list[str]] = {
    line: line.split()
    for line in (
        "replay ALL", "replay ALL --json", "inspect ALL", "inspect ALL --raw", "inspect ALL --json",
        "inspect ALL --html -", "diff ALL OTHER", "diff OTHER ALL --all", "convert ALL --to ai-sdk",
        "convert ALL --to langchain", "convert ALL --to openai-completions",
    )
}  # fmt: skip


@each(COMMANDS)
def test_no_command_passes_any_on(
    row: list[str], recordings: dict[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    main([recordings.get(word, word) for word in row])
    said = capfdbinary.readouterr()
    assert len(said.out) + len(said.err) > 0
    for shown in (said.out.decode(), said.err.decode()):
        found = STEERING.search(shown)
        assert found is None, shown[max(0, found.start() - 80) : found.end() + 20]


@each(PAYLOADS)
def test_no_error_of_a_stream_passes_it_on(
    row: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What breaks a stream is quoted: a field that isn't there, a line that is no JSON, an error's type."""
    path = tmp_path / "reply.jsonl"
    head = json.dumps({"type": "message_start", "message": {"id": "m", "content": []}})
    letters = row.encode("utf-8", "replace").decode().replace("\n", " ")
    for broken in (
        json.dumps({"type": "content_block_start", "index": 0, row: 1}),
        json.dumps({"type": "error", "error": {"type": row, "message": row}}),
        f'{{"type": {letters}',
    ):
        path.write_text(f"{head}\n{broken}\n", "utf-8")
        assert main(["replay", str(path)]) in (2, 3)
        for said in capfdbinary.readouterr():
            assert not STEERING.search(said.decode()), broken


NAMES = {
    name: PAYLOADS[name]
    for name in (
        "clear the screen, in one byte",
        "set the title",
        "bracketed paste",
        "CR",
        "backspaces",
        "from right to left",
    )
}


@each(NAMES)
def test_no_name_of_a_file_or_argument_is_passed_on(
    row: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{row}.jsonl"
    write(path, timed(events("harmless")))
    plain = tmp_path / "plain"
    plain.write_text("no stream\n")
    bad = tmp_path / f"{row}.txt"
    bad.write_text("no stream\n")
    for command in (
        ["inspect", str(path)],
        ["inspect", str(path), "--html", "-"],
        ["inspect", str(path), "--html", str(path)],
        ["inspect", str(path), "--html", f"{tmp_path}/nowhere/{row}"],
        ["replay", str(bad)],
        ["replay", f"{path}.none"],
        ["diff", str(path), str(bad)],
        ["convert", str(bad), "--to", "ollama"],
        ["record", "--out", f"{tmp_path}/nowhere/{row}", "--", "true"],
        ["record", "--out", str(plain), "--", f"no such {row}"],
        ["serve", str(bad)],
    ):
        main(command)
        assert not STEERING.search("".join(capfd.readouterr())), command
    for command in (
        ["replay", str(path), f"{path}2"],
        ["replay", str(path), "--speed", row],
        ["replay", str(path), "--format", row],
        ["replay", str(path), f"--{row}"],
        ["convert", str(path), "--to", row],
        ["serve", str(path), "--port", row],
        [row],
        ["demo", row],
    ):
        with pytest.raises(SystemExit):
            main(command)
        assert not STEERING.search("".join(capfd.readouterr())), command


SEQUENCE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x07\x1b;]*;([^\x07\x1b]*)\x1b\\")
"""What rich writes into a picture: styles, and links with their addresses."""


def drawn(text: str) -> str:
    """A picture of a reply as a terminal gets it."""
    console_of = pytest.importorskip("rich.console")
    out = io.StringIO()
    console = console_of.Console(
        file=out, force_terminal=True, width=120, legacy_windows=False, color_system="truecolor"
    )
    fold = rd.Fold()
    *told, last = events(text)
    for number, event in enumerate(told):
        snapshot = fold.step(event)
        if number in (5, 8):  # amid the text, and amid a call
            console.print(picture(snapshot))
    console.print(picture(fold.step(last)))
    return out.getvalue()


@each({name: text for name, text in PAYLOADS.items() if len(text) < 300})
def test_a_picture_has_no_sequences_but_its_own(row: str) -> None:
    written = drawn(row)
    shown = SEQUENCE.sub("", written)
    assert not STEERING.search(shown)
    assert [found[1] for found in SEQUENCE.finditer(written) if found[1]] == []
    if row.startswith("["):
        assert row.split("]")[0] in shown


LINKS: dict[str, str] = {
    "another name": "[https://bank.example](https://evil.example/)",
    "another name by a reference": "[https://bank.example][1]\n\n[1]: https://evil.example/\n",
    "another name of a picture": "![https://bank.example](https://evil.example/)",
    "a picture that is a link": "[![bank](https://bank.example)](https://evil.example/)",
    "a script": "[bank](javascript:evil.example)",
    "a file": "[bank](file:///evil.example)",
    "a program of the machine": "[bank](x-man-page://evil.example)",
    "an option of a program": "[bank](ssh://-oProxyCommand=evil.example)",
    "a word for a title": '[bank](https://evil.example "https://bank.example")',
}


@each(LINKS)
def test_a_link_is_shown_with_where_it_leads(row: str) -> None:
    shown = drawn(row)
    assert [found[1] for found in SEQUENCE.finditer(shown) if found[1]] == []
    plain = "".join(SEQUENCE.sub("", shown).split())
    assert "evil.example" in plain


@each({name: text for name, text in PAYLOADS.items() if STEERING.search(text)})
def test_an_error_of_a_recording_is_on_one_line(row: str, tmp_path: Path, capfdbinary: Any) -> None:
    error = {"type": f"E{row}", "module": row, "message": row, "status_code": 500}
    path = tmp_path / "reply.jsonl"
    lines = [
        {"rxdelta": "recording", "version": 1},
        {"t": 0, "event": ev.MessageStart("m").to_dict()},
        {"t": 1, "error": error},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["replay", str(path)]) == 3
    said = capfdbinary.readouterr().err.decode()
    assert not STEERING.search(said)
    (line,) = [one for one in said.split("\n") if one.startswith("rxdelta: ")]
    assert len(line) > len("rxdelta: ")
