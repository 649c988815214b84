"""Attacks on what people open in a browser: the page of `rxdelta inspect`, a notebook, the gateway's page, a plain text.

A real browser opens each page once, with all payloads in all places. Nothing runs, and nothing is asked for.
"""

from __future__ import annotations

import asyncio
import html
import importlib.util
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from support.attacks import STEERING, each
from support.browser import chromium
from support.timed_recordings import timed, write

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.core import clean_text, visible

ev = rd.events
ROOT = Path(__file__).resolve().parents[3]
RUN = "document.title=`owned`;window.owned=1"
FAR = "http://127.0.0.1:9/owned"

PAYLOADS: dict[str, str] = {
    # What ends the element that it is in.
    "a script": f"<script>{RUN}</script>",
    "the end of a script": f"</script><script>{RUN}</script>",
    "the end of a style": f"</style><script>{RUN}</script>",
    "the end of a title": f"</title><script>{RUN}</script>",
    "the end of a text area": f"</textarea></pre></td></li></dd><script>{RUN}</script>",
    "the end of all": f"</summary></details></div></section></main></body></html><script>{RUN}</script>",
    "the end of a picture": f"</title></rect></svg></a><script>{RUN}</script>",
    "a comment": f"<!--><script>{RUN}</script>-->",
    "the end of a comment": f"--><script>{RUN}</script>",
    "the end of CDATA": f"]]><script>{RUN}</script><![CDATA[",
    "an instruction": f"<?xml-stylesheet href='{FAR}'?><!DOCTYPE x [<!ENTITY a SYSTEM '{FAR}'>]>&a;",
    "plain text for ever": "<plaintext>",
    "a template": f"<template><script>{RUN}</script></template>",
    "no script": f"<noscript><p title='</noscript><img src=x onerror={RUN}>'></noscript>",
    "what a parser mends": f"<svg></p><style><a id='</style><img src=1 onerror={RUN}>'></style></svg>",
    "what a parser moves": f"<table><math><mtext><mglyph><style><img src=x onerror={RUN}></style></mglyph></mtext></math></table>",
    # What runs by itself.
    "a picture that fails": f"<img src=x onerror={RUN}>",
    "a picture without spaces": f"<svg/onload={RUN}>",
    "details that open": f"<details open ontoggle={RUN}>",
    "a field with the focus": f"<input autofocus onfocus={RUN}>",
    "a moving text": f"<marquee onstart={RUN}>",
    "an animation": f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    "a film": f"<video><source onerror={RUN}></video>",
    "a body": f"<body onload={RUN} onpageshow={RUN}>",
    "a frame with a document": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "a tag in capitals, with a slash": f"<ScRiPt/x>{RUN}</sCrIpT>",
    "a tag with NUL": f"<scr\0ipt>{RUN}</scr\0ipt>",
    "a tag that never ends": f"<img src=x onerror={RUN} ",
    "a tag over two lines": f"<img\nsrc=x\nonerror\n=\n{RUN}\n>",
    # What ends an attribute.
    "a quote": f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    "an apostrophe": f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    "a grave accent": f"`onmouseover={RUN}`",
    "a space": f"x onmouseover={RUN} autofocus onfocus={RUN} tabindex=1",
    "a style": "x;position:fixed;inset:0;background:url(" + FAR + ")",
    "an expression of CSS": f"expression({RUN})}}*{{background:url({FAR})}}@import '{FAR}';",
    # What asks for something elsewhere.
    "a picture": f"<img src={FAR}>![owned]({FAR})",
    "a style sheet": f"<link rel=stylesheet href={FAR}><style>@import '{FAR}'</style>",
    "another base": f"<base href={FAR}>",
    "another page after a while": f"<meta http-equiv=refresh content='0;url={FAR}'>",
    "a form": f"<form action={FAR}><button autofocus formaction=javascript:{RUN}>x</button></form>",
    "a frame": f"<iframe src={FAR}></iframe><object data={FAR}></object><embed src={FAR}>",
    "a page to fetch first": f"<link rel=prefetch href={FAR}><link rel=dns-prefetch href=//owned.example>",
    # What a link may be.
    "javascript:": f"javascript:{RUN}",
    "javascript: as a link": f"<a href=javascript:{RUN}>x</a>[x](javascript:{RUN})<javascript:{RUN}>",
    "javascript: with a tab": f"java\tscript:{RUN}",
    "data:": f"data:text/html,<script>{RUN}</script>",
    "data: in Base64": "data:text/html;base64,PHNjcmlwdD5kb2N1bWVudC50aXRsZT0nb3duZWQnPC9zY3JpcHQ+",
    "vbscript:": "vbscript:owned",
    "a link with another name": f"[bank](<{FAR}>) [bank][1]\n\n[1]: {FAR}\n",
    "a formula that is a link": rf"$\href{{javascript:{RUN}}}{{x}}$ \[\style{{position:fixed}}{{x}}\] $$\class{{x}}{{y}}$$",
    # What is decoded once too often.
    "entities": f"&lt;script&gt;{RUN}&lt;/script&gt;",
    "numbers of entities": f"&#60;script&#62;{RUN}&#x3c;/script&#x3e;",
    "an entity in an entity": f"&amp;lt;script&amp;gt;{RUN}",
    "escapes of a URL": f"%3Cscript%3E{RUN}%3C/script%3E",
    "escapes of JSON": f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    "escapes of C": f"\\x3cscript\\x3e{RUN}",
    "wide letters": f"\uff1cscript\uff1e{RUN}\uff1c/script\uff1e",
    "UTF-7": f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    "two bytes of another coding": f"\xbcscript\xbe{RUN}\xbc/script\xbe",
    # Templates.
    "braces": "{{constructor.constructor('window.owned=1')()}}${window.owned=1}#{7*7}",
    "marks of servers": "<%= owned %><?php owned ?>{% owned %}%(x)s%s{0}",
    # Characters.
    "a turn of the direction": "\u202egpj.\u2066exe\u2069",
    "control characters": "\x1b[2J\x07\x08\x9b2J\x00\x7f",
    "lines of JavaScript": f"\u2028{RUN}\u2029",
    "half a pair": f"\ud83d<script>{RUN}</script>\ude00",
    "a mark of the byte order": f"\ufeff<script>{RUN}</script>",
    "long": "<" * 3_000,
}  # fmt: skip
MARKED = {name: f"owned-{number}- {text}" for number, (name, text) in enumerate(PAYLOADS.items())}
SEEN = [f"owned-{number}-" for number in range(len(PAYLOADS))]


