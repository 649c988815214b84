"""What the command says to a wrong word, and what it needs to import for it."""

from __future__ import annotations

import pytest

from rxdelta.cli import main

COMMANDS = ("demo", "replay", "inspect", "record", "diff", "convert", "serve")


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["inspct", "x"], "inspect"),
        (["dif", "a", "b"], "diff"),
        (["sevre", "x"], "serve"),
        (["replay", "x", "--fromat", "ollama"], "--format"),
        (["replay", "x", "--fromat=ollama"], "--format"),
        (["replay", "--as"], "--format"),
        (["convert", "x", "--as", "ollama"], "--to"),
        (["convert", "x", "--too", "ollama"], "--to"),
        (["serve", "x", "--to", "ollama"], "--as"),
        (["serve", "x", "--prot", "1"], "--port"),
        (["record", "--uot", "x", "--", "curl", "--fromat"], "--out"),
        (["convert", "x", "--to", "opnai-chat"], "openai-chat"),
        (["serve", "x", "--as", "olama"], "ollama"),
        (["replay", "x", "--format", "anthropic"], "anthropic-messages"),
        (["serve", "--sample", "tide"], "tides"),
    ],
)
def test_a_typing_error_is_answered_with_the_right_word(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"did you mean '{meant}'?" in refused(arguments, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "x", "--zzz"],
        ["diff", "a"],
        ["convert", "x"],
        ["record", "--", "ls"],
        ["serve"],
        ["serve", "x", "--port", "65536"],
        ["serve", "x", "--port", "-1"],
    ],
)
def test_what_is_no_typing_error_gets_no_advice(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "did you mean" not in refused(arguments, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_it_does_and_how_it_exits(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert (left.value.code, said.startswith(f"usage: rxdelta {command} ")) == (0, True)
    if command not in ("demo", "replay"):
        assert "exit codes:" in said


def test_the_help_names_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n    {name} " in said] == [*COMMANDS]
