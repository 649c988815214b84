"""Grouping: one stream of events → a stream for each block, choice, message or run."""
