"""The application of "With useChat" in docs/frontends/approval.md, as it stands there."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.loops import run
from support.served_chat import called, said

httpx = pytest.importorskip("httpx")
starlette = pytest.importorskip("starlette")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "frontends" / "approval.md"
USER = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]}


@attrs.frozen
class Application:
    """The page's code, with a model that says these messages."""

    messages: list[list[Any]]
    asked: list[Any] = attrs.field(factory=list)
    paid: list[int] = attrs.field(factory=list)
    space: dict[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        section = PAGE.read_text("utf-8").partition("\n## With useChat\n")[2]
        code = re.findall("^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[0]
        exec(compile(code, "approval.md", "exec", dont_inherit=True), self.space)
        self.space.update(ask=self.ask, TOOLS={"pay": self.pay})  # in place of the page's model

    async def ask(self, fields: Any) -> Any:
        self.asked.append(fields["messages"])
        for chunk in self.messages.pop(0):
            yield chunk

    async def pay(self, amount: int) -> str:
        """Pay an amount."""
        self.paid.append(amount)
        return "paid"

    async def post(self, *messages: Any, chat: str = "c1") -> list[Any] | int:
        """The frames of the answer, or the status of a refusal."""
        transport = httpx.ASGITransport(app=self.space["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            response = await client.post("/chat", json={"id": chat, "messages": messages})
        if response.status_code != 200:
            return int(response.status_code)
        lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
        assert lines.pop() == "[DONE]"
        return [json.loads(line) for line in lines]


def answer(approved: bool, call: str = "call", reason: str | None = None) -> Any:
    approval = {"id": call, "approved": approved, "reason": reason}
    part = {"type": "tool-pay", "toolCallId": call, "state": "approval-responded", "input": {"amount": 900}}
    return {"id": "m1", "role": "assistant", "parts": [part | {"approval": approval}]}


def kinds(frames: Any) -> list[str]:
    return [frame["type"] for frame in frames if frame["type"].startswith("tool-")]


@pytest.mark.parametrize("approved", [True, False])
def test_the_call_waits_and_the_answer_goes_on_with_the_message(approved: bool) -> None:
    async def main() -> None:
        app = Application([called("pay", {"amount": 9}), said("Well.")])
        first = await app.post(USER)
        assert kinds(first)[-1] == "tool-approval-request"
        assert app.paid == []
        second = await app.post(USER, answer(approved, reason="Why not."))
        assert isinstance(second, list)
        assert (second[0]["type"], second[0]["messageId"]) == ("start", "m1")
        outcome = "tool-output-available" if approved else "tool-output-denied"
        assert kinds(second)[-1] == outcome
        assert [frame["delta"] for frame in second if frame["type"] == "text-delta"] == ["Well."]
        assert app.paid == ([9] if approved else [])
        *_, message = app.asked[-1]
        content = message["content"][0]["content"]
        assert content == ("paid" if approved else "The call was not allowed. Why not.")
        assert await app.post(USER, answer(True)) == 409
        assert app.paid == ([9] if approved else [])

    run(main)


def test_of_two_answers_at_once_the_first_counts() -> None:
    async def main() -> None:
        app = Application([called("pay", {"amount": 9}), said("Well."), said("Well.")])
        await app.post(USER)
        first, second = await asyncio.gather(*(app.post(USER, answer(True)) for _ in range(2)))
        assert (kinds(first)[-1], second) == ("tool-output-available", 409)
        assert app.paid == [9]

    run(main)


def test_only_answers_to_calls_that_wait_count() -> None:
    async def main() -> None:
        app = Application([called("pay", {"amount": 9})])
        assert await app.post(answer(True), chat="other") == 409
        await app.post(USER)
        assert await app.post(USER, answer(True), chat="other") == 409
        assert kinds(await app.post(USER, answer(True, "made-up"))) == []
        assert app.paid == []
        assert app.space["chats"]["c1"][-1].waiting_calls

    run(main)


def test_a_question_instead_of_an_answer_ends_the_waiting() -> None:
    async def main() -> None:
        app = Application([called("pay", {"amount": 9}), said("As you like.")])
        await app.post(USER)
        await app.post(USER, {**USER, "id": "u2"})
        results = [
            block for one in app.asked[-1] for block in one["content"] if block["type"] == "tool_result"
        ]
        assert [result["is_error"] for result in results] == [True]
        assert await app.post(USER, answer(True)) == 409

    run(main)
