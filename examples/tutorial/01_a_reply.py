import rxdelta as rd
from rxdelta.testing import sample_chunks

with rd.stream(sample_chunks("weather")) as reply:
    for piece in reply.text_deltas:
        print(piece, end="")
print(reply.message.finish_reason, reply.message.usage.output_tokens)
