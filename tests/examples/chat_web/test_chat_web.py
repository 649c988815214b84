"""`examples/chat_web` in a real browser: each part of a reply is shown as it comes, and as it is."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from base64 import b64decode
from typing import Any

import pytest
from support.served_chat import ServedChat, ask, ended, said

from rxdelta.testing import sample_chunks

pytestmark = pytest.mark.slow

QUESTION = "Lisbon or Oslo for a weekend of walking?"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WATCH = """
window.seen = [];
new MutationObserver(() => {
  for (const card of document.querySelectorAll(".tool")) {
    const state = card.querySelector("b")?.textContent + ":" + card.dataset.state;
    if (!seen.includes(state)) seen.push(state);
  }
  const said = document.querySelector(".assistant .text")?.textContent ?? "";
  if (said.includes("*")) seen.push("markdown: " + said);
}).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
"""


async def _recorded(name: str) -> list[Any]:
    return [chunk async for chunk in sample_chunks(name)]


def recorded(*names: str) -> list[list[Any]]:
    return [asyncio.run(_recorded(name)) for name in names]


WEATHER = recorded("weather", "forecast")  # before Playwright runs a loop in this thread


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_the_page_shows_a_reply_as_it_grows(served: ServedChat, open_tab: Any, chat: str, path: str) -> None:
    page = open_tab(f"{served.address}{path}#{chat}")
    wrong: list[str] = []
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("response", lambda response: response.status >= 400 and wrong.append(response.url))
    page.evaluate(WATCH)
    served.script(*WEATHER)
    ask(page, QUESTION)
    page.wait_for_selector(".end >> text=…")
    assert [one.question for one in served.kept(chat)] == [QUESTION]
    served.tell(12)
    page.wait_for_selector(".reasoning >> text=Two cities")
    served.tell(40)
    page.wait_for_selector(".assistant .text >> text=Saturday and Sunday")
    assert page.locator("#stop:visible").count() == 1
    served.tell(20)
    page.wait_for_selector(".tool[data-state=input-streaming]")
    served.tell(None)
    page.wait_for_selector(".text >> text=take skis instead")
    ended(page)
    cards = page.locator(".tool")
    assert [cards.nth(n).get_attribute("data-state") for n in range(cards.count())] == [
        "output-available"
    ] * 2
    assert '"Oslo"' in cards.nth(1).inner_text()
    seen = [state.partition(":")[2] for state in page.evaluate("seen")]
    order = ["input-streaming", "input-available", "output-available"]
    known = [state for state in seen if state in order]  # a short state may pass between two frames
    assert known == sorted(known, key=order.index)
    assert (known[0], known[-1]) == (order[0], order[-1])
    page.wait_for_selector(".search >> text=2 documents found")
    assert served.no_request_is_open()
    assert wrong == []


def test_markdown_is_shown_as_what_it_says_and_what_is_shown_stays(
    served: ServedChat, open_tab: Any, chat: str
) -> None:
    page = open_tab(f"{served.address}/#{chat}")
    page.evaluate(WATCH)
    pieces = [
        "# Ti",
        "des\n\nHigh at **no",
        "on**.\n\n1. on",
        "e\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    ]
    served.script(said(*pieces, "\n```py\nx = 1", "\n```\n", "The end."))
    ask(page, "What is a tide?")
    served.tell(3)
    page.wait_for_selector("h1 >> text=Ti")
    page.evaluate("window.heading = document.querySelector('h1')")
    served.tell(1)
    page.wait_for_selector("p strong >> text=no")
    served.tell(None)
    page.wait_for_selector(".text p >> text=The end.")
    ended(page)
    assert page.locator(".text li").all_inner_texts() == ["one", "two"]
    assert page.locator(".text td").all_inner_texts() == ["1", "2"]
    assert page.locator(".text pre code").inner_text() == "x = 1\n"
    assert page.evaluate("heading === document.querySelector('h1') && heading.textContent") == "Tides"
    assert [one for one in page.evaluate("seen") if one.startswith("markdown")] == []


def test_images_go_both_ways_and_sources_are_a_list(
    served: ServedChat, open_tab: Any, chat: str, tmp_path: Any
) -> None:
    page = open_tab(f"{served.address}/#{chat}")
    picture = tmp_path / "pixel.png"
    picture.write_bytes(b64decode(PIXEL))
    page.set_input_files("#files", picture)
    message = said("A pixel.")
    cited = {"type": "web_search_result_location", "url": "https://example.com/a", "title": "A page"}
    delta = {"type": "citations_delta", "citation": {**cited, "cited_text": "a", "encrypted_index": "x"}}
    message.insert(3, {"type": "content_block_delta", "index": 0, "delta": delta})
    served.script(message)
    ask(page, "What is this?")
    served.tell(None)
    page.wait_for_selector(".sources a >> text=A page")
    ended(page)
    for _ in range(2):
        assert page.locator(".user img").get_attribute("src") == f"data:image/png;base64,{PIXEL}"
        assert page.evaluate("document.querySelector('.user img').naturalWidth") == 1
        assert page.locator(".sources a").get_attribute("href") == "https://example.com/a"
        page.reload()
        page.wait_for_selector(".sources a")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"no json", 400),
        (b"{}", 400),
        (b"[]", 400),
        (b'{"message": 3}', 400),
        (b'{"message": {"role": "system"}}', 400),
        (b'{"message": {"role": "assistant", "parts": [{"type": "text", "text": "I"}]}}', 409),
        (rb'{"message": {"role": "user", "parts": [{"type": "text", "text": "half \ud83d"}]}}', 400),
        (b'{"message": {"role": "user", "parts": [{"type": "text", "text": "I"}], "metadata": NaN}}', 400),
        (b" " * 5_000_001, 413),
    ],
)
def test_what_is_no_message_is_refused(served: ServedChat, chat: str, body: bytes, status: int) -> None:
    refused(served, chat, body, status)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_page_of_another_origin_may_send_is_refused(served: ServedChat, chat: str, kind: str) -> None:
    refused(
        served, chat, b'{"message": {"role": "user", "parts": [{"type": "text", "text": "I"}]}}', 415, kind
    )


def refused(served: ServedChat, chat: str, body: bytes, status: int, kind: str = "application/json") -> None:
    address = f"{served.address}/api/chat/{chat}"
    request = urllib.request.Request(address, body, {"content-type": kind}, method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == status
    assert caught.value.read()
    caught.value.close()
    assert served.get(f"/api/chat/{chat}") == {"live": False, "messages": []}
