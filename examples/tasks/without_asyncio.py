"""A plain script without asyncio: the reply is printed as it comes."""

import rxdelta as rd
from rxdelta.testing import FakeProvider

provider = FakeProvider("High water is at six.")
chunks = provider.chunks("openai-chat")  # in your code: client.chat.completions.create(stream=True, …)

with rd.stream(chunks) as reply:
    for piece in reply.text_deltas:
        print(piece, end="", flush=True)
print()
print(reply.message.status)
