"""A line that breaks, a server that is stopped or killed in the middle of a reply: each is shown as what it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from support.broken_line import Line
from support.served_chat import ServedChat, ask, ended, reply_texts, said, words

pytestmark = pytest.mark.slow


@pytest.fixture
def line(served: ServedChat) -> Iterator[Line]:
    with Line.to(served.port) as one:
        yield one


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_a_reply_goes_on_when_its_line_breaks(
    served: ServedChat, line: Line, open_tab: Any, chat: str, path: str
) -> None:
    random = Random(f"{path} breaks")
    page = open_tab(f"http://127.0.0.1:{line.port}{path}#{chat}")
    text = words(random, 20)
    served.script(said(*text))
    ask(page, "How far?")
    told = 0
    while told < len(text):
        count = min(len(text) - told, random.randint(3, 12))
        served.tell(count + (2 if told == 0 else 0))  # with the message's start and the block's
        told += count
        page.wait_for_selector(f".text >> text={text[told - 1].strip()}")
        line.is_down = random.random() < 0.5
        assert line.cut()
        if line.is_down:
            page.wait_for_selector(".end >> text=reconnecting")
            assert reply_texts(page) == ["".join(text[:told]).strip()]
            line.is_down = False
        page.wait_for_selector(".end >> text=…")
    served.tell(None)
    ended(page)
    (kept,) = served.kept(chat)
    assert (kept.reply, kept.ended) == ("".join(text), "done")
    assert reply_texts(page) == [kept.reply.strip()]
    assert page.locator(".user").count() == 1
    if path == "/plain":
        assert served.get("/test")["returned"]


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGTERM, "interrupted: the server was stopped"),
        (signal.SIGKILL, "interrupted: the server went away"),
    ],
)
def test_a_server_that_ends_in_the_middle_of_a_reply(
    served: ServedChat, open_tab: Any, chat: str, number: signal.Signals, how: str
) -> None:
    pages = [open_tab(f"{served.address}{path}#{chat}") for path in ("/", "/plain")]
    served.script(said("first ", "second ", "third"))
    ask(pages[0], "How far?")
    served.tell(4)
    pages[0].wait_for_selector(".text >> text=second")
    pages[1].reload()
    pages[1].wait_for_selector(".text >> text=second")
    served.end(number)
    for page in pages:
        page.wait_for_selector(".end >> text=reconnecting")
        assert reply_texts(page) == ["first second"]
    served.begin()
    pages.append(open_tab(f"{served.address}/#{chat}"))
    for page in pages:
        ended(page, how)
        assert reply_texts(page) == ["first second"]
        assert page.locator(".user").all_inner_texts() == ["How far?"]
    (kept,) = served.kept(chat)
    assert (kept.question, kept.reply, kept.ended) == ("How far?", "first second ", how)
    served.script(said("fourth"))
    ask(pages[0], "And now?")
    served.tell(None)
    ended(pages[0])
    assert [one.ended for one in served.kept(chat)] == [how, "done"]


def test_a_question_that_no_server_gets_is_given_back(
    served: ServedChat, line: Line, open_tab: Any, chat: str
) -> None:
    page = open_tab(f"http://127.0.0.1:{line.port}/#{chat}")
    line.is_down = True
    line.cut()
    page.wait_for_selector(".away")
    page.fill("#question", "Anybody?")
    page.click("#send")
    page.wait_for_selector("main[data-status=error]")
    line.is_down = False
    page.wait_for_selector(".error >> text=not sent")
    page.wait_for_selector("section", state="detached")  # what the server keeps is read by itself
    assert page.input_value("#question") == "Anybody?"
    assert served.kept(chat) == []
