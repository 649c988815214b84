"""A chat in a terminal app: a new question ends the reply that still comes."""

from textual import work
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Markdown

import rxdelta as rd
from rxdelta.cli import visible
from rxdelta.testing import sample_chunks


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


class Chat(App[None]):
    AUTO_FOCUS = "Input"

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[rd.Message] = []

    def compose(self) -> ComposeResult:
        yield VerticalScroll()
        yield Input(placeholder="Ask …")

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        submitted.input.clear()
        self.answer(submitted.value)

    @work(exclusive=True)
    async def answer(self, question: str) -> None:
        self.messages.append(rd.Message.of("user", question))
        shown = Markdown()
        scroll = self.query_one(VerticalScroll)
        await scroll.mount(Markdown(f"> {visible(question)}"), shown)
        scroll.anchor()
        try:
            async with rd.stream(ask(self.messages), every=0.05) as reply:
                async for snapshot in reply:
                    await shown.update(visible(snapshot.text))
            self.messages.append(reply.message)
        except rd.RxDeltaError as error:  # what has come stays
            self.notify(visible(str(error)), severity="error", markup=False)


if __name__ == "__main__":
    Chat().run()