def everywhere(number: int, text: str) -> list[Any]:
    """Events of a reply that has a text in every place. A citation, a result and a chunk are places, too."""
    run = f"{number}{text}"
    of = {"run_id": run}
    source = {"title": text, "url": text, "cited_text": text}
    calls = [
        ("a", {"type": "tool_call_chunk", "id": f"a{text}", "name": text}),
        ("b", {"type": "tool_call_chunk", "id": "b", "name": f"n{text}"}),
    ]
    told: list[Any] = [
        ev.MessageStart(text, text, metadata={text: text}, parent_run_id=text, **of),
        ev.BlockStart(0, {"type": "text"}, **of),
        ev.TextDelta(0, text, **of),
        ev.BlockDelta(0, {"citations": [source], text: text}, **of),
        ev.BlockFinish(0, **of),
        ev.BlockStart(1, calls[0][1], **of),
        ev.ToolCallDelta(1, json.dumps({text: text}), **of),
        ev.BlockFinish(1, **of),
        ev.BlockStart(2, calls[1][1], **of),
        ev.ToolCallDelta(2, text, **of),
        ev.BlockFinish(2, **of),
        ev.BlockStart(3, {"type": text}, **of),
        ev.BlockFinish(3, **of),
        ev.ToolUpdate(f"a{text}", "executing", text, **of),
        ev.ToolUpdate(f"a{text}", "completed", result=rd.ToolResult(f"a{text}", {text: text}), **of),
        ev.Custom(text, {text: text}, **of),
        ev.ProviderEvent(text, text, {text: text}, **of),
        ev.MessageFinish("stop", text, **of),
        ev.TextDelta(9, text, **of),
    ]  # fmt: skip
    return told


@pytest.fixture(scope="module")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a recording with a reply for each payload, whose file's name is one, too."""
    path = tmp_path_factory.mktemp("pages") / "'\"><img src=x onerror=alert(1)><!--\u202e.jsonl"
    events = [one for number, text in enumerate(MARKED.values()) for one in everywhere(number, text)]
    worst = MARKED["a script"]
    events.append(ev.StreamError(worst, worst, worst))
    page = path.with_name("page.html")
    assert main(["inspect", write(path, timed(events, 0.01)), "--html", str(page)]) == 3
    return page


def marked(body: Iterator[str] | str) -> str:
    text = "".join(body)
    return f"<!doctype html><meta charset=utf-8><title>ours</title><body>{text}</body>"


def drawn_in_a_notebook() -> str:
    """What a notebook makes of replies with the payloads: its markdown lets HTML through, and makes links of addresses."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True})
    replies = [
        rd.Message.of(
            "assistant",
            [
                text,
                f"`{text}` and\n\n```{text}\n{text}\n```\n{text}",
                rd.ContentPart("reasoning", text),
                rd.ToolCall(call_id="c", name=text, arguments={text: text}, status="complete"),
            ],
        )
        for text in MARKED.values()
    ]
    return marked(markdown.render(reply._repr_markdown_()) for reply in replies)


def sent_by(response: Any) -> tuple[dict[str, str], bytes]:
    """The headers and the body that a response of ASGI sends."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(response(scope, asyncio.Event().wait, send))
    head = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return head, b"".join(message.get("body", b"") for message in messages)


