"""A reload and a second tab in the middle of a reply: what each page shows in the end is what the server keeps."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.served_chat import ServedChat, ask, becomes, called, ended, reply_texts, said, words

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_reloads_at_random_moments(served: ServedChat, open_tab: Any, chat: str, path: str) -> None:
    random = Random(f"{path} reloads")
    page = open_tab(f"{served.address}{path}#{chat}")
    text = words(random, 40)
    served.script(said(*text))
    ask(page, "What now?")
    left = len(text)
    while left:
        page.reload()
        page.wait_for_selector(".user >> text=What now?")
        if left < len(text):
            last = text[len(text) - left - 1].strip()
            page.wait_for_selector(f".assistant .text >> text={last}")
            assert reply_texts(page) == ["".join(text[: len(text) - left]).strip()]
        page.wait_for_selector(".assistant .end >> text=…")
        count = min(left, random.randint(1, 12))
        served.tell(count + (2 if left == len(text) else 0))  # with the message's start and the block's
        left -= count
    served.tell(None)
    ended(page)
    (kept,) = served.kept(chat)
    assert (kept.question, kept.reply, kept.ended) == ("What now?", "".join(text), "done")
    assert reply_texts(page) == [kept.reply.strip()]
    page.reload()
    ended(page)
    assert reply_texts(page) == [kept.reply.strip()]


def test_two_tabs_see_the_same_reply_live_and_lose_nothing_of_each_other(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    tabs = [open_tab(f"{served.address}/#{chat}") for _ in range(2)]
    for number, (asks, follows) in enumerate([tabs, tabs[::-1], tabs], 1):
        served.script(said(f"first{number} ", f"second{number}"))
        ask(asks, f"Question {number}")
        follows.wait_for_selector(f".user >> text=Question {number}")
        served.tell(3)
        for page in tabs:
            page.wait_for_selector(f".text >> text=first{number}")
            page.wait_for_selector("#stop")
        served.tell(None)
        for page in tabs:
            ended(page)
    kept = served.kept(chat)
    assert [one.question for one in kept] == ["Question 1", "Question 2", "Question 3"]
    for page in tabs:
        assert reply_texts(page) == [one.reply for one in kept]
        assert page.locator(".user").all_inner_texts() == [one.question for one in kept]


def test_a_question_of_a_tab_that_does_not_know_of_the_reply_is_given_back(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    asks = open_tab(f"{served.address}/#{chat}")
    late = open_tab(f"{served.address}/#{chat}", without="**/changes")
    served.script(said("a ", "b"))
    ask(asks, "Mine")
    served.tell(3)
    asks.wait_for_selector(".text >> text=a")
    ask(late, "Too late")
    late.wait_for_selector(".error >> text=a reply is still coming")
    late.wait_for_selector(".text >> text=a")
    served.tell(None)
    for page in (asks, late):
        ended(page)
        assert page.locator(".user").all_inner_texts() == ["Mine"]
    assert late.input_value("#question") == "Too late"


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_stop_in_one_tab_is_shown_as_stopped_in_both(
    served: ServedChat, open_tab: Any, chat: str, path: str
) -> None:
    stops, other = open_tab(f"{served.address}{path}#{chat}"), open_tab(f"{served.address}/#{chat}")
    served.script(said("one ", "two ", "three"))
    ask(stops, "Count")
    served.tell(4)
    for page in (stops, other):
        page.wait_for_selector(".text >> text=two")
    assert served.get("/test")["requests_open"] == 1
    stops.click("#stop")
    for page in (stops, other):
        ended(page, "stopped")
        assert reply_texts(page) == ["one two"]
    assert served.no_request_is_open()
    (kept,) = served.kept(chat)
    assert (kept.reply, kept.ended) == ("one two ", "stopped")
    other.reload()
    ended(other, "stopped")
    assert reply_texts(other) == ["one two"]
    served.script(said("four"))
    ask(other, "Go on")
    served.tell(None)
    ended(other)
    assert [one.ended for one in served.kept(chat)] == ["stopped", "done"]


def test_stop_before_the_model_says_anything(served: ServedChat, open_tab: Any, chat: str) -> None:
    page = open_tab(f"{served.address}/#{chat}")
    served.script(said("never"))
    ask(page, "Well?")
    assert becomes(lambda: served.requests_open() == 1)
    page.click("#stop")
    ended(page, "stopped")
    assert reply_texts(page) == []
    page.reload()
    ended(page, "stopped")


def test_stop_between_two_messages_of_an_agent(served: ServedChat, open_tab: Any, chat: str) -> None:
    """What was said is a finished message, and the protocol's stream looks finished, too."""
    pages = [open_tab(f"{served.address}{path}#{chat}") for path in ("/", "/plain")]
    asks = called("get_forecast", {"city": "Lisbon"})
    served.script(asks, said("never"))
    ask(pages[0], "Lisbon?")
    served.tell(len(asks))
    for page in pages:
        page.wait_for_selector(".tool[data-state=output-available]")
    pages[1].click("#stop")
    for page in pages:
        ended(page, "stopped")
    pages[0].reload()
    ended(pages[0], "stopped")
    served.script(said("17 °C"))
    ask(pages[0], "Once more?")
    served.tell(None)
    ended(pages[0])
    assert reply_texts(pages[0]) == ["17 °C"]


def test_a_reply_goes_on_without_a_page(served: ServedChat, open_tab: Any, chat: str) -> None:
    page = open_tab(f"{served.address}/#{chat}")
    served.script(said("all ", "of ", "it"))
    ask(page, "Go")
    served.tell(3)
    page.wait_for_selector(".text >> text=all")
    page.goto("about:blank")
    served.tell(None)
    assert served.no_request_is_open()
    page.goto(f"{served.address}/#{chat}")
    ended(page)
    assert reply_texts(page) == ["all of it"]


def test_a_reply_that_the_model_breaks_off_is_said_to_be_broken(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    pages = [open_tab(f"{served.address}{path}#{chat}") for path in ("/", "/plain")]
    served.script(said("Not the wh", "ole")[:4])
    ask(pages[0], "All of it?")
    served.tell(None)
    pages[1].reload()
    for page in pages:
        ended(page, "interrupted: the model's reply broke off")
        assert reply_texts(page) == ["Not the whole"]


def test_a_reply_that_is_too_long_is_said_to_be_cut_off(served: ServedChat, open_tab: Any, chat: str) -> None:
    page = open_tab(f"{served.address}/#{chat}")
    message = said("So long")
    message[-2]["delta"]["stop_reason"] = "max_tokens"
    served.script(message)
    ask(page, "How long?")
    served.tell(None)
    ended(page, "cut off: length")
