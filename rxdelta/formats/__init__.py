"""Every wire format: a folder for each, and beside the folders the files that several formats use. No I/O.

Any format: `format` (what a format is), `registry` (which there are), `notes` (names in options and metadata that one side
writes and the other reads), `media`.
Any stream: `envelopes` (what wraps the chunks of a format), `strangers` (what resembles a format and is none).
Decoders: `decoding`, `block_writer` and `wire_blocks` (write the events of blocks), `base64_pieces`; `reasoning_tags` and
`cumulative` wrap a decoder of any format. Requests: `conversation`, `admission`. Encoders: `encoding`.
"""