def plain_text() -> tuple[dict[str, str], bytes]:
    from rxdelta.asgi import TextResponse

    said = rd.to_events(rd.Message.of("assistant", "\n".join(MARKED.values())))
    return sent_by(TextResponse(rx.from_iterable(said)))


def gateways_page() -> tuple[dict[str, str], bytes]:
    spec = importlib.util.spec_from_file_location("attacked_gateway", ROOT / "examples" / "gateway.py")
    assert spec is not None
    assert spec.loader is not None
    gateway: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gateway)
    gateway.entries.extend(gateway.Entry(text, text, True, 1, ended=text) for text in MARKED.values())
    return sent_by(gateway.app)


def give(url: str, headers: dict[str, str], body: bytes, asked: list[str], route: Any) -> None:
    """Answer the browser's first request with the page, and no other."""
    asked.append(route.request.url)
    if asked == [url]:
        route.fulfill(status=200, headers=headers, body=body)
    else:
        route.abort()


@pytest.mark.skipif(sys.platform == "win32", reason="names of files")
def test_a_browser_runs_nothing_of_any_page_and_asks_for_nothing(inspected: Path) -> None:
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package)
    html_of = {"content-type": "text/html; charset=utf-8"}
    pages: dict[str, tuple[dict[str, str], bytes]] = {
        "inspected": (html_of, inspected.read_bytes()),
        "notebook": (html_of, drawn_in_a_notebook().encode(errors="replace")),
        "gateway": gateways_page(),
        "plain": plain_text(),
    }
    with chromium() as browser:
        for name, (headers, body) in pages.items():
            context = browser.new_context()
            opened = context.new_page()
            url = f"http://{name}.test/"
            asked: list[str] = []
            said: list[str] = []

            context.route("**/*", partial(give, url, headers, body, asked))
            opened.on("dialog", lambda dialog, said=said: said.append(dialog.message))
            opened.on("console", lambda message, said=said: said.append(message.text))
            opened.on("pageerror", lambda error, said=said: said.append(str(error)))
            opened.goto(url)
            title = opened.title()
            found = opened.evaluate(
                """() => {
                    document.querySelectorAll('details').forEach(one => one.open = true)
                    const all = [...document.querySelectorAll('*')]
                    return {
                        owned: window.owned, type: document.contentType, text: document.documentElement.textContent,
                        tags: [...new Set(all.map(one => one.localName))],
                        handlers: all.flatMap(one => [...one.attributes].filter(at => at.name.startsWith('on')).map(at => at.name)),
                        links: all.flatMap(one => [...one.attributes].filter(at => /href|src|action|data|srcdoc/.test(at.name)).map(at => at.value)),
                    }
                }"""
            )
            opened.keyboard.press("Tab")  # what waits for the focus
            opened.mouse.move(100, 100)
            assert opened.evaluate("window.owned") is None
            context.close()
            assert said == [], name
            assert asked == [url], name
            assert found["owned"] is None
            assert "owned" not in title.replace("owned-", "")
            assert found["handlers"] == []
            assert all(link.startswith("#") for link in found["links"]), name
            assert not set(found["tags"]) & {
                "script",
                "img",
                "iframe",
                "base",
                "form",
                "object",
                "embed",
                "link",
                "template",
            }
            assert found["type"] == ("text/plain" if name == "plain" else "text/html")
            missing = [mark for mark in SEEN if mark not in found["text"]]
            assert missing == [], name


@each(MARKED)
def test_a_payload_is_text_on_the_inspectors_page(inspected: Path, row: str) -> None:
    page = inspected.read_text("utf-8")
    shown = html.escape(visible(clean_text(row[:40]), lines=False))
    assert page.count(shown) > 10
    assert not set(row[:40]) & set("<>&\"'") or row[:40] not in page
    assert not STEERING.search(page)


@each(MARKED)
def test_a_payload_is_text_in_a_notebook(row: str) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True, "linkify": False})
    drawn = rd.Message.of("assistant", row)._repr_markdown_()
    page = markdown.render(drawn)
    for forbidden in (
        "<script",
        "<img",
        "<svg",
        "<a ",
        "<iframe",
        "<style",
        "<!--",
        "<meta",
        "<base",
        "<form",
        "<input",
    ):
        assert forbidden not in page.lower()
    for macro in (r"\href", r"\style", r"\class"):
        assert macro not in drawn
    assert not STEERING.search(drawn.replace("\u2028", ""))
