"""Where a pipeline begins and ends: bytes, chunks and frames. `framing`, `to_front_ends` and `to_clients` have several operators each."""
