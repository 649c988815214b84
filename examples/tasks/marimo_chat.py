"""A chat in a marimo notebook, and a reply that is drawn below a cell."""

import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import rxdelta as rd
    from rxdelta.testing import sample_chunks

    return mo, rd, sample_chunks


@app.cell
def _(rd, sample_chunks):
    def ask(messages):
        # in your code: request = rd.to_request(messages, "anthropic-messages")
        #               return client.messages.create(stream=True, **request)
        return sample_chunks("forecast", pause=0.02)

    async def answer(messages):
        said = rd.from_ai_sdk([dict(message) for message in messages])
        async with rd.stream(ask(said)) as reply:
            frames = reply.events.pipe(rd.to_ai_sdk(sdk_version=6))
            async for frame in rd.iterate(frames):
                if frame is not rd.wire.DONE:
                    yield frame

    return answer, ask


@app.cell
def _(answer, mo):
    chat = mo.ui.chat(answer)
    chat
    return (chat,)


@app.cell
async def _(ask, mo, rd):
    async with rd.stream(ask([]), every=0.1) as reply:
        async for snapshot in reply:
            mo.output.replace(mo.md(snapshot.text))
    return


if __name__ == "__main__":
    app.run()
