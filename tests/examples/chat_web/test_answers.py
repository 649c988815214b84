"""Calls that wait for an answer: of a person, who allows or refuses them, and of the page, which runs tools of its own."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.served_chat import ServedChat, answer, ask, becomes, called, ended, question, reply_texts, said

BOOK = called("book_room", {"city": "Lisbon", "nights": 2})
BOTH = [*BOOK[:3], *called("book_room", {"city": "Oslo", "nights": 3}, "second", 1)[1:]]
WAITS = ".tool[data-state=approval-requested]"


QUESTION = question("A room?")


def begin(served: ServedChat, chat: str, *messages: list[Any]) -> None:
    """A reply that ends with its calls waiting."""
    served.script(*messages)
    served.tell(None)
    assert served.say(chat, QUESTION) == 200


def states(served: ServedChat, chat: str) -> list[str]:
    """The last chunk about each call that is kept of the last reply."""
    chunks = served.get(f"/api/chat/{chat}")["messages"][-1]["chunks"]
    return [*{one["toolCallId"]: one["type"] for one in chunks if "toolCallId" in one}.values()]


def results(served: ServedChat) -> list[Any]:
    """The tools' results that the model has got last."""
    return [
        block
        for message in served.get("/test")["asked"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


@pytest.mark.slow
def test_a_call_waits_through_a_restart_and_is_allowed_once_in_one_of_three_tabs(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    begin(served, chat, BOOK)
    tabs = [open_tab(f"{served.address}/#{chat}") for _ in range(2)]
    late = open_tab(f"{served.address}/#{chat}", without="**/changes")
    for page in (*tabs, late):
        page.wait_for_selector(WAITS)
    served.end(signal.SIGKILL)
    served.begin()
    served.script(said("It is ", "booked."))
    tabs[0].reload()
    tabs[0].wait_for_selector(WAITS)
    tabs[0].click("text=Approve")
    tabs[1].wait_for_selector(".tool[data-state=output-available]")
    late.click("text=Approve")  # too late: the tab is told so, and sees what has become of the call
    served.tell(None)
    for page in (*tabs, late):
        page.wait_for_selector(".text >> text=It is booked.")
        ended(page)
        assert page.locator(".tool").count() == 1
    assert served.get("/test")["booked"] == ["Lisbon"]
    assert '"confirmation":"R-1"' in results(served)[-1]["content"].replace(" ", "")
    assert [one.ended for one in served.kept(chat)] == ["done"]


def test_a_person_refuses_one_of_two_calls_and_the_model_reads_why(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    before = served.get("/test")["booked"]
    page = open_tab(f"{served.address}/#{chat}")
    served.script(BOTH, said("Only one."))
    ask(page, "Two rooms?")
    served.tell(None)
    page.locator("text=Approve").nth(1).click()
    page.wait_for_selector(".tool[data-state=approval-responded]")
    assert served.get("/test")["booked"] == before  # the answers go back together
    page.fill(".question input", "Too dear.")
    page.press(".question input", "Enter")  # presses no button
    page.click("text=Deny")
    page.wait_for_selector(".text >> text=Only one.")
    ended(page)
    for _ in range(2):
        page.wait_for_selector(".tool[data-state=output-denied] >> text=Too dear.")
        page.wait_for_selector(".tool[data-state=output-available]")
        assert reply_texts(page) == ["Only one."]
        page.reload()
    assert served.get("/test")["booked"] == [*before, "Oslo"]
    refused, _ = results(served)
    assert (refused["is_error"], refused["content"]) == (True, "The call was not allowed. Too dear.")


def test_the_page_runs_a_tool_of_its_own_also_of_a_reply_that_no_page_saw(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    begin(served, chat, called("get_time_zone", {}))
    served.script(said("Good evening."))
    served.tell(None)
    page = open_tab(f"{served.address}/#{chat}")
    page.wait_for_selector(".text >> text=Good evening.")
    ended(page)
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert page.locator(".tool[data-state=output-available]").inner_text().endswith(json.dumps(zone))
    assert results(served)[0]["content"] == zone


def test_an_answer_that_is_given_twice_runs_the_tool_once(served: ServedChat, chat: str) -> None:
    before = served.get("/test")["booked"]
    begin(served, chat, BOOK, said("Booked."))
    with ThreadPoolExecutor(4) as threads:
        statuses = list(threads.map(lambda _: served.say(chat, answer()), range(4)))
    assert sorted(statuses) == [200, 409, 409, 409]
    assert served.say(chat, answer()) == 409
    assert served.get("/test")["booked"] == [*before, "Lisbon"]


def test_only_the_answer_counts_of_what_a_page_says(served: ServedChat, chat: str) -> None:
    before = served.get("/test")["booked"]
    begin(served, chat, BOOK, said("Booked."))
    forged = [
        answer(call="other"),
        answer(state="output-available", output={"confirmation": "R-0"}),
        answer(state="input-available", approval=None),
        answer(type="tool-get_time_zone", state="output-available", output="UTC", approval=None),
        {"id": "reply", "role": "assistant", "parts": []},
    ]
    assert [served.say(chat, message) for message in forged] == [409] * len(forged)
    assert served.say(f"{chat}-other", answer()) == 409
    assert served.get("/test")["booked"] == before
    assert served.say(chat, answer(input={"city": "Oslo", "nights": 99})) == 200
    assert served.get("/test")["booked"] == [*before, "Lisbon"]
    assert results(served)[0]["tool_use_id"] == "call"


def test_each_call_is_asked_for_though_its_id_was_allowed_before(served: ServedChat, chat: str) -> None:
    before = served.get("/test")["booked"]
    begin(served, chat, BOOK, BOOK)
    assert served.say(chat, answer()) == 200
    assert served.get("/test")["booked"] == [*before, "Lisbon"]
    assert states(served, chat) == ["tool-output-available", "tool-approval-request"]


def test_one_of_two_answers_runs_its_tool_and_the_model_waits_for_the_other(
    served: ServedChat, chat: str
) -> None:
    before = served.get("/test")["booked"]
    begin(served, chat, BOTH, said("One of two."))
    assert served.say(chat, answer(call="second")) == 200
    assert served.get("/test")["booked"] == [*before, "Oslo"]
    assert served.kept(chat)[0].reply == ""
    assert served.say(chat, answer(approved=False)) == 200
    assert served.get("/test")["booked"] == [*before, "Oslo"]
    assert served.kept(chat)[0].reply == "One of two."
    assert [result.get("is_error", False) for result in results(served)] == [True, False]


def test_a_new_question_ends_the_waiting(served: ServedChat, chat: str) -> None:
    begin(served, chat, BOOK, said("As you like."))
    assert served.say(chat, QUESTION) == 200
    assert results(served)[0]["is_error"]
    assert served.say(chat, answer()) == 409


@pytest.mark.slow
def test_a_tool_that_ran_when_the_server_was_killed_is_not_run_again(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    begin(served, chat, called("book_room", {"city": "Atlantis", "nights": 1}))
    page = open_tab(f"{served.address}/#{chat}")
    page.click("text=Approve")
    assert served.has_booked("Atlantis")  # the page shows its answer before the server has it
    served.end(signal.SIGKILL)
    served.begin()
    ended(page, "interrupted: the server went away")
    assert page.locator(".question").count() == 0
    assert served.say(chat, answer()) == 409
    assert served.get("/test")["booked"] == []


@pytest.mark.slow
def test_the_plain_page_asks_too_and_every_page_sees_the_answer(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    plain, page = open_tab(f"{served.address}/plain#{chat}"), open_tab(f"{served.address}/#{chat}")
    served.script(BOOK, said("Booked. "), called("book_room", {"city": "Oslo", "nights": 1}), said("No."))
    for button, says, state in [("Approve", "Booked.", "available"), ("Deny", "No.", "denied")]:
        ask(plain, "A room?")
        served.tell(None)
        plain.click(f"text={button}")
        for one in (plain, page):
            one.wait_for_selector(f".text >> text={says}")
            ended(one)
            one.wait_for_selector(f"section:last-of-type .tool[data-state=output-{state}]")


@pytest.mark.slow
def test_a_reload_while_an_allowed_tool_runs_shows_the_whole_reply(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    begin(
        served,
        chat,
        [*said("Look: ")[:4], *called("book_room", {"city": "Lisbon", "nights": 1}, index=1)[1:]],
    )
    served.script(said("It ", "is ", "yours."))
    pages = [open_tab(f"{served.address}{path}#{chat}") for path in ("/", "/plain")]
    pages[0].click("text=Approve")
    served.tell(3)
    for page in pages:
        page.wait_for_selector(".text >> text=It")
        page.reload()
        page.wait_for_selector(".text >> text=It")
        page.wait_for_selector(".end >> text=…")
        assert becomes(lambda page=page: reply_texts(page) == ["Look:", "It"])  # a page draws the reply anew
        assert page.locator(".tool[data-state=output-available]").count() == 1
    served.tell(None)
    for page in pages:
        ended(page)
        assert reply_texts(page) == ["Look:", "It is yours."]
