"""`rxdelta demo`: a bundled sample, drawn while it grows."""

from __future__ import annotations

from argparse import Namespace

from rxdelta.cli.options import Parser
from rxdelta.cli.replay import add_view, replay
from rxdelta.testing import SAMPLES, open_sample


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta demo`."""
    command.words = [*SAMPLES]
    command.add_argument(
        "sample",
        nargs="?",
        choices=SAMPLES,
        default="weather",
        help="weather (Anthropic: reasoning, text, two tool calls), forecast (its answer), "
        "tides (OpenAI chat, as SSE), overloaded (ends in an error)",
    )
    add_view(command)


def run(options: Namespace) -> int:
    """Replay a sample."""
    with open_sample(options.sample) as file:
        return replay(file, SAMPLES[options.sample], options)
