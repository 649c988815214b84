"""The site's search finds what people type: thirty queries, each with pages of which one is among the first three."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest
from support.browser import page

pytestmark = [pytest.mark.slow]

WANTED = {
    "throttle": "operators tasks/draw-in-a-terminal",
    "debounce": "operators",
    "useChat": "tasks/use-chat frontends/ai-sdk",
    "FastAPI": "tasks/fastapi",
    "approval": "tasks/tools-with-approval guide/approval",
    "structured output": "tasks/structured-output",
    "pydantic": "tasks/structured-output",
    "LangGraph AG-UI": "tasks/langgraph-to-ag-ui",
    "resume": "tasks/resume-after-reload frontends/reload",
    "redact": "tasks/redact",
    "sync": "tasks/without-asyncio",
    "race two models": "tasks/race-models",
    "test": "testing tasks/test-without-network",
    "cancel": "tasks/stop-button guide/failures",
    "stop button": "tasks/stop-button",
    "retry": "tasks/retry guide/failures",
    "reasoning": "guide/reading",
    "tool": "guide/tools tutorial/*tool*",
    "websocket": "tasks/websocket",
    "install": "index tutorial/index",
    "OpenAI": "providers/openai-chat providers/openai-responses frontends/openai",
    "Claude": "providers/anthropic-messages tasks/coding-agents",
    "markdown": "operators tasks/draw-in-a-terminal",
    "error": "guide/failures help/troubleshooting",
    "Jupyter": "tasks/jupyter",
    "agent": "tasks/agent",
    "snapshot": "guide/reading help/glossary guide/pipelines",
    "decode": "guide/pipelines reference/decoding",
    "timeout": "guide/failures",
    "share": "guide/several operators",
}
FIRST = """async query => {
  const { search } = await import("/pagefind/pagefind.js");
  const { results } = await search(query);
  const found = await Promise.all(results.slice(0, 3).map(result => result.data()));
  return found.map(each => each.raw_url ?? each.url);
}"""


def name_of(url: str) -> str:
    name = url.partition("#")[0].lstrip("/").removesuffix(".html")
    return f"{name}index" if name.endswith("/") or not name else name


def test_thirty_queries_find_their_page(address: str) -> None:
    with page() as opened:
        opened.goto(f"{address}/search.html")
        first = {query: [name_of(url) for url in opened.evaluate(FIRST, query)] for query in WANTED}
    missed = {
        query: names
        for query, names in first.items()
        if not any(fnmatch(name, pattern) for name in names for pattern in WANTED[query].split())
    }
    assert missed == {}


def test_the_form_beside_a_page_leads_to_results(address: str) -> None:
    with page() as opened:
        opened.goto(f"{address}/guide/tools.html")
        form: Any = opened.locator("input[name=q]").first
        form.fill("throttle")
        form.press("Enter")
        operators = opened.locator(".pagefind-ui__result-title a[href*='operators.html']")
        operators.first.wait_for()
        assert "search.html" in opened.url
