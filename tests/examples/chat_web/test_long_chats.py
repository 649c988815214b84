"""Long chats of three pages on two lines, with everything that can happen to them, at random moments."""

from __future__ import annotations

import signal
from random import Random
from typing import Any

import pytest
from support.broken_line import Line
from support.served_chat import ServedChat, ask, ended, reply_texts, said, words

LOST = "interrupted: the server went away"
STOPPED = "interrupted: the server was stopped"


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.soak) for seed in range(4)])
@pytest.mark.timeout(900)
def test_what_each_page_shows_in_the_end_is_what_is_kept(
    served: ServedChat, open_tab: Any, chat: str, seed: int
) -> None:
    random = Random(seed)
    with Line.to(served.port) as line:
        addresses = [f"http://127.0.0.1:{line.port}", served.address, f"{served.address}/plain"]
        pages = [open_tab(f"{address}#{chat}") for address in addresses]
        for number in range(12):
            text = words(random, random.randint(1, 40), f"{number}w")
            how, told = exchange(random, served, line, pages, number, text)
            for page in pages:
                page.wait_for_selector(f"main:has(section.user:has-text('Question {number}.'))")
                ended(page, "" if how == "done" else how)
            kept = served.kept(chat)
            assert [one.question for one in kept] == [f"Question {n}." for n in range(number + 1)]
            assert kept[-1].ended == how
            assert kept[-1].reply == "".join(text[:told])
            for page in pages:
                assert reply_texts(page) == [one.reply.strip() for one in kept if one.reply]


def exchange(
    random: Random, served: ServedChat, line: Line, pages: list[Any], number: int, text: list[str]
) -> tuple[str, int]:
    """A question and its reply, to its end. Returns how it ended, and how many of the words it said."""
    served.script(said(*text))
    asks = random.choice(pages)
    ask(asks, f"Question {number}.")
    told = 0
    while told < len(text):
        count = random.randint(1, len(text) - told)
        served.tell(count + (2 if told == 0 else 0))  # with the message's start and the block's
        told += count
        what = random.choice(["go on", "reload", "reload", "cut", "stop", "terminate", "kill", "leave"])
        page = random.choice(pages)
        if what == "reload":
            page.reload()
        elif what == "leave":
            page.goto("about:blank")
            page.go_back()
        elif what == "cut":
            line.cut()
        elif what in ("stop", "terminate", "kill"):
            page.wait_for_selector(f"section:last-of-type .text >> text={text[told - 1].strip()}")
            if what == "stop":
                page.click("#stop")
                return "stopped", told
            served.end(signal.SIGTERM if what == "terminate" else signal.SIGKILL)
            served.begin()
            return STOPPED if what == "terminate" else LOST, told
    served.tell(None)
    return "done", told
