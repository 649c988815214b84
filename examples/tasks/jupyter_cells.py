"""A reply in a notebook. Each part behind `# %%` is a cell."""

# %%
from IPython.display import display

import rxdelta as rd
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 17}


def ask():
    # in your code: return client.messages.create(stream=True, …)
    return sample_chunks("weather", pause=0.02)


# %% The message alone: a cell shows what stands last in it
await rd.stream(ask(), tools={"get_forecast": get_forecast})

# %% The reply while it grows
area = display(display_id=True)
async with rd.stream(ask(), tools={"get_forecast": get_forecast}, every=0.1) as reply:
    async for snapshot in reply:
        area.update(snapshot)

# %% Go on with what came
[call.result.content for call in reply.message.tool_calls]
