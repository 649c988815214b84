"""A seeded simulator: one integer decides a provider, its faults, a pipeline, tools, approvals and readers.

`python -m simulation 0 3000` plays these seeds and prints how often each law was judged; `python -m simulation 42` plays one,
and prints what it is. Everything runs in virtual time. The judge (`oracle`) knows what the provider was made to say, and
reads none of it with the library's own fold.

A seed is first made into a `World`, which is plain data; whatever a world leaves out is the plainest there is. So a failure
is a world that is made smaller for as long as it breaks the same law, and it prints as a program of a few lines.
"""
