"""Every wire format: a folder for each, and beside the folders the files that several formats use. No I/O.

Any format: `format` (what a format is, and how a server that speaks it answers), `registry` (which there are), `notes` (names in
options and metadata that one side writes and the other reads; signatures), `usage`, `runs`.
Decoders: `decoding` (their protocol, and values of a chunk), `block_events` (the events of blocks), `choices` (the decoder of the
family of OpenAI's chat), `calls` (rules of calls), `endings` (errors, and ends without a reason). `gateways` and `reasoning_tags`
wrap a decoder of any format.
Requests: `conversation` (turns, media, tools), `client_requests` and `admission` (what a client sends, and what of it is allowed).
Encoders: `encoding`, `carrying` and `provider_reply` (writing as a provider does), `front_ends` (what AG-UI and the AI SDK share).
"""
